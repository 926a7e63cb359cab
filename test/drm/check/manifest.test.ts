import { check } from '../../../src/api/check';
import { swapKeyIdOrder } from '../../../src/drm/bytes';
import { PLAYREADY_SYSTEM_ID, playReadyObjectOf } from '../../../src/drm/playready';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../../src/drm/pssh';
import {
  buildWidevinePsshData,
  PROTECTION_SCHEMES,
  type ProtectionScheme,
  WIDEVINE_SYSTEM_ID,
} from '../../../src/drm/widevine';
import { processorMs } from '../../support/processor-time';
import { rowsOf } from '../../support/rows-of';
import { segments } from '../../vectors/init-segments.json';
import { KEY_ID, summary, UUID, valuesOf } from './checked';

const SWAPPED = swapKeyIdOrder(KEY_ID);
const CENC = Buffer.from(segments[0]?.b64 ?? '', 'base64');

describe('a manifest', () => {
  const pssh = (keyId: Buffer) => buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keyId]).toString('base64');
  const box = (keyId: Buffer) => `<cenc:pssh>${pssh(keyId)}</cenc:pssh>`;
  const scheme = `<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cbcs" cenc:default_KID="${UUID}"/>`;
  const ofOther = scheme.replace(UUID, '0e58f5d7-4684-4199-a9b1-438646ef4775');
  const system = (inner: string) =>
    `<ContentProtection schemeIdUri="urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b">\n  ${inner}\n</ContentProtection>`;
  const object = (bytes: Buffer) => {
    const at = bytes.indexOf('<\0W\0R\0M\0') - 10;
    return bytes.subarray(at, at + bytes.readUInt32LE(at)).toString('base64');
  };

  it.each(
    rowsOf({
      'the elements of scheme and system': `${scheme}\n${system(`<cenc:pssh>\n${pssh(KEY_ID)}\n</cenc:pssh>`)}`,
      'a PlayReady object of another scheme: W scheme_mismatch pro': `${scheme}${system(`<mspr:pro>${object(CENC)}</mspr:pro>`)}`,
      'default_KID in the other byte order: E key_id_byte_order track.key_id': `${scheme}${system(box(SWAPPED))}`,
      'a mistyped system id: E system_mismatch': `${scheme}${system(box(KEY_ID)).replace('1077efec', '1077efed')}`,
      'the common box in the element of ClearKey': `${scheme}${system(box(KEY_ID)).replace(COMMON_SYSTEM_ID, 'e2719d58-a985-b3c9-781a-b030af78d30e')}`,
      'an element that refers to another': `${scheme}<ContentProtection ref="a" schemeIdUri="urn:mpeg:dash:mp4protection:2011"/>`,
      'two keys in a set: E key_id_mismatch': `<MPD><Period><AdaptationSet>${scheme}${ofOther}</AdaptationSet></Period></MPD>`,
      'elements of a period, to which those of its sets refer': `<MPD><Period>${scheme}${ofOther}<AdaptationSet>${scheme}</AdaptationSet></Period></MPD>`,
      'no value of the scheme: W no_scheme': scheme.replace(' value="cbcs"', ''),
      'a set without default_KID: W no_default_kid': `${scheme}${scheme.replace(/ cenc:default_KID="[^"]*"/, '')}${system(box(KEY_ID))}`,
      'boxes that are not base64: E not_base64': `${scheme}${system('<cenc:pssh>%%</cenc:pssh>')}`,
      'a box cut short: E malformed_box box': system(`<cenc:pssh>${pssh(KEY_ID).slice(0, 40)}</cenc:pssh>`),
      'no box and no key id: W names_nothing': system(''),
      'a wrong default_KID: E not_uuid, W names_nothing': scheme.replace(UUID, UUID.slice(1)),
      'a box in a comment': `${scheme}<!-- ${system(box(SWAPPED))} --><!-- not ended`,
      'the header of Smooth Streaming': `<ProtectionHeader SystemID="x">${object(CENC)}</ProtectionHeader>`,
    }),
  )('is checked with %s', (_what, xml, faults) => {
    expect(summary(xml)).toEqual(['manifest', ...faults]);
  });

  it('shows what it found, each thing once', () => {
    const set = `${scheme}${system(box(KEY_ID))}`;
    expect(valuesOf(set + set)).toEqual({
      'box.system': COMMON_SYSTEM_ID,
      'box.version': '1',
      'box.key_id[0]': UUID,
      'box.data': '0 bytes',
      'track.scheme': 'cbcs',
      'track.key_id': UUID,
    });
  });

  it.each(['<html><p>no</p></html>', '<MPDX></MPDX>', '<x'])('is not what other XML is: %s', (xml) => {
    expect(summary(xml)).toEqual(['unknown', 'E unrecognised']);
  });
});

describe('a playlist', () => {
  const fairplay = 'KEYFORMAT="com.apple.streamingkeydelivery"';
  const key = (rest: string, method = 'SAMPLE-AES') => `#EXT-X-KEY:METHOD=${method},${rest}`;

  it.each(
    rowsOf({
      'no encryption': '#EXT-X-KEY:METHOD=NONE',
      'a session id: E session_id_in_address key.uri': key(`URI="skd://a/b?wowzasessionid=1",${fairplay}`),
      'an IV: W iv_in_playlist key.iv': key(`URI="skd://a/b",${fairplay},IV=0x00`),
      'skd:// without the key format: E wrong_constant key.keyformat': key('URI="skd://a/b"'),
      'AES-128, whose key is fetched': key('URI="https://a.example/"', 'AES-128'),
      'a key that is fetched by plain http: W plain_http key.uri': key('URI="http://a.example/"', 'AES-128'),
      'a key that is fetched from a FairPlay server: W not_fairplay key.keyformat':
        key('URI="https://fps.a/"'),
      'a variable of elsewhere': key('URI="skd://{$id}"'),
      'no address: E missing key.uri': key(fairplay),
      'two keys: E wrong_constant key[1].keyformat': `#EXTM3U\n${key(`URI="skd://a",${fairplay}`)}\na.m4s\n${key('URI="skd://b"')}\r\nb.m4s\n`,
    }),
  )('is checked with %s', (_what, text, faults) => {
    expect(summary(text)).toEqual(['manifest', ...faults]);
  });

  it('shows neither an IV nor a key in it', () => {
    const iv = '0x00112233445566778899aabbccddeeff';
    const inline = 'lnA03mLuxnL3toiRMxV4Zw==';
    const text = `${key(`URI="skd://a",${fairplay},IV=${iv}`)}\n${key(`URI="data:text/plain;base64,${inline}"`, 'AES-128')}`;
    const said = JSON.stringify(check(text, { reveal: true }));
    expect(said).not.toContain(iv.slice(2, 12));
    expect(said).not.toContain(inline.slice(0, 10));
  });
});

it.each<[address: string, ...faults: string[]]>([
  ['skd://license.example/content'],
  ['http://license.example/', 'W plain_http address'],
])('a license address by itself is checked: %s', (address, ...faults) => {
  expect(summary(address)).toEqual(['license_address', ...faults]);
  expect(summary(`"${address}"\n`)).toEqual(['license_address', ...faults]);
});

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

const OWN_ID = keyIdText(KEY_ID);

function inline(bytes: Buffer, method: string, rest = OWN_ID, tag = 'KEY'): string {
  const uri = `URI="data:text/plain;base64,${bytes.toString('base64')}"`;
  const isPlayReady = bytes.includes(PLAYREADY_SYSTEM_ID.replaceAll('-', ''), 0, 'hex');
  const format = isPlayReady ? 'com.microsoft.playready' : `urn:uuid:${WIDEVINE_SYSTEM_ID}`;
  return `#EXT-X-${tag}:METHOD=${method},${uri},${rest},KEYFORMAT="${format}"\n`;
}

const whole = (line: string, version = 6) => `#EXTM3U\n#EXT-X-VERSION:${version}\n${line}#EXTINF:2,\na.m4s\n`;
const fairPlay = (method: string, tag = 'KEY') =>
  `#EXT-X-${tag}:METHOD=${method},URI="skd://a/b",${FAIRPLAY}\n`;
const [CBCS, CTR] = ['SAMPLE-AES', 'SAMPLE-AES-CTR'] as const;
const widevine = inline(boxOf('cbcs'), CBCS);
const withoutId = widevine.replace(/KEYID=\w+,/, '');
const withFormat = (line: string, format: string) => line.replace(/urn:uuid:[\w-]+/, format);
const playReadyBox = buildPsshBox(PLAYREADY_SYSTEM_ID, playReadyObject);
const twoOthers = boxOf('cbcs', [OTHER, CONTENT_KEY]);

test.each<[what: string, playlist: string, ...faults: string[]]>([
  ['FairPlay', fairPlay(CBCS)],
  ['FairPlay under SAMPLE-AES-CTR', fairPlay(CTR), 'E wrong_constant key.method'],
  ['a cenc box', inline(boxOf('cenc'), CTR)],
  ['a box without a scheme', inline(boxOf(), CBCS)],
  ['a PlayReady object', inline(playReadyObject, CTR)],
  ['data without their box', inline(widevineData('cbcs'), CBCS)],
  ['data of any media type', inline(boxOf('cbcs'), CBCS).replace('text/plain', 'application/vnd.drm.v1')],
  ['a box without a key id', inline(boxOf('cbcs', []), CBCS)],
  ['a box of several key ids', inline(boxOf('cbcs', [OTHER, KEY_ID]), CBCS)],
  ['METHOD against a cenc box', inline(boxOf('cenc'), CBCS), 'W scheme_mismatch key.method'],
  ['METHOD against a PlayReady box', inline(playReadyBox, CBCS), 'W scheme_mismatch key.method'],
  ['another KEYID', inline(boxOf('cbcs'), CBCS, keyIdText(OTHER)), 'E key_id_mismatch key.keyid'],
  [
    'KEYID in the other byte order',
    inline(boxOf('cbcs'), CBCS, keyIdText(SWAPPED)),
    'E key_id_byte_order key.keyid',
  ],
  ['KEYID that is none of a list', inline(twoOthers, CBCS), 'E key_id_mismatch key.keyid'],
  ['KEYID without 0x', inline(boxOf('cbcs'), CBCS, OWN_ID.replace('0x', '')), 'W not_hex key.keyid'],
  ['all that players need', whole(fairPlay(CBCS) + widevine)],
  ['a version that has no KEYFORMAT', whole(fairPlay(CBCS), 4), 'W version_too_low'],
  ['an address without quotes', whole(fairPlay(CBCS).replace(/"(skd[^"]*)"/, '$1')), 'E not_quoted key.uri'],
  ['no KEYID for Widevine', whole(withoutId), 'W missing key.keyid'],
  // It has no KEYID.
  ['the older key format of Widevine', whole(withFormat(withoutId, 'com.widevine'))],
  [
    'its JSON',
    whole(
      withFormat(
        inline(Buffer.from('{"key_ids":["44da52ef4523098e6854777ee322681d"]}'), CBCS),
        'com.widevine',
      ),
    ),
  ],
  [
    'a key for ClearKey',
    withFormat(inline(CONTENT_KEY, CTR), 'org.w3.clearkey'),
    'W content_key_in_address key.uri',
  ],
  [
    'one in hex digits',
    withFormat(inline(Buffer.from(CONTENT_KEY.toString('hex')), CTR), 'org.w3.clearkey'),
    'W content_key_in_address key.uri',
  ],
  [
    "PlayReady's key format",
    whole(withFormat(widevine, 'com.microsoft.playready')),
    'E system_mismatch key.uri',
  ],
])('a key line is checked with %s', (_what, playlist, ...faults) => {
  expect(summary(playlist)).toEqual(['manifest', ...faults]);
});

test('each line is compared with its own box', () => {
  const lines = inline(boxOf('cenc'), 'SAMPLE-AES') + inline(boxOf('cbcs', [OTHER]), 'SAMPLE-AES');
  expect(check(lines).faults.map(({ description }) => description)).toEqual([
    'key[0].method is SAMPLE-AES (AESCBC), but the data in key[0].uri are for AESCTR; make them agree.',
    'key[1].keyid is in none of these boxes, so players ask for another key than the samples need; package again with ' +
      'boxes for it.',
  ]);
});

it.each([
  `#EXTM3U\n${'\u2028'.repeat(40_000)}#EXT-X-KEX`,
  `#EXTM3U\n${'#EXT-X-STREAM-INF:\u2028'.repeat(4000)}`,
  `#EXTM3U\n${'#EXT-X-MEDIA:\u2028'.repeat(4000)}`,
  `#EXTM3U\n#EXT-X-KEY:${'A'.repeat(250_000)}\n`,
  `AAAA${'='.repeat(60_000)}!`,
])('a text of line separators or padding, or a long line, takes no time: %.30j', async (text) => {
  expect(await processorMs(() => check(text))).toBeLessThan(400);
});
