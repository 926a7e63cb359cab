import type { IncomingMessage, RequestListener } from 'node:http';
import type { Express } from 'express';
import { exportQuery } from '../../api/key-file-request';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import { addressOf, requestLog, type Shell, securityHeaders } from '../../http/app';
import { type FindApiKey, mayRead } from '../api-key';
import type { KeyFileStore } from '../storage/key-file-store';
import { KEY_FILE_PATH, mayPreferJson, sendBytes, sendExport, setCommon } from './routes';

/** A path without sub-folder and percent-encoding, and the query of an export. */
const PLAIN = /^\/api\/keyfile\/([^/?#%\\]+)(?:\?as=([a-z0-9-]+)(?:&scheme=([a-z0-9-]+))?)?$/;

interface FastReadContext extends Shell {
  readonly store: Pick<KeyFileStore, 'read'>;
  readonly findApiKey: FindApiKey;
}

/**
 * Answers frequent reads (a plain path, a valid API key, no condition) before Express, whose dispatch would
 * take more than half of their rate (`docs/speed.md`). All else goes to Express, also refusals, failures and
 * missing files.
 */
export function createFastRead(app: Express, context: FastReadContext): RequestListener {
  const { store, findApiKey } = context;
  const follow = requestLog(context);
  const secure = securityHeaders();
  const plainRead = ({ method, url = '', headers }: IncomingMessage) => {
    const [, name = '', as, scheme] = PLAIN.exec(url) ?? [];
    const streamId = parseStreamId(name);
    if (method !== 'GET' || !streamId.ok || headers['if-none-match'] || mayPreferJson(headers.accept ?? ''))
      return undefined;
    const asked = as === undefined ? undefined : exportQuery.safeParse({ as, scheme });
    const apiKey = findApiKey(headers['x-api-key']);
    if (asked?.success === false || !apiKey || !mayRead(apiKey, streamId.value)) return undefined;
    return { streamId: streamId.value, apiKey, asked: asked?.data };
  };
  const read = (streamId: StreamId): Buffer | undefined => {
    try {
      return store.read(streamId);
    } catch {
      return undefined; // Express reads again, and answers why that fails.
    }
  };
  return (request: IncomingMessage & { route?: { path: string } }, response) => {
    const plain = plainRead(request);
    const followed = plain && follow(request, response);
    const bytes = plain && read(plain.streamId);
    if (!followed || !bytes) {
      app(request, response);
      return;
    }
    const { streamId, apiKey, asked } = plain;
    request.route = { path: KEY_FILE_PATH };
    followed.locals.client = { key: apiKey.name, address: addressOf(request) };
    followed.locals.logFields = { streamId };
    secure(request, response, () => undefined);
    if (!asked) sendBytes(setCommon(response, []), bytes);
    else sendExport(request, followed, { streamId, bytes, asked }).catch(() => app(request, response));
  };
}
