import { KNOWN_LINES, parseKeyFile } from '../key-file';
import { FOREIGN_LINE } from './key-file-wire';
import { hasEquals, readMeantText, withoutZeros } from './meant-text';
import { nearestName, shownName } from './nearest-name';
import type { Report } from './report';

export type Lines = ReadonlyMap<string, string>;

/** Reads a key file's lines by their names, and says what is wrong with the lines as such. */
export function readLines(report: Report, text: string): Lines {
  const meant = readMeantText(report, text);
  checkText(report, meant);
  const { lines, unreadable } = parseKeyFile(meant);
  for (const number of unreadable) {
    report.error(
      'unreadable_line',
      `Line ${number}`,
      'is no "name: value"; mend it, or start it with # to make it a comment',
    );
  }
  const values = new Map<string, string>();
  for (const { name, value } of lines) {
    if (!KNOWN_LINES.has(name)) {
      if (!report.isFull) checkUnknown(report, name);
      continue;
    }
    const former = values.get(name);
    if (former === undefined) values.set(name, value);
    else if (former === value) report.warning('duplicate_line', name, 'stands there twice; take one away');
    else
      report.error(
        'duplicate_line',
        name,
        'stands there twice with different values; take the wrong one away',
      );
    if (value === '') report.error('empty', name, 'has no value');
  }
  return values;
}

/** Whether a text is that of a key file, or was meant to be one: it may have comments alone. */
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
  if (text.startsWith('\ufeff')) {
    const sentence =
      'starts with a byte order mark, which a packager may take for part of the first name; save it without';
    report.warning('byte_order_mark', 'The file', sentence);
  }
  if (text.includes('\r')) {
    report.warning(
      'carriage_return',
      'The file',
      'has line ends of Windows (CR LF); save it with line feeds alone',
    );
  }
  // The blank behind the colon of a line without a value is no fault of its own.
  const blank = text.search(/(?<![:\s])[^\S\r\n]+(?:\r|\n|$)/);
  if (blank >= 0) {
    const number = text.slice(0, blank).split(/\r\n|\r|\n/).length;
    report.warning(
      'white_space',
      `Line ${number}`,
      'ends with white space; take it off, a packager may take it for part of the value',
    );
  }
  if (text.includes('\ufffd') || text.includes('\0')) {
    report.error('not_utf8', 'The file', 'holds bytes that are not UTF-8 text; save it as UTF-8');
  }
}

function checkUnknown(report: Report, name: string): void {
  const near = FOREIGN_LINE.test(name) ? undefined : nearestName(name, KNOWN_LINES);
  const shown = shownName(name, near);
  if (shown === undefined) {
    report.error(
      'unknown_line',
      'A line',
      'has a name that can be none; was a value put where a name belongs?',
    );
    return;
  }
  if (near)
    report.error('unknown_line', shown, `is not a line that the packager knows; did you mean ${near}?`);
  else report.warning('unknown_line', shown, 'is not a line of DASH, CMAF or FairPlay, and was not checked');
}
