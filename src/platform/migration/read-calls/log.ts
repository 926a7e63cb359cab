import { StringDecoder } from 'node:string_decoder';
import type { V1Call } from '../migrate-call';
import { readUrl } from './found-call';

/** A longer line is left out: no server writes one. In characters. */
const MAX_LINE = 1024 * 1024;
/** How many forms of calls are remembered. */
const MAX_FORMS = 5000;
/** A path with `/v1/`, or `/v1\\/` as JSON may have it: behind a separator, or behind the authority of a URL. */
const ADDRESS = /(?:^|[\s"'=:,|`\\]|:\/\/[^\s"/]{1,300})(\/v1(?:\/[^\s"'\\]*|(?=\\\/)))/;

/**
 * Reads an access log piece by piece: common, combined, those of nginx, Apache and load balancers, and JSON lines. A call
 * whose form (the route and the names of its parameters) is known is only counted, so memory does not grow with the log.
 */
export class LogReader<Group> {
  readonly #open: (call: V1Call, method: string | undefined) => Group;
  readonly #count: (group: Group) => void;
  readonly #groups = new Map<string, { readonly group: Group } | 'no call'>();
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  #isTooLong = false;
  #lines = 0;
  #tooLong = 0;

  /**
   * @param open returns the group of a call whose form is new, or has been forgotten.
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

  write(chunk: Buffer): void {
    const lines = `${this.#rest}${this.#decoder.write(chunk)}`.split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#endLine(line);
    if (this.#rest.length > MAX_LINE) {
      this.#isTooLong = true;
      this.#rest = '';
    }
  }

  end(): void {
    const line = this.#rest + this.#decoder.end();
    if (line !== '' || this.#isTooLong) this.#endLine(line);
  }

  #endLine(line: string): void {
    this.#lines += 1;
    if (this.#isTooLong || line.length > MAX_LINE) this.#tooLong += 1;
    else if (line.includes('/v1')) this.#read(line);
    this.#isTooLong = false;
  }

  #read(line: string): void {
    const match = ADDRESS.exec(line);
    if (!match) return;
    const [whole, address = ''] = match;
    const start = match.index + whole.length - address.length;
    // JSON may have escaped the address, or may have its query in a field of its own.
    if (line.startsWith('{') && (line[start + address.length] === '\\' || !address.includes('?'))) {
      const found = addressOf(parsed(line), 0);
      if (found) this.#found(found.address, () => found.method);
    } else this.#found(address, () => methodBefore(line.slice(Math.max(0, start - 300), start)));
  }

  #found(address: string, method: () => string | undefined): void {
    const [path = '', query = ''] = address.split(/\?(.*)/s);
    const form = `${path}?${query.replaceAll(/=[^&]*/g, '')}`;
    let known = this.#groups.get(form);
    if (known === undefined) {
      if (this.#groups.size >= MAX_FORMS) this.#groups.clear();
      const call = readUrl(address);
      known = call ? { group: this.#open(call, method()) } : 'no call';
      this.#groups.set(form, known);
    }
    if (known !== 'no call') this.#count(known.group);
  }
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
