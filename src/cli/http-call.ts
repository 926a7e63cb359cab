import * as http from 'node:http';
import * as https from 'node:https';
import { systemCode } from '../kernel/errors';
import type { Connection } from './connection';

export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** The path below the sidecar's address, with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** How long the whole answer may take. */
  readonly timeoutMs: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Several times what a batch of 10,000 streams is answered with. */
const MOST_BYTES = 64 * 1024 * 1024;

/** The code of an answer that no sidecar gives. */
export const TOO_LARGE = 'ANSWER_TOO_LARGE';

/** No answer came. `cause` is the system's or TLS's code. */
export class NoAnswer extends Error {
  readonly causeCode: string;

  constructor(causeCode: string) {
    super(causeCode);
    this.name = 'NoAnswer';
    this.causeCode = causeCode;
  }
}

export type HttpCall = (call: Call) => Promise<Answer>;

/**
 * Makes the calls to a sidecar over kept connections, with the private authority and the client certificate that
 * `fetch` takes from no option. Calls reject with NoAnswer alone.
 */
export function createHttpCall(connection: Connection, signal: AbortSignal): HttpCall {
  const { url, apiKey, ca, cert, certKey } = connection;
  const secure = url.protocol === 'https:';
  const tls = { ...(ca !== undefined && { ca }), ...(cert !== undefined && { cert, key: certKey }) };
  const agent = secure ? new https.Agent({ keepAlive: true, ...tls }) : new http.Agent({ keepAlive: true });
  const open = secure ? https.request : http.request;
  const base = url.href.replace(/\/$/, '');
  return ({ method, path, headers = {}, body, timeoutMs }) =>
    new Promise((resolve, reject) => {
      const fail = (thrown: unknown) => reject(new NoAnswer(systemCode(thrown) ?? 'ERROR'));
      const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body), 'utf8');
      const sent = {
        'x-api-key': apiKey,
        ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }),
        ...headers,
      };
      try {
        const request = open(`${base}${path}`, { method, agent, signal, headers: sent });
        const cut = (code: string) => request.destroy(Object.assign(new Error(), { code }));
        // Not the socket's own timeout: a drop now and then would put that off for ever.
        const deadline = setTimeout(() => cut('ETIMEDOUT'), timeoutMs);
        request.on('close', () => clearTimeout(deadline));
        request.on('error', fail);
        request.on('response', (response) => {
          const chunks: Buffer[] = [];
          let length = 0;
          response.on('data', (chunk: Buffer) => {
            chunks.push(chunk);
            length += chunk.length;
            if (length > MOST_BYTES) cut(TOO_LARGE);
          });
          response.on('error', fail);
          response.on('end', () => {
            const { statusCode: status = 0, headers } = response;
            resolve({ status, headers, body: Buffer.concat(chunks) });
          });
        });
        request.end(payload);
      } catch (thrown) {
        // A certificate that is none makes the call throw.
        fail(thrown);
      }
    });
}
