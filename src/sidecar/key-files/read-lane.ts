import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type RequestLogOptions, requestLog } from '../../http/request-log';
import { API_HEADERS, securityHeaders } from '../../http/security-headers';
import { type FindApiKey, mayRead } from '../access/api-key';
import type { KeyFileStore } from '../storage/key-file-store';
import { etagOf } from './etag';
import { KEY_FILE_HEADERS } from './key-file-answer';
import { KEY_FILE_PATH } from './key-file-routes';
import { readPlainRequest } from './plain-request';

/**
 * Answers the one request that packagers' tools and monitors send all day, the GET of a key file that is there, without
 * the way through Express, and hands every other request on. What it answers, headers and log line included, is what
 * the route in `key-file-routes.ts` would: a test compares the two. It makes a GET a third as dear.
 */
export function withReadLane(
  app: RequestListener,
  findApiKey: FindApiKey,
  store: KeyFileStore,
  log: RequestLogOptions,
): RequestListener {
  const follow = requestLog(log);
  const fixed = [...securityHeaders(API_HEADERS), ...KEY_FILE_HEADERS].flat();
  return (request, response) => {
    const started = log.now();
    const found = find(request, findApiKey, store);
    if (!found) {
      app(request, response);
      return;
    }
    const { path, streamId, bytes } = found;
    const requestId = follow(
      request,
      response,
      () => ({ route: KEY_FILE_PATH, path, fields: { streamId } }),
      started,
    );
    answer(response, requestId, fixed, bytes);
  };
}

function answer(response: ServerResponse, requestId: string, fixed: readonly string[], bytes: Buffer): void {
  response.writeHead(200, [
    'x-request-id',
    requestId,
    ...fixed,
    'etag',
    etagOf(bytes),
    'content-length',
    String(bytes.length),
  ]);
  response.end(bytes.toString('latin1'), 'latin1');
}

function find(request: IncomingMessage, findApiKey: FindApiKey, store: KeyFileStore) {
  if (request.headers['if-none-match'] !== undefined) return undefined;
  const plain = readPlainRequest(request, 'GET', findApiKey);
  if (!plain || !mayRead(plain.apiKey, plain.streamId)) return undefined;
  try {
    const bytes = store.read(plain.streamId);
    return bytes && { path: plain.path, streamId: plain.streamId, bytes };
  } catch {
    // The route meets the same failure and says what it is.
    return undefined;
  }
}
