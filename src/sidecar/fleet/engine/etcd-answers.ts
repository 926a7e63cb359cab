import { isJsonObject, type JsonObject, parseJson } from '../../../drm/bytes';
import { whyNoAnswer } from '../../../http/get-request';
import { EngineError, type EngineFault, type KeyRange, type Moment, type StoredValue } from './engine';

/** Empty for other values: the gateway leaves out empty objects. */
export function fields(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Integers of 64 bits are texts in protobuf's JSON, and 0 is left out. */
export function whole(value: unknown): number {
  const number = Number(value ?? 0);
  return Number.isSafeInteger(number) ? number : 0;
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A character is one byte, so that strings sort as keys do. @throws RangeError for other characters. */
export function encodeKey(key: string): string {
  if (/[^\0-\xff]/.test(key)) throw new RangeError('A key of the engine must be characters of one byte');
  return Buffer.from(key, 'latin1').toString('base64');
}

export function storedValue(value: unknown): StoredValue {
  const { key, value: sealed, mod_revision } = fields(value);
  return {
    key: Buffer.from(text(key), 'base64').toString('latin1'),
    value: Buffer.from(text(sealed), 'base64'),
    revision: whole(mod_revision),
  };
}

/** Undefined: the answer is not etcd's. */
export function momentOf(answer: JsonObject): Moment | undefined {
  const { cluster_id: cluster, revision, raft_term: term } = fields(answer.header);
  return typeof cluster === 'string' ? { cluster, revision: whole(revision), term: whole(term) } : undefined;
}

/** In base64; the end is the key behind the last. The prefix has printable ASCII characters. */
export function rangeOf({ prefix, after }: KeyRange): readonly [start: string, end: string] {
  const end = prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
  return [encodeKey(after === undefined ? prefix : `${after}\0`), encodeKey(end)];
}

interface Fault {
  readonly kind: EngineFault;
  /** The rest of a sentence about the server. */
  readonly why: string;
  readonly canRetry?: boolean;
  /** Whether the server may have processed the request. */
  readonly mayBeDone?: boolean;
  readonly signIn?: boolean;
  readonly isLeaderless?: boolean;
}

export class EtcdError extends EngineError {
  constructor(
    url: string,
    readonly fault: Fault,
  ) {
    super(fault.kind, `${url}: ${fault.why}`);
  }
}

/** Faults of one server that has not started the request. */
const NOT_STARTED = { canRetry: true } as const;
const MAYBE_DONE = { canRetry: true, mayBeDone: true } as const;

/** Parts of etcd's messages (its `api/v3rpc/rpctypes/error.go`). */
const SENTENCES: readonly (readonly [RegExp, Omit<Fault, 'why'>])[] = [
  [/database space exceeded/, { kind: 'full' }],
  [/required revision has been compacted/, { kind: 'compacted' }],
  [
    /invalid auth token|user name is empty|revision in header is old|auth store is old/,
    { kind: 'denied', signIn: true },
  ],
  [/permission denied|authentication failed/, { kind: 'denied' }],
  // The answer where a leader is needed: nothing was done.
  [/etcdserver: no leader$/, { kind: 'unavailable', ...NOT_STARTED, isLeaderless: true }],
  [/too many requests|for learner/, { kind: 'unavailable', ...NOT_STARTED }],
  // By all servers, until the alarm is disarmed.
  [/corrupt cluster/, { kind: 'unavailable' }],
];

const MAX_QUOTED = 200;

/** `code` is gRPC's. */
export function faultOfText(sentence: string, code = 0, status = 0): Fault {
  const quoted = sentence.trim().replaceAll(/\s+/g, ' ').slice(0, MAX_QUOTED);
  const known = SENTENCES.find(([pattern]) => pattern.test(quoted));
  if (known) return { why: quoted, ...known[1] };
  const remedy = 'the client certificate must have no common name (CN) when users are on: give it /O=… alone';
  if (/CommonName of client/.test(quoted)) return { kind: 'denied', why: `${quoted}; ${remedy}` };
  // Permission denied, unauthenticated.
  if (code === 7 || code === 16) return { kind: 'denied', why: quoted, signIn: code === 16 };
  const why = quoted || `answered ${status}`;
  // Cancelled, deadline exceeded, unavailable.
  if ([1, 4, 14].includes(code) || status >= 500) return { kind: 'unavailable', why, ...MAYBE_DONE };
  return { kind: 'refused', why };
}

/** The text is in `error` and `message`, since etcd 3.6 in `message` alone. */
export function faultOfAnswer(status: number, body: string): Fault {
  const json = parseJson(body);
  if (!isJsonObject(json)) return faultOfForeignAnswer(status, body.slice(0, MAX_QUOTED));
  const inner = fields(json.error);
  const sentence = text(json.message) || text(json.error) || text(inner.message);
  return faultOfText(sentence, whole(json.code ?? inner.grpc_code ?? inner.code), status);
}

export function faultOfForeignAnswer(status: number, body = ''): Fault {
  // The next two come from etcd itself, before the gateway.
  if (/CommonName of client/.test(body)) return faultOfText(body);
  if (status === 421)
    return { kind: 'refused', why: 'refuses its host name; add it to its --host-whitelist', ...NOT_STARTED };
  if (status >= 500) return { kind: 'unavailable', why: `answered ${status}`, ...MAYBE_DONE };
  const why = `answered ${status}, but not as etcd's JSON gateway; is an etcd of version 3.4 or later there, with its gateway on?`;
  return { kind: 'refused', why, ...(status === 404 ? NOT_STARTED : MAYBE_DONE) };
}

/** OpenSSL's names of the alerts that refuse a client's certificate. */
const CERTIFICATE_REFUSED =
  /ALERT_(?:CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERT|NO_CERTIFICATE)/;

const CERTIFICATE_FAULTS: Readonly<Record<string, string>> = {
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clock here',
  INVALID_PURPOSE: 'its certificate is not one for servers (extended key usage serverAuth)',
};

/**
 * `code` is the system's, TLS's or the HTTP parser's; `ETIMEDOUT`: silence; or `TOO_LARGE`.
 * `isSent`: the server may have received the request.
 */
export function faultOfNoAnswer(code: string, isSent: boolean): Fault {
  if (code === 'TOO_LARGE')
    return { kind: 'refused', why: 'answered with more than any answer can be', ...MAYBE_DONE };
  if (CERTIFICATE_REFUSED.test(code))
    return { kind: 'denied', why: `refuses the client certificate (${code})`, ...NOT_STARTED };
  const untrusted = 'name the authority that signed it with PACKAGERDRMAPI_FLEET_TLSCA';
  const certificate = CERTIFICATE_FAULTS[code];
  const why = certificate ?? whyNoAnswer(code, { untrusted, tls: `check the certificates (${code})` });
  return { kind: 'unavailable', why, ...(isSent && certificate === undefined ? MAYBE_DONE : NOT_STARTED) };
}
