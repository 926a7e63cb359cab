import type { Lines } from './key-file-lines';
import { FAIRPLAY_KEY_FORMAT, HLS } from './key-file-wire';
import type { Report } from './report';

/**
 * The HLS lines as a request's FairPlay part, or undefined when they are not FairPlay's: with the method AES-128 a
 * packager encrypts with a key that anybody may fetch.
 */
export function fairplayPart(report: Report, lines: Lines): Record<string, string | undefined> | undefined {
  const get = (name: string) => lines.get(`${HLS}-${name}`);
  const [method, url, format] = [get('method'), get('url'), get('key-format')];
  const isMeant = method === 'SAMPLE-AES' || format !== undefined || /^skd:/i.test(url ?? '');
  if (!isMeant && (method === undefined || method === 'AES-128')) {
    const sentence = 'is AES-128, which hands the key to everybody who asks; FairPlay needs SAMPLE-AES';
    report.warning('not_fairplay', `${HLS}-method`, sentence);
    return undefined;
  }
  constant(report, `${HLS}-method`, method, 'SAMPLE-AES', 'error');
  constant(report, `${HLS}-key-format`, format, FAIRPLAY_KEY_FORMAT, 'error');
  constant(report, `${HLS}-key-format-version`, get('key-format-version'), '1', 'warning');
  for (const name of ['url', 'key', 'iv']) {
    if (get(name) === undefined) {
      report.error('missing_line', `${HLS}-${name}`, 'is missing; add it, FairPlay needs it');
    }
  }
  const include = `${HLS}-iv-include-in-chunklist`;
  if (get('iv-include-in-chunklist') !== 'false') {
    const sentence = 'should be false: Apple wants no IV in a FairPlay playlist, the license brings it';
    report.warning('iv_in_playlist', include, sentence);
  }
  return { key: get('key'), iv: get('iv'), laurl: url };
}

function constant(
  report: Report,
  name: string,
  value: string | undefined,
  expected: string,
  severity: 'error' | 'warning',
): void {
  if (value === expected) return;
  const code = value === undefined ? 'missing_line' : 'wrong_constant';
  const sentence =
    value === undefined ? `is missing; add ${name}: ${expected}` : `must be ${expected} for FairPlay`;
  report.fault({ severity, code, field: name, description: `${name} ${sentence}.` });
}
