import { lstat, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemCode } from '../../../http/errors';
import { count } from '../../../terminal/text';
import { readCurl } from '../read-calls/curl';
import { readUrl, UnreadableInput } from '../read-calls/found-call';
import {
  type Kind,
  kindOfText,
  kindOfWord,
  languageOfFile,
  languageOfText,
  loadLanguage,
} from '../read-calls/kind';
import { LogReader } from '../read-calls/log';
import { findCalls } from '../read-calls/source';
import type { Collector } from '../report/collect';
import { Failure } from './failure';
import type { Progress } from './progress';
import { fileStream, openPieces, type Pieces, wholeText } from './read-stream';
import { readTree } from './source-tree';

/** What reading works with. */
interface Reading {
  readonly collector: Collector;
  readonly cwd: string;
  /** What the user says the inputs are. */
  readonly from: Kind | undefined;
  readonly interrupted: AbortSignal;
  /** Told how many bytes of how many have been read. */
  readonly progress: (name: string, total: number | undefined) => Progress;
}

/** Reads an input of the command line: a command, an address, a file or a folder. @throws Failure */
export async function readInput(reading: Reading, word: string): Promise<void> {
  // An empty path would be the folder that the program was started in.
  if (word.trim() === '') throw new Failure('unusable_input', 'An input is empty; name a file or a folder.');
  const path = resolve(reading.cwd, word);
  // A command or an address is no name of a file that is there.
  const found = await stat(path).catch((thrown: unknown) => {
    if (systemCode(thrown) === undefined) throw thrown;
    return undefined;
  });
  if (found?.isDirectory()) {
    if (reading.from !== undefined && reading.from !== 'source') {
      throw new Failure('unusable_input', `${word} is a folder, which is read as --from source only.`);
    }
    const { collector } = reading;
    const before = collector.calls;
    const add = collector.add.bind(collector);
    const { files, leftOut } = await readTree(path, word, add, reading.interrupted);
    const summary = { name: word, kind: `source, ${count(files, 'file')}`, calls: collector.calls - before };
    collector.addInput({ ...summary, leftOut });
    return;
  }
  if (found) {
    const total = found.isFile() ? found.size : undefined;
    await readPieces(reading, { name: word, source: fileStream(path), total });
    return;
  }
  const kind = reading.from ?? kindOfWord(word);
  if (kind !== 'curl' && kind !== 'url') throw new Failure('unusable_input', await missing(path, word));
  const name = 'The argument';
  try {
    readText(reading, kind, word, name);
  } catch (thrown) {
    throw named(name, thrown);
  }
}

/** What can't be read is told with the name of the input. */
function named(name: string, thrown: unknown): unknown {
  if (!(thrown instanceof UnreadableInput)) return thrown;
  return new Failure('unusable_input', `${name} ${thrown.message}.`);
}

async function missing(path: string, word: string): Promise<string> {
  const isLink = await lstat(path).then(
    (entry) => entry.isSymbolicLink(),
    () => false,
  );
  // What is no name of a file may hold a secret.
  const name = word.length > 200 || /[?=\s]/.test(word) ? 'The argument' : word;
  if (isLink) return `${name} is a link that leads nowhere.`;
  return `${name} is no file or folder that is there, and no curl command or address with /v1/.`;
}

interface Input {
  readonly name: string;
  readonly source: AsyncIterable<Buffer>;
  /** Bytes, when it is known how many there are. */
  readonly total: number | undefined;
}

/** Reads a file or standard input. @throws Failure */
export async function readPieces(reading: Reading, { name, source, total }: Input): Promise<void> {
  const progress = reading.progress(name, total);
  try {
    const pieces = await openPieces(counted(source, progress, reading.interrupted), name);
    const kind = reading.from ?? (languageOfFile(name) ? 'source' : kindOfText(pieces.head.toString()));
    if (kind === 'log') await readLog(reading, name, pieces);
    else if (kind === 'har') await readHar(reading, name, pieces);
    else if (kind === 'source') await readSource(reading, name, pieces);
    else readText(reading, kind, await wholeText(pieces, name), name);
  } catch (thrown) {
    throw named(name, thrown);
  } finally {
    progress.stop();
  }
}

async function* counted(source: AsyncIterable<Buffer>, progress: Progress, interrupted: AbortSignal) {
  for await (const piece of source) {
    interrupted.throwIfAborted();
    progress.advance(piece.length);
    yield piece;
  }
}

async function readLog({ collector }: Reading, name: string, { all }: Pieces): Promise<void> {
  const before = collector.calls;
  const reader = new LogReader(
    (call, method) =>
      // Of a form nothing is in a log.
      collector.form(method === 'POST' ? { ...call, incomplete: true } : call),
    (group) => collector.count(group),
  );
  for await (const piece of all) reader.write(piece);
  reader.end();
  const { read, tooLong } = reader.lines;
  const leftOut = tooLong > 0 ? [`${count(tooLong, 'line')} longer than 1 MiB left out`] : [];
  collector.addInput({ name, kind: 'log', calls: collector.calls - before, lines: read, leftOut });
}

async function readHar({ collector }: Reading, name: string, { all }: Pieces): Promise<void> {
  const { callsOfHar } = await import('../read-calls/har');
  const before = collector.calls;
  for await (const call of callsOfHar(all)) collector.addForm(call);
  collector.addInput({ name, kind: 'har', calls: collector.calls - before, leftOut: [] });
}

async function readSource({ collector }: Reading, name: string, pieces: Pieces): Promise<void> {
  const text = await wholeText(pieces, name);
  const before = collector.calls;
  const language = languageOfFile(name) ?? languageOfText(text);
  for (const call of findCalls(text, await loadLanguage(language))) collector.add(call, name);
  collector.addInput({ name, kind: `source, ${language}`, calls: collector.calls - before, leftOut: [] });
}

/** Commands and addresses are given to be migrated: that there is no call among them is a mistake. */
function readText({ collector }: Reading, kind: 'curl' | 'url', text: string, name: string): void {
  const before = collector.calls;
  const leftOut: string[] = [];
  if (kind === 'curl') {
    const { calls, commands, fromFiles } = readCurl(text);
    if (commands === 0) throw new Failure('unusable_input', `${name} has no curl command.`);
    for (const call of calls) collector.add(fromFiles.length > 0 ? { ...call, incomplete: true } : call);
    if (fromFiles.length > 0) leftOut.push('what the command takes from files is not read');
  } else {
    for (const line of text.split('\n')) {
      const call = line.trim() === '' ? undefined : readUrl(line);
      if (call) collector.add(call);
    }
  }
  if (collector.calls === before) {
    throw new Failure('unusable_input', `${name} calls no route of v1: the path has no /v1/ in it.`);
  }
  collector.addInput({ name, kind, calls: collector.calls - before, leftOut });
}
