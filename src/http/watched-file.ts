import { hash } from 'node:crypto';
import { readFileSync, type Stats, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { ConfigError } from './config';
import { describeThrown, systemCode, textProperty } from './errors';
import type { Log, LogFields } from './log';

export interface FileWatchOptions {
  readonly log: Log;
  readonly clock: () => Date;
  /** Between two looks at the files; a second by default. */
  readonly intervalMs?: number | undefined;
}

export interface WatchedFiles<Value = unknown> {
  /** Returns the value that `take` made of the latest usable contents. */
  current(): Value;
  close(): void;
}

const MAX_BYTES = 4 * 1024 * 1024;

export type NamedFile = readonly [variable: string, path: string];

interface WatchedFilesOptions<Value> extends Pick<FileWatchOptions, 'log' | 'intervalMs'> {
  /** Takes the contents in the order of the files; none without files. Its error says why they can't be used. */
  readonly take: (contents: readonly Buffer[]) => Value;
  /** Logged, with `fields`, when files can't be used while the service runs. */
  readonly message: string;
  readonly fields?: LogFields;
}

/** The variables of files that are no secret. */
const PUBLIC = /(?:CERT|CA)$/;

/**
 * Reads files that belong together, and again at each change. They are compared, not watched by events: those
 * miss a mounted secret's swapped links, network folders and editors that rename. Later faults are logged
 * when two looks find the same, and the former files stay in force.
 * @throws ConfigError when they can't be used at the start. Faults begin with the variables of their files.
 */
export function watchFiles<Value>(
  named: readonly NamedFile[],
  options: WatchedFilesOptions<Value>,
): WatchedFiles<Value> {
  const { log, intervalMs = 1000, message, fields } = options;
  const paths = named.map(([, path]) => path);
  const faultsOf = (cause: unknown) => {
    const faults = cause instanceof ConfigError ? cause.faults : [whyUnreadable(cause)];
    return faults.map((fault) => {
      const about = named.filter(([, path]) => fault.startsWith(`${path}:`) || fault.startsWith(`${path} `));
      const variables = (about.length === 0 ? named : about).map(([variable]) => variable);
      return `${variables.join(', ')}: ${fault}`;
    });
  };
  const take = (contents: readonly Buffer[]) => {
    const made = options.take(contents);
    for (const [variable, file] of named)
      if (!PUBLIC.test(variable) && isOpenToAll(file))
        log.warn('every user of this machine can read this secret', { variable, file });
    return made;
  };
  let taken: readonly Buffer[];
  let current: Value;
  try {
    taken = paths.map(readNow);
    current = take(taken);
  } catch (thrown) {
    throw new ConfigError(faultsOf(thrown));
  }
  /** The result of the last look, and its fault until that is reported. */
  let seen = identityOf(taken);
  let fault: { readonly cause: unknown } | undefined;
  let isReported = false;

  const follow = (contents: readonly Buffer[]) => {
    // A file that was away for a moment and is the same again is no change.
    if (!isReported && identityOf(contents) === identityOf(taken)) return;
    current = take(contents);
    taken = contents;
    isReported = false;
  };

  const poll = async () => {
    const found = await Promise.all(paths.map(readSoon)).catch((cause: unknown) => ({ cause }));
    if (closed) return;
    const identity =
      'cause' in found
        ? JSON.stringify({ ...describeThrown(found.cause), stack: undefined })
        : identityOf(found);
    if (identity !== seen) {
      seen = identity;
      fault = undefined;
      try {
        if ('cause' in found) throw found.cause;
        follow(found);
      } catch (cause) {
        fault = { cause };
      }
    } else if (fault) {
      // Unchanged since the last look: the file is not being written.
      isReported = true;
      log.error(message, { ...fields, faults: faultsOf(fault.cause) });
      fault = undefined;
    }
    if (!closed) timer = setTimeout(poll, intervalMs).unref();
  };
  let closed = false;
  let timer = named.length === 0 ? undefined : setTimeout(poll, intervalMs).unref();
  return {
    current: () => current,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function identityOf(contents: readonly Buffer[]): string {
  return contents.map((bytes) => hash('sha256', bytes)).join();
}

function readNow(path: string): Buffer {
  refuseOdd(path, statSync(path));
  return readFileSync(path);
}

async function readSoon(path: string): Promise<Buffer> {
  refuseOdd(path, await stat(path));
  return readFile(path);
}

/** Reading a pipe or a device would never end. */
function refuseOdd(path: string, found: Stats): void {
  if (!found.isFile()) throw new Error(`${path} is not a file`);
  if (found.size > MAX_BYTES) throw new Error(`${path} has more than ${MAX_BYTES / 1024 / 1024} MiB`);
}

export function whyUnreadable(thrown: unknown): string {
  const named = textProperty(thrown, 'path');
  const path = named === undefined ? '' : `${named}: `;
  switch (systemCode(thrown)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `${path}there is no such file`;
    case 'EACCES':
    case 'EPERM':
      return `${path}this user may not read the file`;
    case undefined:
      return thrown instanceof Error ? thrown.message : 'the file cannot be read';
    default:
      return `${path}the file cannot be read (${systemCode(thrown)})`;
  }
}

function isOpenToAll(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (found.mode & 0o004) !== 0;
}
