import { parseUuid, uuidOfName } from '../../src/drm/bytes';
import { boxesIn } from '../../src/drm/check/boxes';
import { type KeyFile, keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { boxesOf, fairPlayKeyId, readPackagingKeys, type StreamKey } from '../../src/drm/packaging';
import { parsePlayReadyObject, playReadyChecksum } from '../../src/drm/playready';
import { parsePsshBox } from '../../src/drm/pssh';
import { widevinePsshDataOf } from '../../src/drm/widevine';
import { right } from '../support/right';

const KEY_ID = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
const KEY = Buffer.from('0f0e0d0c0b0a09080706050403020100', 'hex');
const CENC = { keyId: KEY_ID.toString('base64'), contentKey: KEY.toString('base64') };
const WIDEVINE = { psshData: widevinePsshDataOf(KEY_ID, 'news') };
const PLAYREADY = {
  licenseUrl: 'https://license.example/rightsmanager.asmx?a=1&b=2',
  checksum: playReadyChecksum(KEY_ID, KEY),
};
const FAIRPLAY = { licenseUrl: 'skd://license.example/news', key: 'a'.repeat(32), iv: 'b'.repeat(32) };
const WHOLE: KeyFile = { cenc: CENC, widevine: WIDEVINE, playready: PLAYREADY, fairplay: FAIRPLAY };

const textOf = (keyFile: KeyFile) => renderKeyFile(keyFileLines(keyFile));
const read = (keyFile: KeyFile) => readPackagingKeys(textOf(keyFile));

const keysOf = (keyFile: KeyFile) => right(read(keyFile)).keys;
const boxesFor = (key: StreamKey | undefined, hasCommon = true) =>
  boxesIn(key ? boxesOf(key, hasCommon) : Buffer.alloc(0)).map(
    ({ bytes }) => right(parsePsshBox(bytes)).value,
  );

test('a whole key file gives the keys of DASH and HLS, each with the boxes that signal it', () => {
  const { dash, hls } = keysOf(WHOLE);
  expect([dash?.keyId, dash?.key]).toEqual([KEY_ID, KEY]);
  const [widevine, playready, common] = boxesFor(dash);
  expect(Buffer.from(widevine?.data ?? []).toString('base64')).toBe(WIDEVINE.psshData);
  const object = parsePlayReadyObject(playready?.data ?? Buffer.alloc(0));
  const header = object.ok ? Buffer.from(object.value[0]?.value ?? []).toString('utf16le') : '';
  expect(header).toContain(`<CHECKSUM>${PLAYREADY.checksum}</CHECKSUM>`);
  expect(header).toContain('<LA_URL>https://license.example/rightsmanager.asmx?a=1&amp;b=2</LA_URL>');
  expect(common?.keyIds.map((id) => Buffer.from(id))).toEqual([KEY_ID]);
  expect(hls).toMatchObject({
    keyId: fairPlayKeyId(FAIRPLAY.licenseUrl),
    key: Buffer.alloc(16, 0xaa),
    iv: Buffer.alloc(16, 0xbb),
    keyUri: FAIRPLAY.licenseUrl,
  });
  expect(boxesFor(hls).map(({ keyIds }) => keyIds)).toEqual([[hls?.keyId]]);
  expect([boxesFor(dash, false), boxesFor(hls, false)]).toEqual([[widevine, playready], []]);
});

test('the checksum of the header is the one of the key file, right or wrong', () => {
  const checksum = Buffer.alloc(8, 1).toString('base64');
  const { dash } = keysOf({ ...WHOLE, playready: { ...PLAYREADY, checksum } });
  const [, playready] = boxesFor(dash);
  expect(playready?.data.includes(Buffer.from(checksum, 'utf16le'))).toBe(true);
});

test('a key file of one kind gives the keys of that kind alone', () => {
  expect(keysOf({ fairplay: FAIRPLAY }).dash).toBeUndefined();
  expect(keysOf({ cenc: CENC, widevine: WIDEVINE }).hls).toBeUndefined();
  expect(boxesFor(keysOf({ cenc: CENC, widevine: WIDEVINE }).dash)).toHaveLength(2);
});

test.each<[string, string, string, RegExp]>([
  ['an empty key file', ' \n', 'key_file_torn', /^is empty/],
  ['a file that ends within a line', textOf(WHOLE).trimEnd(), 'key_file_torn', /^ends within a line/],
  ['a file of another kind', '{"a":1}\n', 'key_file_incomplete', /has no lines of DASH or FairPlay/],
  ['a cut key', textOf(WHOLE).replace(/(content-key: .{12}).*/, '$1'), 'key_file_foreign', /content-key/],
  [
    '= in place of ": "',
    textOf(WHOLE).replaceAll(': ', '='),
    'key_file_incomplete',
    /^can't be used: 1\d lines.*[^.]$/,
  ],
  ['a key id alone', `mpegdashstreaming-cenc-key-id: ${CENC.keyId}\n`, 'key_file_incomplete', /content-key/],
  ['keys without a DRM system', textOf({ cenc: CENC }), 'key_file_incomplete', /neither Widevine nor/],
])('%s is refused', (_what, text, code, sentence) => {
  const result = readPackagingKeys(text);
  expect(result).toEqual({ ok: false, problem: { code, description: expect.stringMatching(sentence) } });
  expect(JSON.stringify(result)).not.toContain(CENC.contentKey.slice(0, 12));
});

test('every file that is cut off is refused, or has lost whole lines at its end', () => {
  const text = textOf(WHOLE);
  for (let length = 0; length < text.length; length += 1) {
    const result = readPackagingKeys(text.slice(0, length));
    if (result.ok) expect(text[length - 1]).toBe('\n');
  }
});

test('the key id of FairPlay is the version 5 UUID of its address', () => {
  // RFC 9562, appendix A.4, for the namespace of DNS names.
  const dns = parseUuid('6ba7b810-9dad-11d1-80b4-00c04fd430c8');
  const expected = parseUuid('2ed6657d-e927-568b-95e1-2665a8aea6a2');
  expect(dns.ok && expected.ok && uuidOfName(dns.value, 'www.example.com').equals(expected.value)).toBe(true);
  expect(fairPlayKeyId('skd://a')).not.toEqual(fairPlayKeyId('skd://b'));
});
