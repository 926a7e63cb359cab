import fc from 'fast-check';
import { crossCheck } from '../../src/drm/cross-check';
import type { Finding } from '../../src/drm/finding';
import { importKeyFile, listUnknownLines } from '../../src/drm/import-key-file';
import { type KeyFile, keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { anyCharacter } from '../support/any-character';
import { arbitraryKeyFiles } from '../support/arbitrary-key-files';
import { right } from '../support/right';
import { keyFileSamples } from '../vectors/drm-vectors';

const keyFiles = fc
  .tuple(arbitraryKeyFiles, fc.boolean())
  .map(([keyFile, cmaf]): KeyFile => (cmaf && keyFile.cenc ? { ...keyFile, cmaf } : keyFile));
const textOf = (keyFile: KeyFile) => renderKeyFile(keyFileLines(keyFile));

function codesOf(findings: readonly Finding[]): string[] {
  const errors = findings.filter(({ severity }) => severity === 'error');
  return [...new Set(errors.map(({ code }) => code))].sort();
}

const imported = (text: string, keepUnknown = false) =>
  textOf(right(importKeyFile(text, keepUnknown)).keyFile);

test('every key file of this service is imported as the same bytes, and read into the same values, as sound', () => {
  fc.assert(
    fc.property(keyFiles, (keyFile) => {
      const file = textOf(keyFile);
      expect(imported(file)).toBe(file);
      const read = importKeyFile(file, false);
      expect(read.ok && read.keyFile.lines).toBeUndefined();
      expect(read.ok && codesOf(read.findings)).toEqual(codesOf(crossCheck(keyFile, undefined)));
    }),
  );
});

const unknownLines = fc.uniqueArray(
  fc.record({
    name: fc.stringMatching(/^vendor[a-z0-9.-]{1,12}$/),
    value: fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/),
  }),
  { selector: ({ name }) => name, maxLength: 5 },
);

test('of more than ten unknown lines ten are named', () => {
  const unknown = Array.from({ length: 12 }, (_none, index) => ({
    line: index + 1,
    name: 'a-b',
    near: undefined,
  }));
  expect(listUnknownLines(unknown)).toMatch(/^a-b \(line 1\), .*a-b \(line 10\), 2 more$/);
});

test('so are its files with unknown lines, at any place and in their order', () => {
  fc.assert(
    fc.property(keyFiles, unknownLines, fc.infiniteStream(fc.nat()), (keyFile, unknown, places) => {
      const file = textOf(keyFile);
      const own = file.trimEnd().split('\n');
      const texts = unknown.map(({ name, value }) => `${name}: ${value}`);
      const [first, ...others] = texts;
      const at = (places.next().value ?? 0) % own.length;
      const mixed = first === undefined ? own : [...own.slice(0, at), first, ...own.slice(at), ...others];
      const kept = imported(mixed.join('\r\n'), true);
      expect(kept).toBe(file + texts.map((line) => `${line}\n`).join(''));
      expect(imported(kept, true)).toBe(kept);
      expect(importKeyFile(kept, false).ok).toBe(unknown.length === 0);
    }),
  );
});

test.each(keyFileSamples)('the published %s is imported, and again as the same bytes', (_name, { lines }) => {
  const once = imported(lines.join('\n'));
  expect(once.trimEnd().split('\n').toSorted()).toEqual(lines.toSorted());
  expect(imported(once)).toBe(once);
});

test('any text is imported or refused, and no refusal holds a value', () => {
  const names = keyFileLines({
    cenc: { keyId: '-', contentKey: '-' },
    widevine: { psshData: '-' },
    playready: { licenseUrl: '-', checksum: '-' },
    fairplay: { licenseUrl: '-', key: '-', iv: '-' },
    cmaf: true,
  }).map(({ name }) => name);
  const secret = 'SvEMxZMGndWHIqCMoD45YA';
  const value = fc.oneof(
    fc.constantFrom('true', 'false', 'AESCTR', 'AESCBC', 'SAMPLE-AES', 'AES-128', '1', ''),
    fc.constantFrom(...['', '==', '\u0000', '"'].map((end) => `${secret}${end}`)),
    fc.constantFrom(...['x', '"', 'https://a/'].map((start) => `${start}${secret}`)),
    fc.string({ unit: anyCharacter, maxLength: 20 }),
  );
  const line = fc.oneof(
    fc.tuple(fc.constantFrom(...names), value).map(([name, text]) => `${name}: ${text}`),
    value,
    fc.tuple(value, value).map(([name, text]) => `${name}: ${text}`),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 24 }), fc.boolean(), (lines, keepUnknown) => {
      const read = importKeyFile(lines.join('\n'), keepUnknown);
      const reported = read.ok ? read.findings : [...read.problems, ...read.unknown];
      expect(JSON.stringify(reported)).not.toContain(secret);
      if (read.ok) expect(imported(textOf(read.keyFile), true)).toBe(textOf(read.keyFile));
    }),
    { numRuns: 1000 },
  );
});
