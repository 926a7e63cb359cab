import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { duplexPair, type Readable } from 'node:stream';
import { headersOf } from '../../../http/get';

export interface PlatformCall {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** What is longer is cut. */
  readonly maxBytes?: number;
  /** Breaks the connection. */
  readonly signal?: AbortSignal;
}

export interface PlatformAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** Whether there was more than `maxBytes`. */
  readonly isCut: boolean;
}

/**
 * Calls the platform's own routes as a client does, over HTTP, on a connection within this process. Undefined when the
 * connection breaks, as a fault switch may want it.
 */
export function callPlatform(
  listener: RequestListener,
  { method, target, headers, body = '', maxBytes = Number.POSITIVE_INFINITY, signal }: PlatformCall,
): Promise<PlatformAnswer | undefined> {
  const server = createServer(listener);
  const [ours, theirs] = duplexPair();
  // What a fault switch does to a socket; and that the other end breaks with it.
  Object.assign(theirs, { resetAndDestroy: () => theirs.destroy() });
  theirs.on('close', () => {
    if (!theirs.writableFinished) ours.destroy();
  });
  server.emit('connection', theirs);
  return new Promise((resolve) => {
    const broken = () => resolve(undefined);
    const call = httpRequest({
      method,
      path: target,
      headers: { ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' },
      createConnection: () => ours,
      ...(signal && { signal }),
    });
    call.on('error', broken);
    // Who is not read to the end is told so, as by a client that has gone.
    call.on('close', () => theirs.destroy());
    call.on('response', (response) => {
      bytesOf(response, maxBytes).then(
        (received) =>
          resolve({ status: response.statusCode ?? 0, headers: headersOf(response), ...received }),
        broken,
      );
    });
    call.end(body);
  });
}

async function bytesOf(stream: Readable, most: number): Promise<Pick<PlatformAnswer, 'body' | 'isCut'>> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > most) return { body: Buffer.concat(chunks, most), isCut: true };
  }
  return { body: Buffer.concat(chunks), isCut: false };
}
