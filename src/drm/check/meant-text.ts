import { KNOWN_LINES } from '../key-file';
import type { Report } from './report';

const WITH_EQUALS = /^([^\S\r\n]*)([a-z0-9-]{1,100})[^\S\r\n]*=[^\S\r\n]*/;
/** How text in UTF-16 looks when it is read as UTF-8: a zero byte beside every letter. */
const UTF_16 = /^(?:\ufffd{1,2}|\ufeff)?(?:(?:[^\0]\0){4}|(?:\0[^\0]){4})/;

/** A key file's text as it was meant, where it is UTF-16 or has `=` for `: `; each is one fault, and not one a line. */
export function readMeantText(report: Report, text: string): string {
  const isUtf16 = UTF_16.test(text);
  if (isUtf16) report.error('utf_16', 'The file', 'is UTF-16; save it as UTF-8');
  return withColons(report, isUtf16 ? withoutZeros(text) : text);
}

/** The letters of a text in UTF-16 that was read as UTF-8; what is no ASCII in it is lost. */
export function withoutZeros(text: string): string {
  return UTF_16.test(text) ? text.replaceAll('\0', '').replaceAll('\ufffd', '') : text;
}

/** Whether a line is a key file's but for its `=`. */
export function hasEquals(line: string): boolean {
  return KNOWN_LINES.has(WITH_EQUALS.exec(line)?.[2] ?? '');
}

function withColons(report: Report, text: string): string {
  if (!mayHaveEquals(text)) return text;
  const numbers: number[] = [];
  const lines = text.split(/(\r\n|\r|\n)/).map((line, index) => {
    if (index % 2 === 1 || !hasEquals(line)) return line;
    numbers.push(index / 2 + 1);
    return line.replace(WITH_EQUALS, '$1$2: ');
  });
  const [first, last] = [numbers[0], numbers.at(-1)];
  if (first === undefined) return text;
  const where =
    first === last ? `Line ${first} has` : `${numbers.length} lines, from ${first} to ${last}, have`;
  const description = `${where} = where ": " belongs between name and value; write name: value.`;
  report.fault({ severity: 'error', code: 'equals_sign', description });
  return lines.join('');
}

/** Whether an equals sign stands before the first colon of a line; a pattern would take as long as the rest of a check. */
function mayHaveEquals(text: string): boolean {
  if (text.includes('\r')) return true;
  for (let at = text.indexOf('='); at >= 0; ) {
    const colon = text.indexOf(':', text.lastIndexOf('\n', at) + 1);
    if (colon < 0 || colon > at) return true;
    const end = text.indexOf('\n', at);
    at = end < 0 ? -1 : text.indexOf('=', end);
  }
  return false;
}
