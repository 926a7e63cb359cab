import { swapKeyIdOrder } from '../../src/drm/bytes';
import { checkValues, crossCheck, REQUEST_NAMES } from '../../src/drm/cross-check';
import type { Finding } from '../../src/drm/finding';
import type { KeyFile } from '../../src/drm/key-file';
import { playReadyChecksum } from '../../src/drm/playready';
import { buildWidevinePsshData, PROTECTION_SCHEMES, type WidevinePsshData } from '../../src/drm/widevine';
import { rowsOf } from '../support/rows-of';
import { keyFileOf, keyFileSamples } from '../vectors/drm-vectors';

/** Findings that most of these have in addition to their own. */
const BESIDE = ['no_drm_system', 'names_nothing', 'unsupported_scheme', 'unknown_scheme'];

/** The findings about two values together, without those of a single field. */
function found(...given: Parameters<typeof crossCheck>): Finding[] {
  return crossCheck(...given)
    .filter(({ code }) => !BESIDE.includes(code))
    .map(({ severity, code, description }) => ({ severity, code, description }));
}

const of = (severity: Finding['severity'], code: string, description: string): Finding => ({
  severity,
  code,
  description,
});
const byteOrder = of(
  'error',
  'key_id_byte_order',
  'playready.checksum belongs to this key with its key id in the other byte order: cenc.keyid must be big endian (as in a UUID); send it with bytes 0-3, 4-5 and 6-7 reversed.',
);
const wrongChecksum = of(
  'error',
  'checksum_mismatch',
  'playready.checksum is not the checksum of cenc.keyid and cenc.contentkey; leave it out to have it computed, or send the three of one key.',
);
const otherKeyId = of(
  'warning',
  'key_id_mismatch',
  'widevine.psshdata names another key id than cenc.keyid.',
);
const otherContent = (sentence: string) => of('warning', 'content_id_mismatch', sentence);
const otherContentInWidevine = otherContent('widevine.psshdata names another content id than contentId.');
const otherContentInFairPlay = otherContent('fairplay.laurl does not name contentId.');
const keyIsKeyId = of(
  'warning',
  'content_key_is_key_id',
  'cenc.contentkey equals cenc.keyid, which is in every manifest.',
);
function schemeMismatch(name: string): Finding {
  const sentence = `widevine.psshdata says ${name}, but the algorithm is AESCTR (cenc); make them agree.`;
  return of('warning', 'scheme_mismatch', sentence);
}

test.each(keyFileSamples)(
  '%s agrees with itself, and with no other id, key and checksum',
  (_, { values, derived }) => {
    const keyFile = keyFileOf(values);
    const { cenc = { keyId: '', contentKey: '' }, playready = { licenseUrl: '', checksum: '' } } = keyFile;
    const withKey = (change: Partial<typeof cenc>) =>
      found({ ...keyFile, cenc: { ...cenc, ...change } }, undefined);
    expect(found(keyFile, derived.contentid_from_fairplay_url)).toEqual([]);
    expect(found(keyFile, undefined)).toEqual([]);
    expect(found(keyFile, 'another')).toEqual([otherContentInWidevine, otherContentInFairPlay]);
    expect(withKey({ keyId: derived.kid_le_b64 })).toEqual([byteOrder]);
    expect(withKey({ contentKey: derived.kid_le_b64 })).toEqual([wrongChecksum]);
    const checksum = derived.checksum_if_kid_not_swapped;
    expect(found({ ...keyFile, playready: { ...playready, checksum } }, undefined)).toEqual([byteOrder]);
    expect(found({ cenc: { ...cenc, contentKey: cenc.keyId } }, undefined)).toEqual([keyIsKeyId]);
  },
);

const KEY_ID = Buffer.from('44da52ef4523098e6854777ee322681d', 'hex');
const CONTENT_KEY = Buffer.alloc(16, 9);
const ZEROS = Buffer.alloc(16);
/** A version 4 UUID in the other byte order alone. */
const TURNED = swapKeyIdOrder(Buffer.from('09d2a744a6f14ac5b5eb1c3ab3a0e4d1', 'hex'));
const OTHER = Buffer.alloc(16, 1);
/** The IV that a public guide prints: base64 of `29d33ec5cab2fdff`. */
const DIGITS = Buffer.from('29d33ec5cab2fdff');
const CAPITALS = Buffer.from('29D33EC5CAB2FDFF');

const ofKey = (keyId: Buffer, contentKey = CONTENT_KEY) => ({
  cenc: { keyId: keyId.toString('base64'), contentKey: contentKey.toString('base64') },
});
const ofData = (data: Partial<WidevinePsshData>) => ({
  widevine: { psshData: buildWidevinePsshData({ keyIds: [], ...data }).toString('base64') },
});
const naming = (keyId: Buffer) => ofData({ keyIds: [keyId], protectionScheme: PROTECTION_SCHEMES.cenc });
const ofShow = ofData({ contentId: Buffer.from('show') });
const ofPlayReady = (keyId: Buffer, contentKey = CONTENT_KEY, licenseUrl = 'https://a/') => ({
  playready: { licenseUrl, checksum: playReadyChecksum(keyId, contentKey) },
});
const FAIRPLAY = { licenseUrl: 'skd://license.example/show', key: 'A'.repeat(32), iv: 'b'.repeat(32) };
const ofFairPlay = (values: Partial<typeof FAIRPLAY> = {}) => ({ fairplay: { ...FAIRPLAY, ...values } });
const cenc = ofKey(KEY_ID);
const twoInAddress = ofPlayReady(KEY_ID, CONTENT_KEY, 'https://a/?sessionid=1&amp;b=2');

test('Widevine data need the scheme cenc, and key id and content id among those they name', () => {
  const findings = (data: Partial<WidevinePsshData>, contentId?: string) =>
    found({ ...cenc, ...ofData({ policy: '', ...data }) }, contentId);
  for (const [name, protectionScheme] of Object.entries({ ...PROTECTION_SCHEMES, 'an unknown scheme': 1 }))
    expect(findings({ protectionScheme })).toEqual(name === 'cenc' ? [] : [schemeMismatch(name)]);
  expect(findings({}, 'show')).toEqual([]);
  expect(findings({ keyIds: [OTHER, KEY_ID] })).toEqual([]);
  expect(findings({ keyIds: [OTHER] })).toEqual([otherKeyId]);
  expect(findings({ contentId: Buffer.from('show') }, 'show')).toEqual([]);
  expect(findings({ contentId: Buffer.from('show') })).toEqual([]);
  expect(findings({ contentId: Buffer.from('shows') }, 'show')).toEqual([otherContentInWidevine]);
});

test.each<[licenseUrl: string, expected: Finding[], contentId?: string]>([
  ['skd://show', []],
  ['skd://license.example/?assetId=show&v=1', []],
  ['skd://license.example/license/shows', [otherContentInFairPlay]],
  ['skd://license.example/show.key', [otherContentInFairPlay]],
  ['skd://license.example/show-sd+hd1', [], 'show-sd+hd1'],
  ['skd://license.example/show-sd%2Bhd1', [], 'show-sd+hd1'],
])('looks for the content id as a whole part of FairPlay address %s', (licenseUrl, expected, id = 'show') => {
  expect(found(ofFairPlay({ licenseUrl }), id)).toEqual(expected);
});

const ofAddress = (licenseUrl: string) => ofFairPlay({ licenseUrl });

test.each(
  rowsOf<KeyFile>({
    'a key without a DRM system: warning no_drm_system': cenc,
    'nothing next to FairPlay': { ...cenc, ...ofFairPlay() },
    'a key id of zeros: error all_zero cenc.keyid': { ...ofKey(ZEROS), ...ofFairPlay() },
    'a key of zeros: error all_zero cenc.contentkey': { ...ofKey(KEY_ID, ZEROS), ...ofFairPlay() },
    'a FairPlay key of zeros: error all_zero fairplay.key': ofFairPlay({ key: '0'.repeat(32) }),
    'a FairPlay iv of zeros: warning all_zero fairplay.iv': ofFairPlay({ iv: '0'.repeat(32) }),
    'the key id as iv: warning iv_is_key_id fairplay.iv': {
      ...cenc,
      ...ofFairPlay({ iv: KEY_ID.toString('hex') }),
    },
    'a key id as iv and in the address: warning iv_is_key_id fairplay.iv': ofAddress(
      `skd://x/;${FAIRPLAY.iv}`,
    ),
    'an iv that the address has behind the key id': ofAddress(`skd://${'c'.repeat(32)}:${FAIRPLAY.iv}`),
    'a FairPlay key that is the iv: warning key_is_iv fairplay.iv': ofFairPlay({ iv: 'a'.repeat(32) }),
    'hex as text: warning hex_text cenc.contentkey, warning hex_text cenc.keyid': {
      ...ofKey(DIGITS, CAPITALS),
      ...ofFairPlay(),
    },
    'hex as text, of FairPlay: warning hex_text fairplay.iv, warning hex_text fairplay.key': ofFairPlay({
      key: '32396433336563356361623266646666',
      iv: '3'.repeat(32),
    }),
    // One byte is no hex digit: `g`, and a line feed behind fifteen digits.
    'nothing in other text': ofFairPlay({ key: `${'3'.repeat(30)}67`, iv: `${'3'.repeat(30)}0a` }),
    'a session id and an escaped ampersand: error escaped_ampersand playready.laurl, error session_id_in_address playready.laurl':
      { ...cenc, ...twoInAddress },
    "a packager's session id: error session_id_in_address fairplay.laurl": ofAddress(
      'skd://a/b?wowzasessionid=1',
    ),
    'another scheme: warning not_skd fairplay.laurl': ofAddress('https://l.example/'),
    'a key in the address of PlayReady: error content_key_in_address playready.laurl': {
      ...cenc,
      ...ofPlayReady(KEY_ID, CONTENT_KEY, `https://a/?key=${'09'.repeat(16)}`),
    },
    'a key in the address of FairPlay: error content_key_in_address fairplay.laurl': ofAddress(
      `skd://a/${'a'.repeat(32)}`,
    ),
    'data without an id: warning names_nothing widevine.psshdata': { ...cenc, ...ofData({ policy: 'p' }) },
    'base64 of a content id: warning encoded_twice widevine.psshdata.content_id': {
      ...cenc,
      ...ofData({ contentId: Buffer.from('c2hvdy0xMg==') }),
    },
    'a number that is no scheme: error unknown_scheme widevine.psshdata.protection_scheme, warning scheme_mismatch widevine.psshdata':
      { ...cenc, ...ofData({ contentId: Buffer.from('show'), protectionScheme: 1 }) },
    'another content id in the address: warning content_id_mismatch fairplay.laurl': {
      ...cenc,
      ...ofShow,
      ...ofAddress('skd://other'),
    },
    'data with the content key: error key_and_key_id_swapped cenc.keyid': { ...cenc, ...naming(CONTENT_KEY) },
    'a key id that may be in the other byte order: warning key_id_byte_order_suspected cenc.keyid': {
      ...ofKey(TURNED),
      ...ofFairPlay(),
    },
    'one that is: error key_id_byte_order widevine.psshdata': {
      ...ofKey(TURNED),
      ...ofData({ keyIds: [swapKeyIdOrder(TURNED)] }),
    },
    'none that its checksum proves': { ...ofKey(TURNED), ...ofPlayReady(TURNED) },
    'none where key and key id are swapped: error key_and_key_id_swapped cenc.keyid': {
      ...ofKey(TURNED),
      ...ofData({ keyIds: [CONTENT_KEY] }),
    },
    'one next to another key id: warning key_id_byte_order_suspected cenc.keyid, warning key_id_mismatch widevine.psshdata':
      { ...ofKey(TURNED), ...ofData({ keyIds: [OTHER] }) },
  }),
)('finds %s', (_what, keyFile, expected) => {
  const reported = crossCheck(keyFile, undefined).map(({ severity, code, field }) =>
    [severity, code, field].filter((each) => each !== undefined).join(' '),
  );
  expect(reported.sort()).toEqual(expected);
});

test('finds nothing to compare in values that are not well formed', () => {
  const keyFile = { cenc: { keyId: 'x', contentKey: 'y' }, widevine: { psshData: 'z' } };
  expect(found(keyFile, 'show')).toEqual([]);
});

test('holds no checksum against the key that was computed of another', () => {
  const keyFile = { ...cenc, ...ofPlayReady(OTHER) };
  expect(found(keyFile, undefined)).toEqual([wrongChecksum]);
  expect(found(keyFile, undefined, { isChecksumComputed: true })).toEqual([]);
});

test('names the algorithm that the scheme of the data is compared with', () => {
  const widevine = { keyIds: [], protectionScheme: PROTECTION_SCHEMES.cenc };
  const slips = checkValues({ widevine }, { scheme: 'cbcs', names: REQUEST_NAMES });
  expect(slips.map(({ description }) => description)).toEqual([
    'widevine.psshdata says cenc, but the algorithm is AESCBC (cbcs); make them agree.',
  ]);
});

describe('a FairPlay address that names the key by its id', () => {
  const UUID = '44da52ef-4523-098e-6854-777ee322681d';
  const DIGITS_OF_ID = UUID.replaceAll('-', '');
  const codes = (keyFile: KeyFile, contentId?: string) =>
    found(keyFile, contentId).flatMap(({ code }) => (code === 'not_skd' ? [] : [code]));

  test.each([
    `skd://${DIGITS_OF_ID}`,
    `skd://license.example/key/${DIGITS_OF_ID.toUpperCase()}?v=1`,
    `SKD://${UUID}`,
    `skd://{${UUID.toUpperCase()}}/`,
    `skd://${DIGITS_OF_ID}:${'2'.repeat(32)}`,
  ])('is taken for right, whatever the content id is: %s', (licenseUrl) => {
    const keyFile = { ...cenc, ...ofFairPlay({ licenseUrl }) };
    const ofContent = ofData({ keyIds: [KEY_ID], contentId: Buffer.from('show') });
    expect(codes({ ...keyFile, ...ofContent }, 'show')).toEqual([]);
    expect(codes({ ...keyFile, ...ofContent })).toEqual([]);
    expect(codes(keyFile, 'another')).toEqual([]);
  });

  test.each([
    `skd://fps.example.com/;${UUID}`,
    `skd://${encodeURIComponent(Buffer.from(DIGITS_OF_ID, 'hex').toString('base64'))}`,
    'skd://AAECAwQFBgcICQoLDA0ODw==',
    `skd://license.example/${Buffer.from('show').toString('base64')}`,
  ])('is taken for right as providers write it: %s', (licenseUrl) => {
    expect(codes(ofFairPlay({ licenseUrl }), 'show')).toEqual([]);
  });

  test('may be that of a key of its own', () => {
    expect(codes({ ...ofKey(OTHER), ...ofAddress(`skd://${UUID.toUpperCase()}`) }, 'show')).toEqual([]);
  });

  test.each([`skd://${UUID.slice(1)}`, `skd://${'c'.repeat(33)}`, `https://${UUID}`])(
    'is nothing else: %s',
    (licenseUrl) => {
      expect(codes(ofFairPlay({ licenseUrl }), 'show')).toEqual(['content_id_mismatch']);
    },
  );
});
