import { isUtf8 } from 'node:buffer';
import { isSecretLine, type KeyFileLine, MASK, parseKeyFile } from '../drm/key-file';

/** The lines of a key file as they may be shown; key material is masked, and so is what no line can be made of. */
export interface ShownKeyFile {
  readonly lines: readonly KeyFileLine[];
  /** Numbers (from 1) of the lines that are no `name: value`. */
  readonly unreadable: readonly number[];
}

export function showKeyFile(bytes: Buffer, reveal: boolean): ShownKeyFile {
  const { lines, unreadable } = parseKeyFile(textOf(bytes));
  return {
    lines: reveal
      ? lines
      : lines.map(({ name, value }) => ({ name, value: isSecretLine(name) ? MASK : value })),
    unreadable,
  };
}

/** The text of a key file, in whatever encoding it is. */
export function textOf(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
}

export function renderLines(lines: readonly KeyFileLine[]): string {
  return lines.map(({ name, value }) => `${name}: ${value}\n`).join('');
}
