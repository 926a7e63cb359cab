import fc from 'fast-check';
import {
  CMAF,
  DASH,
  decodeKeys,
  HLS,
  isLineText,
  type KeyFile,
  type KeyFileLine,
  KNOWN_LINES,
  keyFileLines,
  keysIn,
  MASK,
  maskLines,
  parseKeyFile,
  parseNumberedLines,
  renderKeyFile,
} from '../../src/drm/key-file';
import { anyCharacter } from '../support/any-character';
import invalid from '../vectors/drm-invalid.json';
import { keyFileOf, keyFileSamples } from '../vectors/drm-vectors';

const IV_LINE = 'cupertinostreaming-aes128-iv-include-in-chunklist';

function linesOf(texts: readonly string[]): KeyFileLine[] {
  return texts.map((text) => {
    const [name = '', ...value] = text.split(': ');
    return { name, value: value.join(': ') };
  });
}

test.each(keyFileSamples)(
  'writes %s but for the order of lines and the documented IV flag, and reads it',
  (_, sample) => {
    const written = renderKeyFile(keyFileLines(keyFileOf(sample.values)));
    const published = sample.lines.map((line) => (line.startsWith(IV_LINE) ? `${IV_LINE}: false` : line));
    expect(written.trimEnd().split('\n').toSorted()).toEqual(published.toSorted());
    if (sample.section_order === 'widevine-first') expect(written).toBe(`${published.join('\n')}\n`);
    for (const [lineEnd, atEnd] of [
      ['\n', '\n\n'],
      ['\n', ''],
      ['\r\n', '\r\n'],
    ]) {
      const text = sample.lines.join(lineEnd) + atEnd;
      expect(parseKeyFile(text)).toEqual({ lines: linesOf(sample.lines), unreadable: [] });
    }
  },
);

test.each(invalid.key_file_line)('refuses to write a line: $why', ({ line }) => {
  expect(() => renderKeyFile([{ name: 'fine', value: 'fine' }, line])).toThrow(
    new TypeError('A key file line would not be read back as it was written'),
  );
});

test('reads past comments and blanks, and counts the lines it cannot read', () => {
  const text = '\uFEFF# made by hand\n\n  name :  a: b  \nno colon\n: no name\n#x: y\nempty:\n';
  expect(parseKeyFile(text)).toEqual({
    lines: [
      { name: 'name', value: 'a: b' },
      { name: 'empty', value: '' },
    ],
    unreadable: [4, 5],
  });
});

test('reports the line of each', () => {
  expect(parseNumberedLines('\r\na: b\r\n#\nc\rd: e')).toEqual({
    lines: [
      { number: 2, name: 'a', value: 'b' },
      { number: 5, name: 'd', value: 'e' },
    ],
    unreadable: [4],
  });
});

const control = fc.constantFrom(
  ...Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).filter((c) => /\p{Cc}/u.test(c)),
);
const printable = fc.string({ unit: anyCharacter, minLength: 1 }).filter((text) => isLineText(text));
const name = fc.oneof(
  printable.filter((text) => !/^#|:/.test(text)),
  fc
    .string({ unit: fc.constantFrom(...'az09-. _#'), minLength: 1 })
    .filter((text) => /^[^# ](.*[^ ])?$/.test(text)),
);
const lines = fc.array(fc.record({ name, value: printable }), { maxLength: 6 });

test('reads back any printable lines it wrote', () => {
  const property = fc.property(lines, (written) => {
    expect(parseKeyFile(renderKeyFile(written))).toEqual({ lines: written, unreadable: [] });
  });
  fc.assert(property);
});

test('throws for a control character anywhere in a name or value', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), fc.nat(), control, (text, position, character) => {
      const at = position % (text.length + 1);
      const forged = `a${text.slice(0, at)}${character}${text.slice(at)}a`;
      expect(isLineText(forged)).toBe(false);
      expect(() => renderKeyFile([{ name: 'a', value: forged }])).toThrow(TypeError);
      expect(() => renderKeyFile([{ name: forged, value: 'a' }])).toThrow(TypeError);
    }),
    { numRuns: 300 },
  );
});

test('the lines for CMAF say what those for DASH say, and are left out unless they are asked for', () => {
  const keyFile: KeyFile = {
    cenc: { keyId: 'i', contentKey: 'k' },
    widevine: { psshData: 'p' },
    playready: { licenseUrl: 'https://l.example/', checksum: 's' },
  };
  const dash = keyFileLines(keyFile);
  const cmaf = dash.map(({ name, value }) => ({ name: name.replace(DASH, CMAF), value }));
  expect(keyFileLines({ ...keyFile, cmaf: true })).toEqual([...dash, ...cmaf]);
  expect(keyFileLines({ ...keyFile, cmaf: false })).toEqual(dash);
});

test('keys, initialization vectors and unknown lines are masked, and addresses that contain a key', () => {
  const key = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
  const values: Readonly<Record<string, string>> = {
    [`${DASH}-content-key`]: key.toString('base64'),
    [`${CMAF}-content-key`]: key.toString('base64'),
    [`${HLS}-key`]: key.toString('hex'),
    [`${DASH}-keyserver-playready-license-url`]: 'https://a/?k=00112233-4455-6677-8899-AABBCCDDEEFF',
    [`${HLS}-url`]: `skd://a/${encodeURIComponent(key.toString('base64'))}`,
  };
  const lines = [...KNOWN_LINES, 'vendor-setting'].map((name) => ({ name, value: values[name] ?? 'a' }));
  const masked = maskLines(lines).filter(({ value }) => value === MASK);
  expect(masked.map(({ name }) => name).sort()).toEqual(
    [...Object.keys(values), `${HLS}-iv`, 'vendor-setting'].sort(),
  );
});

describe('the keys in a text', () => {
  const [keyId, contentKey] = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)].map((key) => key.toString('base64'));

  test('are those of the DASH lines or of those for CMAF, a UUID too', () => {
    for (const prefix of [DASH, CMAF]) {
      const text = `${prefix}-key-id: ${keyId}\n${prefix}-content-key: ${contentKey}\n`;
      expect(keysIn(text)).toEqual({ keyId, contentKey });
    }
    const uuid = '01010101-0101-0101-0101-010101010101';
    const text = `${DASH}-key-id: ${uuid}\n${DASH}-content-key: ${contentKey}\n`;
    expect(keysIn(text)).toEqual({ keyId, contentKey });
    expect(keysIn('')).toEqual({ keyId: undefined, contentKey: undefined });
  });

  test('are bytes where both are well formed', () => {
    const bytes = { keyId: Buffer.alloc(16, 1), contentKey: Buffer.alloc(16, 2) };
    expect(decodeKeys({ keyId, contentKey })).toEqual(bytes);
    expect(decodeKeys({ keyId, contentKey: undefined })).toBeUndefined();
    expect(decodeKeys({ keyId: undefined, contentKey })).toBeUndefined();
    expect(decodeKeys({ keyId: 'x', contentKey })).toBeUndefined();
  });
});
