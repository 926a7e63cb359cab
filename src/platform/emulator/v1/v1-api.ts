import { type ErrorRequestHandler, type Express, type Request, type RequestHandler, raw } from 'express';
import { logFailure } from '../../../http/app';
import { type Problem, toHttpError } from '../../../http/errors';
import { describeMapping, findRoute, ROUTES, type RouteMapping } from '../../migration/mapping/routes';
import type { JsonObject } from '../../migration/mapping/values';
import type { EmulatorContext } from '../context';
import { anyBody } from '../json-body';
import { addressKey, countRequest } from '../rate-limit';
import { CHANNEL_VIDEOS, CHANNELS } from './channels';
import { isV1Error, toV1Error, V1_ERRORS, v1Error } from './errors';
import { CONVERSIONS, THUMBNAILS, TRACKS } from './media-parts';
import { formatAsked, formatOf, type Shown, send } from './serialize';
import { authenticate, type Parameter, readCall, type V1Call } from './signed-call';
import { type Handler, translate } from './translate';
import { mountFormUploads } from './upload-api';
import { PLAYERS, TAGS, USAGE, VIDEOS } from './videos';

type Handlers = Partial<Readonly<Record<RouteMapping['action'], Handler>>>;

/** Calls that v2 does not support have no handler. */
const HANDLERS: Readonly<Partial<Record<RouteMapping['resource'], Handlers>>> = {
  tag: TAGS,
  usage: USAGE,
  channel: CHANNELS,
  channel_video: CHANNEL_VIDEOS,
  player: PLAYERS,
  video: VIDEOS,
  conversion: CONVERSIONS,
  thumbnail: THUMBNAILS,
  track: TRACKS,
};

const LIMITS: Readonly<Record<string, number>> = { '/v1/videos/list': 30 };

const readRaw = raw({ ...anyBody, limit: '256kb' });

/** All routes in one, as Express reads the path of every handler at the start. They take GET and POST. */
export function mountV1(app: Express, context: EmulatorContext): void {
  mountFormUploads(app, context);
  const handler: RequestHandler = async (request, response, next) => {
    const path = pathOf(request);
    const mapping = findRoute(path);
    if (!mapping) return next();
    const { signed, parameters } = readCall(request);
    const shown: Shown = { format: formatOf(signed) };
    response.locals.v1 = shown;
    const siteId = siteOf(context, signed, request);
    limitCalls(context, `v1 ${siteId} ${path}`, LIMITS[path], shown);
    const fields = await answer(context, mapping, { siteId, parameters, request });
    await send(response, 200, { status: 'ok', ...fields });
  };
  app
    .route(ROUTES.map(({ route }) => route))
    .all((request, _response, next) => {
      // The log names the route by its one path.
      request.route = { path: pathOf(request) };
      next();
    })
    .get(readRaw, handler)
    .post(readRaw, handler)
    .all((request) => {
      const message = `Call ${pathOf(request)} with GET or POST, not ${request.method}.`;
      throw v1Error('NotSupported', message, { headers: { allow: 'GET, POST' } });
    });
  mountRest(app, context);
}

async function answer(context: EmulatorContext, mapping: RouteMapping, call: V1Call): Promise<JsonObject> {
  const handle = HANDLERS[mapping.resource]?.[mapping.action];
  if (!handle) throw v1Error('NotSupported', `${describeMapping(mapping)} in Management API v2.`);
  try {
    return await handle(translate(context, mapping, call));
  } catch (thrown) {
    throw toV1Error(thrown, mapping.resource);
  }
}

/** As the mapping writes it: Express takes capitals, too. */
function pathOf({ path }: Pick<Request, 'path'>): string {
  return path.toLowerCase().replace(/\/$/, '');
}

/** Answers every other path below `/v1`, and everything that the routes throw, in the form of v1. */
function mountRest(app: Express, context: EmulatorContext): void {
  const classes = new Set(ROUTES.map(({ route }) => route.split('/').slice(0, -1).join('/')));
  app.use('/v1', (request) => {
    const path = `/v1${request.path}`.replace(/\/$/, '');
    if (classes.has(path)) throw v1Error('NoMethod', `${path} needs a method, as ${path}/list.`);
    throw v1Error('NotFound', `${path.slice(0, 200)} is not a call of Management API v1.`);
  });
  const answerError: ErrorRequestHandler = async (thrown, request, response, next) => {
    // The key provider also has paths below /v1, with its own errors.
    const isOfProvider = !isV1Error(toHttpError(thrown)) && /^\/(?:cpix|keys)\//i.test(request.path);
    if (response.headersSent || isOfProvider) {
      next(thrown);
      return;
    }
    const { status, problems, headers, cause } = toV1Error(thrown);
    const [{ code, description: message }] = problems as readonly [Problem];
    const { title } = V1_ERRORS[code as keyof typeof V1_ERRORS];
    // A failure before the call was read is answered in its format, too.
    response.locals.v1 ??= { format: formatAsked(request) };
    logFailure(context.log, response, { status, codes: [code], cause });
    response.set(headers);
    await send(response, status, { status: 'error', code, title, message });
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

/** Counts a call. @throws HttpError 429 beyond the limit, when that is switched on. */
function limitCalls(context: EmulatorContext, key: string, most?: number, shown?: Shown): void {
  const { refusal, resetTime, limit, remaining } = countRequest(context, key, most);
  if (shown) shown.rateLimit = { limit, remaining, reset: Math.ceil(resetTime.getTime() / 1000) };
  if (refusal) throw refusal;
}
