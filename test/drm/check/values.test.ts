import { check } from '../../../src/api/check';
import {
  buildPlayReadyObject,
  PLAYREADY_SYSTEM_ID as PLAYREADY_ID,
  playReadyObjectOf,
} from '../../../src/drm/playready';
import { buildPsshBox, COMMON_SYSTEM_ID as COMMON_ID } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID as WIDEVINE_ID } from '../../../src/drm/widevine';
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
const mp4Box = (type: string, ...parts: Uint8Array[]) => {
  const body = Buffer.concat([Buffer.from(type), ...parts]);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(body.length + 4);
  return Buffer.concat([size, body]);
};

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
  it.each<[what: string, text: string, ...expected: [kind: string, ...faults: string[]]]>([
    ['in base64url', WIDEVINE_BOX.toString('base64url'), 'pssh_box', 'W base64url'],
    ['without its padding', KEY_ID.toString('base64').replace('==', ''), 'key_id', 'W padding_missing'],
    ['with a wrong last letter', 'RNpS70UjSY6YVHd+4yJoHR==', 'key_id', 'W not_canonical'],
    ['in hex with colons', (KEY_ID.toString('hex').match(/../g) ?? []).join(':'), 'key_id', 'W separators'],
    ['with a blank at its end', `${base64(KEY_ID)} \n`, 'key_id', 'W white_space'],
    ['with a line feed at its end', `${base64(KEY_ID)}\n`, 'key_id'],
    [
      'broken over lines',
      `${base64(WIDEVINE_BOX).slice(0, 20)}\n${base64(WIDEVINE_BOX).slice(20)}`,
      'pssh_box',
      'W white_space',
    ],
    ['in quotes', `"${base64(WIDEVINE_BOX)}"`, 'pssh_box', 'W wrapped'],
    [
      'in the element of a manifest',
      `<cenc:pssh>${base64(WIDEVINE_BOX)}</cenc:pssh>`,
      'pssh_box',
      'W wrapped',
    ],
    ['in a data: address', `data:text/plain;base64,${base64(WIDEVINE_BOX)}`, 'pssh_box', 'W wrapped'],
    ['encoded twice', base64(Buffer.from(base64(WIDEVINE_BOX))), 'pssh_box', 'E encoded_twice'],
    ['of 15 bytes', base64(KEY_ID.subarray(1)), 'unknown', 'E wrong_length'],
    ['of many bytes that are nothing', base64(Buffer.alloc(100, 0xa5)), 'unknown', 'E unrecognised'],
    ['of zeros', base64(Buffer.alloc(16)), 'key_id', 'E all_zero'],
    ['of 16 hex digits as text', 'MjlkMzNlYzVjYWIyZmRmZg==', 'key_id', 'W hex_text'],
    ["in PlayReady's byte order", base64(SWAPPED), 'key_id', 'W key_id_byte_order_suspected'],
    ['that is empty', ' \n', 'unknown', 'E empty'],
    ['that is nothing', 'nonsense?', 'unknown', 'E unrecognised'],
    ['that starts as JSON', '{"cenc":', 'unknown', 'E malformed_json'],
    ['that is too long', 'A'.repeat(1024 * 1024 + 1), 'unknown', 'E too_long'],
  ])('is read %s', (_what, text, ...expected) => {
    expect(summary(text)).toEqual(expected);
    expect(summary({ value: text })).toEqual(expected);
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

  it('are found in an init segment', () => {
    const moov = mp4Box('moov', mp4Box('mvhd', Buffer.alloc(20)), WIDEVINE_BOX, PLAYREADY_BOX);
    const codes = ['init_segment', 'W not_protected'];
    expect(summary(base64(mp4Box('ftyp', Buffer.from('isom')), moov))).toEqual(codes);
    expect(check(base64(moov)).fields.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['box[0].system', 'box[1].system']),
    );
    expect(summary(base64(mp4Box('moov', mp4Box('mvhd'))))).toEqual(codes);
  });

  const swappedObject = playReadyObjectOf(SWAPPED, KEY, 'https://license.example/');
  it.each<[what: string, bytes: Buffer, ...faults: string[]]>([
    ['a box cut short', WIDEVINE_BOX.subarray(0, 45), 'E malformed_box'],
    ['a second box cut short', Buffer.concat([COMMON_BOX, WIDEVINE_BOX.subarray(0, 45)]), 'E malformed_box'],
    ['bytes after the last box', Buffer.concat([WIDEVINE_BOX, Buffer.from('abc')]), 'E malformed_box'],
    ['a box in a box', buildPsshBox(WIDEVINE_ID, WIDEVINE_BOX), 'E box_in_box'],
    ['an object in a box of Widevine', buildPsshBox(WIDEVINE_ID, PLAYREADY), 'E data_of_other_system'],
    ['Widevine data in a box of PlayReady', buildPsshBox(PLAYREADY_ID, WIDEVINE), 'E data_of_other_system'],
    [
      'a header without its object',
      buildPsshBox(PLAYREADY_ID, PLAYREADY.subarray(10)),
      'E header_for_object',
    ],
    ['an empty box of Widevine', buildPsshBox(WIDEVINE_ID, NOTHING), 'E malformed_data'],
    ['a common box without key ids', buildPsshBox(COMMON_ID, NOTHING), 'E names_nothing'],
    ['a common box with data', buildPsshBox(COMMON_ID, KEY_ID, [KEY_ID]), 'W data_in_common_box'],
    ['an unknown system', buildPsshBox('00112233-4455-6677-8899-aabbccddeeff', KEY_ID)],
    [
      'a PlayReady header with the key id in big endian',
      Buffer.concat([WIDEVINE_BOX, buildPsshBox(PLAYREADY_ID, swappedObject)]),
      'W key_id_byte_order_suspected',
      'E key_id_byte_order',
    ],
    [
      'boxes of two keys',
      Buffer.concat([WIDEVINE_BOX, buildPsshBox(COMMON_ID, NOTHING, [KEY])]),
      'W key_id_mismatch',
    ],
    [
      'data that name another key than their box',
      buildPsshBox(WIDEVINE_ID, WIDEVINE, [KEY]),
      'W key_id_mismatch',
    ],
  ])('are named that have %s', (_what, bytes, ...faults) => {
    expect(summary(base64(bytes))).toEqual(['pssh_box', ...faults]);
    expect(summary(bytes.toString('hex'))).toEqual(['pssh_box', ...faults]);
  });

  it('do not make an answer far larger than they are', () => {
    const { fields, faults } = check(base64(...Array<Buffer>(1000).fill(COMMON_BOX)));
    expect(fields).toHaveLength(300);
    expect(faults.map(({ code }) => code)).toEqual(['cut_short']);
  });
});

describe('Widevine data', () => {
  it.each<[what: string, data: Parameters<typeof buildWidevinePsshData>[0], ...faults: string[]]>([
    ['neither key id nor content id', { keyIds: [], provider: 'p' }, 'W names_nothing'],
    ['a scheme that is none', { keyIds: [KEY_ID], protectionScheme: 0x636e6563 }, 'E unknown_scheme'],
    ["a key id in PlayReady's order", { keyIds: [SWAPPED] }, 'W key_id_byte_order_suspected'],
    ['a content id that is no text', { keyIds: [KEY_ID], contentId: Buffer.from([1, 2, 255]) }],
  ])('is named that has %s', (_what, data, ...faults) => {
    expect(summary(base64(buildWidevinePsshData(data)))).toEqual(['widevine_pssh_data', ...faults]);
  });
});

describe('a PlayReady header', () => {
  it.each<[what: string, xml: string, ...faults: string[]]>([
    ['4.1.0.0', header('4.1.0.0', `<PROTECTINFO>${kid('AESCTR')}</PROTECTINFO>`)],
    ['4.2.0.0 with two keys', header('4.2.0.0', kids(kid('AESCTR'), kid('AESCTR')))],
    ['4.3.0.0 with AESCBC', CBC],
    ['4.3.0.0 without ALGID', header('4.3.0.0', kids(`<KID VALUE="${KID}"></KID>`))],
    ['AESCBC before 4.3.0.0', header('4.2.0.0', kids(kid('AESCBC'))), 'E algorithm_against_version'],
    [
      'a checksum and AESCBC',
      header('4.3.0.0', kids(kid('AESCBC', ' CHECKSUM="pcTs6CEp98A="'))),
      'E checksum_with_aescbc',
    ],
    ['two algorithms', header('4.3.0.0', kids(kid('AESCTR'), kid('AESCBC'))), 'E algorithms_differ'],
    ['an unknown algorithm', header('4.2.0.0', kids(kid('AESXTS'))), 'E unknown_algorithm'],
    ['no algorithm', header('4.2.0.0', kids(`<KID VALUE="${KID}"></KID>`)), 'E algorithm_missing'],
    ['4.0.0.0 with two keys', header('4.0.0.0', `${INFO}<KID>${KID}</KID><KID>${KID}</KID>`), 'E key_count'],
    ['4.0.0.0 without a key', header('4.0.0.0', INFO), 'E key_count'],
    ['4.0.0.0 with the layout of 4.2', header('4.0.0.0', kids(kid('AESCTR'))), 'E version_against_layout'],
    ['KEYLEN 7', header('4.0.0.0', `${INFO.replace('16', '7')}<KID>${KID}</KID>`), 'E key_length'],
    ['no such version', header('4.4.0.0', kids(kid('AESCTR'))), 'E unknown_version'],
    [
      'a key id in big endian',
      header('4.0.0.0', `${INFO}<KID>${base64(KEY_ID)}</KID>`),
      'W key_id_byte_order_suspected',
    ],
    [
      'white space in its address',
      header('4.0.0.0', `${INFO}<KID>${KID}</KID><LA_URL> https://a.example/ </LA_URL>`),
      'W white_space',
    ],
    [
      'attributes out of order',
      header('4.2.0.0', kids(`<KID VALUE="${KID}" ALGID="AESCTR"></KID>`)),
      'W attribute_order',
    ],
    [
      'an empty-element tag',
      header('4.2.0.0', kids(`<KID ALGID="AESCTR" VALUE="${KID}"/>`)),
      'W self_closing_element',
    ],
    ['an XML declaration', `<?xml version="1.0"?>${CBC}`, 'W xml_declaration'],
    ['no namespace', CBC.replace(/ xmlns="[^"]*"/, ''), 'E wrong_namespace'],
    ['another root', '<wrmheader></wrmheader>', 'E not_a_header'],
    ['XML that is cut short', CBC.slice(0, -5), 'E malformed_xml'],
  ])('is checked with %s', (_what, xml, ...faults) => {
    expect(summary(xml)).toEqual(['playready_header', ...faults]);
    expect(summary(utf16(xml).toString('base64'))).toEqual(['playready_header', ...faults]);
  });

  it.each<[what: string, bytes: Buffer, ...expected: [kind: string, ...faults: string[]]]>([
    ['in UTF-8', Buffer.from(CBC), 'playready_header', 'E not_utf16'],
    ['in UTF-16BE', utf16(CBC).swap16(), 'playready_header', 'E not_utf16'],
    [
      'without its last byte',
      utf16(CBC).subarray(0, -1),
      'playready_header',
      'E cut_short',
      'E malformed_xml',
    ],
    ['in an object cut short', PLAYREADY.subarray(0, -2), 'playready_object', 'E malformed_object'],
    [
      'in an object of two headers',
      buildPlayReadyObject([
        { type: 1, value: utf16(CBC) },
        { type: 1, value: utf16(CBC) },
      ]),
      'playready_object',
      'E header_count',
    ],
    [
      'missing in its object',
      buildPlayReadyObject([{ type: 9, value: Buffer.alloc(4) }]),
      'playready_object',
      'E header_count',
      'W unknown_record',
    ],
  ])('is checked %s', (_what, bytes, ...expected) => {
    expect(summary(base64(bytes))).toEqual(expected);
  });
});
