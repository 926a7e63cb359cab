import { check } from '../../../src/api/check';
import { swapKeyIdOrder } from '../../../src/drm/bytes';
import { PLAYREADY_SYSTEM_ID, playReadyObjectOf } from '../../../src/drm/playready';
import { buildPsshBox } from '../../../src/drm/pssh';
import {
  buildWidevinePsshData,
  PROTECTION_SCHEMES,
  type ProtectionScheme,
  WIDEVINE_SYSTEM_ID,
} from '../../../src/drm/widevine';
import { processorMs } from '../../support/processor-time';
import { brief } from './checked';

const KEY_ID = Buffer.from('44da52ef4523098e6854777ee322681d', 'hex');
const OTHER = Buffer.from('0e58f5d746844199a9b1438646ef4775', 'hex');
const CONTENT_KEY = Buffer.alloc(16, 9);
const FAIRPLAY = 'KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"';

const keyIdText = (keyId: Buffer) => `KEYID=0x${keyId.toString('hex')}`;
const widevineData = (scheme?: ProtectionScheme, keyIds = [KEY_ID]) =>
  buildWidevinePsshData({
    keyIds,
    contentId: Buffer.from('show'),
    ...(scheme && { protectionScheme: PROTECTION_SCHEMES[scheme] }),
  });
const boxOf = (scheme?: ProtectionScheme, keyIds = [KEY_ID]) =>
  buildPsshBox(WIDEVINE_SYSTEM_ID, widevineData(scheme, keyIds));
const playReadyObject = playReadyObjectOf(KEY_ID, CONTENT_KEY, 'https://license.example/');

function inline(bytes: Buffer, method: string, rest = keyIdText(KEY_ID), tag = 'KEY'): string {
  const uri = `URI="data:text/plain;base64,${bytes.toString('base64')}"`;
  const isPlayReady = bytes.includes(PLAYREADY_SYSTEM_ID.replaceAll('-', ''), 0, 'hex');
  const format = isPlayReady ? 'com.microsoft.playready' : `urn:uuid:${WIDEVINE_SYSTEM_ID}`;
  return `#EXT-X-${tag}:METHOD=${method},${uri},${rest},KEYFORMAT="${format}"\n`;
}

function told(playlist: string): string[] {
  const { kind, faults } = check(playlist);
  expect(kind).toBe('manifest');
  return brief(faults);
}

test.each(['KEY', 'SESSION-KEY'])('FairPlay with SAMPLE-AES-CTR is an error in EXT-X-%s', (tag) => {
  const line = (method: string) => `#EXT-X-${tag}:METHOD=${method},URI="skd://a/b",${FAIRPLAY}\n`;
  expect(told(line('SAMPLE-AES'))).toEqual([]);
  expect(told(line('SAMPLE-AES-CTR'))).toEqual(['E wrong_constant key.method']);
});

test.each<[what: string, bytes: Buffer, method: string]>([
  ['cenc', boxOf('cenc'), 'SAMPLE-AES-CTR'],
  ['cbcs', boxOf('cbcs'), 'SAMPLE-AES'],
  ['no scheme', boxOf(), 'SAMPLE-AES'],
  ['a PlayReady object', playReadyObject, 'SAMPLE-AES-CTR'],
  ['data without their box', widevineData('cbcs'), 'SAMPLE-AES'],
  ['no key id', boxOf('cbcs', []), 'SAMPLE-AES'],
  ['many key ids', boxOf('cbcs', [OTHER, KEY_ID]), 'SAMPLE-AES'],
])('METHOD and KEYID agree with %s', (_what, bytes, method) => {
  expect(told(inline(bytes, method))).toEqual([]);
});

test.each<[what: string, bytes: Buffer, method: string]>([
  ['a cenc box', boxOf('cenc'), 'SAMPLE-AES'],
  ['cbcs data without their box', widevineData('cbcs'), 'SAMPLE-AES-CTR'],
  ['a PlayReady box of AESCTR', buildPsshBox(PLAYREADY_SYSTEM_ID, playReadyObject), 'SAMPLE-AES'],
])('METHOD disagrees with the scheme of %s', (_what, bytes, method) => {
  for (const tag of ['KEY', 'SESSION-KEY'])
    expect(told(inline(bytes, method, keyIdText(KEY_ID), tag))).toEqual(['W scheme_mismatch key.method']);
});

const TURNED = swapKeyIdOrder(KEY_ID);
test.each<[what: string, bytes: Buffer, method: string, keyId: Buffer, fault: string]>([
  ['another one', boxOf('cbcs'), 'SAMPLE-AES', OTHER, 'key_id_mismatch'],
  ['in the other byte order', boxOf('cbcs'), 'SAMPLE-AES', TURNED, 'key_id_byte_order'],
  ['in that of a PlayReady header', playReadyObject, 'SAMPLE-AES-CTR', TURNED, 'key_id_byte_order'],
  ['none of a list', boxOf('cbcs', [OTHER, CONTENT_KEY]), 'SAMPLE-AES', KEY_ID, 'key_id_mismatch'],
])('KEYID disagrees with a box: %s', (_what, bytes, method, keyId, fault) => {
  expect(told(inline(bytes, method, keyIdText(keyId)))).toEqual([`E ${fault} key.keyid`]);
});

test('each line is compared with its own box', () => {
  const lines = inline(boxOf('cenc'), 'SAMPLE-AES') + inline(boxOf('cbcs', [OTHER]), 'SAMPLE-AES');
  expect(check(lines).faults.map(({ description }) => description)).toEqual([
    'key[0].method is SAMPLE-AES (AESCBC), but the data in key[0].uri are for AESCTR; make them agree.',
    'key[1].keyid is in none of these boxes, so players ask for another key than the samples need; package again with ' +
      'boxes for it.',
  ]);
});

test.each(['KEYID=44da52ef4523098e6854777ee322681d', 'KEYID=0x44da'])(
  'a KEYID that is not of 32 hex digits behind 0x is told of: %s',
  (text) => {
    expect(told(inline(boxOf('cbcs'), 'SAMPLE-AES', text))).toEqual(['W not_hex key.keyid']);
  },
);

it.each([
  `#EXTM3U\n${'\u2028'.repeat(40_000)}#EXT-X-KEX`,
  `#EXTM3U\n${'#EXT-X-STREAM-INF:\u2028'.repeat(4000)}`,
  `#EXTM3U\n${'#EXT-X-MEDIA:\u2028'.repeat(4000)}`,
  `#EXTM3U\n#EXT-X-KEY:${'A'.repeat(250_000)}\n`,
])('a text of line separators, or a long line, takes no time: %.30j', async (text) => {
  expect(await processorMs(() => check(text))).toBeLessThan(400);
});

describe('a key line that players can not use', () => {
  const whole = (line: string, version = 6) =>
    `#EXTM3U\n#EXT-X-VERSION:${version}\n${line}#EXTINF:2,\na.m4s\n`;
  const fairplay = `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://a/b",${FAIRPLAY}\n`;
  const widevine = inline(boxOf('cbcs'), 'SAMPLE-AES');

  test.each([
    ['nothing', whole(fairplay + widevine), []],
    ['a version that has no KEYFORMAT', whole(fairplay, 4), ['W version_too_low']],
    [
      'an address without quotes',
      whole(fairplay.replace('"skd://a/b"', 'skd://a/b')),
      ['E not_quoted key.uri'],
    ],
    ['no KEYID for Widevine', whole(widevine.replace(/KEYID=\w+,/, '')), ['W missing key.keyid']],
    [
      'nothing: the older key format of Widevine has no KEYID',
      whole(widevine.replace(/KEYID=\w+,/, '').replace(/urn:uuid:[\w-]+/, 'com.widevine')),
      [],
    ],
    [
      "a Widevine box in PlayReady's key format",
      whole(widevine.replace(/urn:uuid:[\w-]+/, 'com.microsoft.playready')),
      ['E system_mismatch key.uri'],
    ],
  ])('has %s', (_what, playlist, faults) => {
    expect(told(playlist)).toEqual(faults);
  });
});
