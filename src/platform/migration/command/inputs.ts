import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { systemCode } from '../../../http/errors';
import { type ProgressOutput, showProgress } from '../../../terminal/progress';
import { count, shown } from '../../../terminal/text';
import { readCurl } from '../read-calls/curl';
import { readUrl, UnreadableInput } from '../read-calls/found-call';
import { readLog } from '../read-calls/log';
import { findCalls, type Language, mayCallV1 } from '../read-calls/source';
import type { Collector } from '../report';

export const KINDS = ['curl', 'url', 'har', 'log', 'source'] as const;
export type Kind = (typeof KINDS)[number];

type LanguageName = 'javascript' | 'python' | 'php';

/** Ends the program as unusable, with a report for the user. */
export class Failure extends Error {
  constructor(
    readonly code: string,
    description: string,
  ) {
    super(description);
    this.name = 'Failure';
  }
}

interface Reading extends ProgressOutput {
  readonly collector: Collector;
  readonly cwd: string;
  readonly from: Kind | undefined;
  readonly interrupted: AbortSignal;
}

/** Bytes of an input to detect its kind from. */
const HEAD = 64 * 1024;
const MIB = 1024 * 1024;
/** The longest text that is read as a whole: a command, an address or a program. In MiB. */
const MAX_TEXT = 16;
/** Inputs below this size show no progress. In MiB. */
const WORTH_A_BAR = 8;

/** Reads an input of the command line: a command, an address, a file or a folder. @throws Failure */
export async function readInput(reading: Reading, word: string): Promise<void> {
  // An empty path would be the folder that the program was started in.
  if (word.trim() === '') throw unusable('An input is empty; name a file or a folder.');
  const path = resolve(reading.cwd, word);
  const found = await stat(path).catch((thrown: unknown) => {
    if (systemCode(thrown) === undefined) throw thrown;
    return undefined;
  });
  if (found?.isDirectory()) {
    if (reading.from !== undefined && reading.from !== 'source')
      throw unusable(`${word} is a folder, which is read as --from source only.`);
    await readTree(reading, path, word);
    return;
  }
  if (found) {
    const source = createReadStream(path, { highWaterMark: 256 * 1024 });
    await readPieces(reading, word, source, found.isFile() ? found.size : 0);
    return;
  }
  const kind = reading.from ?? kindOfWord(word);
  if (kind !== 'curl' && kind !== 'url') throw unusable(await missing(path, word));
  try {
    readText(reading, kind, word, 'The argument');
  } catch (thrown) {
    throw named('The argument', thrown);
  }
}

function unusable(description: string): Failure {
  return new Failure('unusable_input', description);
}

function named(name: string, thrown: unknown): unknown {
  if (thrown instanceof UnreadableInput) return unusable(`${name} ${thrown.message}.`);
  const code = thrown instanceof Failure ? undefined : systemCode(thrown);
  return code === undefined ? thrown : new Failure('unreadable_input', `${name} can't be read (${code}).`);
}

async function missing(path: string, word: string): Promise<string> {
  const isLink = await lstat(path).then(
    (entry) => entry.isSymbolicLink(),
    () => false,
  );
  // A word that is not a file name may contain a secret.
  const name = word.length > 200 || /[?=\s]/.test(word) ? 'The argument' : word;
  if (isLink) return `${name} is a link that leads nowhere.`;
  return `${name} is no file or folder that is there, and no curl command or address with /v1/.`;
}

/** Decompresses gzip. @param total the bytes; 0 when their number is not known. @throws Failure */
export async function readPieces(
  reading: Reading,
  name: string,
  source: AsyncIterable<Buffer>,
  total: number,
): Promise<void> {
  const { interrupted, collector } = reading;
  const mib = Math.round(total / MIB);
  const progress = mib < WORTH_A_BAR ? undefined : showProgress(reading, `MiB of ${shown(name)}`, mib);
  async function* watched() {
    for await (const piece of source) {
      interrupted.throwIfAborted();
      progress?.advance(piece.length / MIB);
      yield Buffer.from(piece);
    }
  }
  try {
    const given = await withHead(watched());
    const isGzip = given.head[0] === 0x1f && given.head[1] === 0x8b;
    const unpacked = () => pipeline(given.all, createGunzip(), () => undefined);
    const { head, all } = isGzip ? await withHead(unpacked()) : given;
    if (/^(?:fffe|feff)/.test(head.toString('hex', 0, 2)))
      throw unusable(`${name} is UTF-16; save it as UTF-8.`);
    const kind = reading.from ?? (languageOfFile(name) ? 'source' : kindOfText(head.toString()));
    if (kind === 'log') {
      const { lines, tooLong } = await readLog(all, (call, method) =>
        // A log does not contain the fields of a form.
        collector.addForm(method === 'POST' ? { ...call, incomplete: true } : call),
      );
      const leftOut = tooLong > 0 ? [`${count(tooLong, 'line')} longer than 1 MiB left out`] : [];
      collector.addInput({ name, kind, lines, leftOut });
    } else if (kind === 'har') {
      const { callsOfHar } = await import('../read-calls/har');
      for await (const call of callsOfHar(all)) collector.addForm(call);
      collector.addInput({ name, kind, leftOut: [] });
    } else if (kind === 'source') {
      const text = await wholeText(all, name);
      const language = languageOfFile(name) ?? languageOfText(text);
      for (const call of findCalls(text, await loadLanguage(language))) collector.add(call, name);
      collector.addInput({ name, kind: `source, ${language}`, leftOut: [] });
    } else readText(reading, kind, await wholeText(all, name), name);
  } catch (thrown) {
    throw named(name, thrown);
  } finally {
    progress?.stop();
  }
}

async function withHead(source: AsyncIterable<Buffer>) {
  const pieces = source[Symbol.asyncIterator]();
  let first = Buffer.alloc(0);
  while (first.length < HEAD) {
    const { done, value } = await pieces.next();
    if (done) break;
    first = Buffer.concat([first, value]);
  }
  async function* all() {
    yield first;
    yield* { [Symbol.asyncIterator]: () => pieces };
  }
  return { head: first.subarray(0, HEAD), all: all() };
}

async function wholeText(all: AsyncIterable<Buffer>, name: string): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of all) {
    length += piece.length;
    if (length > MAX_TEXT * MIB)
      throw unusable(
        `${name} is larger than ${MAX_TEXT} MiB; only logs and HAR files may be. Say --from log or --from har if it is one.`,
      );
    pieces.push(piece);
  }
  return Buffer.concat(pieces)
    .toString()
    .replace(/^\ufeff/, '');
}

/** Commands and addresses are given to be migrated, so input without a call is a mistake. */
function readText({ collector }: Reading, kind: 'curl' | 'url', text: string, name: string): void {
  const leftOut: string[] = [];
  if (kind === 'curl') {
    const { calls, commands, fromFiles } = readCurl(text);
    if (commands === 0) throw unusable(`${name} has no curl command.`);
    for (const call of calls) collector.add(fromFiles.length > 0 ? { ...call, incomplete: true } : call);
    if (fromFiles.length > 0) leftOut.push('what the command takes from files is not read');
  } else {
    for (const line of text.split('\n')) {
      const call = readUrl(line);
      if (call) collector.add(call);
    }
  }
  if (collector.calls === 0) throw unusable(`${name} calls no route of v1: the path has no /v1/ in it.`);
  collector.addInput({ name, kind, leftOut });
}

/** Folders with programs of others, or without programs. */
const SKIPPED = ['node_modules', '.git', '.hg', '.svn', 'bower_components', '__pycache__', '.venv', 'venv'];
/** A larger file is not a program written by hand. In MiB. */
const MAX_FILE = 2;
const MAX_TOLD = 20;

/** Reads the programs below a folder. Symbolic links are not followed: they could lead out of it, or in a circle. */
async function readTree({ collector, interrupted }: Reading, folder: string, given: string): Promise<void> {
  const unread: string[] = [];
  let files = 0;
  let huge = 0;

  const unreadable = (name: string) => (thrown: unknown) => {
    if (systemCode(thrown) === undefined) throw thrown;
    unread.push(`${name} can't be read`);
    return undefined;
  };

  const readProgram = async (path: string, name: string, language: LanguageName) => {
    const found = await lstat(path).catch(unreadable(name));
    if (!found) return;
    if (found.size > MAX_FILE * MIB) {
      huge += 1;
      return;
    }
    const bytes = await readFile(path).catch(unreadable(name));
    if (!bytes || bytes.subarray(0, 8192).includes(0)) return;
    files += 1;
    const text = bytes.toString();
    try {
      const calls = mayCallV1(text) ? findCalls(text, await loadLanguage(language)) : [];
      for (const call of calls) collector.add(call, name);
    } catch (thrown) {
      if (!(thrown instanceof UnreadableInput)) throw thrown;
      unread.push(`${name} ${thrown.message} and left out`);
    }
  };

  const readFolder = async (path: string, name: string): Promise<void> => {
    interrupted.throwIfAborted();
    const entries = (await readdir(path, { withFileTypes: true }).catch(unreadable(name))) ?? [];
    entries.sort((one, other) => (one.name < other.name ? -1 : 1));
    for (const entry of entries) {
      const language = entry.isFile() ? languageOfFile(entry.name) : undefined;
      if (language) await readProgram(join(path, entry.name), join(name, entry.name), language);
    }
    for (const entry of entries)
      if (entry.isDirectory() && !SKIPPED.includes(entry.name))
        await readFolder(join(path, entry.name), join(name, entry.name));
  };

  await readFolder(folder, given);
  if (files + huge + unread.length === 0)
    throw unusable(`${given} has no program in JavaScript, TypeScript, Python or PHP.`);
  const leftOut = [
    ...(huge > 0 ? [`${huge} larger than ${MAX_FILE} MiB left out`] : []),
    ...unread.slice(0, MAX_TOLD),
    ...(unread.length > MAX_TOLD ? [`${unread.length - MAX_TOLD} more can't be read`] : []),
  ];
  collector.addInput({ name: given, kind: `source, ${count(files, 'file')}`, leftOut });
}

const EXTENSIONS: readonly (readonly [LanguageName, RegExp])[] = [
  ['javascript', /\.(?:[cm]?[jt]s|[jt]sx|vue)$/i],
  ['python', /\.pyw?$/i],
  ['php', /\.(?:php\d?|phtml|inc)$/i],
];

export function languageOfFile(name: string): LanguageName | undefined {
  return EXTENSIONS.find(([, extension]) => extension.test(name))?.[0];
}

export function languageOfText(text: string): LanguageName {
  if (/<\?(?:php|=)/i.test(text)) return 'php';
  if (/^#!.*\bpython/.test(text) || /^(?:from \w[\w.]* import|import \w[\w.]*\s*$|def \w+\()/m.test(text)) {
    return 'python';
  }
  return 'javascript';
}

async function loadLanguage(name: LanguageName): Promise<Language> {
  const { JAVASCRIPT, PYTHON, PHP } = await import('../read-calls/languages');
  return { javascript: JAVASCRIPT, python: PYTHON, php: PHP }[name];
}

export function kindOfWord(word: string): 'curl' | 'url' | undefined {
  if (/^\s*(?:\$\s*)?curl\s/.test(word)) return 'curl';
  // Also as people copy an address: without its scheme.
  return /^\s*(?:https?:\/\/|\/?v1\/|(?:[\w-]+\.)*[\w-]+(?::\d+)?\/v1\/)/i.test(word) ? 'url' : undefined;
}

/** Also as root, and for its answer: `id=$(curl …)`. */
const CURL_LINE = /^[ \t\ufeff]*(?:\$[ \t]+)?(?:\w+=)?"?(?:(?:\$\(|`)[ \t]*)?(?:sudo[ \t]+)?curl\s/m;

export function kindOfText(head: string): Kind {
  // Lines of JSON logs may have a field of this name, too.
  const isHar = /"log"\s*:\s*\{\s*"(?:version|creator|browser|pages|entries|comment)"/;
  if (/^\s*\{/.test(head) && isHar.test(head)) return 'har';
  if (/^#!.*sh\b[\s\S]*\bcurl\s/.test(head) || CURL_LINE.test(head)) return 'curl';
  if (/^\s*(?:https?:\/\/|\/v1\/)\S+\s*$/m.test(head.split('\n', 1)[0] ?? '')) return 'url';
  const isProgram =
    /<\?php|^#!.*\b(?:python|node|php)|^(?:import|from|const|let|var|function|def|class|export) /m;
  return !/^\s*\{/.test(head) && isProgram.test(head) ? 'source' : 'log';
}
