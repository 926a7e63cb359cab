import { copyFileSync, readFileSync } from 'node:fs';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';

/** Where the certificates of the tests lie; `make.sh` there makes them. */
export const pemPath = (name: string) => join(__dirname, '..', 'vectors', 'tls', `${name}.pem`);
export const pem = (name: string) => readFileSync(pemPath(name));

/** Copies a certificate or key of the tests to where a server reads it. */
export function place(name: string, path: string): void {
  copyFileSync(pemPath(name), path);
}

/** What a client shows of itself: the name of a certificate of the tests. */
export const shows = (name: string) => ({ cert: pem(name), key: pem(`${name}-key`) });

export interface SecureAnswer {
  readonly status: number | undefined;
  readonly body: unknown;
  /** The common name in the server's certificate. */
  readonly server: string | undefined;
  readonly session: Buffer | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** `session`: one to resume. */
type ClientOptions = RequestOptions & { session?: Buffer | undefined };

/** Sends a GET over a connection of its own that trusts the authority of the tests. */
export function secureGet(port: number, path: string, options: ClientOptions = {}): Promise<SecureAnswer> {
  return new Promise((resolve, reject) => {
    let session: Buffer | undefined;
    let server: string | undefined;
    const request = httpsRequest({
      host: '127.0.0.1',
      port,
      path,
      agent: false,
      ca: pem('authority'),
      ...options,
    });
    request.on('socket', (socket) => {
      const secure = socket as TLSSocket;
      secure.on('session', (given: Buffer) => {
        session = given;
      });
      secure.on('secureConnect', () => {
        server = secure.getPeerX509Certificate()?.subject;
      });
    });
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += String(chunk);
      });
      response.on('end', () => {
        const { statusCode: status, headers } = response;
        resolve({ status, body: JSON.parse(text), server, session, headers });
      });
    });
    request.end();
  });
}
