import { HttpError, systemCode } from '../../kernel/errors';
import type { Log } from '../../kernel/log';

/** One call to an upstream: where it goes, the client's key, and the id that ties it to the request it serves. */
export interface UpstreamCall {
  readonly url: string;
  readonly clientApiKey: string;
  readonly requestId: string;
  readonly signal?: AbortSignal;
}

export type UpstreamAnswer = { status: number; json: unknown };

export interface Upstream {
  /** GETs a JSON document. Throws `HttpError` 502 or 504 with the upstream's code for whatever is no answer to read. */
  get(call: UpstreamCall): Promise<UpstreamAnswer>;
  /** The error for an answer that can't be used. `why` must not quote it: it may hold key material. */
  failed(why: string, cause?: unknown): HttpError;
}

export interface UpstreamOptions {
  /** How the upstream is called in descriptions, and the code of its failures. */
  readonly name: string;
  readonly code: string;
  /** The variable that holds its address: what to look at when it fails. */
  readonly variable: string;
  readonly timeoutMs: number;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Takes outcome and duration of every call, each retry for itself. Must not throw. */
  readonly observe?: ((outcome: CallOutcome, ms: number) => void) | undefined;
}

/** The status; `none`: there was no answer; `cancelled`: another call's failure made it pointless. */
export type CallOutcome = number | 'none' | 'cancelled';

const MOST_BYTES = 256 * 1024;

export function createUpstream(options: UpstreamOptions): Upstream {
  const { name, code, variable, timeoutMs, log, now, observe } = options;
  const failed = (why: string, cause?: unknown) =>
    new HttpError(502, { code, description: `The ${name} ${why}. No key file was changed.` }, { cause });

  const once = async ({ url, clientApiKey, requestId, signal }: UpstreamCall) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const started = now();
    let response: Response | undefined;
    try {
      response = await fetch(url, {
        // Proxies drop header names with an underscore, older providers read no other.
        headers: {
          'API-KEY': clientApiKey,
          API_KEY: clientApiKey,
          accept: 'application/json',
          'x-request-id': requestId,
        },
        // A redirect would carry the client's API key to another host.
        redirect: 'manual',
        signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
      });
      return { status: response.status, text: await readText(response) };
    } finally {
      const status = response?.status ?? 'none';
      const ms = Math.round((now() - started) * 100) / 100;
      const upstreamRequestId = printableId(response?.headers.get('x-request-id'));
      log.info('upstream call', { requestId, upstream: name, status, upstreamRequestId, ms });
      observe?.(response?.status ?? (signal?.aborted ? 'cancelled' : 'none'), ms);
    }
  };

  const get = async (call: UpstreamCall): Promise<UpstreamAnswer> => {
    let answer = await once(call).catch((thrown: unknown) => {
      if (isTimeout(thrown) || call.signal?.aborted) throw thrown;
      return undefined;
    });
    if (!answer || answer.status >= 500) answer = await once(call);
    const { status, text } = answer;
    if (status >= 500) throw failed(`answered ${status}`);
    if (status >= 300 && status < 400)
      throw failed(`answered a redirect (${status}); set ${variable} to its final address`);
    if (status !== 200) return { status, json: undefined };
    if (text === undefined) throw failed(`answered with more than ${MOST_BYTES} bytes; check ${variable}`);
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
        if (isTimeout(thrown)) {
          const description = `The ${name} did not answer within ${timeoutMs} ms. No key file was changed.`;
          throw new HttpError(504, { code, description }, { cause: thrown });
        }
        throw failed(`can't be reached (${reasonOf(thrown)}); check ${variable}`, thrown);
      }
    },
  };
}

/** Puts path parts behind an upstream's address, each percent-encoded. */
export function upstreamUrl(base: string, ...parts: string[]): string {
  return [base.replace(/\/+$/, ''), ...parts.map((part) => encodeURIComponent(part))].join('/');
}

/** The body as text, or undefined when it is larger than any answer can be. */
async function readText(response: Response): Promise<string | undefined> {
  // Read at once when its length is known: piece by piece takes several times as long.
  const announced = Number(response.headers.get('content-length') ?? Number.NaN);
  if (announced <= MOST_BYTES) return response.text();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > MOST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function isTimeout(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && Reflect.get(thrown, 'name') === 'TimeoutError';
}

function reasonOf(thrown: unknown): string {
  const cause = typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, 'cause') : undefined;
  return systemCode(cause) ?? systemCode(thrown) ?? 'connection lost';
}

function printableId(id: string | null | undefined): string | undefined {
  return id && /^[\x21-\x7e]{1,128}$/.test(id) ? id : undefined;
}
