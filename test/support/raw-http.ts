import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { text as readText } from 'node:stream/consumers';

/** Sends a request whose path goes out as it is: clients that build a URL resolve `..` and `%2e` before they send. */
export async function rawRequest(
  port: number,
  method: string,
  path: string,
  headers: OutgoingHttpHeaders,
  body?: string | Buffer,
) {
  const request = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false });
  // After the answer it may find that what it still sends is not read.
  request.on('error', () => undefined).end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const text = await readText(response);
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}

/** Writes a text to a new connection, keeps it open, and answers with the first `enough` that is matched in what comes back. */
export function rawExchange(port: number, text: string, enough: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      received += chunk;
      if (!enough.test(received)) return;
      resolve(received);
      socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`The connection ended after: ${received}`)));
  });
}
