import { check } from '../../../src/api/check';
import { swapKeyIdOrder } from '../../../src/drm/bytes';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../../src/drm/pssh';
import { rowsOf } from '../../support/rows-of';
import { segments } from '../../vectors/init-segments.json';
import { summary, valuesOf } from './checked';

const UUID = '44da52ef-4523-098e-6854-777ee322681d';
const KEY_ID = Buffer.from(UUID.replaceAll('-', ''), 'hex');
const SWAPPED = swapKeyIdOrder(KEY_ID);
const CENC = Buffer.from(segments[0]?.b64 ?? '', 'base64');

describe('a manifest', () => {
  const pssh = (keyId: Buffer) => buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keyId]).toString('base64');
  const box = (keyId: Buffer) => `<cenc:pssh>${pssh(keyId)}</cenc:pssh>`;
  const scheme = `<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cbcs" cenc:default_KID="${UUID}"/>`;
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
      'a box of another system: E system_mismatch': `${scheme}${system(box(KEY_ID)).replace('1077efec-c0b2-4d02-ace3-3c1e52e2fb4b', '9a04f079-9840-4286-ab92-e65be0885f95')}`,
      'a mistyped system id: E system_mismatch': `${scheme}${system(box(KEY_ID)).replace('1077efec', '1077efed')}`,
      'the common box in the element of ClearKey': `${scheme}${system(box(KEY_ID)).replace(COMMON_SYSTEM_ID, 'e2719d58-a985-b3c9-781a-b030af78d30e')}`,
      'an element that refers to another': `${scheme}<ContentProtection ref="a" schemeIdUri="urn:mpeg:dash:mp4protection:2011"/>`,
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

  it('shows neither an IV nor a key that stands in it', () => {
    const iv = '0x00112233445566778899aabbccddeeff';
    const inline = 'lnA03mLuxnL3toiRMxV4Zw==';
    const text = `${key(`URI="skd://a",${fairplay},IV=${iv}`)}\n${key(`URI="data:text/plain;base64,${inline}"`, 'AES-128')}`;
    const said = JSON.stringify(check(text, { reveal: true }));
    expect(said).not.toContain(iv.slice(2, 12));
    expect(said).not.toContain(inline.slice(0, 10));
  });
});

describe('a license address by itself', () => {
  it.each<[address: string, ...faults: string[]]>([
    ['skd://license.example/content'],
    ['http://license.example/', 'W plain_http address'],
    ['skd://ä', 'E invalid_address address'],
  ])('is checked: %s', (address, ...faults) => {
    expect(summary(address)).toEqual(['license_address', ...faults]);
    expect(summary(`"${address}"\n`)).toEqual(['license_address', ...faults]);
  });
});
