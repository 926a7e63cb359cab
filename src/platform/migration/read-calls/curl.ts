import { parseArgs } from 'node:util';
import { type ParseEntry, parse } from 'shell-quote';
import type { V1Call } from '../migrate-call';
import { addParameter, readForm, readJsonForm, readUrl, UnreadableInput } from './found-call';

/** The options of curl that take a value, each with its short name; all others are switches. */
const WITH_VALUE =
  'request:X header:H data:d data-ascii data-binary data-raw data-urlencode url-query json form:F form-string url user-agent:A cookie:b cookie-jar:c continue-at:C dump-header:D referer:e cert:E help:h config:K max-time:m output:o ftp-port:P quote:Q range:r telnet-option:t upload-file:T user:u proxy-user:U write-out:w proxy:x speed-limit:Y speed-time:y time-cond:z connect-timeout retry retry-delay retry-max-time cacert capath key key-type cert-type ciphers resolve connect-to interface limit-rate max-redirs noproxy oauth2-bearer pass proxy-header unix-socket aws-sigv4 request-target output-dir expect100-timeout keepalive-time local-port max-filesize netrc-file proto rate trace trace-ascii variable';

const OPTIONS = Object.fromEntries(
  WITH_VALUE.split(' ').map((option) => {
    const [name = '', short] = option.split(':');
    return [name, { type: 'string' as const, ...(short && { short }) }];
  }),
);

/** More words than any command that a person writes. */
const MAX_WORDS = 5000;

/**
 * Reads the curl commands of a text: several lines, pipes and other programs beside them are no matter.
 *
 * @returns also how many commands there were, whatever they call, and the parameters whose values come from a file, which the
 *   command alone doesn't say.
 * @throws UnreadableInput when a shell would not read it either: a quote or a `${` has no end.
 */
export function readCurl(text: string) {
  const calls: V1Call[] = [];
  const fromFiles = new Set<string>();
  let commands = 0;
  for (const line of commandLines(text)) {
    for (const words of curlCommands(line)) {
      commands += 1;
      for (const part of splitAt(words, ['--next', '-:'])) calls.push(...readCommand(part, fromFiles));
    }
  }
  return { calls, commands, fromFiles: [...fromFiles] };
}

/** What browsers copy for the shell of Windows, where `^` escapes whatever follows it. */
function unescapedCmd(text: string): string {
  return text.replaceAll(/\^\r?\n/g, ' ').replaceAll(/\^([\s\S])/g, '$1');
}

/** What a quote ends with, and whether a backslash escapes in it. */
const QUOTES: ReadonlyMap<string, { readonly end: string; readonly escapes: boolean }> = new Map([
  ["'", { end: "'", escapes: false }],
  ["$'", { end: "'", escapes: true }],
  ['"', { end: '"', escapes: true }],
]);

/** The lines of a shell's text without comments, with those joined that a backslash or a quote continues. */
function commandLines(given: string): string[] {
  const text = /\^["\r\n]/.test(given) ? unescapedCmd(given) : given;
  const lines: string[] = [];
  let line = '';
  let quote: ReturnType<typeof QUOTES.get>;
  let isComment = false;
  let before = '';
  for (const [sign] of text.matchAll(/\\\r?\n|\\[\s\S]|\$?'|["#]|\r?\n|[^\\'"#$\r\n]+|[\s\S]/g)) {
    const isEnd = /^\r?\n$/.test(sign) || (isComment && sign.endsWith('\n'));
    if (isEnd && !quote) {
      lines.push(line);
      line = '';
      isComment = false;
    } else if (!isComment && !quote && sign === '#' && /^\s?$/.test(before)) isComment = true;
    else if (!isComment) {
      const isJoin = /^\\\r?\n$/.test(sign) && quote?.escapes !== false;
      line += isJoin ? (quote ? '' : ' ') : sign;
      if (!quote) quote = QUOTES.get(sign);
      else if (sign.endsWith(quote.end) && !(quote.escapes && sign.startsWith('\\'))) quote = undefined;
    }
    before = isEnd ? '' : sign.slice(-1);
  }
  // A shell would wait for the rest, and what stands there would be lost.
  if (quote && line.includes('curl'))
    throw new UnreadableInput(`has a quote (${quote.end}) that is not closed`);
  return [...lines, line].filter((each) => each.includes('curl'));
}

function wordsOf(line: string): ParseEntry[] {
  try {
    return parse(line, (name) => `{${name}}`);
  } catch {
    // The only thing that the parser throws for.
    throw new UnreadableInput('has a ${ that is not closed');
  }
}

/** The words behind each `curl` of a line. */
function curlCommands(line: string): string[][] {
  const commands: string[][] = [];
  let words: string[] | undefined;
  let isRest = false;
  for (const entry of wordsOf(line).slice(0, MAX_WORDS)) {
    const word = wordOf(entry);
    if (word === undefined) {
      // An address with & that nobody quoted: the shell would cut it there, and its writer did not mean that.
      const isAnd = typeof entry !== 'string' && 'op' in entry && entry.op === '&';
      isRest = isAnd && words?.at(-1)?.includes('?') === true;
      if (!isRest) words = undefined;
    } else if (isRest && words) {
      if (/^[\w.-]+=/.test(word)) words.push(`${words.pop()}&${word}`);
      isRest = false;
    } else if (words) words.push(word);
    else if (/(?:^|\/)curl(?:\.exe)?$/.test(word)) {
      words = [];
      commands.push(words);
    }
  }
  return commands;
}

function wordOf(entry: ParseEntry): string | undefined {
  if (typeof entry === 'string') return entry;
  return 'pattern' in entry ? entry.pattern : undefined;
}

function splitAt(words: readonly string[], marks: readonly string[]): string[][] {
  const parts: string[][] = [[]];
  for (const word of words) {
    if (marks.includes(word)) parts.push([]);
    else parts.at(-1)?.push(word);
  }
  return parts;
}

/** What a command sends beside its URL. */
interface Sent {
  readonly urls: string[];
  readonly forms: string[];
  readonly json: string[];
  readonly parameters: Record<string, string | string[]>;
  readonly fromFiles: Set<string>;
}

function readCommand(words: readonly string[], fromFiles: Set<string>): V1Call[] {
  const sent: Sent = { urls: [], forms: [], json: [], parameters: Object.create(null), fromFiles };
  const { tokens } = parseArgs({ args: [...words], options: OPTIONS, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind === 'positional') sent.urls.push(token.value);
    else if (token.kind === 'option') TAKEN.get(token.name)?.(token.value ?? '', sent);
  }
  return sent.urls.flatMap((url) => {
    const call = readUrl(url);
    return call ? [{ route: call.route, parameters: merged(call.parameters, sent) }] : [];
  });
}

/** The options that matter; what all others set is no part of the call. */
const TAKEN: ReadonlyMap<string, (value: string, sent: Sent) => void> = new Map([
  ['url', (value, { urls }) => void urls.push(value)],
  ['data', takeData],
  ['data-ascii', takeData],
  ['data-binary', takeData],
  ['data-raw', takeBody],
  ['json', takeBody],
  ['data-urlencode', takeEncoded],
  ['url-query', takeEncoded],
  ['form', (value, sent) => takeField(value, true, sent)],
  ['form-string', (value, sent) => takeField(value, false, sent)],
]);

function takeData(value: string, sent: Sent): void {
  if (value.startsWith('@')) sent.fromFiles.add('the whole body');
  else takeBody(value, sent);
}

function takeBody(value: string, sent: Sent): void {
  if (/^\s*\{/.test(value)) sent.json.push(value);
  else sent.forms.push(value);
}

/** `name=content`, `=content`, `content`, `name@file` or `@file`. */
function takeEncoded(value: string, sent: Sent): void {
  const [, name = '', sign, content = ''] = /^([^=@]*)([=@])(.*)$/s.exec(value) ?? [];
  if (sign === '=' && name !== '') addParameter(sent.parameters, name, content);
  else if (sign === '@') takeFromFile(name, content, sent);
}

/** What a named file holds is the value: its place in the call is known. */
function takeFromFile(name: string, file: string, sent: Sent): void {
  if (name === '') sent.fromFiles.add('the whole body');
  else addParameter(sent.parameters, name, `{content of ${file.replaceAll(/[{}]/g, '_').slice(0, 100)}}`);
}

/** `name=content;type=…`, `name=@file` or `name=<file`. */
function takeField(given: string, mayBeFile: boolean, sent: Sent): void {
  const [name = '', content = ''] = given.split(/=(.*)/s);
  const value = mayBeFile ? content.replace(/;(?:type|filename)=.*$/s, '') : content;
  if (mayBeFile && content.startsWith('<')) takeFromFile(name, value.slice(1), sent);
  else if (mayBeFile && content.startsWith('@')) sent.fromFiles.add(name);
  else addParameter(sent.parameters, name, value);
}

/** v1 read its parameters from the query and the form alike. */
function merged(query: V1Call['parameters'], { forms, json, parameters }: Sent): V1Call['parameters'] {
  const read = [
    query,
    ...forms.map((form) => readForm(form.replace(/^\?/, ''))),
    ...json.map((text) => readJsonForm(text) ?? {}),
    parameters,
  ];
  return Object.assign(Object.create(null), ...read);
}
