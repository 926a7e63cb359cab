import { StringDecoder } from 'node:string_decoder';
import { parseJson } from '../../../drm/bytes';
import type { V1Call } from '../migrate-call';
import { readUrl } from './found-call';

/** A longer line is left out: no server writes one. In characters. */
const MAX_LINE = 1024 * 1024;
/**
 * A path with `/v1/`, or `/v1\\/` as JSON may have it: behind a separator, or behind the authority of a URL. It may have an
 * apostrophe before more of it, and bytes as servers write those that could end a text: `\x22`.
 */
const ADDRESS =
  /(?:^|[\s"'=:,|`\\]|:\/\/[^\s"/]{1,300})(\/v1(?:\/(?:[^\s"'\\]|'(?=[\w%&])|\\x[\da-fA-F]{2})*|(?=\\\/)))/;

/** Reads common and combined logs, those of nginx, Apache and load balancers, and JSON, line by line. */
export async function readLog(
  pieces: AsyncIterable<Buffer>,
  onCall: (call: V1Call, method: string | undefined) => void,
): Promise<{ readonly lines: number; readonly tooLong: number }> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let isTooLong = false;
  let lines = 0;
  let tooLong = 0;
  const endLine = (line: string) => {
    lines += 1;
    const found = !isTooLong && line.length <= MAX_LINE ? addressIn(line) : undefined;
    const call = found && readUrl(found.address.replaceAll(/\\x([\da-f]{2})/gi, '%$1'));
    if (call) onCall(call, found.method);
    if (isTooLong || line.length > MAX_LINE) tooLong += 1;
    isTooLong = false;
  };
  for await (const piece of pieces) {
    const parts = `${rest}${decoder.write(piece)}`.split('\n');
    rest = parts.pop() ?? '';
    parts.forEach(endLine);
    if (rest.length <= MAX_LINE) continue;
    isTooLong = true;
    rest = '';
  }
  rest += decoder.end();
  if (rest !== '' || isTooLong) endLine(rest);
  return { lines, tooLong };
}

function addressIn(line: string): ReturnType<typeof addressOf> {
  const match = line.includes('/v1') ? ADDRESS.exec(line) : null;
  if (!match) return undefined;
  const [whole, address = ''] = match;
  const start = match.index + whole.length - address.length;
  // JSON may have escaped the address, or may have its query in a field of its own.
  if (line.startsWith('{') && (line[start + address.length] === '\\' || !address.includes('?')))
    return addressOf(parseJson(line), 0);
  const before = line.slice(Math.max(0, start - 300), start);
  const method = /\b(GET|POST|PUT|DELETE|HEAD|OPTIONS)[\s"':,]+(?:[a-z]+:\/\/[^/\s]+)?$/.exec(before)?.[1];
  return { address, method };
}

/** Field names of loggers for a query that is separate from its path. */
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

function addressOf(
  value: unknown,
  depth: number,
): { address: string; method: string | undefined } | undefined {
  if (typeof value !== 'object' || value === null || depth > 5) return undefined;
  const entries = Object.entries(value);
  for (const [, each] of entries) {
    if (typeof each !== 'string') continue;
    const found = /(?:^|[\s"'])(?:([A-Z]+) )?(?:https?:\/\/[^/\s]+)?(\/v1\/(?:[^\s"']|'(?=[\w%&]))+)/.exec(
      each,
    );
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
