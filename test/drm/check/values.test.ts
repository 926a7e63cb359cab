import { check } from '../../../src/api/check';
import { formatUuid, swapKeyIdOrder } from '../../../src/drm/bytes';
import {
  buildPlayReadyObject,
  PLAYREADY_SYSTEM_ID as PLAYREADY_ID,
  playReadyObjectOf,
} from '../../../src/drm/playready';
import { buildPsshBox, COMMON_SYSTEM_ID as COMMON_ID } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID as WIDEVINE_ID } from '../../../src/drm/widevine';
import { rowsOf } from '../../support/rows-of';
import { brief } from './checked';

const KEY_ID = Buffer.from('44da52ef4523498e9854777ee322681d', 'hex');
const SWAPPED = Buffer.from('ef52da4423458e499854777ee322681d', 'hex');
const KEY = Buffer.from('967034de62eec672f7b6889133157867', 'hex');
const WIDEVINE = buildWidevinePsshData({ keyIds: [KEY_ID] });
const WIDEVINE_BOX = buildPsshBox(WIDEVINE_ID, WIDEVINE);
const PLAYREADY = playReadyObjectOf(KEY_ID, KEY, 'https://license.example/rightsmanager.asmx');
const PLAYREADY_BOX = buildPsshBox(PLAYREADY_ID, PLAYREADY);
const NOTHING = Buffer.alloc(0);
const COMMON_BOX = buildPsshBox(COMMON_ID, NOTHING, [KEY_ID]);

const utf16 = (xml: string) => Buffer.from(xml, 'utf16le');
const base64 = (...parts: Uint8Array[]) => Buffer.concat(parts).toString('base64');

function summary(input: unknown): [kind: string, ...faults: string[]] {
  const { kind, faults } = check(input);
  return [kind, ...brief(faults).map((fault) => fault.split(' ', 2).join(' '))];
}

function header(version: string, data: string, attributes = ''): string {
  return `<WRMHEADER xmlns="http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader" version="${version}"${attributes}><DATA>${data}</DATA></WRMHEADER>`;
}
const KID = SWAPPED.toString('base64');
const INFO = '<PROTECTINFO><KEYLEN>16</KEYLEN><ALGID>AESCTR</ALGID></PROTECTINFO>';
const kids = (...kid: string[]) => `<PROTECTINFO><KIDS>${kid.join('')}</KIDS></PROTECTINFO>`;
const kid = (algorithm: string, rest = '') => `<KID ALGID="${algorithm}"${rest} VALUE="${KID}"></KID>`;

const CBC = header('4.3.0.0', kids(kid('AESCBC')));

describe('one value', () => {
  it.each(
    rowsOf({
      'in base64url: pssh_box, W base64url': WIDEVINE_BOX.toString('base64url'),
      'without its padding: key_id, W padding_missing': KEY_ID.toString('base64').replace('==', ''),
      'with a wrong last letter: key_id, W not_canonical': 'RNpS70UjSY6YVHd+4yJoHR==',
      'in hex with colons: key_id, W separators': (KEY_ID.toString('hex').match(/../g) ?? []).join(':'),
      'with a blank at its end: key_id, W white_space': `${base64(KEY_ID)} \n`,
      'as a URN: key_id': `urn:uuid:${formatUuid(KEY_ID)}`,
      'with a line feed at its end: key_id': `${base64(KEY_ID)}\n`,
      'broken over lines: pssh_box, W white_space': `${base64(WIDEVINE_BOX).slice(0, 20)}\n${base64(WIDEVINE_BOX).slice(20)}`,
      'in quotes: pssh_box, W wrapped': `"${base64(WIDEVINE_BOX)}"`,
      'in the element of a manifest: pssh_box, W wrapped': `<cenc:pssh>${base64(WIDEVINE_BOX)}</cenc:pssh>`,
      'in a data: address: pssh_box, W wrapped': `data:text/plain;base64,${base64(WIDEVINE_BOX)}`,
      'encoded twice: pssh_box, E encoded_twice': base64(Buffer.from(base64(WIDEVINE_BOX))),
      'of Widevine with the length of a key id: widevine_pssh_data': base64(
        buildWidevinePsshData({ keyIds: [], contentId: KEY.subarray(8), protectionScheme: 0x63656e63 }),
      ),
      'of 15 bytes: unknown, E wrong_length': base64(KEY_ID.subarray(1)),
      'of many bytes that are nothing: unknown, E unrecognised': base64(Buffer.alloc(100, 0xa5)),
      'of zeros: key_id, E all_zero': base64(Buffer.alloc(16)),
      'of 16 hex digits as text: key_id, W hex_text': 'MjlkMzNlYzVjYWIyZmRmZg==',
      "in PlayReady's byte order: key_id, W key_id_byte_order_suspected": base64(SWAPPED),
      'that is empty: unknown, E empty': ' \n',
      'that is nothing: unknown, E unrecognised': 'nonsense?',
      'that starts as JSON: unknown, E malformed_json': '{"cenc":',
      'that is too long: unknown, E too_long': 'A'.repeat(1024 * 1024 + 1),
    }),
  )('is read %s', (_what, text, expected) => {
    expect(summary(text)).toEqual(expected);
    expect(summary({ value: text })).toEqual(expected);
  });

  it('that is a transport stream is for verify', () => {
    const { faults } = check(base64(Buffer.alloc(376, Buffer.alloc(188, 0xff).fill(0x47, 0, 1))));
    expect(faults.map(({ description }) => description)).toEqual([
      'The value is a transport stream, which packager-drm verify tests by its playlist.',
    ]);
  });

  it.each([[5], [null], [[]], [undefined], [{ value: 5 }]])('must be a text or an object: %j', (input) => {
    expect(summary(input)).toEqual(['unknown', 'E wrong_type']);
  });
});

describe('boxes', () => {
  it('are shown one after another, and agree on the key id', () => {
    const list = base64(WIDEVINE_BOX, PLAYREADY_BOX, COMMON_BOX);
    expect(summary(list)).toEqual(['pssh_box']);
    const { fields } = check(list);
    expect(fields.filter(({ name }) => name.endsWith('.system')).map(({ note }) => note)).toEqual([
      'Widevine',
      'PlayReady',
      'W3C common',
    ]);
    const ids = fields.filter(({ name }) => /key_id(\[\d\])?$/.test(name));
    expect(ids.map(({ value }) => value)).toEqual(Array(3).fill('44da52ef-4523-498e-9854-777ee322681d'));
  });

  it('of Widevine are shown with all that their data have', () => {
    const texts = { provider: 'acme', trackType: 'HD', policy: 'strict' };
    const numbers = { cryptoPeriodIndex: 7, cryptoPeriodSeconds: 60 };
    const data = buildWidevinePsshData({ keyIds: [], ...texts, ...numbers, groupedLicense: Buffer.alloc(9) });
    const { fields } = check(base64(buildPsshBox(WIDEVINE_ID, data)));
    expect(fields.slice(3).map(({ name, value }) => `${name.replace('box.data.', '')} ${value}`)).toEqual([
      ...['provider acme', 'track_type HD', 'policy strict', 'crypto_period_index 7'],
      ...['grouped_license 9 bytes', 'crypto_period_seconds 60'],
    ]);
  });

  it('of PlayReady are shown with all their keys', () => {
    const other = kid('AESCTR').replace(KID, swapKeyIdOrder(KEY).toString('base64'));
    const more =
      '<DS_ID>x</DS_ID><DECRYPTORSETUP>ONDEMAND</DECRYPTORSETUP><CUSTOMATTRIBUTES></CUSTOMATTRIBUTES>';
    const { fields } = check(header('4.3.0.0', kids(kid('AESCTR'), other) + more));
    const ids = fields.filter(({ name }) => name.endsWith('key_id'));
    expect(ids.map(({ name, value }) => `${name} ${value}`)).toEqual([
      `key[0].key_id ${formatUuid(KEY_ID)}`,
      `key[1].key_id ${formatUuid(KEY)}`,
    ]);
    expect(fields.slice(-3).map(({ name, value }) => `${name} ${value}`)).toEqual([
      ...['ds_id x', 'decryptorsetup ONDEMAND', 'customattributes present'],
    ]);
  });

  const swappedObject = playReadyObjectOf(SWAPPED, KEY, 'https://license.example/');
  it.each(
    rowsOf({
      'a box cut short: E malformed_box': WIDEVINE_BOX.subarray(0, 45),
      'bytes after the last box: E malformed_box': Buffer.concat([WIDEVINE_BOX, Buffer.from('abc')]),
      'a box in a box: E box_in_box': buildPsshBox(WIDEVINE_ID, WIDEVINE_BOX),
      'an object in a box of Widevine: E data_of_other_system': buildPsshBox(WIDEVINE_ID, PLAYREADY),
      'Widevine data in a box of PlayReady: E data_of_other_system': buildPsshBox(PLAYREADY_ID, WIDEVINE),
      'a header without its object: E header_for_object': buildPsshBox(PLAYREADY_ID, PLAYREADY.subarray(10)),
      'an empty box of Widevine: E malformed_data': buildPsshBox(WIDEVINE_ID, NOTHING),
      'a common box without key ids: E names_nothing': buildPsshBox(COMMON_ID, NOTHING),
      'a common box with data: W data_in_common_box': buildPsshBox(COMMON_ID, KEY_ID, [KEY_ID]),
      'an unknown system': buildPsshBox('00112233-4455-6677-8899-aabbccddeeff', KEY_ID),
      'a PlayReady header with the key id in big endian: W key_id_byte_order_suspected, E key_id_byte_order':
        Buffer.concat([WIDEVINE_BOX, buildPsshBox(PLAYREADY_ID, swappedObject)]),
      'data that name another key than their box: W key_id_mismatch': buildPsshBox(WIDEVINE_ID, WIDEVINE, [
        KEY,
      ]),
    }),
  )('are named that have %s', (_what, bytes, faults) => {
    expect(summary(base64(bytes))).toEqual(['pssh_box', ...faults]);
    expect(summary(bytes.toString('hex'))).toEqual(['pssh_box', ...faults]);
  });

  it('do not make an answer far larger than they are', () => {
    const { fields, faults } = check(base64(...Array<Buffer>(1000).fill(COMMON_BOX)));
    expect(fields).toHaveLength(300);
    expect(faults.map(({ code }) => code)).toEqual(['cut_short']);
  });
});

test.each<[what: string, data: Parameters<typeof buildWidevinePsshData>[0], ...faults: string[]]>([
  ['a scheme that is none', { keyIds: [KEY_ID], protectionScheme: 0x636e6563 }, 'E unknown_scheme'],
  ['a content id that is no text', { keyIds: [KEY_ID], contentId: Buffer.from([1, 2, 255]) }],
])('Widevine data are named that have %s', (_what, data, ...faults) => {
  expect(summary(base64(buildWidevinePsshData(data)))).toEqual(['widevine_pssh_data', ...faults]);
});

describe('a PlayReady header', () => {
  it.each(
    rowsOf({
      '4.1.0.0': header('4.1.0.0', `<PROTECTINFO>${kid('AESCTR')}</PROTECTINFO>`),
      '4.3.0.0 with AESCBC': CBC,
      '4.3.0.0 without ALGID': header('4.3.0.0', kids(`<KID VALUE="${KID}"></KID>`)),
      'AESCBC before 4.3.0.0: E algorithm_against_version': header('4.2.0.0', kids(kid('AESCBC'))),
      'a checksum and AESCBC: E checksum_with_aescbc': header(
        '4.3.0.0',
        kids(kid('AESCBC', ' CHECKSUM="pcTs6CEp98A="')),
      ),
      'two algorithms: E algorithms_differ': header('4.3.0.0', kids(kid('AESCTR'), kid('AESCBC'))),
      'an unknown algorithm: E unknown_algorithm': header('4.2.0.0', kids(kid('AESXTS'))),
      'no algorithm: E algorithm_missing': header('4.2.0.0', kids(`<KID VALUE="${KID}"></KID>`)),
      '4.0.0.0 with two keys: E key_count': header('4.0.0.0', `${INFO}<KID>${KID}</KID><KID>${KID}</KID>`),
      '4.0.0.0 without a key: E key_count': header('4.0.0.0', INFO),
      '4.0.0.0 with the layout of 4.2: E version_against_layout': header('4.0.0.0', kids(kid('AESCTR'))),
      'KEYLEN 7: E key_length': header('4.0.0.0', `${INFO.replace('16', '7')}<KID>${KID}</KID>`),
      'no such version: E unknown_version': header('4.4.0.0', kids(kid('AESCTR'))),
      'white space in its address: W white_space': header(
        '4.0.0.0',
        `${INFO}<KID>${KID}</KID><LA_URL> https://a.example/ </LA_URL>`,
      ),
      'attributes out of order: W attribute_order': header(
        '4.2.0.0',
        kids(`<KID VALUE="${KID}" ALGID="AESCTR"></KID>`),
      ),
      'an XML declaration: W xml_declaration': `<?xml version="1.0"?>${CBC}`,
      'no namespace: E wrong_namespace': CBC.replace(/ xmlns="[^"]*"/, ''),
      'another root: E not_a_header': '<wrmheader></wrmheader>',
      'XML that is cut short: E malformed_xml': CBC.slice(0, -5),
    }),
  )('is checked with %s', (_what, xml, faults) => {
    expect(summary(xml)).toEqual(['playready_header', ...faults]);
    expect(summary(utf16(xml).toString('base64'))).toEqual(['playready_header', ...faults]);
  });

  /** An object of so many bytes: a header, and a store of licenses. */
  const ofBytes = (length: number) => {
    const value = utf16(CBC);
    return buildPlayReadyObject([
      { type: 1, value },
      { type: 3, value: Buffer.alloc(length - value.length - 14) },
    ]);
  };

  it.each(
    rowsOf({
      'behind its mark: playready_header': utf16(`\ufeff${CBC}`),
      'in UTF-8: playready_header, E not_utf16': Buffer.from(CBC),
      'in UTF-16BE: playready_header, E not_utf16': utf16(CBC).swap16(),
      'without its last byte: playready_header, E cut_short, E malformed_xml': utf16(CBC).subarray(0, -1),
      'in an object cut short: playready_object, E malformed_object': PLAYREADY.subarray(0, -2),
      'missing in its object: playready_object, E header_count, W unknown_record': buildPlayReadyObject([
        { type: 9, value: Buffer.alloc(4) },
      ]),
      'in an object of 15 KB: playready_object': ofBytes(15 * 1024),
      'in a longer object: playready_object, W too_long': ofBytes(15 * 1024 + 1),
    }),
  )('is checked %s', (_what, bytes, expected) => {
    expect(summary(base64(bytes))).toEqual(expected);
  });

  // At an odd address, and one byte too long: Node 24 wrote past the text's memory, which ended the process. Each place
  // in a block of memory that the text may end at comes often.
  test('behind a record of odd length, cut short, is read at any length', () => {
    for (let length = 0; length < 2000; length += 3) {
      const value = Buffer.concat([utf16(CBC + ' '.repeat(length)), Buffer.alloc(1)]);
      const object = buildPlayReadyObject([
        { type: 3, value: Buffer.alloc(1) },
        { type: 1, value },
      ]);
      expect(summary(base64(object))).toEqual(['playready_object', 'E cut_short']);
    }
  });
});
