import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import * as http from 'node:http';
import * as https from 'node:https';
import { HttpError, systemCode } from '../../http/errors';
import type { Log } from '../../http/log';
import { apiError } from '../errors';

/** The services that are asked for keys: what descriptions call each, and the variable that holds its address. */
export const UPSTREAMS = {
  config_service: { called: 'configuration service', variable: 'PACKAGERDRMAPI_GRANDCENTRALURL' },
  key_provider: { called: 'key provider', variable: 'PACKAGERDRMAPI_KEYPROVIDERURL' },
} as const;

/** How metrics and the codes of errors name an upstream. */
export type UpstreamName = keyof typeof UPSTREAMS;

/** One call to an upstream: where it goes, the client's key, and the id that ties it to the request it serves. */
export interface UpstreamCall {
  readonly url: string;
  readonly clientApiKey: string;
  readonly requestId: string;
  readonly signal?: AbortSignal;
}

/** An upstream could not be asked: it can't be reached, did not answer in time, or answered 5xx. */
export class OutageError extends HttpError {}

type UpstreamAnswer = { status: number; json: unknown };

export interface Upstream {
  /** GETs a JSON document. Throws `HttpError` 502 or 504 with the upstream's code for whatever is no answer to read. */
  get(call: UpstreamCall): Promise<UpstreamAnswer>;
  /** The error for an answer that can't be used. `why` must not quote it: it may hold key material. */
  failed(why: string, cause?: unknown): HttpError;
}

export interface UpstreamOptions {
  readonly timeoutMs: number;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Takes outcome and duration of every call, each retry for itself. Must not throw. */
  readonly observe?: ((outcome: CallOutcome, ms: number) => void) | undefined;
}

/** The status; `none`: there was no answer; `cancelled`: another call's failure made it pointless. */
export type CallOutcome = number | 'none' | 'cancelled';

const MAX_BYTES = 256 * 1024;

export function createUpstream(
  name: UpstreamName,
  { timeoutMs, log, now, observe }: UpstreamOptions,
): Upstream {
  const { called, variable } = UPSTREAMS[name];
  const code = `${name}_failed` as const;
  const sentence = (why: string) => `The ${called} ${why}. No key file was changed.`;
  const problem = (why: string) => ({ code, description: sentence(why) });
  const failed = (why: string, cause?: unknown) => apiError(code, sentence(why), { cause });
  const late = () => new OutageError(504, problem(`did not answer within ${timeoutMs} ms`));
  const call = createCall(timeoutMs, late);

  const once = async ({ url, clientApiKey, requestId, signal }: UpstreamCall): Promise<RawAnswer> => {
    const started = now();
    let head: IncomingMessage | undefined;
    try {
      return await call(url, {
        // Proxies drop header names with an underscore, older providers read no other.
        headers: {
          'API-KEY': clientApiKey,
          API_KEY: clientApiKey,
          accept: 'application/json',
          'accept-encoding': 'identity',
          'x-request-id': requestId,
        },
        signal,
        onHead: (response) => {
          head = response;
        },
      });
    } finally {
      const status = head?.statusCode ?? 'none';
      const ms = Math.round((now() - started) * 100) / 100;
      const upstreamRequestId = printableId(head?.headers['x-request-id']);
      log.info('upstream call', { requestId, upstream: called, status, upstreamRequestId, ms });
      observe?.(head?.statusCode ?? (signal?.aborted ? 'cancelled' : 'none'), ms);
    }
  };

  const get = async (call: UpstreamCall): Promise<UpstreamAnswer> => {
    let answer = await once(call).catch((thrown: unknown) => {
      if (thrown instanceof HttpError || call.signal?.aborted) throw thrown;
      return undefined;
    });
    if (!answer || answer.status >= 500) answer = await once(call);
    const { status, encoding, text } = answer;
    if (status >= 500) throw new OutageError(502, problem(`answered ${status}`));
    if (status >= 300 && status < 400)
      throw failed(`answered a redirect (${status}); set ${variable} to its final address`);
    if (status !== 200) return { status, json: undefined };
    if (encoding !== 'identity')
      throw failed(
        `answered in the content-encoding ${encoding}, which was not asked for; check ${variable}`,
      );
    if (text === undefined) throw failed(`answered with more than ${MAX_BYTES} bytes; check ${variable}`);
    try {
      return { status, json: JSON.parse(text) };
    } catch {
      throw failed(`answered something that is not JSON; check ${variable}`);
    }
  };

  return {
    failed,
    get: async (call) => {
      try {
        return await get(call);
      } catch (thrown) {
        if (thrown instanceof HttpError) throw thrown;
        const reason = systemCode(thrown) ?? 'connection lost';
        const unreached = problem(`can't be reached (${reason}); check ${variable}`);
        throw new OutageError(502, unreached, { cause: thrown });
      }
    },
  };
}

/** Puts path parts behind an upstream's address, each percent-encoded. */
export function upstreamUrl(base: string, ...parts: string[]): string {
  return [base.replace(/\/+$/, ''), ...parts.map((part) => encodeURIComponent(part))].join('/');
}

interface RawAnswer {
  readonly status: number;
  /** `identity`, or what the body is packed by. A packed body is not read: a few bytes may hold gigabytes. */
  readonly encoding: string;
  /** Undefined when it is larger than any answer can be. */
  readonly text: string | undefined;
}

interface CallOptions {
  readonly headers: OutgoingHttpHeaders;
  readonly signal: AbortSignal | undefined;
  /** Takes the head of the answer. */
  readonly onHead: (response: IncomingMessage) => void;
}

/** Makes GETs over kept connections. Each settles within `timeoutMs`, whatever the server does, and follows no redirect. */
function createCall(
  timeoutMs: number,
  late: () => HttpError,
): (url: string, options: CallOptions) => Promise<RawAnswer> {
  const agent = new http.Agent({ keepAlive: true });
  const secureAgent = new https.Agent({ keepAlive: true });
  return (url, { headers, signal, onHead }) =>
    new Promise((resolve, reject) => {
      const secure = new URL(url).protocol === 'https:';
      let request: ClientRequest | undefined;
      let isOver = false;
      const settle = (done: () => void) => {
        isOver = true;
        clearTimeout(timer);
        signal?.removeEventListener('abort', cancel);
        done();
      };
      const fail = (thrown: unknown) => {
        settle(() => reject(thrown));
        request?.destroy();
      };
      const cancel = () => fail(signal?.reason);
      const timer = setTimeout(() => fail(late()), timeoutMs);
      const take = (response: IncomingMessage) => {
        onHead(response);
        const { statusCode: status = 0 } = response;
        const encoding = (response.headers['content-encoding'] ?? '').trim().toLowerCase() || 'identity';
        const answer = (text: string | undefined) => settle(() => resolve({ status, encoding, text }));
        const chunks: Buffer[] = [];
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          length += chunk.length;
          if (length <= MAX_BYTES && encoding === 'identity') return;
          answer(undefined);
          request?.destroy();
        });
        // Drops a byte order mark, which JSON does not know.
        response.on('end', () => answer(new TextDecoder().decode(Buffer.concat(chunks))));
        response.on('error', fail);
        response.on('close', () => fail(new Error('The answer ended before its body did')));
      };
      /** On a kept connection, or a new one. */
      const ask = (kept: boolean) => {
        const asked = secure
          ? https.get(url, { headers, agent: kept && secureAgent })
          : http.get(url, { headers, agent: kept && agent });
        request = asked;
        let hasHead = false;
        asked.on('response', (response) => {
          hasHead = true;
          take(response);
        });
        asked.on('upgrade', (_response, socket) => {
          socket.destroy();
          fail(new Error('The answer switches protocols'));
        });
        asked.on('error', (thrown) => {
          // The server has closed a connection that it had kept: it has not seen this request.
          if (asked.reusedSocket && !hasHead && asked === request && !isOver) ask(false);
          else fail(thrown);
        });
      };
      if (signal?.aborted) {
        cancel();
        return;
      }
      signal?.addEventListener('abort', cancel);
      ask(true);
    });
}

function printableId(id: string | string[] | undefined): string | undefined {
  return typeof id === 'string' && /^[\x21-\x7e]{1,128}$/.test(id) ? id : undefined;
}
