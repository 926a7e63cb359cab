import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Express, Request, RequestHandler, Response } from 'express';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import { sentenceOf } from '../../drm/finding';
import { addressOf } from '../../http/address';
import { onlyMethods } from '../../http/app';
import type { Exchange } from '../../http/shell';
import { callerOf, type FindApiKey } from '../access/api-key';
import { apiError } from '../errors';
import type { Actor } from './changes';
import type { KeyFileHandler, KeyFileHandlers } from './handlers';

const KEY_FILE_PATH = '/api/keyfile/:streamid';

/** Has Express dispatch to the handlers. It stands behind the guard. */
export function keyFileRoutes(app: Express, handlers: KeyFileHandlers): void {
  const dispatch =
    (handle: KeyFileHandler): RequestHandler =>
    (request, response) => {
      // The stream id comes first: a body that can't be read is an attempt to change that stream.
      const streamId = streamIdOf(request, response);
      return handle(request, response, {
        streamId,
        exchange: response.locals,
        apiKey: callerOf(response),
        query: request.query,
      });
    };
  // One route for all methods: each route that is passed over costs every request a match.
  app
    .route(KEY_FILE_PATH)
    .get(dispatch(handlers.get))
    .post(dispatch(handlers.post))
    .delete(dispatch(handlers.delete))
    .all(onlyMethods('GET', 'HEAD', 'POST', 'DELETE'));
  app.all('/api/keyfile', () => {
    throw apiError(
      'invalid_stream_id',
      'The stream id is missing: it is the last part of the path, /api/keyfile/{streamid}.',
    );
  });
  app.all('/api/keyfile/*rest', () => {
    throw apiError('invalid_stream_id', 'Write the slashes of a stream id as %2F.');
  });
}

/** A path that means the same to everybody: without sub-folder, query or percent-encoding. */
const PLAIN_PATH = /^\/api\/keyfile\/([^/?#%\\]+)$/;
const NO_QUERY = {};

/** The same of an export. */
const PLAIN_EXPORT = /^\/api\/keyfile\/([^/?#%\\]+)\?as=([a-z0-9-]+)(?:&scheme=([a-z0-9]+))?$/;

/**
 * Dispatches to the handlers without Express what packagers' tools and monitors send all day: a plain path and a valid
 * API key. Of every other request it answers undefined and leaves it alone.
 */
export function createFastDispatch(handlers: KeyFileHandlers, findApiKey: FindApiKey) {
  const byMethod: Readonly<Record<string, KeyFileHandler>> = {
    GET: handlers.get,
    POST: handlers.post,
    DELETE: handlers.delete,
  };
  return (
    request: IncomingMessage,
    response: ServerResponse,
    exchange: Exchange,
  ): (() => void | Promise<void>) | undefined => {
    const handle = byMethod[request.method ?? ''];
    const { url = '' } = request;
    const [, name, as, scheme] =
      (handle && (PLAIN_PATH.exec(url) ?? (request.method === 'GET' && PLAIN_EXPORT.exec(url)))) || [];
    if (!handle || name === undefined) return undefined;
    const apiKey = findApiKey(request.headers['x-api-key']);
    const streamId = parseStreamId(name);
    if (!apiKey || !streamId.ok) return undefined;
    exchange.route = KEY_FILE_PATH;
    exchange.apiKey = apiKey;
    exchange.logFields = { streamId: streamId.value };
    const query = as === undefined ? NO_QUERY : { as, ...(scheme !== undefined && { scheme }) };
    return () => handle(request, response, { streamId: streamId.value, apiKey, exchange, query });
  };
}

/** The stream of a path with `:streamid`. @throws HttpError 400. */
export function streamIdOf(request: Request, response: Response): StreamId {
  const { streamid } = request.params;
  const parsed = parseStreamId(typeof streamid === 'string' ? streamid : '');
  if (!parsed.ok) throw apiError('invalid_stream_id', sentenceOf(parsed.problem));
  response.locals.logFields = { streamId: parsed.value };
  return parsed.value;
}

/** On whose behalf a request behind the guard changes key files. */
export function actorOf(request: Request, response: Response): Actor {
  const { requestId } = response.locals;
  return { apiKey: callerOf(response), requestId, address: addressOf(request) };
}
