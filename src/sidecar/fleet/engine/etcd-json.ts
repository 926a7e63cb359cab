import type { KeyRange, Moment, StoredValue } from './engine';

/** A JSON object of unknown origin. */
export type Fields = Readonly<Record<string, unknown>>;

const NONE: Fields = {};
const EMPTY = Buffer.alloc(0);

/** Empty for what is no object: the gateway leaves out what is empty. */
export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : NONE;
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

function bytes(value: unknown): Buffer {
  return typeof value === 'string' ? Buffer.from(value, 'base64') : EMPTY;
}

/** A key in base64; a character is one byte, so that strings sort as keys do. @throws RangeError for other characters. */
export function encodeKey(key: string): string {
  const encoded = Buffer.from(key, 'latin1');
  if (/[^\0-\xff]/.test(key)) throw new RangeError('A key of the engine must be characters of one byte');
  return encoded.toString('base64');
}

function decodeKey(value: unknown): string {
  return bytes(value).toString('latin1');
}

/** The end of the range of a prefix: the first key after it; `\0`: there is none. */
function endOf(prefix: string): string {
  const kept = prefix.replace(/\xff+$/, '');
  if (kept === '') return '\0';
  return `${kept.slice(0, -1)}${String.fromCharCode(kept.charCodeAt(kept.length - 1) + 1)}`;
}

export function storedValue(value: unknown): StoredValue {
  const kv = fields(value);
  return { key: decodeKey(kv.key), value: bytes(kv.value), revision: whole(kv.mod_revision) };
}

/** The moment of an answer; undefined: it is none of etcd's. */
export function momentOf(answer: Fields): Moment | undefined {
  const { cluster_id: cluster, revision, raft_term: term } = fields(answer.header);
  if (typeof cluster !== 'string') return undefined;
  return { cluster, revision: whole(revision), term: whole(term) };
}

/** The first key of a range and the one behind its last, as they are sent. */
export function rangeOf({ prefix, after }: KeyRange): readonly [start: string, end: string] {
  const start = after === undefined || after < prefix ? prefix : `${after}\0`;
  // An empty key is none.
  return [encodeKey(start === '' ? '\0' : start), encodeKey(endOf(prefix))];
}
