import type { Fields, PlannedMember, PlannedOfEntry, PlannedStream } from '../../api/batch';
import {
  type KeyFileRequest,
  type ProviderRules,
  parseKeyFileRequest,
} from '../../api/read-key-file-request';
import { HttpError, parsedOr400, toHttpError } from '../../http/errors';
import { createSemaphore, type Semaphore, yieldToEventLoop } from '../../http/semaphore';
import { mayWrite, requireWrite } from '../access/api-key';
import { apiError } from '../errors';
import type { Actor, KeyFileChanges, PutOutcome } from '../key-files/changes';
import type { Provision } from '../provisioning/provision';
import { RefusalError } from '../provisioning/upstream';

/**
 * How many writes, and how many provisionings of up to three upstream calls, all batches have under way together. A write
 * of a fleet waits for its engine most of the time, which decides 64 in one transaction; two of these are under way.
 */
const MAX_WRITES = 32;
const MAX_FLEET_WRITES = 128;
const MAX_PROVISIONINGS = 8;

/** Takes what became of one of the planned. */
type Report = (planned: PlannedOfEntry, outcome: PutOutcome | HttpError) => void;

interface BatchRun {
  readonly plan: readonly PlannedOfEntry[];
  readonly actor: Actor;
  readonly dryRun: boolean;
  /** The client waits until every packager of the fleet has everything. */
  readonly awaited: boolean;
  readonly report: Report;
  /** Awaited between streams. */
  readonly pause: () => Promise<void> | undefined;
}

interface RunContext {
  readonly changes: KeyFileChanges;
  readonly provision: Provision;
  /** The fields that the key provider needs and takes. */
  readonly rules?: ProviderRules | undefined;
  /** Whether the service stops: what is not begun by then is not done. */
  readonly stopping: () => boolean;
  /** Whether what is written goes to a fleet. */
  readonly hasFleet?: boolean | undefined;
}

type Task = () => Promise<void>;
type OfEntry<Plan> = Plan & { readonly index: number };

/**
 * Makes what does what batches plan: each stream for itself, so that what fails fails alone. A key file that would not
 * change is not written. The run ends when everything is reported, and rejects for none of it.
 */
export function createRunBatch({
  changes,
  provision,
  rules,
  stopping,
  hasFleet = false,
}: RunContext): (run: BatchRun) => Promise<void> {
  const writes = createSemaphore(hasFleet ? MAX_FLEET_WRITES : MAX_WRITES);
  const provisionings = createSemaphore(MAX_PROVISIONINGS);

  const documents = createSemaphore(1);

  /** A CPIX document may take some milliseconds to read: others are served between one and the next. */
  const read = async (fields: Fields) => {
    if ((fields.cpix ?? null) === null) return parseKeyFileRequest(fields, { rules });
    const leave = await documents.enter();
    try {
      // A free place is entered at once, so others have not been served yet.
      await yieldToEventLoop();
      return parseKeyFileRequest(fields, { rules });
    } finally {
      leave();
    }
  };

  return async ({ plan, actor, dryRun, awaited, report, pause }) => {
    const options = { dryRun, skipUnchanged: true, awaited };
    const breaker = createCircuitBreaker();

    const runWithin = async (limit: Semaphore, tasks: readonly Task[]): Promise<void> => {
      const underWay: Promise<void>[] = [];
      for (const task of tasks) {
        await pause();
        const leave = await limit.enter();
        underWay.push(task().finally(leave));
      }
      await Promise.all(underWay);
    };

    const settle = async (
      planned: OfEntry<PlannedStream | PlannedMember>,
      put: () => Promise<PutOutcome>,
    ) => {
      try {
        if (stopping()) throw stoppingError();
        requireWrite(actor.apiKey, planned.streamId);
        report(planned, await put());
      } catch (thrown) {
        report(planned, toHttpError(thrown));
      }
    };

    const putStream = async (planned: PlannedStream): Promise<PutOutcome> => {
      const { streamId, fields } = planned;
      const put = async () => {
        const request = parsedOr400(await read(fields));
        return changes.put(streamId, await provision(request, actor.requestId), actor, options);
      };
      return asksProvider(planned) ? breaker(fields, put) : put();
    };

    const writing: Promise<void>[] = [];
    /** Provisions the keys of a group and starts to write its members, without waiting for them. */
    const putGroup = async ({ request, members }: Group) => {
      const ask = () => provision(request, actor.requestId);
      const isReached = !stopping() && members.some(({ streamId }) => mayWrite(actor.apiKey, streamId));
      // Nothing is provisioned for members that are all refused.
      const keys = isReached ? (request.source === 'provider' ? breaker(request, ask) : ask()) : undefined;
      await keys?.catch(() => undefined);
      const put = async ({ streamId }: PlannedMember) =>
        changes.put(streamId, await (keys ?? Promise.reject(stoppingError())), actor, options);
      const tasks = members.map((member) => () => settle(member, () => put(member)));
      writing.push(runWithin(writes, tasks));
    };

    for (const planned of plan) {
      if (planned.kind !== 'failed') continue;
      await pause();
      report(planned, new HttpError(400, planned.problems));
    }
    const streams = plan.filter((planned) => planned.kind === 'stream');
    const groups = groupsOf(plan);
    const streamTasks = (chosen: readonly OfEntry<PlannedStream>[]): Task[] =>
      chosen.map((stream) => () => settle(stream, () => putStream(stream)));
    const groupTasks = (chosen: readonly Group[]): Task[] => chosen.map((group) => () => putGroup(group));
    const supplied = [
      ...streamTasks(streams.filter((stream) => !asksProvider(stream))),
      ...groupTasks(groups.filter(({ request }) => request.source !== 'provider')),
    ];
    const provided = [
      ...streamTasks(streams.filter(asksProvider)),
      ...groupTasks(groups.filter(({ request }) => request.source === 'provider')),
    ];
    await Promise.all([runWithin(writes, supplied), runWithin(provisionings, provided)]);
    await Promise.all(writing);
  };
}

/** Why a stream, or a whole batch, is not done. */
export function stoppingError(): HttpError {
  return apiError('stopping');
}

/** Whether a stream's keys will be provisioned, before its fields are read to the end. */
function asksProvider({ fields: { cenc, fairplay, keyfile, cpix } }: PlannedStream): boolean {
  return (cenc ?? fairplay ?? keyfile ?? cpix ?? null) === null;
}

interface Group {
  readonly request: KeyFileRequest;
  readonly members: readonly OfEntry<PlannedMember>[];
}

function groupsOf(plan: readonly PlannedOfEntry[]): Group[] {
  const groups = new Map<KeyFileRequest, OfEntry<PlannedMember>[]>();
  for (const planned of plan) {
    if (planned.kind !== 'member') continue;
    const members = groups.get(planned.request) ?? [];
    members.push(planned);
    groups.set(planned.request, members);
  }
  return [...groups].map(([request, members]) => ({ request, members }));
}

/** After so many answers in a row that came too late, an upstream is not asked for the rest of a batch. */
const MAX_LATE = 24;
/** After so many refusals of a client in a row, nothing more is asked in its name. */
const MAX_REFUSED = 5;
const REFUSALS: readonly (string | undefined)[] = ['client_unknown', 'client_api_key_refused'];

/** In whose name upstreams are asked, as far as a request says it. */
interface Asking {
  readonly client?: unknown;
  readonly clientApiKey?: unknown;
}

/**
 * Runs what asks upstreams, as long as they answer in time and take the client: ten thousand timeouts would take hours,
 * and as many refusals minutes.
 */
type CircuitBreaker = <T>(asking: Asking, ask: () => Promise<T>) => Promise<T>;

export function createCircuitBreaker(): CircuitBreaker {
  const late = createStreak(MAX_LATE);
  const refused = new Map<string, Streak>();
  return async ({ client, clientApiKey }, ask) => {
    const name = [client, clientApiKey].map((part) => (typeof part === 'string' ? part : '')).join('\n');
    const refusals = refused.get(name) ?? createStreak(MAX_REFUSED);
    refused.set(name, refusals);
    const tooLate = late.end();
    if (tooLate)
      throw notAsked(tooLate, `${MAX_LATE} streams of this batch in a row were not provisioned in time`);
    const refusal = refusals.end();
    if (refusal) {
      const whom = refusal instanceof RefusalError ? 'what it is asked with' : 'this client';
      throw notAsked(refusal, `an upstream refused ${whom} ${MAX_REFUSED} times in a row`);
    }
    const note = (error?: HttpError) => {
      late.note(error?.status === 504 ? error : undefined);
      refusals.note(isRefusal(error) ? error : undefined);
    };
    try {
      const answer = await ask();
      note();
      return answer;
    } catch (thrown) {
      note(toHttpError(thrown));
      throw thrown;
    }
  };
}

function isRefusal(error: HttpError | undefined): boolean {
  return error instanceof RefusalError || REFUSALS.includes(error?.problems[0]?.code);
}

/** Counts failures of a kind that follow each other. */
interface Streak {
  /** Takes a failure, or what is none of its kind. */
  note(error: HttpError | undefined): void;
  /** The last failure, when there were too many. */
  end(): HttpError | undefined;
}

function createStreak(most: number): Streak {
  let count = 0;
  let last: HttpError | undefined;
  return {
    note(error) {
      count = error ? count + 1 : 0;
      last = error;
    },
    end: () => (count >= most ? last : undefined),
  };
}

function notAsked({ status, problems }: HttpError, why: string): HttpError {
  const advice =
    ADVICE[status] ?? 'correct the headers that the key provider wants, and send the batch again';
  const description = `Not tried: ${why}. No key file was changed; ${advice}.`;
  return new HttpError(status, { code: problems[0]?.code ?? 'key_provider_failed', description });
}

const ADVICE: Readonly<Record<number, string>> = {
  422: 'check client and clientApiKey, and send the batch again',
  504: 'send the batch again later',
};
