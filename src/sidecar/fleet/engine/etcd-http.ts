import * as http from 'node:http';
import * as https from 'node:https';
import { systemCode } from '../../../http/errors';
import { Failed, faultOfNoAnswer } from './etcd-faults';

/** What a TLS connection presents and trusts: PEM. Without `ca`, the public authorities. */
export interface Credentials {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
}

export interface Ask {
  readonly path: string;
  /** JSON for a POST; undefined: a GET. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The longest silence before the answer and between its parts, in ms. */
  readonly silenceMs: number;
  /** Called when the answer begins. */
  readonly onAnswer?: () => void;
}

/** To one server. */
const MAX_CONNECTIONS = 64;
/** More than the largest page that is asked for. */
const MAX_ANSWER = 256 * 1024 * 1024;

/**
 * HTTP to the servers, by their addresses.
 * @param credentials returns another object after a change of the files; new connections use it.
 */
export function createEtcdHttp(isTls: boolean, credentials: () => Credentials) {
  const { request, Agent } = isTls ? https : http;
  let used: Credentials | undefined;
  let kept: http.Agent | undefined;

  const agent = (): http.Agent => {
    const present = credentials();
    if (kept && present === used) return kept;
    kept?.destroy();
    used = present;
    // A resumed TLS session would skip the check of the certificates.
    const sessions = { maxCachedSessions: 0 };
    kept = new Agent({ ...present, ...sessions, keepAlive: true, maxSockets: MAX_CONNECTIONS });
    return kept;
  };

  const send = (
    url: string,
    { path, body, headers, silenceMs, onAnswer }: Ask,
    isKept: boolean,
  ): Promise<http.IncomingMessage> =>
    new Promise((resolve, reject) => {
      let isSent = false;
      let received: http.IncomingMessage | undefined;
      const fail = (code: string) => reject(new Failed(url, faultOfNoAnswer(code, isSent)));
      const sending = request(`${url}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        ...(isKept ? { agent: agent() } : { ...credentials(), agent: false }),
        timeout: silenceMs,
        headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      });
      sending.on('socket', (socket) => {
        const sent = () => {
          isSent = true;
        };
        if (sending.reusedSocket) sent();
        else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', sent);
      });
      sending.on('timeout', () => {
        const silence = Object.assign(new Error('silence'), { code: 'ETIMEDOUT' });
        (received ?? sending).destroy(silence);
      });
      sending.on('response', (response) => {
        received = response;
        onAnswer?.();
        // Until the caller reads it: an error without a listener would end the process.
        response.on('error', () => undefined);
        resolve(response);
      });
      sending.on('upgrade', (_response, socket) => {
        socket.destroy();
        fail('ERROR');
      });
      sending.on('error', (thrown) => fail(systemCode(thrown) ?? 'ERROR'));
      sending.on('close', () => fail('ECONNRESET'));
      sending.end(body);
    });

  return {
    /** `date`: the server's clock. @throws Failed */
    async ask(url: string, ask: Ask) {
      const response = await send(url, ask, true);
      const body = await bodyOf(response).catch((thrown: unknown) => {
        throw new Failed(url, faultOfNoAnswer(systemCode(thrown) ?? 'ECONNRESET', true));
      });
      return { status: response.statusCode ?? 0, date: response.headers.date, body };
    },
    /** The same on a connection of its own, for an endless answer, which the caller destroys. @throws Failed */
    async open(url: string, ask: Ask): Promise<http.IncomingMessage> {
      const response = await send(url, ask, false);
      response.setTimeout(0);
      return response;
    },
    close: () => kept?.destroy(),
  };
}

/** Rejects with the code `TOO_LARGE` or the system's. */
async function bodyOf(response: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_ANSWER) throw Object.assign(new Error('too large'), { code: 'TOO_LARGE' });
  }
  return Buffer.concat(chunks, length);
}
