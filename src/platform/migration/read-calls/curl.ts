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
 * @returns also the number of commands of any kind, and the parameters whose values come from files.
 * @throws UnreadableInput when a shell would not read it either: a quote or a `${` has no end.
 */
export function readCurl(text: string) {
  const fromFiles = new Set<string>();
  const commands = commandLines(text).flatMap(curlCommands);
  const calls = commands.flatMap((words) => readCommand(words, fromFiles));
  return { calls, commands: commands.length, fromFiles: [...fromFiles] };
}

/** Undoes the escapes of commands that browsers copy for the shell of Windows, where `^` escapes any character. */
function unescapedCmd(text: string): string {
  return text.replaceAll(/\^\r?\n/g, ' ').replaceAll(/\^([\s\S])/g, '$1');
}

/** A shell's text in parts: escapes, ends of lines, comments, and each kind of quote as a whole; `open` has no end. */
const PARTS =
  /(?<join>\\\r?\n)|\\[\s\S]|(?<end>\r?\n)|(?<comment>(?<!\S)#[^\n]*)|'[^']*'|"[^\\"]*(?:\\[\s\S][^\\"]*)*"|\$'[^\\']*(?:\\[\s\S][^\\']*)*'|(?:\$(?='))?(?<open>['"])[\s\S]*|[^\\'"#$\r\n]+|[\s\S]/g;

/** The lines of a shell's text without comments, with those joined that a backslash or a quote continues. */
function commandLines(given: string): string[] {
  const text = (/\^["\r\n]/.test(given) ? unescapedCmd(given) : given)
    // A command in quotes, as in `key="$(curl …)"`, is a command.
    .replaceAll(/"(\$\(\s*curl\s[^()]*\))"/g, '$1');
  const lines: string[] = [];
  let line = '';
  for (const { 0: part, groups: { join, end, comment, open } = {} } of text.matchAll(PARTS)) {
    if (end) {
      lines.push(line);
      line = '';
    } else if (!comment) line += join ? ' ' : joined(part);
    // A shell would wait for the rest, and this text would be lost.
    if (open && line.includes('curl')) throw new UnreadableInput(`has a quote (${open}) that is not closed`);
  }
  return [...lines, line].filter((each) => each.includes('curl'));
}

/** A part without the ends of lines that a backslash hides, which it does not in single quotes. */
function joined(part: string): string {
  if (part.startsWith("'")) return part;
  return part.replaceAll(/\\(?:\r?\n|[\s\S])/g, (pair) => (pair.endsWith('\n') ? '' : pair));
}

function wordsOf(line: string): ParseEntry[] {
  try {
    return parse(line, (name) => `{${name}}`);
  } catch {
    // The only thing that the parser throws for.
    throw new UnreadableInput('has a ${ that is not closed');
  }
}

/** The words of each command, and of each part of one that `--next` begins. */
function curlCommands(line: string): string[][] {
  const commands: string[][] = [];
  let words: string[] | undefined;
  let isCut = false;
  for (const entry of wordsOf(line).slice(0, MAX_WORDS)) {
    const word = typeof entry === 'string' ? entry : 'pattern' in entry ? entry.pattern : undefined;
    const isCurl = word !== undefined && /(?:^|\/)curl(?:\.exe)?$/.test(word);
    const isNext = word === '--next' || word === '-:';
    const wasCut = isCut;
    // An unquoted address with &: the shell would cut it there, which its writer did not mean.
    isCut =
      typeof entry === 'object' && 'op' in entry && entry.op === '&' && words?.at(-1)?.includes('?') === true;
    if (isCut) continue;
    if (words ? isNext || (wasCut && isCurl) : isCurl) {
      words = [];
      commands.push(words);
    } else if (word === undefined) words = undefined;
    else if (!wasCut) words?.push(word);
    else if (/^[\w.-]+=/.test(word)) words?.push(`${words.pop()}&${word}`);
  }
  return commands;
}

function readCommand(words: readonly string[], fromFiles: Set<string>): V1Call[] {
  const { tokens } = parseArgs({ args: [...words], options: OPTIONS, strict: false, tokens: true });
  const urls: string[] = [];
  const parameters: Record<string, string | string[]> = Object.create(null);
  const take = (name: string, ...values: string[]) => {
    for (const value of values) addParameter(parameters, name, value);
  };
  // The content of a named file is the value, so its place in the call is known.
  const takeFromFile = (name: string, file: string) => {
    if (name === '') fromFiles.add('the whole body');
    else take(name, `{content of ${file.replaceAll(/[{}]/g, '_').slice(0, 100)}}`);
  };
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    const { value = '' } = token;
    const option = token.kind === 'option' ? token.name : 'url';
    if (option === 'url') urls.push(value);
    else if (/^(?:json|data(?:-ascii|-binary)?)$/.test(option) && value.startsWith('@'))
      takeFromFile('', value);
    else if (/^(?:json|data(?:-ascii|-binary|-raw)?)$/.test(option)) {
      const body = /^\s*\{/.test(value) ? (readJsonForm(value) ?? {}) : readForm(value.replace(/^\?/, ''));
      for (const [name, each] of Object.entries(body)) take(name, ...[each].flat());
    } else if (option === 'data-urlencode' || option === 'url-query') {
      // `name=content`, `=content`, `content`, `name@file` or `@file`.
      const [, name = '', sign, content = ''] = /^([^=@]*)([=@])(.*)$/s.exec(value) ?? [];
      if (sign === '@') takeFromFile(name, content);
      else if (name !== '') take(name, content);
    } else if (option === 'form' || option === 'form-string') {
      // `name=content;type=…`, `name="content"`, `name=@file` or `name=<file`.
      const [name = '', content = ''] = value.split(/=(.*)/s);
      if (option === 'form-string') take(name, content);
      else if (content.startsWith('@')) fromFiles.add(name);
      else if (content.startsWith('<')) takeFromFile(name, partOf(content.slice(1)));
      else take(name, partOf(content));
    }
  }
  return urls.flatMap((url) => {
    const call = readUrl(url);
    if (!call) return [];
    // v1 read its parameters from the query and the form alike.
    return {
      route: call.route,
      parameters: Object.assign(Object.create(null), call.parameters, parameters),
    };
  });
}

/** The value in a part of a form: curl takes quotes around it, and what comes behind it, for itself. */
function partOf(content: string): string {
  const [, quoted] = /^"((?:[^\\"]|\\.)*)"/s.exec(content) ?? [];
  return quoted?.replaceAll(/\\([\\"])/g, '$1') ?? content.replace(/;(?:type|filename)=.*$/s, '');
}
