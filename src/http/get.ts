import { setMaxListeners } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction } from 'node:net';
import { TLSSocket } from 'node:tls';
import { failureCode, type Get, type GetAnswer, GetFailed, type GetRequest } from './get-request';

interface GetOptions {
  readonly userAgent?: string;
  /** Looks names up in place of the system, and may refuse addresses. */
  readonly lookup?: LookupFunction;
  /** PEM, or a context. Calls get new connections when it returns another object. */
  readonly tls?: () => Pick<https.AgentOptions, 'ca' | 'cert' | 'key' | 'secureContext'>;
  /** The agent of a proxy, which stops connecting with the signal; undefined: no proxy for this address. */
  readonly tunnel?:
    | ((url: string, connecting: { readonly signal: AbortSignal }) => http.Agent | undefined)
    | undefined;
  /** A kept connection that waits longer for the next call is closed. */
  readonly idleMs?: number;
  readonly maxSockets?: number;
}

/** `close` ends idle connections, which keep a program from ending. */
export function createGet({ userAgent, lookup, tls, tunnel, idleMs = 5000, maxSockets = 8 }: GetOptions): {
  get: Get;
  close(): void;
} {
  const kept = { keepAlive: true, timeout: idleMs, maxSockets };
  const plain = new http.Agent(kept);
  let secure = new https.Agent(kept);
  let used = tls?.();
  const secureAgent = () => {
    const present = tls?.();
    // The former connections finish their calls, and close when they are idle.
    if (present !== used) secure = new https.Agent(kept);
    used = present;
    return secure;
  };
  const open: Open = ({ url, method, headers, body }, signal) => {
    const isSecure = url.startsWith('https:');
    const connecting = new AbortController();
    const proxy = isSecure ? tunnel?.(url, { signal: connecting.signal }) : undefined;
    const made = (isSecure ? https.request : http.request)(url, {
      method,
      agent: isSecure ? (proxy ?? secureAgent()) : plain,
      ...(isSecure && tls?.()),
      headers: {
        ...(userAgent !== undefined && { 'user-agent': userAgent }),
        ...(body && { 'content-length': body.length }),
        accept: '*/*',
        ...headers,
      },
      ...(lookup && { lookup }),
      signal,
    });
    if (proxy) endConnecting(made, connecting, signal);
    return made;
  };
  return {
    get: async (request) => {
      try {
        return await sendOnce(request, open);
      } catch (thrown) {
        const { method = 'GET' } = request;
        if (thrown instanceof StaleConnection && (method === 'GET' || method === 'HEAD'))
          return sendOnce(request, open);
        throw thrown;
      }
    },
    close: () => {
      plain.destroy();
      secure.destroy();
    },
  };
}

type Open = (request: GetRequest, signal: AbortSignal) => http.ClientRequest;

/** A silent proxy must not keep its connection, and its own answer is not the server's. */
function endConnecting(made: http.ClientRequest, connecting: AbortController, signal: AbortSignal): void {
  const stop = () => connecting.abort();
  signal.addEventListener('abort', stop, { once: true });
  made.once('proxyConnect', ({ statusCode }: { readonly statusCode: number }) => {
    signal.removeEventListener('abort', stop);
    if (statusCode !== 200) made.destroy(Object.assign(new Error(), { code: `PROXY_${statusCode}` }));
  });
}

/** The other side closed a kept connection just when it was used. */
class StaleConnection extends GetFailed {}

async function sendOnce(request: GetRequest, open: Open): Promise<GetAnswer> {
  const { maxBytes, timeoutMs, signal, readsCertificate = false, body: payload } = request;
  // Not by AbortSignal.any: in Node 20, a signal of many calls keeps something of each.
  const ending = new AbortController();
  const end = () => ending.abort();
  // Not the socket's own timeout: each received byte would restart it.
  const deadline = setTimeout(end, timeoutMs).unref();
  if (signal) {
    setMaxListeners(0, signal);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  }
  let outgoing: http.ClientRequest | undefined;
  let response: http.IncomingMessage | undefined;
  let failure: unknown;
  try {
    const made = open(request, ending.signal);
    outgoing = made;
    made.on('error', (thrown) => {
      failure = thrown;
    });
    response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      made.once('response', resolve).once('error', reject);
      // `101 Switching Protocols` closes the connection without an error.
      made.once('close', () => reject(Object.assign(new Error(), { code: 'ECONNRESET' })));
      made.end(payload);
    });
    const { statusCode: status = 0, socket } = response;
    const peer =
      readsCertificate && socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    const certificateEnd = peer && new Date(peer.validTo);
    const { body, isCut } = await readBody(response, maxBytes);
    // A body without a length seems whole when its connection is cut.
    if (ending.signal.aborted) throw failure;
    // A server that stops reading would keep the rest of the request, and the program, waiting.
    if (!made.writableFinished) made.destroy();
    return { status, headers: headersOf(response), body, isCut, ...(certificateEnd && { certificateEnd }) };
  } catch (thrown) {
    const system = failureCode(failure ?? thrown);
    const code = signal?.aborted ? 'ABORT_ERR' : ending.signal.aborted ? 'ETIMEDOUT' : system;
    const isStale = (code === 'ECONNRESET' || code === 'EPIPE') && !response && outgoing?.reusedSocket;
    throw isStale ? new StaleConnection(code) : new GetFailed(code);
  } finally {
    clearTimeout(deadline);
    signal?.removeEventListener('abort', end);
  }
}

/** Pieces are copied into one block: a kept piece of one byte would cost a hundred times as much. */
async function readBody(response: http.IncomingMessage, maxBytes: number) {
  let block = Buffer.alloc(Math.min(maxBytes, 64 * 1024));
  let length = 0;
  for await (const chunk of response) {
    const piece: Buffer = chunk;
    const total = length + piece.length;
    if (total > block.length && block.length < maxBytes) {
      const former = block;
      block = Buffer.alloc(Math.min(maxBytes, Math.max(total, 2 * former.length)));
      former.copy(block, 0, 0, length);
    }
    piece.copy(block, length);
    length = Math.min(total, maxBytes);
    if (total > maxBytes) return { body: block.subarray(0, length), isCut: true };
  }
  return { body: block.subarray(0, length), isCut: false };
}

function headersOf({ headers }: http.IncomingMessage): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}
