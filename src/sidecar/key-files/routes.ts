import type { Express, Request, RequestHandler, Response } from 'express';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import { sentenceOf } from '../../drm/finding';
import { addressOf } from '../../http/address';
import { onlyMethods } from '../../http/app';
import { callerOf } from '../access/api-key';
import { apiError } from '../errors';
import type { Actor } from './changes';
import type { KeyFileHandler, KeyFileHandlers } from './handlers';

export const KEY_FILE_PATH = '/api/keyfile/:streamid';

/** Mounts the handlers behind the guard. */
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
