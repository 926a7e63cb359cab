import { createServer, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listening } from './listening';

/**
 * A proxy before a sidecar, which calls a function with each request before it goes on, with the address that this may
 * give it; the answer is lost if the function returns `cut`.
 */
export async function startProxy(
  target: string,
  before: (request: IncomingMessage) => unknown,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const isCut = (await before(request)) === 'cut';
    const { method = '', url = '' } = request;
    const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
      /^(?:x-api-key|content-type|if-(?:none-)?match)$/.test(name) ? [[name, String(value)]] : [],
    );
    const body = await buffer(request);
    // The sidecar may stop before it answers a client that has gone.
    const asked = { method, headers, ...(body.length > 0 && { body }) };
    const answer = await fetch(target + url, asked).catch(() => undefined);
    const content = answer && Buffer.from(await answer.arrayBuffer());
    if (isCut || !answer) response.destroy();
    else response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(content);
  });
  return `http://127.0.0.1:${await listening(server)}`;
}
