import type { IncomingMessage } from 'node:http';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import type { ApiKey, FindApiKey } from '../access/api-key';
import { SPEAKS_OF_JSON } from './key-file-answer';

const PLAIN_PATH = /^\/api\/keyfile\/([^/?#%\\]+)$/;

/** A request whose path and key need no second look. */
export interface PlainRequest {
  readonly path: string;
  readonly streamId: StreamId;
  readonly apiKey: ApiKey;
}

/**
 * Reads a request that needs none of Express: a plain path without sub-folder, query or percent-encoding, a valid API
 * key, the answer in text. Undefined for every other, whose route knows what to do with it.
 */
export function readPlainRequest(
  request: IncomingMessage,
  method: string,
  findApiKey: FindApiKey,
): PlainRequest | undefined {
  const path = request.url ?? '';
  const [, name] = (request.method === method && PLAIN_PATH.exec(path)) || [];
  if (name === undefined || SPEAKS_OF_JSON.test(request.headers.accept ?? '')) return undefined;
  const apiKey = findApiKey(request.headers['x-api-key']);
  const streamId = parseStreamId(name);
  return apiKey && streamId.ok ? { path, streamId: streamId.value, apiKey } : undefined;
}
