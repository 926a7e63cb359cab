import type { V1Call } from '../migrate-call';
import { readUrl } from './found-call';

/** A line that is longer is left out: no server writes as long ones. */
const MAX_LINE = 1024 * 1024;
/** How many forms of calls are remembered to be known again at sight. */
const MAX_FORMS = 5000;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const QUOTE = 0x22;
const AMPERSAND = 0x26;
const APOSTROPHE = 0x27;
const SLASH = 0x2f;
const ONE = 0x31;
const COLON = 0x3a;
const EQUALS = 0x3d;
const QUESTION = 0x3f;
const BACKSLASH = 0x5c;
const LETTER_V = 0x76;
const BRACE = 0x7b;
/** What may stand before a path. */
const BEFORE_PATH = [...Buffer.from(` \t"'=:,|`)];

/**
 * Reads an access log piece by piece: common, combined, those of nginx, Apache and load balancers, and JSON lines. A call
 * whose form (the route and the names of its parameters) is known is only counted. It works on bytes, since what matters
 * is ASCII, and what it keeps in memory does not grow with the log.
 */
export class LogReader<Group> {
  readonly #open: (call: V1Call, method: string | undefined) => Group;
  readonly #count: (group: Group) => void;
  /** By the hash of the form: making a text of it for each line would take longer than all the rest. */
  readonly #groups = new Map<number, { readonly group: Group } | 'no call'>();
  #rest: Uint8Array = new Uint8Array();
  #isTooLong = false;
  #lines = 0;
  #tooLong = 0;

  /**
   * @param open answers the group of a call whose form wasn't seen yet, or has been forgotten.
   * @param count is called for each call, with its group.
   */
  constructor(open: (call: V1Call, method: string | undefined) => Group, count: (group: Group) => void) {
    this.#open = open;
    this.#count = count;
  }

  /** How many lines there were, and how many of them were too long to be read. */
  get lines(): { readonly read: number; readonly tooLong: number } {
    return { read: this.#lines, tooLong: this.#tooLong };
  }

  write(chunk: Uint8Array): void {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end === 0) {
      this.#keep(chunk);
      return;
    }
    // The line that began in an earlier piece, on its own: so that no piece has to be copied for it.
    const first = chunk.indexOf(NEWLINE) + 1;
    this.#keep(chunk.subarray(0, first));
    this.#endLine();
    this.#scan(chunk, first, end);
    this.#keep(chunk.subarray(end));
  }

  end(): void {
    if (this.#rest.length === 0 && !this.#isTooLong) return;
    this.#keep(Uint8Array.of(NEWLINE));
    this.#endLine();
  }

  /** Adds to the line that isn't complete yet. */
  #keep(part: Uint8Array): void {
    if (part.length === 0 || this.#isTooLong) return;
    if (this.#rest.length + part.length > MAX_LINE) {
      this.#isTooLong = true;
      this.#rest = new Uint8Array();
      return;
    }
    this.#rest = Buffer.concat([this.#rest, part]);
  }

  #endLine(): void {
    const line = this.#rest;
    this.#rest = new Uint8Array();
    if (this.#isTooLong) {
      this.#isTooLong = false;
      this.#tooLong += 1;
      this.#lines += 1;
    } else this.#scan(line, 0, line.length);
  }

  /** Reads whole lines, from `start` to `end`, before which a line feed stands. */
  #scan(data: Uint8Array, start: number, end: number): void {
    let lineStart = start;
    for (let at = start; at < end; at += 1) {
      const byte = data[at];
      if (byte === NEWLINE) {
        this.#lines += 1;
        lineStart = at + 1;
      } else if (byte === SLASH && isVersion(data, at) && isPathStart(data, at, lineStart)) {
        const stop = this.#readAddress(data, lineStart, at);
        at = data.indexOf(NEWLINE, stop) - 1;
      }
    }
  }

  /** Reads the address here, and answers where it ends. */
  #readAddress(data: Uint8Array, lineStart: number, start: number): number {
    const form = new Form();
    const stop = form.read(data, start);
    const isJson = data[lineStart] === BRACE;
    // An address that JSON had to escape, or whose query may stand in a field of its own.
    if (isJson && (data[stop] === BACKSLASH || !form.hasQuery)) {
      const found = addressOf(parsed(textOf(data, lineStart, data.indexOf(NEWLINE, stop))), 0);
      if (found) this.#readText(found);
      return stop;
    }
    this.#found(
      form.hash,
      () => textOf(data, start, stop),
      () => methodBefore(textOf(data, Math.max(lineStart, start - 300), start)),
    );
    return stop;
  }

  #readText({ address, method }: JsonAddress): void {
    const form = new Form();
    form.read(Buffer.from(`${address}\n`), 0);
    this.#found(
      form.hash,
      () => address,
      () => method,
    );
  }

  #found(hash: number, address: () => string, method: () => string | undefined): void {
    let known = this.#groups.get(hash);
    if (known === undefined) {
      if (this.#groups.size >= MAX_FORMS) this.#groups.clear();
      const call = readUrl(address());
      known = call ? { group: this.#open(call, method()) } : 'no call';
      this.#groups.set(hash, known);
    }
    if (known !== 'no call') this.#count(known.group);
  }
}

/** The route of a call with the names of its parameters, as they come; the values are of no matter. */
class Form {
  hasQuery = false;
  #high = 0x811c9dc5;
  #low = 0x01000193;

  /** Of 53 bits, as many as a number holds exactly. */
  get hash(): number {
    return (this.#high >>> 0) * 0x200000 + (this.#low >>> 11);
  }

  /** Reads an address, to the first white space, quote or backslash, and answers where that is. */
  read(data: Uint8Array, start: number): number {
    let high = this.#high;
    let low = this.#low;
    let isQuery = false;
    let isValue = false;
    let at = start;
    for (; at < data.length; at += 1) {
      const byte = data[at] ?? NEWLINE;
      if (byte <= SPACE || byte === QUOTE || byte === APOSTROPHE || byte === BACKSLASH) break;
      if (isValue) {
        if (byte !== AMPERSAND) continue;
        isValue = false;
      } else if (byte === EQUALS && isQuery) {
        isValue = true;
        continue;
      } else if (byte === QUESTION) isQuery = true;
      high = Math.imul(high ^ byte, 0x01000193);
      low = Math.imul(low ^ byte, 0x5bd1e995) + 1;
    }
    this.#high = high;
    this.#low = low;
    this.hasQuery = isQuery;
    return at;
  }
}

/** Whether `/v1/` stands here, or `/v1\/` as some write it in JSON. */
function isVersion(data: Uint8Array, at: number): boolean {
  if (data[at + 1] !== LETTER_V || data[at + 2] !== ONE) return false;
  return data[at + 3] === SLASH || (data[at + 3] === BACKSLASH && data[at + 4] === SLASH);
}

/** Whether a path begins here: at the start, after white space or a quote, or after the authority of a URL. */
function isPathStart(data: Uint8Array, at: number, lineStart: number): boolean {
  const before = data[at - 1] ?? SPACE;
  if (at === lineStart || BEFORE_PATH.includes(before)) return true;
  // JSON's escaped slash.
  if (before === BACKSLASH) return true;
  for (let back = at - 1; back > lineStart && at - back < 300; back -= 1) {
    const byte = data[back] ?? SPACE;
    if (byte <= SPACE || byte === QUOTE) return false;
    if (byte === SLASH) return data[back - 1] === SLASH && data[back - 2] === COLON;
  }
  return false;
}

function textOf(data: Uint8Array, start: number, end: number): string {
  return Buffer.from(data.buffer, data.byteOffset + start, end - start).toString();
}

function methodBefore(text: string): string | undefined {
  return /\b(GET|POST|PUT|DELETE|HEAD|OPTIONS)[\s"':,]+(?:[a-z]+:\/\/[^/\s]+)?$/.exec(text)?.[1];
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

interface JsonAddress {
  readonly address: string;
  readonly method: string | undefined;
}

/** Names that loggers have for a query beside its path. */
const QUERIES = [
  'query',
  'query_string',
  'querystring',
  'queryString',
  'args',
  'cs_uri_query',
  'cs-uri-query',
];
const METHODS = ['method', 'request_method', 'requestMethod', 'verb', 'http_method', 'cs-method'];

function addressOf(value: unknown, depth: number): JsonAddress | undefined {
  if (typeof value !== 'object' || value === null || depth > 5) return undefined;
  const entries = Object.entries(value);
  for (const [, each] of entries) {
    if (typeof each !== 'string') continue;
    const found = /(?:^|[\s"'])(?:([A-Z]+) )?(?:https?:\/\/[^/\s]+)?(\/v1\/[^\s"']+)/.exec(each);
    if (!found) continue;
    const [, method, address = ''] = found;
    const query = address.includes('?') ? undefined : fieldOf(entries, QUERIES);
    return {
      address: query === undefined || query === '' ? address : `${address}?${query.replace(/^\?/, '')}`,
      method: method ?? fieldOf(entries, METHODS),
    };
  }
  for (const [, each] of entries) {
    const found = addressOf(each, depth + 1);
    if (found) return found;
  }
  return undefined;
}

function fieldOf(
  entries: readonly (readonly [string, unknown])[],
  names: readonly string[],
): string | undefined {
  const value = entries.find(([name]) => names.includes(name))?.[1];
  return typeof value === 'string' ? value : undefined;
}
