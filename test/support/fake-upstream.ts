import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { TLSSocket } from 'node:tls';
import { afterTest } from './after-test';

/**
 * What the fake does with a request: an answer, silence, silence amid an answer, a cut connection, an answer of which a
 * byte comes now and then, or one without an end.
 */
export type Script =
  | {
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
      /** Text and bytes as they are, anything else as JSON. */
      readonly body?: unknown;
    }
  | 'hang'
  | 'stall'
  | 'drip'
  | 'endless'
  | 'reset'
  /** What depends on the request. */
  | ((request: Received) => Script);

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The subject of the client's certificate. */
  readonly client: string | undefined;
}

export type FakeUpstream = Awaited<ReturnType<typeof startFakeUpstream>>;

/** Starts a server whose answers the test scripts; it is stopped after the test. With `tls`, it speaks HTTPS. */
export async function startFakeUpstream(tls?: ServerOptions) {
  const scripts = new Map<string, Script[]>();
  const received: Received[] = [];
  let wanted = 0;
  let held: (() => void)[] = [];

  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url: path = '', headers, socket } = request;
    const client = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.subject : undefined;
    const body = await readText(request).catch(() => '');
    const asked = { method, path, headers, body, client };
    received.push(asked);
    const queue = scripts.get(path) ?? [{ status: 404, body: { error: 'not scripted' } }];
    const script = (queue.length > 1 ? queue.shift() : queue[0]) ?? 'reset';
    held.push(() => perform(scripted(script, asked), response));
    if (received.length < wanted) return;
    const release = held;
    held = [];
    for (const answer of release) answer();
  };
  const server = tls ? createSecureServer(tls, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterTest(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  return {
    url: `http${tls ? 's' : ''}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Every request, in the order of arrival. */
    received,
    /** Scripts the answers of a path: one a request, the last one for all that follow. Other paths answer 404. */
    on: (path: string, ...answers: Script[]) => void scripts.set(path, answers),
    /** Closes the connections on which no request is under way. */
    closeIdle: () => server.closeIdleConnections(),
    /** Holds all answers back until this many requests have arrived. */
    holdUntil: (count: number) => {
      wanted = count;
    },
  };
}

/** An address on which nothing listens. */
export async function refusedUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

function scripted(script: Script, request: Received): Script {
  return typeof script === 'function' ? scripted(script(request), request) : script;
}

function perform(script: Script, response: ServerResponse): void {
  if (script === 'hang') return;
  if (script === 'reset') {
    response.destroy();
    return;
  }
  if (script === 'stall') {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"key":');
    return;
  }
  if (script === 'drip' || script === 'endless') {
    response.writeHead(200, { 'content-type': 'application/json' });
    const piece = script === 'drip' ? ' ' : ' '.repeat(100_000);
    const more = setInterval(() => response.write(piece), 10);
    response.on('close', () => clearInterval(more));
    return;
  }
  if (typeof script === 'function') throw new TypeError('A script answers one that is to be performed');
  const { status = 200, headers = {}, body = '' } = script;
  const isText = typeof body === 'string' || Buffer.isBuffer(body);
  response.writeHead(status, {
    'content-type': isText ? 'text/html' : 'application/json',
    'x-request-id': `fake-${status}`,
    ...headers,
  });
  response.end(isText ? body : JSON.stringify(body));
}
