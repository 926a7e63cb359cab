import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction } from 'node:net';
import { rootCertificates } from 'node:tls';
import { systemCode } from './errors';
import { type Get, type GetAnswer, GetFailed, type GetRequest } from './get-request';

interface GetOptions {
  readonly userAgent: string;
  /** Looks names up in place of the system: who must not reach some addresses refuses them here. */
  readonly lookup?: LookupFunction;
  /** Certificates of authorities to trust beside the public ones, PEM. */
  readonly ca?: string | undefined;
}

/** A connection that waits longer for the next call is closed. */
const IDLE_MS = 5_000;

/** Makes GETs over kept connections. `close` ends those that are idle, which would keep a program from ending. */
export function createGet({ userAgent, lookup, ca }: GetOptions): { get: Get; close(): void } {
  const kept = { keepAlive: true, timeout: IDLE_MS, maxSockets: 8 };
  const plain = new http.Agent(kept);
  const secure = new https.Agent({ ...kept, ...(ca !== undefined && { ca: [...rootCertificates, ca] }) });
  const open = ({ url, headers }: GetRequest) => {
    const isSecure = url.startsWith('https:');
    return (isSecure ? https.request : http.request)(url, {
      agent: isSecure ? secure : plain,
      headers: { 'user-agent': userAgent, accept: '*/*', ...headers },
      ...(lookup && { lookup }),
    });
  };
  return {
    get: async (request) => {
      try {
        return await once(request, open);
      } catch (thrown) {
        // The other side closed the kept connection just then.
        if (thrown instanceof StaleConnection) return once(request, open);
        throw thrown;
      }
    },
    close: () => {
      plain.destroy();
      secure.destroy();
    },
  };
}

/** A connection that was kept from an earlier call was cut. */
class StaleConnection extends GetFailed {}

function once(request: GetRequest, open: (request: GetRequest) => http.ClientRequest): Promise<GetAnswer> {
  const { maxBytes, timeoutMs, signal } = request;
  return new Promise((resolve, reject) => {
    let outgoing: http.ClientRequest | undefined;
    let isAnswered = false;
    const end = () => {
      clearTimeout(deadline);
      signal?.removeEventListener('abort', abort);
    };
    const fail = (thrown: unknown) => {
      end();
      const code = systemCode(thrown) ?? 'ERROR';
      const isCut = code === 'ECONNRESET' || code === 'EPIPE';
      reject(
        isCut && !isAnswered && outgoing?.reusedSocket ? new StaleConnection(code) : new GetFailed(code),
      );
    };
    const cut = (code: string) => {
      fail({ code });
      outgoing?.destroy();
    };
    const abort = () => cut('ABORT_ERR');
    // Not the socket's own timeout: a drop now and then would put that off for ever.
    const deadline = setTimeout(() => cut('ETIMEDOUT'), timeoutMs);
    if (signal?.aborted) {
      abort();
      return;
    }
    signal?.addEventListener('abort', abort, { once: true });
    try {
      outgoing = open(request);
    } catch (thrown) {
      fail(thrown);
      return;
    }
    const made = outgoing;
    made.on('error', fail);
    made.on('close', () => isAnswered || fail({ code: 'ECONNRESET' }));
    made.on('response', (response) => {
      isAnswered = true;
      const received: Buffer[] = [];
      let length = 0;
      const finish = (isCut: boolean) => {
        end();
        const { statusCode: status = 0 } = response;
        resolve({ status, headers: headersOf(response), body: Buffer.concat(received), isCut });
      };
      response.on('data', (chunk: Buffer) => {
        const room = maxBytes - length;
        length += chunk.length;
        // A copy: a piece that is kept by itself keeps the block that it was read into.
        if (room > 0) received.push(Buffer.from(chunk.subarray(0, room)));
        if (chunk.length <= room) return;
        finish(true);
        made.destroy();
      });
      response.on('error', fail);
      response.on('end', () => finish(false));
      response.on('close', () => fail({ code: 'ECONNRESET' }));
    });
    made.end();
  });
}

/** The headers of an answer, each as one text. */
export function headersOf({ headers }: http.IncomingMessage): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}
