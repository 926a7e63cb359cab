import type { Request, RequestHandler } from 'express';
import * as z from 'zod';
import { type BatchResult, MAX_STREAMS, readBatchBody, tooManyStreams } from '../api/batch';
import { planBatch } from '../api/plan-batch';
import type { Planned, WithStream } from '../api/plan-entry';
import type { KeyFileRequest } from '../api/read-key-file-request';
import { requireJson } from '../http/app';
import { describeThrown, HttpError, type Problem, parsedOr400, toHttpError } from '../http/errors';
import type { Log } from '../http/log';
import { createSemaphore, type Semaphore, yieldToEventLoop } from '../http/semaphore';
import type { Provisioned } from '../provider/provision';
import { RefusalError } from '../provider/upstream';
import { callerOf, requireScope, requireWrite } from './access/api-key';
import { apiError } from './errors';
import type { Accepted } from './fleet/wait';
import { type Actor, changedBy, lineChanges, type PutOutcome } from './key-files/changes';
import { actorOf, type KeyFileContext, warningText } from './key-files/routes';
import type { Refusals } from './observe/refusals';
import { createReadBatch, dryRunSwitch, readChangeQuery } from './read-request';

export interface BatchContext extends Omit<KeyFileContext, 'store'> {
  readonly refusals: Refusals;
  readonly log: Log;
  /** Takes the error of every stream that fails. Must not throw. */
  readonly onError?: ((error: HttpError) => void) | undefined;
  /** Whether the service stops: no further stream is begun then. */
  readonly stopping: () => boolean;
  /** Whether what is written goes to a fleet. */
  readonly hasFleet?: boolean;
  /** How long a body may take to arrive. */
  readonly mostReceiveMs?: number;
  readonly mostStreams?: number;
}

/** Each may hold its body, what is read of it, and its answer: tens of megabytes. */
const MAX_BATCHES = 4;
/**
 * How many writes, and how many provisionings of up to three upstream calls, all batches have under way together. A write
 * of a fleet waits for its engine most of the time, which decides 64 in one transaction; two of these are under way.
 */
const MAX_WRITES = 32;
const MAX_FLEET_WRITES = 128;
const MAX_PROVISIONINGS = 8;
/** A batch of nothing but faults must not make an answer without bounds. */
const MAX_PROBLEMS = 10;

/** After this number of timeouts in a row, an upstream is not called for the rest of a batch. */
const MAX_LATE = 24;
/** After this number of refusals of a client in a row, nothing more is requested for it. */
const MAX_REFUSED = 5;

/** A batch in progress, with the results of its streams. */
interface Run {
  readonly actor: Actor;
  readonly dryRun: boolean;
  /** The client waits until every packager of the fleet has everything. */
  readonly awaited: boolean;
  readonly breaker: CircuitBreaker;
  /** Each result as the JSON that it will be in the answer. */
  readonly results: Map<Planned, string>;
  readonly summary: Record<BatchResult['result'], number>;
  /** The changes that a fleet has accepted, in their order. */
  readonly accepted: Accepted[];
  /** Of each kind of failure that a single request would have been logged for, the first one. */
  readonly failures: Map<string, { readonly first: HttpError; count: number }>;
}

/** Streams with the same keys. */
interface Group {
  readonly request: KeyFileRequest;
  readonly streams: (Planned & WithStream)[];
}

/**
 * `POST /api/keyfiles`: many streams and groups at once, each stream for itself, so that what fails fails alone. A batch
 * that has begun is done, also when its client goes away, as a single POST is. A key file that would not change is not
 * written.
 */
export function createBatch(context: BatchContext) {
  const { changes, provision, rules, refusals, wait, log, onError, stopping } = context;
  const { hasFleet = false, mostReceiveMs, mostStreams = MAX_STREAMS } = context;
  const readBody = createReadBatch(mostReceiveMs);
  const query = z.strictObject({ dryrun: dryRunSwitch, wait: wait.parameter });
  const mostWrites = hasFleet ? MAX_FLEET_WRITES : MAX_WRITES;
  const writes = createSemaphore(mostWrites);
  const places = { supplied: createSemaphore(mostWrites), provider: createSemaphore(MAX_PROVISIONINGS) };
  const underWay = new Set<Promise<unknown>>();

  const handle: RequestHandler = async (request, response) => {
    requireScope(callerOf(response));
    if ((request.headers['if-match'] ?? request.headers['if-none-match']) !== undefined)
      throw apiError('invalid_header', FOR_SINGLE_STREAMS);
    const { dryrun: dryRun, wait: seconds } = readChangeQuery(query, request);
    // Checked before a body is received in vain, and again afterwards.
    if (underWay.size >= MAX_BATCHES) throw apiError('too_many_batches', TOO_MANY_BATCHES);
    await readBody(request, response);
    if (underWay.size >= MAX_BATCHES) throw apiError('too_many_batches', TOO_MANY_BATCHES);
    if (stopping()) throw apiError('stopping');
    const actor = actorOf(request, response);
    const running = run(request, { actor, dryRun, awaited: seconds !== undefined });
    underWay.add(running);
    const { text, accepted } = await running.finally(() => underWay.delete(running));
    // A client that waits for packagers holds no place: others may write meanwhile.
    const { status, warnings, headers } = await wait.settle(accepted, seconds, actor.requestId);
    response.set(headers);
    if (warnings.length > 0) response.setHeader('warning', warnings.map(warningText));
    response.setHeader('cache-control', 'no-store');
    response.status(status).type('json').send(text);
  };

  /** Writes what the request says. */
  const run = async (request: Request, asked: Pick<Run, 'actor' | 'dryRun' | 'awaited'>) => {
    const body = parsedOr400(readBatchBody(request.body, mostStreams));
    const plan: Planned[] = [];
    for (const planned of planBatch(body, { rules })) {
      // Others are served between one step and the next.
      await yieldToEventLoop();
      if (plan.push(planned) > mostStreams) parsedOr400(tooManyStreams(mostStreams));
    }
    const summary = { created: 0, changed: 0, unchanged: 0, failed: 0 };
    const empty = { results: new Map(), accepted: [], failures: new Map() };
    const started: Run = { ...asked, breaker: createCircuitBreaker(), summary, ...empty };
    await writePlan(plan, started);
    const { results, failures, accepted, dryRun } = started;
    const { requestId } = asked.actor;
    for (const [code, { first, count }] of failures) {
      const cause = first.cause === undefined ? undefined : describeThrown(first.cause);
      log.error('streams of a batch failed', { requestId, status: first.status, code, count, cause });
    }
    log.info('batch', { requestId, dryRun, ...summary });
    // Megabytes, which need not wait for packagers.
    request.body = undefined;
    const list = plan.map((planned) => results.get(planned)).join(',');
    return { text: `{"results":[${list}],"summary":${JSON.stringify(summary)}}`, accepted };
  };

  const writePlan = async (plan: readonly Planned[], started: Run): Promise<void> => {
    const groups = new Map<KeyFileRequest, Group>();
    for (const planned of plan) {
      try {
        if (planned.streamId === undefined) throw new HttpError(400, planned.request.problems);
        requireWrite(started.actor.apiKey, planned.streamId);
        const request = parsedOr400(planned.request);
        const group = groups.get(request) ?? { request, streams: [] };
        groups.set(request, group);
        group.streams.push(planned);
      } catch (thrown) {
        report(planned, toHttpError(thrown), started);
      }
    }
    const all = [...groups.values()];
    const isProvided = ({ request }: Group) => request.source === 'provider';
    await Promise.all([
      writeGroups(
        all.filter((group) => !isProvided(group)),
        places.supplied,
        started,
      ),
      writeGroups(all.filter(isProvided), places.provider, started),
    ]);
  };

  const writeGroups = async (groups: readonly Group[], { enter }: Semaphore, started: Run): Promise<void> => {
    const writing: Promise<void>[] = [];
    for (const group of groups) {
      await yieldToEventLoop();
      const leaveGroup = await enter();
      writing.push(writeGroup(group, started).finally(leaveGroup));
    }
    await Promise.all(writing);
  };

  const writeGroup = async ({ request, streams }: Group, started: Run): Promise<void> => {
    const keys = keysOf(request, started);
    await keys.catch(() => undefined);
    const writing: Promise<void>[] = [];
    for (const stream of streams) {
      const leaveWrite = await writes.enter();
      writing.push(write(stream, keys, started).finally(leaveWrite));
    }
    await Promise.all(writing);
  };

  const keysOf = async (request: KeyFileRequest, { actor, breaker }: Run): Promise<Provisioned> => {
    if (stopping()) throw apiError('stopping');
    const ask = () => provision(request, actor.requestId);
    return request.source === 'provider' ? breaker(request, ask) : ask();
  };

  const write = async (
    planned: Planned & WithStream,
    keys: Promise<Provisioned>,
    started: Run,
  ): Promise<void> => {
    const { actor, dryRun, awaited } = started;
    try {
      if (stopping()) throw apiError('stopping');
      const options = { dryRun, skipUnchanged: true, awaited };
      report(planned, await changes.put(planned.streamId, await keys, actor, options), started);
    } catch (thrown) {
      report(planned, toHttpError(thrown), started);
    }
  };

  const report = (planned: Planned, outcome: PutOutcome | HttpError, started: Run): void => {
    const { actor, dryRun, results, summary, accepted, failures } = started;
    const result = resultOf(planned, outcome, dryRun);
    summary[result.result] += 1;
    results.set(planned, JSON.stringify(result));
    if (!(outcome instanceof HttpError)) {
      const { fleet } = outcome;
      if (planned.streamId && fleet) accepted.push({ streamId: planned.streamId, fleet });
      return;
    }
    onError?.(outcome);
    refusals.failed(outcome, { ...changedBy(actor), streamId: planned.streamId }, dryRun);
    const code = outcome.problems[0]?.code ?? '';
    const known = failures.get(code);
    if (known) known.count += 1;
    else if (outcome.status >= 500) failures.set(code, { first: outcome, count: 1 });
  };

  return {
    /** Behind the guard. */
    handlers: [requireJson, handle],
    /** Resolves when no batch writes any more. Those that come after `stopping` said so write nothing. */
    async idle(): Promise<void> {
      await Promise.allSettled(underWay);
    },
  };
}

const FOR_SINGLE_STREAMS =
  'If-Match and If-None-Match are for single streams: a batch has many files. Nothing was written; leave them out, or POST to /api/keyfile/{streamid}.';
const TOO_MANY_BATCHES = `${MAX_BATCHES} batches are under way. Nothing of this one was written; send it again when they are done.`;

function resultOf(
  { index, streamId }: Planned,
  outcome: PutOutcome | HttpError,
  dryRun: boolean,
): BatchResult {
  const entry = { index, streamid: streamId ?? null };
  if (outcome instanceof HttpError)
    return { ...entry, result: 'failed', errors: outcome.problems.slice(0, MAX_PROBLEMS).map(asProblem) };
  const { result, etag, warnings, bytes, former } = outcome;
  const changed = lineChanges(bytes.toString('utf8'), former).flatMap(({ change, ...line }) =>
    change === 'same' ? [] : [{ ...line, change }],
  );
  return {
    ...entry,
    result,
    etag,
    ...(dryRun && result !== 'unchanged' && { lines: changed }),
    ...(warnings.length > 0 && { warnings: warnings.map(asProblem) }),
  };
}

function asProblem({ code, description }: Problem): Problem {
  return { code, description };
}

/**
 * Runs what asks upstreams in the name of a client, as long as they answer in time and take the client: ten thousand
 * timeouts would take hours, and as many refusals minutes.
 */
type CircuitBreaker = <T>(
  asking: { readonly client?: string | undefined; readonly clientApiKey?: string | undefined },
  ask: () => Promise<T>,
) => Promise<T>;

export function createCircuitBreaker(): CircuitBreaker {
  /** The failures that follow each other, of all streams and of each client. */
  let late: HttpError[] = [];
  const refusals = new Map<string, HttpError[]>();
  return async ({ client = '', clientApiKey = '' }, ask) => {
    const name = `${client}\n${clientApiKey}`;
    const refused = refusals.get(name) ?? [];
    if (late[0] && late.length >= MAX_LATE)
      throw notAsked(late[0], `${MAX_LATE} streams of this batch in a row were not provisioned in time`);
    if (refused[0] && refused.length >= MAX_REFUSED) {
      const whom = refused[0] instanceof RefusalError ? 'what it is asked with' : 'this client';
      throw notAsked(refused[0], `an upstream refused ${whom} ${MAX_REFUSED} times in a row`);
    }
    const note = (failure?: HttpError) => {
      late = failure?.status === 504 ? [failure, ...late] : [];
      refusals.set(name, failure && isRefusal(failure) ? [failure, ...(refusals.get(name) ?? [])] : []);
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

function isRefusal(error: HttpError): boolean {
  const code = error.problems[0]?.code;
  return error instanceof RefusalError || code === 'client_unknown' || code === 'client_api_key_refused';
}

function notAsked({ status, problems }: HttpError, why: string): HttpError {
  const advice = ADVICE[status] ?? 'correct the headers for the key provider, and send the batch again';
  const description = `Not tried: ${why}. No key file was changed; ${advice}.`;
  return new HttpError(status, { code: problems[0]?.code ?? 'key_provider_failed', description });
}

const ADVICE: Readonly<Record<number, string>> = {
  422: 'check client and clientApiKey, and send the batch again',
  504: 'send the batch again later',
};
