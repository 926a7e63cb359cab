import type { Request, RequestHandler, Response } from 'express';
import { type BatchResult, type BatchSummary, type PlannedOfEntry, readBatchBody } from '../../api/batch';
import { planBatch } from '../../api/plan-batch';
import type { ProviderRules } from '../../api/read-key-file-request';
import type { StreamId } from '../../api/stream-id';
import { requireJson } from '../../http/app';
import { describeThrown, HttpError, type Problem, parsedOr400 } from '../../http/errors';
import type { Log } from '../../http/log';
import { createPause, yieldToEventLoop } from '../../http/semaphore';
import { callerOf, requireScope } from '../access/api-key';
import { apiError } from '../errors';
import { type Accepted, type FleetWait, WAIT } from '../fleet/wait';
import { attemptOf, type KeyFileChanges, type PutOutcome } from '../key-files/changes';
import { lineChanges } from '../key-files/dry-run';
import { warningText } from '../key-files/handlers';
import { actorOf } from '../key-files/routes';
import type { Refusals } from '../observe/refusals';
import type { Provision } from '../provisioning/provision';
import { createReadBatch } from '../request-body';
import { isDryRun } from '../storage/conditions';
import { createRunBatch, stoppingError } from './run-batch';

export interface BatchContext {
  readonly changes: KeyFileChanges;
  readonly provision: Provision;
  /** The fields that the key provider needs and takes. */
  readonly rules?: ProviderRules | undefined;
  readonly refusals: Refusals;
  readonly wait: FleetWait;
  readonly log: Log;
  /** Takes the error of every stream that fails. Must not throw. */
  readonly onError?: ((error: HttpError) => void) | undefined;
  /** Whether the service stops: no further stream is begun then. */
  readonly stopping: () => boolean;
  /** Whether what is written goes to a fleet. */
  readonly hasFleet?: boolean;
  /** How long a body may take to arrive. */
  readonly mostReceiveMs?: number;
}

interface Batch {
  /** `POST /api/keyfiles`, behind the guard. */
  readonly handlers: RequestHandler[];
  /** Resolves when no batch writes any more. Those that come after `stopping` said so write nothing. */
  idle(): Promise<void>;
}

/** Each may hold its body, what is read of it, and its answer: tens of megabytes. */
const MAX_BATCHES = 4;
/** As many entries take some milliseconds. */
const STEPS_AT_A_STRETCH = 20;

/**
 * `POST /api/keyfiles`: many streams and groups at once, a result for each. A batch that has begun is done, also when
 * its client goes away, as a single POST is.
 */
export function createBatch(context: BatchContext): Batch {
  const { changes, provision, rules, refusals, wait, log, onError, stopping, hasFleet, mostReceiveMs } =
    context;
  const runBatch = createRunBatch({ changes, provision, rules, stopping, hasFleet });
  const readBody = createReadBatch(mostReceiveMs);
  let underWay = 0;
  const whenIdle = new Set<() => void>();

  const leave = () => {
    underWay -= 1;
    if (underWay > 0) return;
    for (const resolve of whenIdle) resolve();
    whenIdle.clear();
  };

  const handle: RequestHandler = async (request, response) => {
    requireScope(callerOf(response));
    refusePreconditions(request);
    const dryRun = isDryRun(request.query, WAIT);
    const seconds = wait.secondsOf(request.query);
    // Asked for before a body is received in vain, and again when it is there.
    if (underWay >= MAX_BATCHES) throw tooManyBatches();
    await readBody(request, response);
    if (underWay >= MAX_BATCHES) throw tooManyBatches();
    if (stopping()) throw stoppingError();
    const results = await run(request, response, { dryRun, awaited: seconds !== undefined });
    // A client that waits for packagers holds no place: others may write meanwhile.
    const { requestId } = response.locals;
    const { status, warnings, headers } = await wait.settle(results.accepted, seconds, requestId);
    const [name, value] = headers;
    if (name !== undefined) response.setHeader(name, value ?? '');
    if (warnings.length > 0) response.setHeader('warning', warnings.map(warningText));
    response.setHeader('cache-control', 'no-store');
    response.status(status).type('json').send(results.text);
  };

  /** Writes what the request says, in one of the places for batches. */
  const run = async (
    request: Request,
    response: Response,
    { dryRun, awaited }: { readonly dryRun: boolean; readonly awaited: boolean },
  ): Promise<{ readonly text: string; readonly accepted: readonly Accepted[] }> => {
    underWay += 1;
    try {
      const actor = actorOf(request, response);
      const pause = createPause(STEPS_AT_A_STRETCH);
      const body = parsedOr400(readBatchBody(request.body));
      const plan = parsedOr400(await planBatch(body, { pause, yieldNow: yieldToEventLoop, rules }));
      const results = createBatchResults(plan, dryRun, (error, streamId) => {
        onError?.(error);
        refusals.failed(error, attemptOf(actor, streamId), dryRun);
      });
      await runBatch({ plan, actor, dryRun, awaited, pause, report: results.report });
      const { requestId } = actor;
      results.logFailures(log, requestId);
      log.info('batch', { requestId, dryRun, ...results.summary() });
      // Megabytes, which need not wait for packagers.
      request.body = undefined;
      return { text: results.text(), accepted: results.accepted };
    } finally {
      leave();
    }
  };

  return {
    handlers: [requireJson, handle],
    idle: () => (underWay === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.add(resolve))),
  };
}

function refusePreconditions({ headers }: Request): void {
  if (headers['if-match'] === undefined && headers['if-none-match'] === undefined) return;
  const description =
    'If-Match and If-None-Match are for single streams: a batch has many files. Nothing was written; leave them out, or POST to /api/keyfile/{streamid}.';
  throw apiError('invalid_header', description);
}

function tooManyBatches(): HttpError {
  const description = `${MAX_BATCHES} batches are under way. Nothing of this one was written; send it again when they are done.`;
  return apiError('too_many_batches', description);
}

/** A batch of nothing but faults must not make an answer without bounds. */
const MAX_PROBLEMS = 10;

interface BatchResults {
  report(planned: PlannedOfEntry, outcome: PutOutcome | HttpError): void;
  /** The changes that a fleet has accepted, in their order. */
  readonly accepted: readonly Accepted[];
  summary(): BatchSummary;
  /** The answer as JSON. */
  text(): string;
  /** Logs each kind of failure that a single request would have been logged for, once with the first one's cause. */
  logFailures(log: Log, requestId: string): void;
}

/** Collects what becomes of a plan, each result as the JSON it will be in the answer. */
function createBatchResults(
  plan: readonly PlannedOfEntry[],
  dryRun: boolean,
  onError: (error: HttpError, streamId: StreamId | undefined) => void,
): BatchResults {
  const texts = new Map<PlannedOfEntry, string>();
  const accepted: Accepted[] = [];
  const counts = { created: 0, changed: 0, unchanged: 0, failed: 0 };
  const failures = new Map<string, { first: HttpError; count: number }>();

  const render = (planned: PlannedOfEntry, outcome: PutOutcome | HttpError): BatchResult => {
    const entry = { index: planned.index, streamid: planned.streamId ?? null };
    if (outcome instanceof HttpError) {
      return { ...entry, result: 'failed', errors: outcome.problems.slice(0, MAX_PROBLEMS).map(asProblem) };
    }
    const { result, etag, warnings } = outcome;
    return {
      ...entry,
      result,
      etag,
      ...(dryRun && result !== 'unchanged' && { lines: changedLines(outcome) }),
      ...(warnings.length > 0 && { warnings: warnings.map(asProblem) }),
    };
  };

  return {
    accepted,
    report(planned, outcome) {
      const result = render(planned, outcome);
      counts[result.result] += 1;
      texts.set(planned, JSON.stringify(result));
      if (!(outcome instanceof HttpError)) {
        const { fleet } = outcome;
        if (planned.streamId && fleet) accepted.push({ streamId: planned.streamId, fleet });
        return;
      }
      onError(outcome, planned.streamId ?? undefined);
      const code = outcome.problems[0]?.code ?? '';
      const known = failures.get(code);
      if (known) known.count += 1;
      else if (outcome.status >= 500) failures.set(code, { first: outcome, count: 1 });
    },
    summary: () => ({ ...counts }),
    text() {
      const results = plan.map((planned) => texts.get(planned)).join(',');
      return `{"results":[${results}],"summary":${JSON.stringify(counts)}}`;
    },
    logFailures(log, requestId) {
      for (const [code, { first, count }] of failures) {
        const cause = first.cause === undefined ? undefined : describeThrown(first.cause);
        log.error('streams of a batch failed', { requestId, status: first.status, code, count, cause });
      }
    },
  };
}

function changedLines({ bytes, former }: PutOutcome): BatchResult['lines'] {
  return lineChanges(bytes.toString('utf8'), former).flatMap(({ change, ...line }) =>
    change === 'same' ? [] : [{ ...line, change }],
  );
}

function asProblem({ code, description }: Problem): Problem {
  return { code, description };
}
