import { promisify } from 'node:util';
import express, { type RequestHandler } from 'express';
import { requireJson } from '../../kernel/app';
import { HttpError } from '../../kernel/errors';
import type { Log } from '../../kernel/log';
import { requireScope } from '../access/api-key';
import { isDryRun } from '../key-files/dry-run';
import type { KeyFileChanges } from '../key-files/key-file-changes';
import { actorOf } from '../key-files/key-file-routes';
import type { Provision } from '../provisioning/provision';
import { createBatchResults } from './batch-results';
import { readBatchBody } from './batch-wire';
import { refuseDenseJson } from './dense-json';
import { createBreath } from './lane';
import { planBatch } from './plan';
import { createRunBatch } from './run-batch';

export interface BatchContext {
  readonly changes: KeyFileChanges;
  readonly provision: Provision;
  readonly log: Log;
  /** Takes the error of every stream that fails. Must not throw. */
  readonly onError?: ((error: HttpError) => void) | undefined;
}

/** Each may hold its body, what is read of it, and its answer: tens of megabytes. */
const MOST_BATCHES = 4;
/** As many entries take some milliseconds. */
const STEPS_AT_A_STRETCH = 20;

/**
 * `POST /api/keyfiles`: many streams and groups at once, a result for each. It stands behind the guard. A batch that has
 * begun is done, also when its client goes away, as a single POST is.
 */
export function batchHandlers({ changes, provision, log, onError }: BatchContext): RequestHandler[] {
  const runBatch = createRunBatch(changes, provision);
  const readJson = promisify(
    express.json({
      limit: '16mb',
      type: () => true,
      verify: (_request, _response, body) => refuseDenseJson(body),
    }),
  );
  let underWay = 0;

  const handle: RequestHandler = async (request, response) => {
    requireScope(response.locals.apiKey);
    const dryRun = isDryRun(request.query);
    if (underWay >= MOST_BATCHES) throw tooManyBatches();
    underWay += 1;
    try {
      await readJson(request, response);
      const actor = actorOf(request, response);
      const pause = createBreath(STEPS_AT_A_STRETCH);
      const plan = await planBatch(readBatchBody(request.body), pause);
      const results = createBatchResults(plan, dryRun, onError);
      await runBatch({ plan, actor, dryRun, pause, report: results.report });
      const { requestId } = actor;
      results.logFailures(log, requestId);
      log.info('batch', { requestId, dryRun, ...results.summary() });
      response.setHeader('cache-control', 'no-store');
      response.type('json').send(results.text());
    } finally {
      underWay -= 1;
    }
  };

  return [requireJson, handle];
}

function tooManyBatches(): HttpError {
  const description = `${MOST_BATCHES} batches are under way. Nothing of this one was written; send it again when they are done.`;
  return new HttpError(503, { code: 'too_many_batches', description }, { headers: { 'retry-after': '5' } });
}
