import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { type MemoryStore, type RateLimitInfo, rateLimit } from 'express-rate-limit';
import * as z from 'zod';
import { isWithinPrefixes } from '../api/stream-id';
import { addressOf, type Exchange, networkOf } from '../http/app';
import { ConfigError } from '../http/config';
import type { HttpError } from '../http/errors';
import { printable, type SchemaFault, schemaFaults } from '../http/faults';
import { type FileWatchOptions, watchFiles } from '../http/watched-file';
import { apiError } from './errors';

declare module '../http/app' {
  interface Exchange {
    apiKey?: ApiKey | undefined;
  }
}

/** @throws TypeError on a route without a guard. */
export function callerOf({ locals }: { readonly locals: Pick<Exchange, 'apiKey'> }): ApiKey {
  if (!locals.apiKey) throw new TypeError('No guard runs before this route');
  return locals.apiKey;
}

/** The name is for the audit; the key itself is not kept. */
export interface ApiKey {
  readonly name: string;
  /** `write` includes `read`. */
  readonly scope: 'read' | 'write';
  /** Prefixes of the stream ids that it may access; undefined: all streams. */
  readonly streams: readonly string[] | undefined;
}

/** Takes the value of a header. Undefined: it is no API key of this service. */
export type FindApiKey = (given: string | string[] | undefined) => ApiKey | undefined;

export function mayRead({ streams }: ApiKey, streamId: string): boolean {
  return isWithinPrefixes(streams, streamId);
}

/** @throws HttpError 403 that says which right is missing. */
export function requireRead(key: ApiKey, streamId: string): void {
  if (!mayRead(key, streamId)) throw forbidden(`The API key ${key.name} has no access to this stream`);
}

/** @throws HttpError 403 that says which right is missing. */
export function requireWrite(key: ApiKey, streamId: string): void {
  requireRead(key, streamId);
  requireScope(key);
}

/** For requests that change something, whichever streams they name. @throws HttpError 403. */
export function requireScope({ name, scope }: ApiKey): void {
  if (scope !== 'write') throw forbidden(`The API key ${name} is read-only`);
}

/** For answers that report on the streams of all tenants. @throws HttpError 403. */
export function requireAllStreams({ name, streams }: ApiKey): void {
  if (streams !== undefined)
    throw forbidden(`The API key ${name} is limited to some streams, but the API of the fleet covers all`);
}

function forbidden(why: string): HttpError {
  return apiError(
    'forbidden',
    `${why}. Use another API key, or have its rights changed in the file of API keys.`,
  );
}

/** The paths that need an API key. `app.use('/api', …)` would match a second time and rewrite each URL. */
export const API = /^\/(?:api|cpix|speke)(?:\/|$)/i;
/** Some packagers that pull can send no header of their own but Basic. */
const PULLS = /^\/(?:cpix|speke)(?:[/?]|$)/i;

/** In `x-api-key`, or without that header, on the paths of packagers that pull, in the password of Basic. */
export function apiKeyIn(findApiKey: FindApiKey, { url = '', headers }: IncomingMessage): ApiKey | undefined {
  const { 'x-api-key': given, authorization = '' } = headers;
  if (given !== undefined || !PULLS.test(url)) return findApiKey(given);
  const [, credentials = ''] = /^basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization) ?? [];
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(credentials, 'base64').toString('utf8')) ?? [];
  return findApiKey(password);
}

/** Comes before every route and the body parser: without a key, no path is decoded and no body read. */
export function requireApiKey(findApiKey: FindApiKey, limits: Limits): RequestHandler {
  const limit = limitUnauthenticated(limits);
  return (request, response, next) => {
    if (!API.test(request.path)) {
      next();
      return;
    }
    const apiKey = apiKeyIn(findApiKey, request);
    if (!apiKey) {
      limit(request, response, next);
      return;
    }
    response.locals.apiKey = apiKey;
    // The audit has changes and refusals only; the log also names the reader of content keys.
    response.locals.client = { key: apiKey.name, address: addressOf(request) };
    next();
  };
}

/** Some clients send Basic only on request (RFC 7617). */
function challengeFor({ url = '' }: IncomingMessage) {
  return PULLS.test(url)
    ? { headers: { 'www-authenticate': 'Basic realm="packager-drm-api", charset="UTF-8"' } }
    : {};
}

function whyUnauthorized({ url = '', headers }: IncomingMessage): string {
  if (headers['x-api-key'] !== undefined) return 'The API key in x-api-key is not one of this service.';
  if (PULLS.test(url))
    return /^basic /i.test(headers.authorization ?? '')
      ? 'The password of Basic is not an API key of this service.'
      : 'Send the API key of this service in the header x-api-key, or as the password of Basic.';
  if (headers['api-key'] !== undefined)
    return 'Send the API key in the header x-api-key; API-KEY is not read.';
  return 'Send the API key of this service in the header x-api-key.';
}

interface Limits {
  /** Its timer ends with `shutdown`. */
  readonly attempts: MemoryStore;
  readonly clock: () => Date;
  /** Resolves after this time, or earlier when the response closes. */
  readonly wait?: (ms: number, response: Response) => Promise<void>;
}

const FREE_ATTEMPTS = 10;
const WINDOW_MS = 60_000;
const FIRST_DELAY_MS = 125;
const LONGEST_DELAY_MS = 2000;
const MAX_WAITING = 64;
/** Addresses share counters, so that no number of addresses takes more memory. */
const COUNTERS = 8192;

/**
 * Answers requests without a valid API key: from the eleventh of an address in a minute with 429, later and
 * later. Those with a valid key are not counted, so that no client can lock others out.
 */
function limitUnauthenticated({ attempts, clock, wait = waitOrClose }: Limits): RequestHandler {
  let waiting = 0;
  const count = rateLimit({
    store: attempts,
    windowMs: WINDOW_MS,
    limit: FREE_ATTEMPTS,
    standardHeaders: false,
    legacyHeaders: false,
    keyGenerator: ({ socket }) => {
      const digest = hash('sha256', networkOf(socket.remoteAddress), 'buffer');
      return String(digest.readUInt16LE() % COUNTERS);
    },
    handler: async (request, response, next) => {
      const { used } = rateOf(request);
      // A delayed answer holds memory and a connection: beyond a few, it is sent at once.
      if (waiting < MAX_WAITING) {
        waiting += 1;
        await wait(delayOf(used - FREE_ATTEMPTS), response).finally(() => {
          waiting -= 1;
        });
      }
      const seconds = secondsLeft(request, attempts, WINDOW_MS, clock());
      const description = `${whyUnauthorized(request)} Too many requests without a valid key came from this address; one with a valid key is answered at any time.`;
      next(apiError('too_many_attempts', description, { headers: { 'retry-after': `${seconds}` } }));
    },
  });
  return (request, response, next) =>
    count(request, response, (thrown?: unknown) =>
      next(thrown ?? apiError('unauthorized', whyUnauthorized(request), challengeFor(request))),
    );
}

function rateOf(request: Request): RateLimitInfo {
  return Object(request).rateLimit;
}

/** Of a counter's window. One that ends later than it may, because the system's clock was set back, ends now. */
export function secondsLeft(request: Request, store: MemoryStore, windowMs: number, now: Date): number {
  const { key, resetTime } = rateOf(request);
  const left = (resetTime?.getTime() ?? 0) - now.getTime();
  if (left > windowMs) void store.resetKey(key);
  return Math.ceil(Math.min(Math.max(1, left), windowMs) / 1000);
}

function delayOf(excess: number): number {
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (excess - 1));
}

async function waitOrClose(ms: number, response: Response): Promise<void> {
  const closing = new AbortController();
  response.once('close', () => closing.abort());
  await pause(ms, undefined, { signal: closing.signal }).catch(() => undefined);
}

interface KeyRingOptions extends Omit<FileWatchOptions, 'clock'> {
  readonly single: string | undefined;
  readonly file: string | undefined;
}

/**
 * The single key is named `default` and has all rights. The file is read again when it changes; if it can't
 * be used then, the keys stay.
 * @throws ConfigError when it can't be used at the start.
 */
export function createKeyRing({ single, file, log, intervalMs }: KeyRingOptions) {
  const present: readonly HeldKey[] =
    single === undefined
      ? []
      : [{ apiKey: { name: 'default', scope: 'write', streams: undefined }, digest: digestOf(single) }];
  const take = ([bytes]: readonly Buffer[]) => {
    if (!bytes) return present;
    const keys = parseKeysFile(bytes, present);
    log.info('API keys read', { file, count: keys.length, names: keys.map(({ apiKey }) => apiKey.name) });
    return keys;
  };
  const { current, close } = watchFiles(file === undefined ? [] : [['PACKAGERDRMAPI_APIKEYS_FILE', file]], {
    log,
    intervalMs,
    message: 'the file of API keys cannot be used; the previous keys stay in use',
    fields: { file },
    take,
  });
  const find: FindApiKey = (given) =>
    typeof given === 'string' ? findByDigest(current(), given) : undefined;
  return { find, close };
}

/** The time shows nothing of a key: a client cannot choose the digests that are compared. */
function findByDigest(keys: readonly HeldKey[], given: string): ApiKey | undefined {
  const digest = digestOf(given);
  return keys.find((key) => timingSafeEqual(key.digest, digest))?.apiKey;
}

interface HeldKey {
  readonly apiKey: ApiKey;
  readonly digest: Buffer;
}

const MAX_KEYS = 1000;
/** A key of `PACKAGERDRMAPI_APIKEY` may be shorter, with a warning. */
export const MIN_CHARACTERS = 16;
const MAX_PREFIXES = 100;
const MAX_FAULTS = 20;

const text = z.string('must be a string');

export const streamIdPrefix = text
  .min(1, 'is empty; leave streams out for a key that reaches all streams')
  .max(200, 'must have at most 200 characters')
  .regex(/^[A-Za-z0-9._\-~@+/]*$/, 'takes letters, digits and . _ - ~ @ + /, and no * or other pattern')
  .regex(/^(?!\/)(?!.*\/[/.])(?!\.)/, 'must not begin with / or a dot, nor hold // or /.: no stream id does');

const SHA256 = /^[0-9a-fA-F]{64}$/;

const entry = z.strictObject(
  {
    name: text.regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      'must be 1 to 64 letters, digits and . _ - and begin with a letter or digit',
    ),
    key: text
      .min(MIN_CHARACTERS, `must have at least ${MIN_CHARACTERS} characters`)
      .max(1000, 'must have at most 1000 characters')
      .regex(/^[\x21-\x7e]*$/, 'must be printable ASCII without spaces: it travels in a header')
      .optional(),
    sha256: text.regex(SHA256, "must be the 64 hex digits of the key's SHA-256").optional(),
    scope: z.enum(['read', 'write'], 'must be read or write').default('write'),
    streams: z
      .array(streamIdPrefix, 'must be a list of prefixes of stream ids')
      .min(1, 'is empty; leave it out for a key that reaches all streams')
      .max(MAX_PREFIXES, `must have at most ${MAX_PREFIXES} entries`)
      .optional(),
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'must be an object' : undefined) },
);

const file = z.strictObject(
  {
    keys: z.array(entry, 'must be a list').max(MAX_KEYS, `must have at most ${MAX_KEYS} entries`),
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'the file must hold one JSON object' : undefined) },
);

/** Names and keys are compared with those of other entries even where an entry has other faults. */
const anything = z.unknown().optional();
const sketch = z.object({ name: anything, key: anything, sha256: anything });
const sketches = z.object({ keys: z.array(sketch.nullable().catch(null)) }).catch({ keys: [] });

/** `present` are the keys from elsewhere. @throws ConfigError with up to 20 faults; none quotes a key. */
export function parseKeysFile(bytes: Buffer, present: readonly HeldKey[]): readonly HeldKey[] {
  const json = parseJson(bytes);
  const result = file.safeParse(json);
  const faults = [
    ...(result.error ? schemaFaults(file, result.error, json).map(describeFault) : []),
    ...faultsBetween(present, sketches.parse(json).keys),
  ];
  if (result.success && present.length + result.data.keys.length === 0)
    faults.push('keys: is empty; without a key no client can use the service');
  if (!result.success || faults.length > 0) {
    const more = faults.length - MAX_FAULTS;
    throw new ConfigError([...faults.slice(0, MAX_FAULTS), ...(more > 0 ? [`and ${more} more`] : [])]);
  }
  const held = result.data.keys.map(({ name, key, sha256, scope, streams }) => ({
    apiKey: { name, scope, streams },
    digest: sha256 === undefined ? digestOf(key ?? '') : Buffer.from(sha256, 'hex'),
  }));
  return [...present, ...held];
}

export function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

function parseJson(bytes: Buffer): unknown {
  const content = bytes.toString('utf8').replace(/^\ufeff/, '');
  if (content.trim() === '') throw new ConfigError(['the file is empty']);
  try {
    return JSON.parse(content);
  } catch (thrown) {
    // V8's message quotes the text around the fault, which may be a key.
    const [, at] = /at position (\d+)/.exec(String(thrown)) ?? [];
    if (at === undefined) throw new ConfigError(['the file is not valid JSON, or not all of it']);
    const line = content.slice(0, Number(at)).split('\n').length;
    throw new ConfigError([`the file is not valid JSON: look at line ${line}`]);
  }
}

function describeFault({ path, ...fault }: SchemaFault): string {
  const place = path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .slice(1);
  if (fault.kind === 'wrong') return place === '' ? fault.sentence : `${place}: ${fault.sentence}`;
  const { name, near, known } = fault;
  const hint = near ? `did you mean ${near.split('.').at(-1)}?` : `the fields are ${known.join(', ')}`;
  // A name as long as a key may be a key in the wrong place.
  const shown = name.length < MIN_CHARACTERS ? `${printable(name)} is not a field` : 'has an unknown field';
  return `${place === '' ? 'the file' : place}: ${shown}; ${hint}`;
}

function faultsBetween(present: readonly HeldKey[], entries: z.output<typeof sketches>['keys']): string[] {
  const names = new Map<unknown, string>(present.map(({ apiKey }) => [apiKey.name, 'PACKAGERDRMAPI_APIKEY']));
  const digests = new Map(present.map(({ digest }) => [digest.toString('hex'), 'PACKAGERDRMAPI_APIKEY']));
  return entries.flatMap((found, index) => {
    if (found === null) return [];
    const { name, key, sha256 } = found;
    const place = `keys[${index}]`;
    const faults: string[] = [];
    if (key === undefined && sha256 === undefined) faults.push(`${place}: needs key or sha256`);
    if (key !== undefined && sha256 !== undefined) faults.push(`${place}: takes key or sha256, not both`);
    const sameName = names.get(name);
    if (sameName) faults.push(`${place}: has the name of ${sameName}; each key needs its own`);
    if (typeof name === 'string') names.set(name, place);
    for (const digest of [
      ...(typeof key === 'string' ? [digestOf(key).toString('hex')] : []),
      ...(typeof sha256 === 'string' ? [sha256.toLowerCase()] : []),
    ]) {
      const sameKey = digests.get(digest);
      if (sameKey) faults.push(`${place}: is the same key as ${sameKey}; its rights would be ambiguous`);
      digests.set(digest, place);
    }
    return faults;
  });
}
