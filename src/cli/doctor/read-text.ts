import { readFile } from 'node:fs/promises';
import { type Fault, fault } from '../../drm/bytes';
import { systemCode } from '../../http/errors';

/** Why something on the disk was not read, and what to do about it. */
export interface Unread {
  readonly ok: false;
  readonly fault: Fault;
  readonly todo: string;
  readonly isAbsent: boolean;
}

/** Puts a failed call of the file system in words; throws on what is no failure of it. */
export function unread(thrown: unknown, absent = 'make it'): Unread {
  const code = systemCode(thrown);
  if (code === undefined) throw thrown;
  const isAbsent = code === 'ENOENT' || code === 'ENOTDIR';
  if (isAbsent) return { ...fault('absent', 'is not there'), todo: absent, isAbsent };
  if (isDenied(thrown)) {
    return { ...fault('denied', `may not be read by you (${code})`), todo: 'run this as root', isAbsent };
  }
  return {
    ...fault('unreadable', `can’t be read (${code})`),
    todo: 'look why, and run this again',
    isAbsent,
  };
}

/** Whether another user might be let in. */
export function isDenied(thrown: unknown): boolean {
  const code = systemCode(thrown);
  return code === 'EACCES' || code === 'EPERM';
}

/** Reads a text in UTF-8, or in UTF-16 when its first bytes say so, as an XML reader does. */
export async function readText(
  path: string,
): Promise<{ readonly ok: true; readonly value: string } | Unread> {
  try {
    return { ok: true, value: decode(await readFile(path)) };
  } catch (thrown) {
    return unread(thrown);
  }
}

function decode(bytes: Buffer): string {
  const mark = bytes.toString('hex', 0, 2);
  const encoding = mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(bytes);
}
