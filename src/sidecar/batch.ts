import { promisify } from 'node:util';
import express, { type Request, type RequestHandler, type Response } from 'express';
import * as z from 'zod';
import type { BatchResult } from '../api/answers';
import { MAX_STREAMS, readBatchBody, tooManyStreams } from '../api/batch';
import { MAX_BODY_BYTES } from '../api/key-file-request';
import { lineChanges } from '../api/line-changes';
import { planBatch } from '../api/plan-batch';
import type { Planned, WithStream } from '../api/plan-entry';
import type { KeyFileRequest, ProviderContent } from '../api/read-key-file-request';
import { problemsOf } from '../drm/finding';
import { requireJson } from '../http/app';
import { describeThrown, HttpError, toHttpError } from '../http/errors';
import { parsedOr400 } from '../http/faults';
import type { Log } from '../http/log';
import { requireUtf8 } from '../http/receive-body';
import { createSemaphore, type Semaphore, yieldToEventLoop } from '../http/semaphore';
import type { Provisioned } from '../provider/provision';
import { RefusalError } from '../provider/upstream';
import { callerOf, requireScope, requireWrite } from './api-key';
import { apiError } from './errors';
import type { Accepted } from './fleet/wait';
import type { Actor, PutOutcome } from './key-files/changes';
import {
  actorOf,
  dryRunSwitch,
  isSmall,
  type KeyFileContext,
  readChangeQuery,
  setCommon,
} from './key-files/routes';
import type { Refusals } from './observe/audit';

export interface BatchContext extends Omit<KeyFileContext, 'store'> {
  readonly refusals: Refusals;
  readonly log: Log;
  /** Called with the error of each stream that fails. Must not throw. */
  readonly onError: (error: HttpError) => void;
  readonly stopping: () => boolean;
  readonly hasFleet?: boolean;
  readonly mostReceiveMs?: number;
  readonly mostStreams?: number;
}

/** Each may hold tens of megabytes: its body, as bytes and as objects, and its answer. */
const MAX_BATCHES = 4;
/** Of all batches together. A fleet's engine decides 64 writes at a time: 128 are two transactions. */
const MAX_WRITES = 32;
const MAX_FLEET_WRITES = 128;
const MAX_PROVISIONINGS = 8;
/** Bounds the answer to a batch of nothing but faults. */
const MAX_PROBLEMS = 10;

/** Timeouts in a row, after which no upstream is called for the rest of a batch. */
const MAX_LATE = 24;
/** Refusals of a client in a row, after which nothing more is requested for it. */
const MAX_REFUSED = 5;

/** Each stream fails by itself. A batch that has begun is done even if its client goes away, as a single POST is. */
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
    if (underWay.size >= MAX_BATCHES) throw apiError('too_many_batches', TOO_MANY_BATCHES);
    await readBody(request, response);
    // Other batches may have begun while the body was received.
    if (underWay.size >= MAX_BATCHES) throw apiError('too_many_batches', TOO_MANY_BATCHES);
    if (stopping()) throw apiError('stopping');
    const running = run(request, actorOf(request, response), { dryRun, awaited: seconds !== undefined });
    underWay.add(running);
    const { text, accepted } = await running.finally(() => underWay.delete(running));
    // A client that waits for packagers holds no place of other batches.
    const { status, headers, warnings } = await wait.awaitOutcome(
      accepted,
      seconds,
      response.locals.requestId,
    );
    setCommon(response, warnings).status(status).set(headers).type('json').send(text);
  };

  const run = async (
    request: Request,
    actor: Actor,
    { dryRun, awaited }: { readonly dryRun: boolean; readonly awaited: boolean },
  ) => {
    const breaker = createCircuitBreaker();
    const results = new Map<Planned, string>();
    const summary = { created: 0, changed: 0, unchanged: 0, failed: 0 };
    const accepted: Accepted[] = [];
    /** For the log: of each code that a single request would have been logged for, the first failure. */
    const failures = new Map<string, { readonly first: HttpError; count: number }>();

    const report = (planned: Planned, outcome: PutOutcome | HttpError): void => {
      const result = resultOf(planned, outcome, dryRun);
      summary[result.result] += 1;
      results.set(planned, JSON.stringify(result));
      if (!(outcome instanceof HttpError)) {
        const { fleet } = outcome;
        if (planned.streamId && fleet) accepted.push({ streamId: planned.streamId, fleet });
        return;
      }
      onError(outcome);
      refusals.failed(outcome, { ...actor.by, streamId: planned.streamId }, dryRun);
      const code = outcome.problems[0]?.code ?? '';
      const known = failures.get(code);
      if (known) known.count += 1;
      else if (outcome.status >= 500) failures.set(code, { first: outcome, count: 1 });
    };

    const keysOf = async (asked: KeyFileRequest): Promise<Provisioned> => {
      if (stopping()) throw apiError('stopping');
      const ask = () => provision(asked, actor.by.requestId);
      return asked.source === 'provider' ? breaker(asked, ask) : ask();
    };

    const write = async (planned: Planned & WithStream, keys: Promise<Provisioned>): Promise<void> => {
      try {
        if (stopping()) throw apiError('stopping');
        const options = { dryRun, skipUnchanged: true, awaited };
        report(planned, await changes.put(planned.streamId, await keys, actor, options));
      } catch (thrown) {
        report(planned, toHttpError(thrown));
      }
    };

    const writeGroup = async (asked: KeyFileRequest, streams: readonly (Planned & WithStream)[]) => {
      const keys = keysOf(asked);
      await keys.catch(() => undefined);
      const writing: Promise<void>[] = [];
      for (const stream of streams) {
        const leave = await writes.enter();
        writing.push(write(stream, keys).finally(leave));
      }
      await Promise.all(writing);
    };

    const writeGroups = async (isProvided: boolean, { enter }: Semaphore): Promise<void> => {
      const writing: Promise<void>[] = [];
      for (const [asked, streams] of groups) {
        if ((asked.source === 'provider') !== isProvided) continue;
        await yieldToEventLoop();
        const leave = await enter();
        writing.push(writeGroup(asked, streams).finally(leave));
      }
      await Promise.all(writing);
    };

    const body = parsedOr400(readBatchBody(request.body, mostStreams));
    const plan: Planned[] = [];
    for (const planned of planBatch(body, { rules })) {
      await yieldToEventLoop();
      if (plan.push(planned) > mostStreams) parsedOr400(tooManyStreams(mostStreams));
    }
    const groups = new Map<KeyFileRequest, (Planned & WithStream)[]>();
    for (const planned of plan) {
      try {
        if (planned.streamId === undefined) throw new HttpError(400, planned.request.problems);
        requireWrite(actor.apiKey, planned.streamId);
        const asked = parsedOr400(planned.request);
        const streams = groups.get(asked) ?? [];
        groups.set(asked, streams);
        streams.push(planned);
      } catch (thrown) {
        report(planned, toHttpError(thrown));
      }
    }
    await Promise.all([writeGroups(false, places.supplied), writeGroups(true, places.provider)]);
    const { requestId } = actor.by;
    for (const [code, { first, count }] of failures) {
      const cause = first.cause === undefined ? undefined : describeThrown(first.cause);
      log.error('streams of a batch failed', { requestId, status: first.status, code, count, cause });
    }
    log.info('batch', { requestId, dryRun, ...summary });
    // Frees megabytes before the wait for packagers.
    request.body = undefined;
    const list = plan.map((planned) => results.get(planned)).join(',');
    return { text: `{"results":[${list}],"summary":${JSON.stringify(summary)}}`, accepted };
  };

  return {
    handlers: [requireJson, handle],
    /** Resolves when no batch writes any more: those that come after `stopping` write nothing. */
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
    return { ...entry, result: 'failed', errors: problemsOf(outcome.problems.slice(0, MAX_PROBLEMS)) };
  const { result, etag, warnings, bytes, former } = outcome;
  const lines = dryRun && result !== 'unchanged' ? lineChanges(bytes.toString('utf8'), former) : undefined;
  return {
    ...entry,
    result,
    etag,
    ...(lines && {
      lines: lines.flatMap(({ change, ...line }) => (change === 'same' ? [] : [{ ...line, change }])),
    }),
    ...(warnings.length > 0 && { warnings: problemsOf(warnings) }),
  };
}

type Asking = Pick<ProviderContent, 'client' | 'clientApiKey'>;

/** Ends calls after failures in a row: ten thousand timeouts would take hours, and as many refusals minutes. */
export function createCircuitBreaker() {
  // Failures in a row: timeouts of all streams, refusals of each client.
  let late: HttpError[] = [];
  const refusals = new Map<string, HttpError[]>();
  return async <T>({ client = '', clientApiKey = '' }: Asking, ask: () => Promise<T>): Promise<T> => {
    const name = `${client}\n${clientApiKey}`;
    const refused = refusals.get(name) ?? [];
    if (late[0] && late.length >= MAX_LATE)
      throw openCircuitError(
        late[0],
        `${MAX_LATE} streams of this batch in a row were not provisioned in time`,
      );
    if (refused[0] && refused.length >= MAX_REFUSED) {
      const whom = refused[0] instanceof RefusalError ? 'the credentials of this service' : 'this client';
      throw openCircuitError(refused[0], `an upstream refused ${whom} ${MAX_REFUSED} times in a row`);
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

function openCircuitError({ status, problems }: HttpError, why: string): HttpError {
  const advice = ADVICE[status] ?? 'correct the headers for the key provider, and send the batch again';
  const description = `Not tried: ${why}. No key file was changed; ${advice}.`;
  return new HttpError(status, { code: problems[0]?.code ?? 'key_provider_failed', description });
}

const ADVICE: Readonly<Record<number, string>> = {
  422: 'check client and clientApiKey, and send the batch again',
  504: 'send the batch again later',
};

/** Each may take sixteen megabytes. */
const MAX_BODIES = 8;
/** A slow client holds up its own API key alone. */
const MAX_BODIES_OF_KEY = 2;
/** At 5 Mbit/s the largest body takes 27 seconds. */
const MAX_RECEIVE_MS = 30_000;
/** Ten thousand streams with every field have 200,000. */
const MAX_VALUES = 250_000;

/** Only bodies larger than a single POST's are limited in number. @throws HttpError 400, 408, 413, 503. */
function createReadBatch(mostMs = MAX_RECEIVE_MS): (request: Request, response: Response) => Promise<void> {
  const readJson = promisify(
    express.json({
      limit: '16mb',
      type: () => true,
      verify: (_request, _response, body, encoding) => {
        requireUtf8(body, encoding);
        refuseManyValues(body);
      },
    }),
  );
  const receiving: string[] = [];

  const readInTime = async (request: Request, response: Response): Promise<void> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      // The answer ends the connection: the rest of the body must not go on arriving.
      timer = setTimeout(() => reject(apiError('request_timeout')), mostMs);
    });
    await Promise.race([readJson(request, response), late]).finally(() => clearTimeout(timer));
  };

  return async (request, response) => {
    if (isSmall(request)) return readInTime(request, response);
    const { name } = callerOf(response);
    const own = receiving.filter((each) => each === name).length;
    if (own >= MAX_BODIES_OF_KEY || receiving.length >= MAX_BODIES)
      throw apiError('too_many_batches', TOO_MANY_BODIES);
    receiving.push(name);
    await readInTime(request, response).finally(() => receiving.splice(receiving.indexOf(name), 1));
  };
}

/** Sixteen megabytes of `{},{},` would become some hundred megabytes of objects. @throws HttpError 400. */
function refuseManyValues(body: Buffer): void {
  if (body.length <= MAX_BODY_BYTES) return;
  let values = 0;
  for (const mark of [',', '{', '[']) {
    for (let at = body.indexOf(mark); at !== -1 && values <= MAX_VALUES; at = body.indexOf(mark, at + 1))
      values += 1;
  }
  if (values > MAX_VALUES)
    throw apiError(
      'invalid_body',
      `The body holds more than ${MAX_VALUES} values. Send several batches. Nothing was written.`,
    );
}

const TOO_MANY_BODIES =
  'Too many batches are being received, with this API key or in all. Nothing of this one was written; send it again when they are.';
