import {
  type Application,
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
  raw,
} from 'express';
import { describeThrown } from '../../../http/errors';
import type { JsonObject } from '../../migration/mapping/values';
import type { V1Parameters } from '../../migration/parameters';
import type { EmulatorContext } from '../context';
import { addressKey, countRequest, REQUESTS_A_MINUTE, secondsUntil, tooMany } from '../rate-limit';
import { authenticate } from './authentication';
import { toV1Error, V1Error, v1ErrorBody } from './errors';
import { queryOf, readCall } from './read-call';
import { FORMATS, type Format } from './serialize';
import type { Parameter } from './signature';

/** A call of a site that has been authenticated. */
export interface V1Call {
  readonly siteId: string;
  readonly parameters: V1Parameters;
  readonly request: Request;
}

/** The answer of a call, without `status` and `rate_limit`. @throws V1Error, HttpError. */
type AnswerCall = (call: V1Call) => JsonObject | Promise<JsonObject>;

interface Shown {
  readonly format: Format;
  /** Of the caller, once that is known. */
  rateLimit?: JsonObject;
}

declare global {
  namespace Express {
    interface Locals {
      /** How the answer to a call of v1 is written, as far as that is known. */
      v1?: Shown;
    }
  }
}

/** Calls that have a rate limit of their own. */
const LIMITS: Readonly<Record<string, number>> = { '/v1/videos/list': 30 };

const readRaw = raw({ limit: '256kb', type: () => true });

/**
 * Makes the routes of v1: they take GET and POST, with or without a slash at their end. All in one, as Express reads the
 * path of every handler of every route at the start, and these are a third of all.
 */
export function mountCalls(
  app: Application,
  context: EmulatorContext,
  calls: ReadonlyMap<string, AnswerCall>,
): void {
  const handler: RequestHandler = async (request, response, next) => {
    const path = pathOf(request);
    const answer = calls.get(path);
    if (!answer) return next();
    const { signed, parameters } = readCall(request);
    const shown: Shown = { format: formatOf(signed) };
    response.locals.v1 = shown;
    const siteId = siteOf(context, signed, request);
    limitCalls(context, `v1 ${siteId} ${path}`, { limit: LIMITS[path], shown });
    const fields = await answer({ siteId, parameters, request });
    await send(response, 200, { status: 'ok', ...fields });
  };
  app
    .route([...calls.keys()])
    .get(readRaw, handler)
    .post(readRaw, handler)
    .all((request) => {
      const message = `Call ${pathOf(request)} with GET or POST, not ${request.method}.`;
      throw new V1Error('NotSupported', message, { headers: { allow: 'GET, POST' } });
    });
}

/** As the mapping writes it: Express takes capitals, too. */
function pathOf({ path }: Pick<Request, 'path'>): string {
  return path.toLowerCase().replace(/\/$/, '');
}

/** Answers every other path below `/v1`, and everything that the routes throw, in the form of v1. */
export function mountRest(app: Application, context: EmulatorContext, routes: readonly string[]): void {
  const classes = new Set(routes.map((route) => route.split('/').slice(0, -1).join('/')));
  app.use('/v1', (request) => {
    const path = `/v1${request.path}`.replace(/\/$/, '');
    if (classes.has(path)) throw new V1Error('NoMethod', `${path} needs a method, as ${path}/list.`);
    throw new V1Error('NotFound', `${path.slice(0, 200)} is not a call of Management API v1.`);
  });
  const answerError: ErrorRequestHandler = async (thrown, request, response, next) => {
    if (response.headersSent) {
      next(thrown);
      return;
    }
    const error = toV1Error(thrown);
    // A failure before the call was read is answered in its format, too.
    response.locals.v1 ??= { format: formatAsked(request) };
    logFailure(context, response, error);
    response.set(error.headers);
    await send(response, error.status, v1ErrorBody(error));
  };
  app.use('/v1', answerError);
}

function siteOf(context: EmulatorContext, signed: readonly Parameter[], request: Request): string {
  const { seeds, state, wallClock } = context;
  try {
    return authenticate(signed, {
      secretOf: (apiKey) => (seeds.siteIds.includes(apiKey) ? seeds.v1Secret : undefined),
      signatures: state.signatures,
      // Clients sign with their own clocks, which the control port does not advance.
      now: wallClock(),
    });
  } catch (thrown) {
    // Failed attempts count on the address, not on the site's account.
    limitCalls(context, addressKey(request));
    throw thrown;
  }
}

/** Counts a call. @throws V1Error 429 beyond the limit, when that is switched on. */
function limitCalls(
  { state, clock, seeds }: EmulatorContext,
  key: string,
  { limit = REQUESTS_A_MINUTE, shown }: { limit?: number | undefined; shown?: Shown } = {},
): void {
  const { totalHits, resetTime } = countRequest(state.rateWindows, key, clock.now());
  const remaining = Math.max(limit - totalHits, 0);
  if (shown) shown.rateLimit = { limit, remaining, reset: Math.ceil(resetTime.getTime() / 1000) };
  if (!seeds.rateLimit || totalHits <= limit) return;
  const wait = secondsUntil(resetTime, clock.now());
  throw new V1Error('RateLimitExceeded', tooMany(limit, wait), { headers: { 'retry-after': String(wait) } });
}

/** The documented sample leaves `api_format` out and gets JSON. */
export function formatOf(signed: readonly Parameter[]): Format {
  const format = signed.find(({ name }) => name === 'api_format')?.value ?? 'json';
  if (isFormat(format)) return format;
  throw new V1Error('ParameterInvalid', `api_format must be one of ${Object.keys(FORMATS).join(', ')}.`);
}

function formatAsked(request: Request): Format {
  const format = new URLSearchParams(queryOf(request.originalUrl)).get('api_format') ?? '';
  return isFormat(format) ? format : 'json';
}

function isFormat(name: string): name is Format {
  return Object.hasOwn(FORMATS, name);
}

/** Answers in the format that the call asked for. */
export async function send(response: Response, status: number, fields: JsonObject): Promise<void> {
  const { format = 'json', rateLimit } = response.locals.v1 ?? {};
  const { type, body } = await FORMATS[format]({ ...fields, ...(rateLimit && { rate_limit: rateLimit }) });
  response.status(status).set('content-type', type).send(Buffer.from(body));
}

/** As the shell logs what it answers itself. */
function logFailure({ log }: EmulatorContext, response: Response, { status, code, cause }: V1Error): void {
  if (status < 500) return;
  const { requestId } = response.locals;
  const fields = {
    requestId,
    status,
    codes: [code],
    cause: cause === undefined ? undefined : describeThrown(cause),
  };
  if (status === 503) log.warn('not available', fields);
  else log.error('request failed', fields);
}
