import type { IncomingMessage, RequestListener } from 'node:http';
import type { Express } from 'express';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import { addressOf, type Followed, requestLog, type Shell, securityHeaders } from '../../http/app';
import { type FindApiKey, mayRead } from '../api-key';
import type { KeyFileStore } from '../storage/key-file-store';
import { KEY_FILE_PATH, mayPreferJson, sendLines, setCommon } from './routes';

/** A path without query, sub-folder and percent-encoding. */
const PLAIN = /^\/api\/keyfile\/([^/?#%\\]+)$/;

interface FastReadContext extends Shell {
  readonly store: Pick<KeyFileStore, 'read'>;
  readonly findApiKey: FindApiKey;
}

/**
 * Answers the read that packagers and monitors send all day, a plain path with a valid API key and no condition, in front
 * of Express, whose dispatch takes more than half of the rate of such reads (`docs/speed.md`). Every other request goes to
 * Express, and so do refusals, failures and reads of what is not there.
 */
export function createFastRead(app: Express, context: FastReadContext): RequestListener {
  const { store, findApiKey } = context;
  const follow = requestLog(context);
  const secure = securityHeaders();
  const read = (streamId: StreamId): Buffer | undefined => {
    try {
      return store.read(streamId);
    } catch {
      // Express reads again, and answers why that fails.
      return undefined;
    }
  };
  return (request: IncomingMessage & { route?: { path: string } }, response: Followed) => {
    const { method, url = '', headers } = request;
    const [, name = ''] = PLAIN.exec(url) ?? [];
    const isPlain = method === 'GET' && !headers['if-none-match'] && !mayPreferJson(headers.accept ?? '');
    const streamId = parseStreamId(name);
    const apiKey = isPlain && streamId.ok ? findApiKey(headers['x-api-key']) : undefined;
    if (!streamId.ok || !apiKey || !mayRead(apiKey, streamId.value)) {
      app(request, response);
      return;
    }
    const exchange = follow(request, response);
    const bytes = read(streamId.value);
    if (!bytes) {
      app(request, response);
      return;
    }
    request.route = { path: KEY_FILE_PATH };
    exchange.client = { key: apiKey.name, address: addressOf(request) };
    exchange.logFields = { streamId: streamId.value };
    secure(request, response, () => undefined);
    sendLines(setCommon(response, []), bytes);
  };
}
