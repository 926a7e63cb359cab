import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import { text as readText } from 'node:stream/consumers';
import { TLSSocket } from 'node:tls';
import { listening } from './listening';

/**
 * The reaction of the fake to a request: an answer, or its status; silence, silence amid an answer, a cut connection,
 * bytes that are not HTTP, an answer of which a byte comes now and then, or one without an end.
 */
export type Script =
  | number
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
  | 'garbage'
  /** A reaction that depends on the request. */
  | ((request: Received) => Script | Promise<Script>);

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
  let connections = 0;
  let cut = 0;
  let held: (() => void)[] = [];

  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    response.on('close', () => {
      if (response.writableFinished) return;
      cut += 1;
      server.emit('cut');
    });
    const { method = '', url: path = '', headers, socket } = request;
    const client = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.subject : undefined;
    const body = await readText(request).catch(() => '');
    const asked = { method, path, headers, body, client };
    received.push(asked);
    server.emit('received');
    const queue = scripts.get(path) ?? scripts.get('*') ?? [{ status: 404, body: { error: 'not scripted' } }];
    const script = (queue.length > 1 ? queue.shift() : queue[0]) ?? 'reset';
    held.push(async () => perform(await scripted(script, asked), response));
    if (received.length < wanted) return;
    const release = held;
    held = [];
    for (const answer of release) answer();
  };
  const server = tls ? createSecureServer(tls, listener) : createServer(listener);
  server.on('connection', () => {
    connections += 1;
  });
  const port = await listening(server);

  return {
    url: `http${tls ? 's' : ''}://127.0.0.1:${port}`,
    /** Every request, in the order of arrival. */
    received,
    /** Scripts the answers of a path: one a request, the last one for all that follow. Other paths answer what `*` does, or 404. */
    on: (path: string, ...answers: Script[]) => void scripts.set(path, answers),
    /** Scripts the answers of several paths. */
    onEach(answers: Readonly<Record<string, Script>>) {
      for (const [path, answer] of Object.entries(answers)) scripts.set(path, [answer]);
    },
    /** How many connections were opened so far. */
    connections: () => connections,
    /** Waits until this many calls have ended before their answer was complete. */
    async untilCut(count: number) {
      while (cut < count) await once(server, 'cut');
    },
    /** Waits until this many requests have arrived in all. */
    async until(count: number) {
      while (received.length < count) await once(server, 'received');
    },
    /** Holds all answers back until this many requests have arrived. */
    holdUntil: (count: number) => {
      wanted = count;
    },
  };
}

/** An address on which nothing listens. */
export async function refusedUrl(): Promise<string> {
  const server = createServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

async function scripted(script: Script, request: Received): Promise<Script> {
  return typeof script === 'function' ? scripted(await script(request), request) : script;
}

function perform(script: Script, response: ServerResponse): void {
  const json = { 'content-type': 'application/json' };
  if (script === 'hang') return;
  if (script === 'reset') response.destroy();
  else if (script === 'garbage') response.socket?.end('this is no HTTP\r\n\r\n');
  else if (script === 'stall') response.writeHead(200, json).write('{"key":');
  else if (script === 'drip' || script === 'endless') {
    response.writeHead(200, json).on('error', () => undefined);
    const isDrip = script === 'drip';
    const more = () => {
      if (!response.destroyed) response.write(' '.repeat(isDrip ? 1 : 100_000), again);
    };
    // From Node 26 on, the callback comes before the end of the connection is seen.
    const again = () => void (isDrip ? setTimeout(more, 10) : setImmediate(more));
    more();
  } else if (typeof script === 'function') {
    throw new TypeError('A script answers one that is to be performed');
  } else {
    const {
      status = 200,
      headers = {},
      body = '',
    } = typeof script === 'number' ? { status: script } : script;
    const isText = typeof body === 'string' || Buffer.isBuffer(body);
    response.writeHead(status, {
      ...(isText ? { 'content-type': 'text/html' } : json),
      'x-request-id': `fake-${status}`,
      ...headers,
    });
    response.end(isText ? body : JSON.stringify(body));
  }
}
