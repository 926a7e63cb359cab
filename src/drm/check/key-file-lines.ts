import type { Subject } from '../finding';
import { FOREIGN_LINE, KNOWN_LINES, parseKeyFile } from '../key-file';
import { nearestName, type UnknownName, unknownName } from '../nearest';
import { type Report, subjectOf } from './report';

export type Lines = ReadonlyMap<string, string>;

export const THE_FILE: Subject = { called: 'The file' };

export function readLines(report: Report, text: string): Lines {
  const meant = readMeantText(report, text);
  checkText(report, meant);
  const { lines, unreadable } = parseKeyFile(meant);
  for (const number of unreadable) {
    report.error('unreadable_line', { called: `Line ${number}` }, UNREADABLE);
  }
  const values = new Map<string, string>();
  for (const { name, value } of lines) {
    if (!KNOWN_LINES.has(name)) {
      if (!report.isFull) checkUnknown(report, name);
      continue;
    }
    const former = values.get(name);
    if (former === undefined) values.set(name, value);
    else if (former === value) report.warning('duplicate_line', name, 'appears twice; remove one');
    else report.error('duplicate_line', name, 'appears twice with different values; remove the wrong one');
    if (value === '') report.error('empty', name, 'has no value');
  }
  return values;
}

export const UNREADABLE = 'is not "name: value"; correct it, or start it with # to make it a comment';

/** Whether a text is a key file or a failed attempt at one; it may have only comments. */
export function looksLikeKeyFile(text: string): boolean {
  if (/^\ufeff?\s*#(?!EXT)/.test(text) && !/^[^\S\r\n]*[^#\s]/m.test(text)) return true;
  return withoutZeros(text.slice(0, 100_000))
    .split(/[\r\n]+/, 300)
    .some((line) => {
      if (hasEquals(line)) return true;
      const name = /^\s*([A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)+)\s*:/.exec(line.slice(0, 200))?.[1];
      return (
        name !== undefined &&
        (/streaming|cenc|aes128|keyserver/i.test(name) || nearestName(name, KNOWN_LINES) !== undefined)
      );
    });
}

function checkText(report: Report, text: string): void {
  if (text.startsWith('\ufeff'))
    report.warning('byte_order_mark', THE_FILE, 'starts with a byte order mark; save it without one');
  if (text.includes('\r'))
    report.warning('carriage_return', THE_FILE, 'has Windows line ends; save it with line feeds (LF)');
  // The blank after the colon of a line without a value is not reported separately.
  const blank = text.search(/(?<![:\s])[^\S\r\n]+(?:\r|\n|$)/);
  if (blank >= 0) {
    const number = text.slice(0, blank).split(/\r\n|\r|\n/).length;
    const sentence = 'ends with white space; remove it, a packager may treat it as part of the value';
    report.warning('white_space', { called: `Line ${number}` }, sentence);
  }
  if (text.includes('\ufffd') || text.includes('\0'))
    report.error('not_utf8', THE_FILE, 'holds bytes that are not UTF-8 text; save it as UTF-8');
}

export function unknownLine(name: string): UnknownName {
  return unknownName(name, FOREIGN_LINE.test(name) ? [] : KNOWN_LINES);
}

function checkUnknown(report: Report, name: string): void {
  const { shown, near } = unknownLine(name);
  const code = 'unknown_line';
  // Packagers know more lines than are listed here; the line that a misspelt one was meant to be is reported as missing.
  const sentence = near
    ? `is an unknown line, and was not checked; did you mean ${near}?`
    : 'is not a line of DASH, CMAF or FairPlay, and was not checked';
  if (shown !== undefined) report.warning(code, subjectOf(shown), sentence);
  else report.error(code, { called: 'A line' }, 'has an invalid name; check whether a value is in its place');
}

const WITH_EQUALS = /^([^\S\r\n]*)([a-z0-9-]{1,100})[^\S\r\n]*=[^\S\r\n]*/;
/** How text in UTF-16 looks when it is read as UTF-8: a zero byte at every letter. */
const UTF_16 = /^(?:\ufffd{1,2}|\ufeff)?(?:(?:[^\0]\0){4}|(?:\0[^\0]){4})/;

/** A key file's intended text if it is UTF-16 or has `=` instead of `: `; each is one fault, not one for each line. */
export function readMeantText(report: Report, text: string): string {
  const isUtf16 = UTF_16.test(text);
  if (isUtf16) report.error('utf_16', THE_FILE, 'is UTF-16; save it as UTF-8');
  return withColons(report, isUtf16 ? withoutZeros(text) : text);
}

function withoutZeros(text: string): string {
  return UTF_16.test(text) ? text.replaceAll('\0', '').replaceAll('\ufffd', '') : text;
}

function hasEquals(line: string): boolean {
  return KNOWN_LINES.has(WITH_EQUALS.exec(line)?.[2] ?? '');
}

function withColons(report: Report, text: string): string {
  const numbers: number[] = [];
  const lines = text.split(/(\r\n|\r|\n)/).map((line, index) => {
    if (index % 2 === 1 || !hasEquals(line)) return line;
    numbers.push(index / 2 + 1);
    return line.replace(WITH_EQUALS, '$1$2: ');
  });
  const [first, last] = [numbers[0], numbers.at(-1)];
  if (first === undefined) return text;
  const isOne = first === last;
  const called = isOne ? `Line ${first}` : `${numbers.length} lines, from ${first} to ${last},`;
  const sentence = `${isOne ? 'has' : 'have'} = instead of ": " between name and value; write name: value`;
  report.error('equals_sign', { called }, sentence);
  return lines.join('');
}
