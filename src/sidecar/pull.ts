import { promisify } from 'node:util';
import type { Express, Request, RequestHandler, Response } from 'express';
import { type MemoryStore, rateLimit } from 'express-rate-limit';
import { exportQuery } from '../api/key-file-request';
import { parseKeyFileRequest } from '../api/read-key-file-request';
import { parseStreamId, type StreamId } from '../api/stream-id';
import type { Checked } from '../drm/bytes';
import { routeAt } from '../http/app';
import { toHttpError } from '../http/errors';
import { parsedOr400, readQuery } from '../http/faults';
import { createSemaphore } from '../http/semaphore';
import { UnknownContentError } from '../provider/upstream';
import { callerOf, mayRead, secondsLeft } from './api-key';
import { apiError } from './errors';
import { exportKeyFile, requireForm } from './key-files/export';
import { actorOf, type KeyFileContext, readDocument, sendExport, streamIdOf } from './key-files/routes';
import type { Refusals } from './observe/audit';

interface PullContext extends Omit<KeyFileContext, 'wait'> {
  readonly refusals: Pick<Refusals, 'failed'>;
  /** Makes the stream id from `{client}` and `{contentId}`; undefined: it is the content id. */
  readonly pattern: string | undefined;
  readonly provisionOnRead: boolean;
  readonly hasFleet: boolean;
  readonly misses: MemoryStore;
  readonly random: (bytes: number) => Buffer;
  readonly clock: () => Date;
}

interface Content {
  readonly client: string;
  readonly contentId: string;
}

const PLACE = /\{(client|contentId)\}/g;

/** The fault continues a sentence that begins with the variable; undefined: none. */
export function pullPatternFault(pattern: string): string | undefined {
  if (!pattern.includes('{contentId}')) return 'must have {contentId}; {client} may be in it, too';
  const parsed = parseStreamId(pattern.replaceAll(PLACE, 'a'));
  return parsed.ok ? undefined : `makes no stream id of a content id: ${parsed.problem.description}`;
}

/** Per API key and window: each miss may cost calls to the key provider. Other pulls are not counted. */
const MAX_MISSES = 200;
const WINDOW_MS = 10_000;
/** Streams that are provisioned at once; with those that wait for that, `MAX_FLIGHTS`. */
const MAX_PROVISIONINGS = 8;
const MAX_FLIGHTS = 256;
const USER_AGENT = 'packager-drm-api';

const query = exportQuery.extend({ as: exportQuery.shape.as.default('cpix') });

/** `idle` resolves when no stream is being provisioned. */
export function pullRoutes(app: Express, context: PullContext): { idle(): Promise<void> } {
  const { store, changes, provision, rules, refusals, random, clock } = context;
  const { pattern = '{contentId}', provisionOnRead, hasFleet, misses } = context;
  const places = createSemaphore(MAX_PROVISIONINGS);
  /** Streams that are being provisioned, by all their inputs. */
  const flights = new Map<string, Promise<Buffer>>();
  const limit = rateLimit({
    store: misses,
    windowMs: WINDOW_MS,
    limit: MAX_MISSES,
    standardHeaders: false,
    legacyHeaders: false,
    keyGenerator: (_request, response) => callerOf(response as Response).name,
    handler: (request, _response, next) => {
      const seconds = secondsLeft(request, misses, WINDOW_MS, clock());
      next(tooMany({ 'retry-after': `${seconds}` }));
    },
  });
  // Without its promise, which Node warns of.
  const countMiss = promisify((...call: Parameters<typeof limit>) => void limit(...call));

  const streamIdFor = (content: Content, response: Response): StreamId =>
    streamIdOf(
      pattern.replaceAll(PLACE, (_whole, name: keyof Content) => content[name]),
      response,
    );

  const find = async (
    request: Request,
    response: Response,
    streamId: StreamId,
    content: Content,
  ): Promise<Buffer> => {
    const apiKey = callerOf(response);
    const isIts = mayRead(apiKey, streamId);
    // A stream that the API key can't access looks like a missing one; the log says why.
    if (!isIts) response.locals.logFields = { streamId, isOutside: true };
    const bytes = isIts ? store.read(streamId) : undefined;
    if (bytes) return bytes;
    if (isIts && provisionOnRead && apiKey.scope === 'write')
      return joinFlight(request, response, streamId, content);
    await countMiss(request, response);
    throw apiError('key_file_not_found');
  };

  const joinFlight = (request: Request, response: Response, streamId: StreamId, content: Content) => {
    const { 'api-key': clientApiKey } = request.headers;
    const name = JSON.stringify([streamId, content.client, content.contentId, clientApiKey]);
    const present = flights.get(name);
    if (present) return present;
    if (flights.size >= MAX_FLIGHTS) throw tooMany();
    if (clientApiKey === undefined && rules.needed.includes('clientApiKey'))
      throw apiError('invalid_header', NO_CLIENT_API_KEY);
    const body = {
      ...(rules.needed.includes('client') && { client: content.client }),
      ...(clientApiKey !== undefined && { clientApiKey }),
      contentId: content.contentId,
    };
    const flight = startFlight(request, response, streamId, body).finally(() => flights.delete(name));
    flights.set(name, flight);
    return flight;
  };

  const startFlight = async (request: Request, response: Response, streamId: StreamId, body: object) => {
    await countMiss(request, response);
    const actor = actorOf(request, response);
    using _place = await places.enter();
    try {
      const asked = parsedOr400(parseKeyFileRequest(body, { rules }));
      const provisioned = await provision(asked, actor.by.requestId);
      return (await changes.put(streamId, provisioned, actor, { ifNoneMatch: '*' })).bytes;
    } catch (thrown) {
      const error = toHttpError(thrown);
      if (error.status === 412) {
        // Another request was faster; in a fleet, at another packager.
        const bytes = store.read(streamId);
        if (bytes) return bytes;
        // Without a fleet, it was deleted since.
        throw apiError(hasFleet ? 'fleet_joining' : 'key_file_not_found');
      }
      refusals.failed(error, { ...actor.by, streamId }, false);
      if (error instanceof UnknownContentError) throw apiError('key_file_not_found', UNKNOWN_CONTENT);
      throw error;
    }
  };

  const get: RequestHandler<{ client: string; contentId: string }> = async (request, response) => {
    const asked = readQuery(query, request.query);
    const streamId = streamIdFor(request.params, response);
    await requireForm(asked);
    const bytes = await find(request as Request, response, streamId, request.params);
    await sendExport(request as Request, response, { streamId, bytes, asked });
  };

  const post: RequestHandler<{ client: string }> = async (request, response) => {
    const { answerWithKey, readSpekeRequest, SPEKE_VERSIONS, wantedKey } = await import(
      '../drm/cpix/speke-answer'
    );
    const { 'x-speke-version': speke } = request.headers;
    response.set('x-speke-user-agent', USER_AGENT);
    if (typeof speke !== 'string' || !SPEKE_VERSIONS.has(speke))
      throw apiError(
        'speke_refused',
        `Unsupported SPEKE version: send X-Speke-Version with ${[...SPEKE_VERSIONS.keys()].join(' or ')}.`,
      );
    response.set({ 'x-speke-version': speke, 'cache-control': 'no-store' });
    const asked = orRefuse(readSpekeRequest(await readDocument(request, response), speke));
    const wanted = orRefuse(wantedKey(asked));
    const content = { client: request.params.client, contentId: asked.contentId ?? '' };
    const streamId = streamIdFor(content, response);
    const bytes = await find(request as Request, response, streamId, content);
    const { keys } = await exportKeyFile(bytes, { as: 'cpix', scheme: wanted.scheme });
    response.type('application/xml').send(orRefuse(answerWithKey(asked, wanted, keys[0], random)));
  };

  routeAt(app, '/cpix/:client/:contentId').get(get);
  routeAt(app, '/speke/v2/:client').post(post);
  return {
    async idle() {
      await Promise.allSettled(flights.values());
    },
  };
}

const UNKNOWN_CONTENT = 'This stream has no key file, and the key provider does not know its content.';

function tooMany(headers?: Record<string, string>) {
  const description = `More than ${MAX_MISSES} streams without a key file were pulled in ${WINDOW_MS / 1000} seconds with this API key, or ${MAX_FLIGHTS} are being provisioned. Streams with a key file are answered at any time.`;
  return apiError('too_many_pulls', description, headers && { headers });
}

const NO_CLIENT_API_KEY =
  'This stream has no key file, and the key provider needs the API key of its client: send it in the header API-KEY, or provision the stream with a POST.';

/** @throws HttpError 400, 422. */
function orRefuse<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  const { code, description } = checked.problem;
  throw apiError(code === 'invalid_cpix' ? code : 'speke_refused', description);
}
