import type { IncomingMessage, RequestListener } from 'node:http';
import {
  type ConnectionOptions,
  type Connections,
  createConnections,
  type RefusalCause,
} from '../../src/http/connections';
import { listen, type RunningServer } from '../../src/http/server';
import type { Tls } from '../../src/http/tls';
import { afterTest } from './after-test';

export let connections: Connections;
export let refused: [cause: RefusalCause, network: string][];

export const HEAD = 'GET /x HTTP/1.1\r\nhost: a\r\n';
export const KEY = 'x-api-key: valid\r\n';
const isTrusted = ({ headers }: IncomingMessage) => headers['x-api-key'] === 'valid';
const isProbe = ({ url }: IncomingMessage) => url === '/healthz';

/** Serves with connections and refused ones as these two hold them. */
export async function serve(
  handler: RequestListener,
  options: ConnectionOptions = {},
  { host = '127.0.0.1', ...more }: { host?: string; tls?: Tls; requestTimeoutMs?: number } = {},
): Promise<RunningServer> {
  refused = [];
  connections = createConnections({
    isTrusted,
    isProbe,
    onRefused: (cause, network) => void refused.push([cause, network]),
    answerMs: 250,
    ...options,
  });
  const server = await listen(handler, host, 0, { connections, ...more });
  afterTest(() => server.stop(0));
  return server;
}

/** Answers at once, but `/wait`, which is never answered. */
export const answer: RequestListener = (request, response) => {
  if (request.url !== '/wait') response.end(`answer to ${request.url}`);
};
