import { type ImportFault, importKeyFile, type UnknownLine } from '../drm/import-key-file';
import { KNOWN_LINES, parseKeyFile } from '../drm/key-file';
import type { Problem } from '../http/errors';
import type { FileFault } from './yaml-text';

/** As the sidecar takes it. */
export const MAX_KEY_FILE_BYTES = 64 * 1024;

/** Whether what a user gives is a key file, and no body of a request. */
export function isKeyFileText(text: string, name: string): boolean {
  if (/^\s*\{/.test(text)) return false;
  return isKeyFileName(name) || parseKeyFile(text).lines.some((line) => KNOWN_LINES.has(line.name));
}

export function isKeyFileName(name: string): boolean {
  return /\.key$/i.test(name);
}

/** The request by which a sidecar takes a key file over. */
export function importBody(text: string, keepUnknown: boolean): Record<string, unknown> {
  return { keyfile: text, ...(keepUnknown && { keepunknown: true }) };
}

export interface KeyFileFaults {
  readonly faults: readonly FileFault[];
  /** Whether some of them are lines that could be kept. */
  readonly hasUnknown: boolean;
}

/** What keeps a key file from being taken over, as far as its lines tell; none quotes a value. */
export function keyFileFaults(text: string, keepUnknown: boolean): KeyFileFaults {
  const imported = importKeyFile(text, keepUnknown);
  if (imported.ok) return { faults: [], hasUnknown: false };
  const { faults, unknown } = imported;
  const all = [...faults.map(lineFault), ...unknown.map(unknownFault)];
  return {
    faults: all.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0)),
    hasUnknown: unknown.length > 0,
  };
}

function lineFault({ line, subject, sentence }: ImportFault): FileFault {
  return { line, description: subject === undefined ? sentence : `${subject} ${sentence}` };
}

function unknownFault({ line, name, near }: UnknownLine): FileFault {
  if (name === undefined)
    return { line, description: 'has a name that can be none; was a value put where a name belongs?' };
  const description = near === undefined ? 'is not known' : `is not known; did you mean ${near}?`;
  return { line, description: `${name} ${description}` };
}

/** What to do about unknown lines, told once behind the faults. */
export const KEEP_UNKNOWN: Problem = {
  code: 'key_file',
  description: 'Add --keep-unknown to keep unknown lines as they are, or take them away.',
};
