import fc from 'fast-check';
import { parseKeyFileRequest } from '../../src/api/read-key-file-request';
import { crossCheck } from '../../src/drm/cross-check';
import type { Finding } from '../../src/drm/finding';
import { importKeyFile } from '../../src/drm/import-key-file';
import { keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { anyCharacter } from '../support/any-character';
import { drmVectors, keyFileSamples } from '../vectors/drm-vectors';

const block = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .filter((bytes) => bytes.some((byte) => byte !== 0))
  .map((bytes) => Buffer.from(bytes));
const base64 = block.map((bytes) => bytes.toString('base64'));
const hex = fc.oneof(
  block.map((bytes) => bytes.toString('hex')),
  block.map((bytes) => bytes.toString('hex').toUpperCase()),
);
const psshData = fc.constantFrom(
  ...drmVectors.widevine_pssh_data.flatMap(({ data_b64, box_v0_b64 }) => [data_b64, box_v0_b64]),
);
const address = fc
  .string({ unit: fc.constantFrom(...'abz09-._~/:?#=&;%20'), minLength: 1, maxLength: 40 })
  .map((path) => `https://license.example.com/${path}`);

/** Bodies of the key-file API, with whatever may be in them. */
const bodies = fc
  .record({
    cenc: fc.option(fc.record({ keyid: base64, contentkey: base64 }), { nil: undefined }),
    playready: fc.option(fc.record({ laurl: address }), { nil: undefined }),
    widevine: fc.option(fc.oneof(fc.constant({}), fc.record({ psshdata: psshData })), { nil: undefined }),
    fairplay: fc.option(
      fc.record({
        key: hex,
        iv: hex,
        laurl: fc.oneof(
          address,
          address.map((text) => text.replace('https', 'skd')),
        ),
      }),
      { nil: undefined },
    ),
    contentId: fc.option(fc.constantFrom('a', 'some_content-1.2'), { nil: undefined }),
    cmaf: fc.constantFrom(undefined, true, false, 'cenc'),
  })
  .filter(({ cenc, fairplay }) => cenc !== undefined || fairplay !== undefined)
  .map((body) => (body.cenc ? body : { fairplay: body.fairplay, contentId: body.contentId }));

/** The key file that a body is answered with. */
function fileOf(body: object): string {
  const parsed = parseKeyFileRequest(body);
  if (!parsed.ok || parsed.value.source !== 'supplied') throw new Error(JSON.stringify(parsed));
  const { keyFile, cmaf } = parsed.value;
  return renderKeyFile(keyFileLines(cmaf ? { ...keyFile, cmaf } : keyFile));
}

/** What is refused of a body where contradictions are refused. */
function crossCheckOf(body: object): readonly Finding[] {
  const parsed = parseKeyFileRequest(body);
  if (!parsed.ok || parsed.value.source !== 'supplied') return [];
  return crossCheck(parsed.value.keyFile, parsed.value.contentId);
}

function codesOf(findings: readonly Finding[]): string[] {
  const errors = findings.filter(({ severity }) => severity === 'error');
  return [...new Set(errors.map(({ code }) => code))].sort();
}

function imported(text: string, keepUnknown = false): string {
  const read = importKeyFile(text, keepUnknown);
  if (!read.ok) throw new Error(JSON.stringify(read));
  return renderKeyFile(keyFileLines(read.keyFile));
}

test('whatever this service wrote is imported as the same bytes, and read into the same values, as sound', () => {
  fc.assert(
    fc.property(bodies, (body) => {
      const file = fileOf(body);
      expect(imported(file)).toBe(file);
      const read = importKeyFile(file, false);
      expect(read.ok && read.keyFile.lines).toBeUndefined();
      expect(read.ok && codesOf(read.findings)).toEqual(codesOf(crossCheckOf(body)));
    }),
    { numRuns: 500 },
  );
});

const unknownLines = fc.uniqueArray(
  fc.record({
    name: fc.stringMatching(/^vendor[a-z0-9.-]{1,12}$/),
    value: fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/),
  }),
  { selector: ({ name }) => name, maxLength: 5 },
);

test('so are its files with unknown lines, wherever those stood and in their order', () => {
  fc.assert(
    fc.property(bodies, unknownLines, fc.infiniteStream(fc.nat()), (body, unknown, places) => {
      const file = fileOf(body);
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
    { numRuns: 200 },
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
    fc.constantFrom(
      `${secret}==`,
      secret,
      `${secret}\u0000`,
      `x${secret}`,
      `https://a/${secret}`,
      `"${secret}"`,
    ),
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
      const told = read.ok ? read.findings : [...read.problems, ...read.unknown];
      expect(JSON.stringify(told)).not.toContain(secret);
      if (read.ok)
        expect(imported(renderKeyFile(keyFileLines(read.keyFile)), true)).toBe(
          renderKeyFile(keyFileLines(read.keyFile)),
        );
    }),
    { numRuns: 1000 },
  );
});
