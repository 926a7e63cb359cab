import { readFileSync, type Stats, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { describeThrown, systemCode } from './errors';

interface FileWatch {
  /** How often the files are looked at. A fault must stand for two looks before it is told. */
  readonly intervalMs?: number;
  /** Takes the files' contents, in the order of the paths. What it throws says why they can't be used. */
  readonly take: (contents: readonly Buffer[]) => void;
  /** Hears once why a change was not taken; what was taken before stays in force. */
  readonly onFault: (cause: unknown) => void;
}

export interface WatchedFiles {
  close(): void;
}

const MAX_BYTES = 4 * 1024 * 1024;

type Look = { readonly contents: readonly Buffer[] } | { readonly cause: unknown };

/**
 * Reads files that belong together, and again whenever what their paths lead to changes. They are read and compared,
 * not watched by events: those miss a mounted secret's swapped links, network folders and editors that rename.
 * @throws what the first reading, or `take` of it, throws.
 */
export function watchFiles(paths: readonly string[], watch: FileWatch): WatchedFiles {
  const { intervalMs = 1000, take, onFault } = watch;
  let taken: readonly Buffer[] = paths.map(readNow);
  take(taken);
  let seen: Look = { contents: taken };
  let untold: { readonly cause: unknown } | undefined;
  let told = false;

  const weigh = (look: Look): { readonly cause: unknown } | undefined => {
    if ('cause' in look) return look;
    // A file that was away for a moment and came back as it was is no change.
    if (!told && areEqual(look.contents, taken)) return undefined;
    try {
      take(look.contents);
      taken = look.contents;
      told = false;
      return undefined;
    } catch (cause) {
      return { cause };
    }
  };

  const follow = (look: Look) => {
    if (!isSame(look, seen)) {
      seen = look;
      untold = weigh(look);
    } else if (untold) {
      // Still as bad as at the last look: nobody is in the middle of writing it.
      told = true;
      onFault(untold.cause);
      untold = undefined;
    }
  };

  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  const lookLater = () => {
    timer = setTimeout(async () => {
      const look = await lookAt(paths);
      if (!closed) follow(look);
      if (!closed) lookLater();
    }, intervalMs).unref();
  };
  lookLater();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

async function lookAt(paths: readonly string[]): Promise<Look> {
  try {
    return { contents: await Promise.all(paths.map(readSoon)) };
  } catch (cause) {
    return { cause };
  }
}

function isSame(one: Look, other: Look): boolean {
  if ('contents' in one) return 'contents' in other && areEqual(one.contents, other.contents);
  return 'cause' in other && textOf(one.cause) === textOf(other.cause);
}

function areEqual(some: readonly Buffer[], others: readonly Buffer[]): boolean {
  return some.every((bytes, index) => others[index]?.equals(bytes));
}

function textOf(cause: unknown): string {
  const { stack: _stack, ...rest } = describeThrown(cause);
  return JSON.stringify(rest);
}

function readNow(path: string): Buffer {
  refuseOdd(path, statSync(path));
  return readFileSync(path);
}

async function readSoon(path: string): Promise<Buffer> {
  refuseOdd(path, await stat(path));
  return readFile(path);
}

/** A pipe would be waited for without end, and a device read without end. */
function refuseOdd(path: string, found: Stats): void {
  if (!found.isFile()) throw new Error(`${path} is not a file`);
  if (found.size > MAX_BYTES) throw new Error(`${path} has more than ${MAX_BYTES / 1024 / 1024} MiB`);
}

/** Why a file could not be read, as a sentence. */
export function whyUnreadable(thrown: unknown): string {
  const path = typeof thrown === 'object' && thrown !== null && 'path' in thrown ? `${thrown.path}: ` : '';
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
