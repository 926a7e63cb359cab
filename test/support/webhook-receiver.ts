import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterTest } from './after-test';

/**
 * What the receiver does with a call: a status, or an answer with headers; no answer at all (`hang`); a cut connection
 * (`reset`); bytes that are no HTTP (`garbage`); a 200 whose body never ends, silent (`stall`) or gushing (`flood`).
 */
export type ReceiverScript =
  | number
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | 'hang'
  | 'reset'
  | 'garbage'
  | 'stall'
  | 'flood';

export interface ReceivedCall {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** As it came. */
  readonly text: string;
}

export interface WebhookReceiver {
  readonly url: string;
  /** Every call, in the order of arrival. */
  readonly received: readonly ReceivedCall[];
  /** How many connections were opened so far. */
  readonly connections: () => number;
  /** Waits until this many calls were cut by the caller before their answer was complete. */
  untilCut(count: number): Promise<void>;
  /** Scripts the answers to the next calls; those after them are answered 200. */
  answer(...scripts: ReceiverScript[]): void;
  /** Waits until this many calls have arrived in all. */
  until(count: number): Promise<readonly ReceivedCall[]>;
}

/** Starts a receiver of webhook notifications on loopback; it is stopped after the test. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const scripts: ReceiverScript[] = [];
  const received: ReceivedCall[] = [];
  let connections = 0;
  let cut = 0;
  const server = createServer((request, response) => {
    const { method = '', url: path = '', headers } = request;
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      received.push({ method, path, headers, text });
      server.emit('received');
      perform(scripts.shift() ?? 200, response);
    });
    response.on('close', () => {
      if (response.writableFinished) return;
      cut += 1;
      server.emit('cut');
    });
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterTest(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    connections: () => connections,
    answer: (...next) => void scripts.push(...next),
    async until(count) {
      while (received.length < count) await once(server, 'received');
      return received;
    },
    async untilCut(count) {
      while (cut < count) await once(server, 'cut');
    },
  };
}

const FLOOD = Buffer.alloc(65_536, 'x');

function perform(script: ReceiverScript, response: ServerResponse): void {
  if (script === 'hang') return;
  if (script === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  if (script === 'garbage') {
    response.socket?.end('this is no HTTP\r\n\r\n');
    return;
  }
  if (script === 'stall') {
    response.writeHead(200).write('a beginning');
    return;
  }
  if (script === 'flood') {
    response.writeHead(200);
    const gush = () => {
      if (!response.destroyed) response.write(FLOOD, (failed) => failed ?? gush());
    };
    response.on('error', () => undefined);
    gush();
    return;
  }
  const { status, headers = {}, body = '' } = typeof script === 'number' ? { status: script } : script;
  response.writeHead(status, headers).end(body);
}
