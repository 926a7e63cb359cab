import { brotliDecompressSync, unzipSync } from 'node:zlib';
import { refused } from '../drm/bytes';
import { type Get, type GetAnswer, GetFailed, whyNoAnswer } from '../http/get-request';

export const DEFAULT_LIMITS = {
  /** Of all answers together, unpacked or not. */
  totalBytes: 512 * 1024 * 1024,
  /** Of one manifest or playlist, unpacked. */
  manifestBytes: 8 * 1024 * 1024,
  initBytes: 4 * 1024 * 1024,
  segmentBytes: 48 * 1024 * 1024,
  requests: 500,
  redirects: 8,
  /** Of one request with its redirects, and of all. */
  requestMs: 15_000,
  totalMs: 120_000,
  /** Further ones are counted, not tested. */
  renditions: 40,
  periods: 20,
};
export type Limits = Readonly<typeof DEFAULT_LIMITS>;

/** A resource: a whole file, or a part of one; `last` is the last byte, undefined up to the end. */
export interface Resource {
  readonly url: string;
  readonly range?: { readonly first: number; readonly last: number | undefined } | undefined;
}

export interface Fetched {
  readonly ok: true;
  readonly url: string;
  /** Unpacked; the requested part. */
  readonly body: Buffer;
  /** A part was requested, and the whole file was sent. */
  readonly isRangeIgnored: boolean;
}

/** Why a resource was not fetched. The description continues its name: `answers with 404`. */
export type NotFetched = ReturnType<typeof refused>;

export type Wanted = 'manifest' | 'init' | 'segment';

interface FetchesOptions {
  readonly get: Get;
  readonly limits: Limits;
  readonly now: () => Date;
  readonly signal?: AbortSignal | undefined;
}

/** All requests of one test: it follows redirects, unpacks, cuts out ranges, and keeps within the limits. */
export class Fetches {
  requests = 0;
  bytes = 0;
  /** Hosts that are asked over http, although the first one was not. */
  readonly insecure = new Set<string>();
  readonly #started: number;
  #isSecure: boolean | undefined;

  constructor(private readonly options: FetchesOptions) {
    this.#started = options.now().getTime();
  }

  get ms(): number {
    return this.options.now().getTime() - this.#started;
  }

  async take(resource: Resource, wanted: Wanted): Promise<Fetched | NotFetched> {
    const { limits } = this.options;
    const most = { manifest: limits.manifestBytes, init: limits.initBytes, segment: limits.segmentBytes };
    const until = this.ms + limits.requestMs;
    let { url } = resource;
    for (let hops = 0; hops <= limits.redirects; hops += 1) {
      const part = { ...resource, url };
      const answer = await this.#get(part, wanted, most[wanted], until);
      const isRedirect = 'status' in answer && REDIRECTS.includes(answer.status);
      if (!isRedirect) {
        const read = 'status' in answer ? readAnswer(answer, part, most[wanted]) : answer;
        if (read.ok || hops === 0) return read;
        const { protocol, host } = new URL(url);
        const { code, description } = read.problem;
        return refused(code, `redirects to ${protocol}//${host}, which ${description}`);
      }
      const { location } = answer.headers;
      if (location === undefined || !URL.canParse(location, url))
        return refused('answer_broken', `answers with ${answer.status} but names no new address`);
      url = new URL(location, url).href;
    }
    const sentence = `redirects more than ${limits.redirects} times; look for a redirect loop`;
    return refused('too_many_redirects', sentence);
  }

  async #get(
    { url, range }: Resource,
    wanted: Wanted,
    most: number,
    until: number,
  ): Promise<GetAnswer | NotFetched> {
    const { get, limits, signal } = this.options;
    const refusal = addressFault(url);
    if (refusal !== undefined) return refused('address_refused', refusal);
    const { protocol, host } = new URL(url);
    this.#isSecure ??= protocol === 'https:';
    if (this.#isSecure && protocol === 'http:') this.insecure.add(host);
    if (signal?.aborted) return refused('interrupted', 'was not fetched: the test was stopped');
    if (this.requests >= limits.requests)
      return limitReached(`the ${limits.requests} requests of a test are used up`);
    const left = Math.min(until, limits.totalMs) - this.ms;
    if (left <= 0) return this.#outOfTime();
    const room = limits.totalBytes - this.bytes;
    const outOfBytes = limitReached(`a test fetches ${mebibytes(limits.totalBytes)} at most`);
    if (room <= 0) return outOfBytes;
    this.requests += 1;
    try {
      const answer = await get({
        url,
        headers: {
          // A part of a compressed file can't be decompressed, and media are not compressed.
          'accept-encoding': wanted === 'manifest' ? 'gzip, br, deflate' : 'identity',
          ...(range && { range: `bytes=${range.first}-${range.last ?? ''}` }),
        },
        // If a server sends the whole file, up to the end of the range.
        maxBytes: Math.min(most + (range?.first ?? 0), (range?.last ?? Infinity) + 1, room),
        timeoutMs: left,
        signal,
      });
      this.bytes += answer.body.length;
      return answer.isCut && this.bytes >= limits.totalBytes ? outOfBytes : answer;
    } catch (thrown) {
      if (!(thrown instanceof GetFailed)) throw thrown;
      return thrown.causeCode === 'ETIMEDOUT' ? this.#outOfTime() : noAnswer(thrown);
    }
  }

  #outOfTime(): NotFetched {
    const { requestMs, totalMs } = this.options.limits;
    return this.ms >= totalMs
      ? limitReached(`a test takes ${totalMs / 1000} seconds at most`)
      : refused('timeout', `did not come within ${requestMs / 1000} seconds`);
  }
}

function limitReached(why: string): NotFetched {
  return refused('limit_reached', `was not fetched: ${why}`);
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

function readAnswer(answer: GetAnswer, { url, range }: Resource, most: number): Fetched | NotFetched {
  const { status, headers } = answer;
  if (status !== 200 && status !== 206) return statusFault(status);
  const encoding = headers['content-encoding'] ?? '';
  const codings = encoding
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((name) => !NO_CODINGS.includes(name));
  const [, first = range?.first] = /^bytes (\d+)-/.exec(headers['content-range'] ?? '') ?? [];
  if (range && (status === 206 ? Number(first) !== range.first : answer.isCut && codings.length > 0)) {
    const sentence =
      'is not the requested byte range: the server sends another one, or the whole file compressed; check range requests at the server, and at caches in front of it';
    return refused('answer_broken', sentence);
  }
  const tooLarge = () =>
    refused('too_large', `is larger than ${mebibytes(most)}, the limit for one file; it was not read`);
  const isComplete = range?.last !== undefined && answer.body.length > range.last;
  if (answer.isCut && !isComplete) return tooLarge();
  const unpacked = unpack(answer.body, codings, most + (range?.first ?? 0));
  if (unpacked === 'too_large') return tooLarge();
  if (unpacked === undefined)
    return refused(
      'answer_broken',
      `can't be unpacked by its content-encoding ${encoding}; check the server, or a proxy in front of it`,
    );
  const isRangeIgnored = range !== undefined && status === 200 && unpacked.length > 0;
  const body = isRangeIgnored
    ? unpacked.subarray(range.first, range.last === undefined ? undefined : range.last + 1)
    : unpacked;
  return { ok: true, url, body, isRangeIgnored };
}

function statusFault(status: number): NotFetched {
  if (status === 404 || status === 410) return refused('not_found', `is not there (${status})`);
  if (status === 401 || status === 403)
    return refused('forbidden', `is refused (${status}); check whether the address needs a new token`);
  if (status === 416) return refused('http_error', 'does not have the requested byte range (416)');
  return refused('http_error', `answers with ${status}`);
}

/** `aws-chunked` is of an upload; stores keep it, and browsers pass over it. */
const NO_CODINGS: readonly string[] = ['', 'identity', 'aws-chunked'];

/** Undoes the codings, the last one first. */
function unpack(body: Buffer, codings: readonly string[], most: number): Buffer | 'too_large' | undefined {
  const options = { maxOutputLength: most };
  try {
    return codings.reduceRight(
      (bytes, name) => (name === 'br' ? brotliDecompressSync : unzipSync)(bytes, options),
      body,
    );
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : undefined;
  }
}

const MAX_ADDRESS = 8 * 1024;
const MAX_SHOWN = 1000;

function addressFault(url: string): string | undefined {
  if (!URL.canParse(url)) return 'is not an address';
  if (url.length > MAX_ADDRESS) return `has more than ${MAX_ADDRESS} characters, which no server accepts`;
  const { protocol } = new URL(url);
  return protocol === 'http:' || protocol === 'https:'
    ? undefined
    : `has the protocol ${protocol.slice(0, 20)}; only http and https addresses can be tested`;
}

function noAnswer({ causeCode, why }: GetFailed): NotFetched {
  if (causeCode === 'ABORT_ERR') return refused('interrupted', 'was not fetched: the test was stopped');
  const remedies = {
    untrusted:
      'browsers refuse it, too. To test it anyway, trust the authority that issued it: --ca in packager-drm, NODE_EXTRA_CA_CERTS in the emulator',
    tls: 'check the TLS settings of the server',
  };
  return refused('unreachable', `can't be fetched: ${why ?? whyNoAnswer(causeCode, remedies)}`);
}

function mebibytes(bytes: number): string {
  return bytes >= 1024 * 1024 ? `${Math.round(bytes / 1024 / 1024)} MiB` : `${bytes} bytes`;
}

/** An address that can be shown: a query, and the part before an @, may hold a token. */
export function shownAddress(address: string): string {
  if (!URL.canParse(address)) return address.replace(/[?#].*$/s, '').slice(0, 300);
  const url = new URL(address);
  // The content of such an address may be a key.
  if (url.protocol === 'data:') return 'data:…';
  const shown = `${url.protocol}//${url.host}${url.pathname}`;
  if (shown.length > MAX_SHOWN) return `${shown.slice(0, MAX_SHOWN)}…`;
  return `${shown}${url.search === '' ? '' : '?…'}`;
}

/** One that can't be resolved stays as it is, and is refused when it is fetched. */
export function absoluteAddress(address: string, base: string): string {
  return URL.canParse(address, base) ? new URL(address, base).href : address;
}

export function fileName(address: string): string {
  const { pathname, host } = new URL(address);
  const last = pathname.split('/').findLast((part) => part !== '');
  return (last ?? host).slice(0, 100);
}
