import type { Request, RequestHandler } from 'express';
import { readBatchBody } from '../../api/batch';
import { planBatch } from '../../api/plan-batch';
import { requireJson } from '../../http/app';
import { type HttpError, parsedOr400 } from '../../http/errors';
import type { Log } from '../../http/log';
import { callerOf, requireScope } from '../access/api-key';
import { apiError } from '../errors';
import { isDryRun } from '../key-files/dry-run';
import type { KeyFileChanges } from '../key-files/key-file-changes';
import { actorOf } from '../key-files/key-file-routes';
import type { Refusals } from '../observe/refusals';
import type { Provision } from '../provisioning/provision';
import { createBatchResults } from './batch-results';
import { breathe, createBreath } from './lane';
import { createReceiveBody } from './receive-body';
import { createRunBatch, stoppingError } from './run-batch';

export interface BatchContext {
  readonly changes: KeyFileChanges;
  readonly provision: Provision;
  readonly refusals: Refusals;
  readonly log: Log;
  /** Takes the error of every stream that fails. Must not throw. */
  readonly onError?: ((error: HttpError) => void) | undefined;
  /** Whether the service stops: no further stream is begun then. */
  readonly stopping: () => boolean;
  /** How long a body may take to arrive. */
  readonly mostReceiveMs?: number;
}

export interface Batch {
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
  const { changes, provision, refusals, log, onError, stopping, mostReceiveMs } = context;
  const runBatch = createRunBatch({ changes, provision, refusals, stopping });
  const receiveBody = createReceiveBody(mostReceiveMs);
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
    const dryRun = isDryRun(request.query);
    // Asked for before a body is received in vain, and again when it is there.
    if (underWay >= MAX_BATCHES) throw tooManyBatches();
    await receiveBody(request, response);
    if (underWay >= MAX_BATCHES) throw tooManyBatches();
    if (stopping()) throw stoppingError();
    underWay += 1;
    try {
      const actor = actorOf(request, response);
      const pause = createBreath(STEPS_AT_A_STRETCH);
      const body = parsedOr400(readBatchBody(request.body));
      const plan = parsedOr400(await planBatch(body, { pause, yieldNow: breathe }));
      const results = createBatchResults(plan, dryRun, onError);
      await runBatch({ plan, actor, dryRun, pause, report: results.report });
      const { requestId } = actor;
      results.logFailures(log, requestId);
      log.info('batch', { requestId, dryRun, ...results.summary() });
      response.setHeader('cache-control', 'no-store');
      response.type('json').send(results.text());
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
