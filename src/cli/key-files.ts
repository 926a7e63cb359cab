import { isUtf8 } from 'node:buffer';
import type { LineChange } from '../api/answers';
import { decodeBase64Block, formatUuid } from '../drm/bytes';
import { importKeyFile, type UnknownLine } from '../drm/import-key-file';
import { type KeyFileLine, KNOWN_LINES, maskLines, parseKeyFile } from '../drm/key-file';
import type { Problem } from '../http/errors';
import type { Output } from '../terminal/output';
import { shown, shownLines } from '../terminal/text';
import type { CliContext } from './context';
import type { FileProblem } from './yaml-fields';

/** The lines of a key file as they may be shown, and the numbers (from 1) of those that are no `name: value`. */
export function showKeyFile(bytes: Buffer, reveal: boolean) {
  const { lines, unreadable } = parseKeyFile(textOf(bytes));
  return { lines: reveal ? lines : maskLines(lines), unreadable };
}

export function textOf(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
}

export function renderLines(lines: readonly KeyFileLine[]): string {
  return lines.map(({ name, value }) => `${name}: ${value}\n`).join('');
}

/** Writes a key file byte for byte; at a terminal without control characters. */
export function writeRevealed({ out, stdout }: CliContext, bytes: Buffer): void {
  if (!stdout.isTTY) {
    out.write(bytes);
    return;
  }
  const text = textOf(bytes).replaceAll('\r\n', '\n');
  const safe = shownLines(text);
  out.write(safe);
  if (safe !== text) {
    out.warn('control characters are not shown; send the output to a file to have the bytes as they are');
  }
}

/** The changes to the lines of a key file: `+` for new lines, `-` for removed ones, two spaces before the others. */
export function renderChanges(out: Output, lines: readonly LineChange[], indent = ''): string {
  return lines
    .flatMap(({ name, value, change, former }) => {
      const line = (mark: string, text: string) => `${indent}${mark} ${shown(name)}: ${shown(text)}`;
      if (change === 'same') return [line(' ', value)];
      if (change === 'removed') return [out.style('red', line('-', value))];
      const added = out.style('green', line('+', value));
      return former === undefined ? [added] : [out.style('red', line('-', former)), added];
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** The change of key id that lines make; undefined when the key id stays, or there was none before. */
export function keyIdChange(lines: readonly LineChange[]) {
  const line = lines.find(({ name, change }) => change === 'changed' && name.endsWith('-cenc-key-id'));
  const uuidOf = (base64: string) => {
    const decoded = decodeBase64Block(base64);
    return decoded.ok ? formatUuid(decoded.value) : base64;
  };
  return line?.former === undefined ? undefined : { former: uuidOf(line.former), now: uuidOf(line.value) };
}

/** Lines that change with every new key, in base64 or hex. */
const FOLLOWS_KEY = /-(?:key-id|content-key|pssh-data|checksum)$|-aes128-(?:key|iv)$/;

export function renderKeyChange(
  out: Output,
  { former, now }: NonNullable<ReturnType<typeof keyIdChange>>,
  lines: readonly LineChange[],
  indent: string,
): string {
  const others = lines.filter(({ name, change }) => change !== 'same' && !FOLLOWS_KEY.test(name));
  const moved = others.filter(({ former: before }) => before !== undefined);
  const rest = others.filter(({ former: before }) => before === undefined);
  return [
    `${indent}key id ${shown(former)} → ${out.style('green', shown(now))}\n`,
    ...moved.map(
      ({ name, former: before = '', value }) =>
        `${indent}${shown(name)}: ${shown(before)} → ${out.style('green', shown(value))}\n`,
    ),
    renderChanges(out, rest, indent),
  ].join('');
}

/** Larger than any key file; nothing of a larger file is read. */
export const MAX_KEY_FILE_BYTES = 64 * 1024;

/** Whether the text of a user is a key file, and no body of a request. */
export function isKeyFileText(text: string, name: string): boolean {
  if (/^\s*\{/.test(text)) return false;
  return isKeyFileName(name) || parseKeyFile(text).lines.some((line) => KNOWN_LINES.has(line.name));
}

export function isKeyFileName(name: string): boolean {
  return /\.key$/i.test(name);
}

export function importBody(text: string, keepUnknown: boolean): Record<string, unknown> {
  return { keyfile: text, ...(keepUnknown && { keepunknown: true }) };
}

/** The problems that keep a key file from being imported, as far as its lines have them; none quotes a value. */
export function keyFileProblems(text: string, keepUnknown: boolean) {
  const imported = importKeyFile(text, keepUnknown);
  const { problems, unknown } = imported.ok ? { problems: [], unknown: [] } : imported;
  const all: FileProblem[] = [...problems, ...unknown.map(unknownProblem)];
  all.sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
  return { problems: all, hasUnknown: unknown.length > 0 };
}

function unknownProblem({ line, name, near }: UnknownLine): FileProblem {
  if (name === undefined)
    return { line, description: 'has an invalid name; check whether a value is in its place' };
  return { line, field: name, description: `is not known${near ? `; did you mean ${near}?` : ''}` };
}

export const KEEP_UNKNOWN: Problem = {
  code: 'key_file',
  description: 'Add --keep-unknown to keep unknown lines as they are, or remove them.',
};
