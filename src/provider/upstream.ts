import {
  createSecureContext,
  rootCertificates,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls';
import { ERRORS } from '../api/errors';
import type { ProviderContent } from '../api/read-key-file-request';
import { parseJson } from '../drm/bytes';
import type { ClientTls } from '../http/client-tls';
import { errorsOf, HttpError } from '../http/errors';
import { createGet } from '../http/get';
import { type GetAnswer, GetFailed, whyNoAnswer } from '../http/get-request';
import type { Log } from '../http/log';
import { HIDDEN, maskerOf } from '../http/secret';
import type { Tunnel } from './proxy';

export const apiError = errorsOf(ERRORS);

export const UPSTREAMS = {
  config_service: { called: 'configuration service', variable: 'PACKAGERDRMAPI_GRANDCENTRALURL' },
  key_provider: { called: 'key provider', variable: 'PACKAGERDRMAPI_KEYPROVIDERURL' },
} as const;

export type UpstreamName = keyof typeof UPSTREAMS;

export interface UpstreamCall {
  readonly url: string;
  readonly clientApiKey: string | undefined;
  readonly requestId: string;
  readonly signal?: AbortSignal;
  /** Headers of every call win over these. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Values that no log may show, in addition to the client's API key. */
  readonly secrets?: readonly string[] | undefined;
  /** The body of a POST; without it the call is a GET. */
  readonly body?: string | undefined;
}

/** An upstream refused the credentials of this service itself. */
export class RefusalError extends HttpError {}

export class UnknownContentError extends HttpError {}

/** Not reached, not in time, or answered 5xx or 429. */
export class OutageError extends HttpError {}

/** The body is whole where the status is 200. */
export type UpstreamDocument = Pick<GetAnswer, 'status' | 'headers' | 'body'>;

export type Upstream = ReturnType<typeof createUpstream>;

interface UpstreamOptions {
  readonly timeoutMs: number;
  /** undefined: Node's authorities, no certificate. */
  readonly tls?: (() => ClientTls) | undefined;
  readonly tunnel?: Tunnel | undefined;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Each retry is an own call. Must not throw. */
  readonly observe?: (upstream: UpstreamName, outcome: CallOutcome, ms: number) => void;
  /** Each retry is an own call. Must not throw. */
  readonly trace?: (call: TracedCall) => void;
}

/** Holds secrets, and the upstream's answer. */
export interface TracedCall {
  readonly upstream: UpstreamName;
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Values that were sent and must not be shown. */
  readonly secrets: readonly string[];
  readonly ms: number;
  readonly answer: GetAnswer | undefined;
  /** Why there was no answer: the system's or TLS's code. */
  readonly failure: string | undefined;
}

/** `none`: there was no answer; `cancelled`: another call's failure made it pointless. */
export type CallOutcome = number | 'none' | 'cancelled';

const MAX_BYTES = 256 * 1024;

export function createUpstream(
  name: UpstreamName,
  { timeoutMs, tls, tunnel, log, now, observe, trace }: UpstreamOptions,
) {
  const { called, variable } = UPSTREAMS[name];
  const code = `${name}_failed` as const;
  const sentence = (why: string) => `The ${called} ${why}. No key file was changed.`;
  const problem = (why: string) => ({ code, description: sentence(why) });
  const failed = (why: string) => apiError(code, sentence(why));
  const unknown = (why: string) => new UnknownContentError(502, problem(why));
  const refused = (why: string) => new RefusalError(502, problem(why));
  const late = () => new OutageError(504, problem(`did not answer within ${timeoutMs} ms`));
  const proxyTls = tls && contextOf(tls, { cert: undefined, key: undefined });
  const { get } = createGet({
    maxSockets: Number.POSITIVE_INFINITY,
    tunnel: tunnel && ((to, connecting) => tunnel(to, { ...connecting, ...proxyTls?.() })),
    ...(tls && { tls: contextOf(tls) }),
  });

  const callOnce = async (call: UpstreamCall): Promise<GetAnswer> => {
    const { url, clientApiKey, requestId, signal, body } = call;
    const method = body === undefined ? 'GET' : 'POST';
    const secrets = [...(clientApiKey === undefined ? [] : [clientApiKey]), ...(call.secrets ?? [])];
    const headers = {
      // The last one of a repeated name counts, in any case.
      ...call.headers,
      // Proxies drop header names with an underscore, older providers read no other.
      ...(clientApiKey !== undefined && { 'API-KEY': clientApiKey, API_KEY: clientApiKey }),
      'accept-encoding': 'identity',
      'x-request-id': requestId,
    };
    const started = now();
    let answer: GetAnswer | undefined;
    let failure: string | undefined;
    try {
      answer = await get({
        url,
        method,
        headers,
        body: body === undefined ? undefined : Buffer.from(body),
        maxBytes: MAX_BYTES,
        timeoutMs,
        signal,
        readsCertificate: trace !== undefined,
      });
      return answer;
    } catch (thrown) {
      failure = thrown instanceof GetFailed ? thrown.causeCode : 'ERROR';
      throw failure === 'ETIMEDOUT' ? late() : thrown;
    } finally {
      const status = answer?.status ?? 'none';
      const ms = Math.round((now() - started) * 100) / 100;
      const upstreamRequestId = printableId(maskerOf(secrets)(answer?.headers['x-request-id'] ?? ''));
      log.info('upstream call', { requestId, upstream: called, status, upstreamRequestId, ms });
      if (answer && status !== 200) {
        const given = answer;
        log.debug('upstream error', {
          ...{ requestId, upstream: called, status },
          // Read where the line is written: a body may be long.
          get text() {
            return errorText(given, secrets);
          },
        });
      }
      observe?.(name, answer?.status ?? (signal?.aborted ? 'cancelled' : 'none'), ms);
      trace?.({ upstream: name, method, url, headers, body, secrets, ms, answer, failure });
    }
  };

  const exchange = async (call: UpstreamCall): Promise<UpstreamDocument> => {
    let answer = await callOnce(call).catch((thrown: unknown) => {
      if (thrown instanceof HttpError || call.signal?.aborted) throw thrown;
      return undefined;
    });
    if (!answer || answer.status >= 500) answer = await callOnce(call);
    const { status, headers, body, isCut } = answer;
    // 429 is about the time of the request: it is not sent again now, and a kept answer may stand in for it.
    if (status >= 500 || status === 429) throw new OutageError(502, problem(`answered ${status}`));
    if (status >= 300 && status < 400)
      throw failed(`answered a redirect (${status}); set ${variable} to its final address`);
    if (status === 401 && asksForDigest(headers)) throw refused(NO_DIGEST);
    if (status !== 200) return answer;
    const encoding = headers['content-encoding']?.trim().toLowerCase() || 'identity';
    if (encoding !== 'identity')
      throw failed(`used the content-encoding ${encoding}, which was not requested; check ${variable}`);
    if (isCut) throw failed(`answered with more than ${MAX_BYTES} bytes; check ${variable}`);
    return { status, headers, body };
  };

  const document = async (call: UpstreamCall): Promise<UpstreamDocument> => {
    try {
      return await exchange(call);
    } catch (thrown) {
      if (thrown instanceof HttpError) throw thrown;
      const reason = thrown instanceof GetFailed ? thrown.causeCode : 'connection lost';
      const unreached = problem(
        `can't be reached (${reason}); ${remedyOf(reason) ?? `check ${variable}${tunnel ? ' and HTTPS_PROXY' : ''}`}`,
      );
      throw new OutageError(502, unreached, { cause: thrown });
    }
  };

  return {
    /** `why` must not quote the answer: it may hold key material. */
    failed,
    /** For an answer 404. */
    unknown,
    /** For wrong credentials of the operator. */
    refused,
    /** As `get`, for documents that are no JSON. */
    document,
    /** @throws HttpError 502 or 504 with the upstream's code for an unreadable answer. */
    async get(call: UpstreamCall): Promise<{ status: number; json: unknown }> {
      const headers = { accept: 'application/json', ...call.headers };
      const { status, body } = await document({ ...call, headers });
      if (status !== 200) return { status, json: undefined };
      // Drops a byte order mark, which JSON does not know.
      const json = parseJson(new TextDecoder().decode(body));
      if (json === undefined) throw failed(`returned something that is not JSON; check ${variable}`);
      return { status, json };
    },
  };
}

export const REMEDIES = {
  untrusted: 'name its authority by PACKAGERDRMAPI_UPSTREAMTLSCA',
  tls: 'if it wants a client certificate, set PACKAGERDRMAPI_UPSTREAMTLSCERT and PACKAGERDRMAPI_UPSTREAMTLSKEY',
};

function remedyOf(code: string): string | undefined {
  if (!/CERT|SIGNATURE|TLS|SSL|EPROTO|UNSPECIFIED|^HPE_|^PROXY_/.test(code)) return undefined;
  return whyNoAnswer(code, REMEDIES);
}

/**
 * Node's authorities take a while to read, so one context is kept until the files change. A proxy gets another one: the
 * client certificate is for the upstream.
 */
function contextOf(tls: () => ClientTls, others: SecureContextOptions = {}) {
  let [used, context]: [ClientTls?, { readonly secureContext: SecureContext }?] = [];
  return () => {
    const present = tls();
    if (context && present === used) return context;
    const { ca } = present;
    used = present;
    context = {
      secureContext: createSecureContext({
        ...present,
        ...(ca && { ca: [...rootCertificates, ca] }),
        ...others,
      }),
    };
    return context;
  };
}

const NO_DIGEST =
  'answered 401 and asks for HTTP digest authentication, which is not supported; put a proxy that does it in between';

/** Digest is asked for, and no header of a file could be another way (RFC 9110 § 11.6.1). */
function asksForDigest({ 'www-authenticate': challenges = '' }: GetAnswer['headers']): boolean {
  const offers = (scheme: string) => new RegExp(`(?:^|,)\\s*${scheme}\\s`, 'i').test(challenges);
  return offers('digest') && !offers('basic');
}

function printableId(id: string): string | undefined {
  return /^[\x21-\x7e]{1,128}$/.test(id) ? id : undefined;
}

export const PROVIDER_PROTOCOLS = ['json', 'cpix', 'speke1', 'speke2', 'speke21'] as const;
export type ProviderProtocol = (typeof PROVIDER_PROTOCOLS)[number];

const PLACE = /\{(client|contentId|kid)\}/g;

type Named = Pick<ProviderContent, 'client' | 'contentId'> & { readonly kid?: string | undefined };

/** Percent-encodes each part. */
export function upstreamUrl(base: string, ...parts: string[]): string {
  return [base.replace(/\/+$/, ''), ...parts.map((part) => encodeURIComponent(part))].join('/');
}

/** Percent-encodes the values. */
export function fillAddress(address: string, named: Named): string {
  return address.replaceAll(PLACE, (_whole, name: keyof Named) => encodeURIComponent(named[name] ?? ''));
}

/** The operator's: a user and a password, for some providers. */
export function secretsIn(address: string): string[] {
  const query = new URL(address).searchParams.values();
  return [...query].filter((value) => !value.includes('{'));
}

/** The fault continues a sentence that begins with the variable; undefined: none. */
export function addressFault(protocol: ProviderProtocol, address: string): string | undefined {
  if (!isHttpUrl(address, protocol === 'json')) {
    return protocol === 'json'
      ? HTTP_URL_RULE
      : 'must be an http:// or https:// address without user, fragment or space';
  }
  const rest = address.replaceAll(PLACE, '');
  if (/[{}]/.test(rest)) return 'has a placeholder other than {client}, {contentId} and {kid}';
  if (protocol === 'json' && rest !== address)
    return 'has a placeholder; the protocol json appends client and content id to the address, so leave it out';
  if (protocol === 'cpix' && !/\{(?:contentId|kid)\}/.test(address))
    return 'must have {contentId} or {kid} in its path or its query with the protocol cpix';
  if (protocol !== 'cpix' && address.includes('{kid}'))
    return 'has {kid}, which is for the protocol cpix: the others ask for a key id in the body; leave it out';
  if (originOf(address, 'a') !== originOf(address, 'b'))
    return 'must not have a placeholder before its path: a request would choose the server';
  return undefined;
}

export const HTTP_URL_RULE = 'must be an http:// or https:// address without user, query, fragment or space';

export function isHttpUrl(text: string, isWithoutQuery = true): boolean {
  if (!URL.canParse(text) || /[\s#]/.test(text) || (isWithoutQuery && text.includes('?'))) return false;
  const { protocol, username, password } = new URL(text);
  // fetch() takes no address with a user in it, and its message, which is logged, quotes the password.
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

function originOf(address: string, value: string): string {
  const filled = fillAddress(address, { client: value, contentId: value, kid: value });
  return URL.canParse(filled) ? new URL(filled).origin : value;
}

const MAX_CHARACTERS = 200;

/** Bytes in hex with separators between them, UUIDs among them, and bytes in decimal. */
const SEPARATED =
  /(?<![0-9a-z])(?:0x|\\x)?[0-9a-f]{2}(?:[ ,:;._-]{0,2}(?:0x|\\x)?[0-9a-f]{2}){7,}(?![0-9a-z])/gi;
const DECIMAL = /(?<![\w.])-?\d{1,3}(?:[ ,;]{1,2}-?\d{1,3}){7,}/g;
/** Base64 and hex in all their forms, also as JSON, XML and percent-encoding write them. */
const RUN = /(?:[A-Za-z0-9+/=_-]|\\\/|\\u[0-9A-Fa-f]{4}|&#x?[0-9A-Fa-f]{1,6};|%[0-9A-Fa-f]{2}){16,}/g;
const WORD = '(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15})';
/** Words of one case each, as in codes and paths, and CPIX's names: key material never looks like that. */
const WORDS = new RegExp(
  `^[-_/]*${WORD}(?:[-_/]+${WORD})*[-_/]*$|^(?:commonEncryptionScheme|intendedTrackType|ContentProtectionData|HLSSignalingData|ContentKey(?:UsageRule|Period)(?:List)?|DeliveryDataList)$`,
);

/** Up to 200 printable characters. Secrets, key ids and possible key material are hidden. Undefined: no text. */
export function errorText(
  { headers, body }: Pick<GetAnswer, 'headers' | 'body'>,
  secrets: readonly string[],
): string | undefined {
  const isPlain = (headers['content-encoding'] ?? 'identity') === 'identity';
  const said = [headers['x-axdrm-errormessage'], isPlain ? new TextDecoder().decode(body) : undefined];
  // Invisible characters, as the zeros of UTF-16, would divide key material.
  const text = said
    .filter(Boolean)
    .join(' | ')
    .replaceAll(/[\0\p{Cf}]/gu, '');
  const shown = withoutSecrets(text, secrets)
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}\ufffd]/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return shown === '' ? undefined : [...shown].slice(0, MAX_CHARACTERS).join('');
}

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return maskerOf(secrets)(text)
    .replaceAll(SEPARATED, HIDDEN)
    .replaceAll(DECIMAL, HIDDEN)
    .replaceAll(RUN, (run) => (WORDS.test(run) ? run : HIDDEN));
}
