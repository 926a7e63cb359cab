import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import * as http from 'node:http';
import * as https from 'node:https';
import type { ProviderContent } from '../../api/read-key-file-request';
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
  readonly clientApiKey: string | undefined;
  readonly requestId: string;
  readonly signal?: AbortSignal;
  /** Headers in addition to those of every call; those win over these. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The body of a POST; without it the call is a GET. It is sent again where a call is tried again. */
  readonly body?: string | undefined;
}

/** An upstream refused the credentials of this service itself, and not those of a request. */
export class RefusalError extends HttpError {}

/** An upstream could not be asked: it can't be reached, did not answer in time, or answered 5xx. */
export class OutageError extends HttpError {}

type UpstreamAnswer = { status: number; json: unknown };

/** An upstream's answer. The bytes are there where the status is 200. */
export interface UpstreamDocument {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

export interface Upstream {
  /** GETs a JSON document. Throws `HttpError` 502 or 504 with the upstream's code for whatever is no answer to read. */
  get(call: UpstreamCall): Promise<UpstreamAnswer>;
  /** The same for a document of any other kind, which may be POSTed for. */
  document(call: UpstreamCall): Promise<UpstreamDocument>;
  /** The error for an answer that can't be used. `why` must not quote it: it may hold key material. */
  failed(why: string, cause?: unknown): HttpError;
  /** The same where the operator's credentials are at fault. */
  refused(why: string): RefusalError;
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

  const once = async ({
    url,
    clientApiKey,
    requestId,
    signal,
    headers,
    body,
  }: UpstreamCall): Promise<RawAnswer> => {
    const started = now();
    let head: IncomingMessage | undefined;
    try {
      return await call(url, {
        headers: {
          // Of a name that is there twice, in whatever case, the last counts.
          ...headers,
          // Proxies drop header names with an underscore, older providers read no other.
          ...(clientApiKey !== undefined && { 'API-KEY': clientApiKey, API_KEY: clientApiKey }),
          'accept-encoding': 'identity',
          'x-request-id': requestId,
        },
        body,
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

  const exchange = async (call: UpstreamCall): Promise<UpstreamDocument> => {
    let answer = await once(call).catch((thrown: unknown) => {
      if (thrown instanceof HttpError || call.signal?.aborted) throw thrown;
      return undefined;
    });
    if (!answer || answer.status >= 500) answer = await once(call);
    const { status, headers, encoding, bytes } = answer;
    if (status >= 500) throw new OutageError(502, problem(`answered ${status}`));
    if (status >= 300 && status < 400)
      throw failed(`answered a redirect (${status}); set ${variable} to its final address`);
    if (status !== 200) return { status, headers, bytes: NOTHING };
    if (encoding !== 'identity')
      throw failed(
        `answered in the content-encoding ${encoding}, which was not asked for; check ${variable}`,
      );
    if (bytes === undefined) throw failed(`answered with more than ${MAX_BYTES} bytes; check ${variable}`);
    return { status, headers, bytes };
  };

  const document = async (call: UpstreamCall): Promise<UpstreamDocument> => {
    try {
      return await exchange(call);
    } catch (thrown) {
      if (thrown instanceof HttpError) throw thrown;
      const reason = systemCode(thrown) ?? 'connection lost';
      const unreached = problem(`can't be reached (${reason}); check ${variable}`);
      throw new OutageError(502, unreached, { cause: thrown });
    }
  };

  return {
    failed,
    refused: (why) => new RefusalError(502, problem(why)),
    document,
    get: async (call) => {
      const headers = { accept: 'application/json', ...call.headers };
      const { status, bytes } = await document({ ...call, headers });
      if (status !== 200) return { status, json: undefined };
      try {
        // Drops a byte order mark, which JSON does not know.
        return { status, json: JSON.parse(new TextDecoder().decode(bytes)) };
      } catch {
        throw failed(`answered something that is not JSON; check ${variable}`);
      }
    },
  };
}

const NOTHING = Buffer.alloc(0);

interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** `identity`, or what the body is packed by. A packed body is not read: a few bytes may hold gigabytes. */
  readonly encoding: string;
  /** Undefined when it is larger than any answer can be. */
  readonly bytes: Buffer | undefined;
}

interface CallOptions {
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** Takes the head of the answer. */
  readonly onHead: (response: IncomingMessage) => void;
}

/** Makes GETs and POSTs over kept connections. Each settles within `timeoutMs`, whatever the server does, and follows no redirect. */
function createCall(
  timeoutMs: number,
  late: () => HttpError,
): (url: string, options: CallOptions) => Promise<RawAnswer> {
  const agent = new http.Agent({ keepAlive: true });
  const secureAgent = new https.Agent({ keepAlive: true });
  return (url, { headers, body, signal, onHead }) =>
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
        const { statusCode: status = 0, headers } = response;
        const encoding = (headers['content-encoding'] ?? '').trim().toLowerCase() || 'identity';
        const answer = (bytes: Buffer | undefined) =>
          settle(() => resolve({ status, headers, encoding, bytes }));
        const chunks: Buffer[] = [];
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          length += chunk.length;
          if (length <= MAX_BYTES && encoding === 'identity') return;
          answer(undefined);
          request?.destroy();
        });
        response.on('end', () => answer(Buffer.concat(chunks)));
        response.on('error', fail);
        response.on('close', () => fail(new Error('The answer ended before its body did')));
      };
      /** On a kept connection, or a new one. */
      const ask = (kept: boolean) => {
        const method = body === undefined ? 'GET' : 'POST';
        const asked = secure
          ? https.request(url, { method, headers, agent: kept && secureAgent })
          : http.request(url, { method, headers, agent: kept && agent });
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
        // In one piece, which gives it its length.
        asked.end(body);
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

/** How keys are asked for at the key provider. */
export const PROVIDER_PROTOCOLS = ['json', 'cpix', 'speke1', 'speke2'] as const;
export type ProviderProtocol = (typeof PROVIDER_PROTOCOLS)[number];

/** The placeholders in the address of the key provider. */
const PLACES = ['client', 'contentId'] as const;
const PLACE = /\{(client|contentId)\}/g;

/** Puts path parts behind an upstream's address, each percent-encoded. */
export function upstreamUrl(base: string, ...parts: string[]): string {
  return [base.replace(/\/+$/, ''), ...parts.map((part) => encodeURIComponent(part))].join('/');
}

/** Puts what a request names in the places of the key provider's address, percent-encoded. */
export function fillAddress(address: string, named: Pick<ProviderContent, 'client' | 'contentId'>): string {
  return address.replaceAll(PLACE, (_whole, name: (typeof PLACES)[number]) =>
    encodeURIComponent(named[name] ?? ''),
  );
}

/** Whether an address has a place for a client, so that no request can do without one. */
export function needsClient(address: string): boolean {
  return address.includes('{client}');
}

/** Describes the fault of a key provider's address for a protocol, going on after its variable; undefined: none. */
export function addressFault(protocol: ProviderProtocol, address: string): string | undefined {
  if (!isHttpUrl(address, protocol === 'json')) {
    return protocol === 'json'
      ? HTTP_URL_RULE
      : 'must be an http:// or https:// address without user, fragment or space';
  }
  const rest = address.replaceAll(PLACE, '');
  if (/[{}]/.test(rest)) return 'has a place in braces that is none of {client} and {contentId}';
  if (protocol === 'json' && rest !== address)
    return 'has {client} or {contentId}; the protocol json has them put behind the address, so leave them out';
  if (protocol === 'cpix' && !address.includes('{contentId}'))
    return 'must have {contentId} where the protocol cpix has the content id, in its path or its query';
  if (originOf(address, 'a') !== originOf(address, 'b'))
    return 'must not have {client} or {contentId} before its path: a request would choose the server';
  return undefined;
}

export const HTTP_URL_RULE = 'must be an http:// or https:// address without user, query, fragment or space';

/** Whether a text is an address of HTTP that can be asked as it is. */
export function isHttpUrl(text: string, isWithoutQuery = true): boolean {
  if (!URL.canParse(text) || /[\s#]/.test(text) || (isWithoutQuery && text.includes('?'))) return false;
  const { protocol, username, password } = new URL(text);
  // fetch() takes no address with a user in it, and its message, which is logged, quotes the password.
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

function originOf(address: string, value: string): string {
  const filled = fillAddress(address, { client: value, contentId: value });
  return URL.canParse(filled) ? new URL(filled).origin : value;
}
