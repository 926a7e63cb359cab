import * as http from 'node:http';
import * as https from 'node:https';
import { systemCode } from '../http/errors';
import { whyNoAnswer } from '../http/get-request';
import { CliError, EXIT } from './cli-error';
import type { Connection } from './connection';

export interface Call {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
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
const MAX_BYTES = 64 * 1024 * 1024;

/** A connection that waits longer for the next call is closed: what stands between may have forgotten it by then. */
const IDLE_MS = 15_000;

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

/** Makes a call, which ends early when the signal is aborted. It rejects with NoAnswer alone. */
export type HttpCall = (call: Call, signal: AbortSignal) => Promise<Answer>;

/**
 * Makes the calls to a sidecar over kept connections, with the private authority and the client certificate that
 * `fetch` takes from no option. Redirects are not followed: the key is for this address alone.
 */
export function createHttpCall(connection: Connection): HttpCall {
  const { url, apiKey, ca, cert, certKey } = connection;
  const secure = url.protocol === 'https:';
  const tls = { ...(ca !== undefined && { ca }), ...(cert !== undefined && { cert, key: certKey }) };
  const kept = { keepAlive: true, timeout: IDLE_MS };
  const agent = secure ? new https.Agent({ ...kept, ...tls }) : new http.Agent(kept);
  const open = secure ? https.request : http.request;
  const base = url.href.replace(/\/$/, '');

  const once = ({ method, path, headers = {}, body, timeoutMs }: Call, signal: AbortSignal) =>
    new Promise<Answer>((resolve, reject) => {
      const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body), 'utf8');
      const sent = {
        'x-api-key': apiKey,
        ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }),
        ...headers,
      };
      let request: http.ClientRequest | undefined;
      const fail = (thrown: unknown) => {
        clearTimeout(deadline);
        const code = systemCode(thrown) ?? 'ERROR';
        const isCut = code === 'ECONNRESET' || code === 'EPIPE';
        reject(isCut && request?.reusedSocket ? new StaleConnection(code) : new NoAnswer(code));
      };
      const cut = (code: string) => {
        // The call is over in any case; what becomes of its connection is another matter.
        fail({ code });
        request?.destroy(Object.assign(new Error(), { code }));
      };
      // Not the socket's own timeout: a drop now and then would put that off for ever.
      const deadline = setTimeout(() => cut('ETIMEDOUT'), timeoutMs);
      try {
        const made = open(`${base}${path}`, { method, agent, signal, headers: sent });
        request = made;
        let isAnswered = false;
        made.on('error', fail);
        // A connection that is closed upon `101 Switching Protocols` tells no error.
        made.on('close', () => isAnswered || fail({ code: 'ECONNRESET' }));
        made.on('response', (response) => {
          isAnswered = true;
          const received = createReceived();
          response.on('data', (chunk: Buffer) => received.add(chunk) || cut(TOO_LARGE));
          response.on('error', fail);
          response.on('close', () => fail({ code: 'ECONNRESET' }));
          response.on('end', () => {
            clearTimeout(deadline);
            const { statusCode: status = 0, headers } = response;
            resolve({ status, headers, body: received.bytes() });
            // Who answers and reads no further would keep the rest of the request, and the program, waiting.
            if (!made.writableFinished) made.destroy();
          });
        });
        made.end(payload);
      } catch (thrown) {
        // A certificate that is none makes the call throw.
        fail(thrown);
      }
    });

  return async (call, signal) => {
    try {
      return await once(call, signal);
    } catch (thrown) {
      // The other side closed the kept connection just then; what only reads can be asked again.
      const onlyReads = call.method === 'GET' || call.method === 'HEAD';
      if (thrown instanceof StaleConnection && onlyReads) return once(call, signal);
      throw thrown;
    }
  };
}

/** A connection that was kept from an earlier call was cut. */
class StaleConnection extends NoAnswer {}

/**
 * What came of a body. Pieces are copied together: one that is kept by itself costs a hundred times the byte that it
 * may consist of.
 */
function createReceived() {
  let block = Buffer.alloc(64 * 1024);
  let length = 0;
  return {
    /** Answers false when the body is too large. */
    add: (piece: Buffer): boolean => {
      const total = length + piece.length;
      if (total > MAX_BYTES) return false;
      if (total > block.length) {
        const former = block;
        block = Buffer.alloc(Math.min(MAX_BYTES, Math.max(total, 2 * former.length)));
        former.copy(block, 0, 0, length);
      }
      piece.copy(block, length);
      length = total;
      return true;
    },
    bytes: (): Buffer => block.subarray(0, length),
  };
}

/** Says which address was tried, why nothing came of it, and where the address is set. */
export function describeNoAnswer(thrown: NoAnswer, { url, urlFrom }: Connection): CliError {
  const { causeCode } = thrown;
  const why =
    causeCode === TOO_LARGE
      ? 'its answer does not end, or is far larger than any of a sidecar'
      : whyNoAnswer(causeCode, {
          untrusted: 'name the authority that issued it by --ca',
          tls: 'check the files of --ca, --cert and --cert-key',
        });
  return new CliError(EXIT.unreachable, {
    code: 'sidecar_unreachable',
    description: `No sidecar answers at ${url.href.replace(/\/$/, '')}: ${why}. The address comes from ${urlFrom}; --url and PACKAGERDRM_URL set another.`,
  });
}
