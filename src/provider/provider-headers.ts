import { isAscii } from 'node:buffer';
import { ConfigError } from '../http/config';
import { type FileWatchOptions, type WatchedFiles, watchFiles } from '../http/watched-file';

export type ProviderHeaders = Readonly<Record<string, string>>;

export type ReadProviderHeaders = () => ProviderHeaders;

export const HEADERS_VARIABLE = 'PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE';

/** Later, an unusable file is logged and the headers stay. No message holds a value. @throws ConfigError */
export function openProviderHeaders(
  file: string,
  { log, intervalMs }: Omit<FileWatchOptions, 'clock'>,
): WatchedFiles<ProviderHeaders> {
  const take = ([bytes = Buffer.alloc(0)]: readonly Buffer[]) => {
    const headers = parseProviderHeaders(bytes);
    log.info('key provider headers read', { file, count: Object.keys(headers).length });
    return headers;
  };
  return watchFiles([[HEADERS_VARIABLE, file]], {
    log,
    intervalMs,
    message: 'the file of key provider headers cannot be used; the previous headers stay in use',
    fields: { file },
    take,
  });
}

/** More than a header of any provider has; servers take 16 KiB of all of them. */
const MAX_BYTES = 8 * 1024;
const MAX_FAULTS = 20;

/** A token and its value (RFC 9110 § 5.1 and 5.5), without white space around it. */
const LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)[ \t]*$/;

/** The connection or this service sets these. */
const FORBIDDEN: readonly string[] = [
  ...['host', 'content-length', 'transfer-encoding', 'content-encoding', 'accept-encoding', 'expect'],
  ...['connection', 'keep-alive', 'proxy-connection', 'upgrade', 'te', 'trailer', 'http2-settings'],
  ...['x-request-id', 'x-speke-version'],
];

/**
 * Lines `Name: value`; empty lines, and those that begin with `#`, are skipped.
 * @throws ConfigError with 20 faults at most. A line is named by its number: it may be a value.
 */
export function parseProviderHeaders(bytes: Buffer): ProviderHeaders {
  const content = bytes.toString('utf8').replace(/^\ufeff/, '');
  if (content.length > MAX_BYTES) throw new ConfigError([`the file has more than ${MAX_BYTES} bytes`]);
  const headers = new Map<string, { readonly line: number; readonly entry: [name: string, value: string] }>();
  const faults: string[] = [];
  for (const [index, text] of content.split(/\r\n|\r|\n/).entries()) {
    if (/^\s*(?:#|$)/.test(text)) continue;
    const line = index + 1;
    const [, name = '', value = ''] = LINE.exec(text) ?? [];
    const lower = name.toLowerCase();
    const fault = lineFault(text, lower, headers.get(lower)?.line);
    if (fault === undefined) headers.set(lower, { line, entry: [name, value] });
    else faults.push(`line ${line} ${fault}`);
  }
  if (faults.length > 0) {
    const more = faults.length - MAX_FAULTS;
    throw new ConfigError([...faults.slice(0, MAX_FAULTS), ...(more > 0 ? [`and ${more} more`] : [])]);
  }
  if (headers.size === 0)
    throw new ConfigError(['the file holds no header; write lines "Name: value" into it']);
  return Object.fromEntries([...headers.values()].map(({ entry }) => entry));
}

/** `name` is in lower case, empty where the line is none of a header; `other` is the line that has the same name. */
function lineFault(text: string, name: string, other: number | undefined): string | undefined {
  if (!isAscii(Buffer.from(text))) return 'holds other characters than ASCII, which headers do not have';
  if (name === '') return 'is not "Name: value"';
  if (FORBIDDEN.includes(name)) return `sets ${name}, which this service sets itself; remove it`;
  return other === undefined ? undefined : `has the same name as line ${other}; a header is sent once`;
}
