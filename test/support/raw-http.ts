import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends a request whose path goes out as it is: clients that build a URL resolve `..` and `%2e` before they send. */
export function rawRequest(
  port: number,
  method: string,
  path: string,
  headers: OutgoingHttpHeaders,
  body?: string,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
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
