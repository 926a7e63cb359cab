import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { basename } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { systemCode } from '../../http/errors';
import { HIDDEN, maskerOf } from '../../http/secret';

export interface ProgramEnd {
  /** Undefined when a signal ended it, or it could not be started. */
  readonly code: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  /** Why it could not be started (`ENOENT`: there is no such program). */
  readonly notStarted: string | undefined;
  /** Its last error text, in one line without a full stop, secrets and paths. */
  readonly lastWords: string;
}

interface RunProgram {
  readonly cwd: string;
  /** All its variables: a child must not inherit an API key. */
  readonly env: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  /** Shortened to the file name in its error text. */
  readonly paths?: readonly string[];
  /** Inherited as descriptor 3. */
  readonly descriptor?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** In milliseconds; like `signal`, it kills the program. */
  readonly timeout?: number;
}

export type RunningProgram = ReturnType<typeof runProgram>;

const KEPT_CHARACTERS = 4096;
const KEPT_LINES = 3;

/** Starts a program with pipes for its input and output. `ended` says if it can't be started. */
export function runProgram(path: string, args: readonly string[], options: RunProgram) {
  const { cwd, env, descriptor, signal, timeout } = options;
  const inherited = descriptor === undefined ? [] : [descriptor];
  const child = spawn(path, args, {
    ...{ cwd, env, signal, timeout, killSignal: 'SIGKILL' },
    stdio: ['pipe', 'pipe', 'pipe', ...inherited],
  });
  const { stdin, stdout, stderr } = child as ChildProcessByStdio<Writable, Readable, Readable>;
  let words = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-KEPT_CHARACTERS);
  });
  // A reader that has gone is seen when the program ends.
  for (const stream of [stdin, stdout, stderr]) stream.on('error', () => undefined);
  let over = false;
  const ended = new Promise<ProgramEnd>((resolve) => {
    const end = (code: number | null, signal: NodeJS.Signals | null, notStarted?: string) => {
      over = true;
      const lastWords = lastWordsOf(words, options);
      resolve({ code: code ?? undefined, signal: signal ?? undefined, notStarted, lastWords });
    };
    // One that a signal ends has this event, too.
    child.on('error', (thrown) => child.pid ?? end(null, null, systemCode(thrown) ?? 'ERROR'));
    child.once('close', end);
  });
  return {
    stdin,
    stdout,
    /** Never rejects. */
    ended,
    kill: () => void (over || child.kill('SIGKILL')),
  };
}

export function endText({ code, signal, notStarted, lastWords }: ProgramEnd): string {
  return lastWords || (notStarted ?? signal ?? `exit code ${code}`);
}

function lastWordsOf(words: string, { secrets = [], paths = [] }: RunProgram): string {
  const lines = words
    .split(/[\r\n]+/)
    // shaka-packager prints these at each start; a FIFO has no size.
    .filter((line) => !/^[IW]\d{4} |Last message repeated|Cannot get file size/.test(line))
    // The prefix of each line: level, date, process, source file.
    .map((line) => line.replace(/^[EF]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] /, '').trim())
    .filter((line) => line !== '');
  const clean = maskerOf(secrets)(lines.slice(-KEPT_LINES).join('; '));
  // Keys and IVs have 32 digits.
  return paths
    .reduce((text, path) => text.replaceAll(path, basename(path)), clean)
    .replaceAll(/[0-9a-f]{32,}/gi, HIDDEN)
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .replace(/\.$/, '');
}

/** The secret parts of an RTMP address: everything after the application, which ends with the stream key. */
export function secretsOfAddress(address: string): readonly string[] {
  // A stream key may have a #, which begins nothing else for ffmpeg.
  const { pathname, search, username, password } = new URL(address.replaceAll('#', '%23'));
  const parts = pathname.split('/').filter((part) => part !== '');
  const key = parts.length > 1 ? parts.slice(1) : parts;
  return [key.join('/'), ...key, search, search.slice(1), username, password];
}
