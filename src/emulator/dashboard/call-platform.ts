import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { duplexPair, type Readable } from 'node:stream';

export interface PlatformCall {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface PlatformAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Calls the platform's own routes as a client does, over HTTP, on a connection within this process. Undefined when the
 * connection breaks, as a fault switch may want it.
 */
export function callPlatform(
  listener: RequestListener,
  { method, target, headers, body = '' }: PlatformCall,
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
    });
    call.on('error', broken);
    call.on('response', (response) => {
      textOf(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), broken);
    });
    call.end(body);
  });
}

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
