import { once } from 'node:events';
import { chmodSync, copyFileSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';

/** Where the certificates of the tests lie; `make.sh` there makes them. */
export const pemPath = (name: string) => join(__dirname, '..', 'vectors', 'tls', `${name}.pem`);
export const pem = (name: string) => readFileSync(pemPath(name));

/** Copies a certificate or key of the tests to where a server reads it. */
export function place(name: string, path: string): void {
  copyFileSync(pemPath(name), path);
  chmodSync(path, 0o600);
}

/** The certificate that a client shows, by its name in the tests. */
export const shows = (name: string) => ({ cert: pem(name), key: pem(`${name}-key`) });

/** `session`: one to resume. */
type ClientOptions = RequestOptions & { session?: Buffer | undefined };

/** Sends a GET over a connection of its own that trusts the authority of the tests. */
export async function secureGet(port: number, path: string, options: ClientOptions = {}) {
  const own = { host: '127.0.0.1', port, path, agent: false, ca: pem('authority') };
  const request = httpsRequest({ ...own, ...options }).on('error', () => undefined);
  let session: Buffer | undefined;
  let server: string | undefined;
  request.on('socket', (socket) => {
    const secure = socket as TLSSocket;
    secure.on('session', (given: Buffer) => {
      session = given;
    });
    secure.on('secureConnect', () => {
      server = secure.getPeerX509Certificate()?.subject;
    });
  });
  const [response] = (await once(request.end(), 'response')) as [IncomingMessage];
  const { statusCode: status, headers } = response;
  const body: unknown = await json(response);
  /** `server`: the common name in its certificate. */
  return { status, body, server, session, headers };
}
