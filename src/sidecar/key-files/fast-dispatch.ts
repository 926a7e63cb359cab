import type { RequestListener } from 'node:http';
import { parseStreamId } from '../../api/stream-id';
import { errorAnswer, exchangeOf, requestLog, type Shell, securityHeaders } from '../../http/shell';
import type { FindApiKey } from '../access/api-key';
import type { KeyFileHandler, KeyFileHandlers } from './handlers';
import { KEY_FILE_PATH } from './routes';

/** A path without sub-folder and percent-encoding, which means the same to everybody; and the query of an export. */
const PLAIN = /^\/api\/keyfile\/([^/?#%\\]+)(?:\?as=([a-z0-9-]+)(?:&scheme=([a-z0-9]+))?)?$/;

/**
 * Serves what packagers' tools and monitors send all day, a plain path with a valid API key, without Express: GET loses
 * more than a quarter of its rate by its routing. Every other request goes to Express, which has the same handlers
 * behind the same middleware.
 */
export function createFastDispatch(
  app: RequestListener,
  shell: Shell,
  handlers: KeyFileHandlers,
  findApiKey: FindApiKey,
): RequestListener {
  const byMethod: Readonly<Record<string, KeyFileHandler>> = {
    GET: handlers.get,
    POST: handlers.post,
    DELETE: handlers.delete,
  };
  const follow = requestLog(shell);
  const secure = securityHeaders(shell);
  const answerError = errorAnswer(shell);
  return (request, response) => {
    const { method = '', url = '' } = request;
    const [, name = '', as, scheme] = PLAIN.exec(url) ?? [];
    const handle = as === undefined || method === 'GET' ? byMethod[method] : undefined;
    const streamId = parseStreamId(name);
    const apiKey = handle && streamId.ok ? findApiKey(request.headers['x-api-key']) : undefined;
    if (!handle || !streamId.ok || !apiKey) {
      app(request, response);
      return;
    }
    follow(request, response, () => undefined);
    secure(request, response, () => undefined);
    const exchange = exchangeOf(response);
    exchange.route = KEY_FILE_PATH;
    exchange.apiKey = apiKey;
    exchange.logFields = { streamId: streamId.value };
    const query = as === undefined ? {} : { as, ...(scheme !== undefined && { scheme }) };
    const fail = (thrown: unknown) => answerError(thrown, request, response);
    try {
      handle(request, response, { streamId: streamId.value, apiKey, exchange, query })?.catch(fail);
    } catch (thrown) {
      fail(thrown);
    }
  };
}
