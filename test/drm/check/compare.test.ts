import { buildPsshBox } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID, type WidevinePsshData } from '../../../src/drm/widevine';
import { POST_MANUAL, POST_MANUAL_FILE, SWAPPED_KEY_ID } from '../../support/post-manual';
import { packagedManifest as manifest, packagedMedia as media } from '../../vectors/packaged-media';
import { codes, compare, type Inputs, left, said, UUID } from './checked';

const { cenc, fairplay, playready } = POST_MANUAL;
const SWAPPED_UUID = 'ef52da44-2345-8e09-6854-777ee322681d';
const OTHER_UUID = '0e58f5d7-4684-4199-a9b1-438646ef4775';

const INIT = { 'init.mp4': media('cenc/v.mp4') };
const CBCS = { 'init.mp4': media('two-keys/v.mp4') };
const SOUND = { 'a.mp4': media('two-keys/a.mp4') };
const ROTATION = { 'init.mp4': media('rotation/v.mp4') };
const MPD = { 'stream.mpd': manifest('cenc/s.mpd') };
const CLEAR_MPD = { 'stream.mpd': manifest('clear/s.mpd') };
const CLEAR_PLAYLIST = { 'playlist.m3u8': manifest('clear/v.m3u8') };
const ROTATION_MPD = { 'stream.mpd': manifest('rotation/s.mpd') };
const TWO_KEYS = { 'stream.mpd': manifest('two-keys/s.mpd') };
const CENC = { ...INIT, ...MPD };

const KEY_FILE = { 'news.key': POST_MANUAL_FILE };
const FAIRPLAY_ALONE = { 'news.key': POST_MANUAL_FILE.split('\n').slice(10).join('\n') };
const DASH_LINES = `${POST_MANUAL_FILE.split('\n').slice(0, 10).join('\n')}\n`;
const DASH_ALONE = { 'news.key': DASH_LINES };
const OTHER_KEY = 'SvEMxZMGndWHIqCMoD45YA==';
const CHECKSUM = /.*checksum.*\n/;
/** Its DASH lines with another key id, and without the checksum that goes with the former. */
const withKeyId = (keyId: string) => DASH_LINES.replace(cenc.keyid, keyId).replace(CHECKSUM, '');
const ofByte = (byte: number) => Buffer.alloc(16, byte).toString('base64');

const PLAYLIST = manifest('fairplay/v.m3u8');
const FAIRPLAY = { 'fp.mp4': media('fairplay/v.mp4'), 'playlist.m3u8': PLAYLIST };
const withAddress = (address: string) => ({ 'playlist.m3u8': PLAYLIST.replace(fairplay.laurl, address) });
/** A manifest with a license address of PlayReady, as XML has it. */
const withLaurl = (address: string) => {
  const element = `<dashif:Laurl>${address}</dashif:Laurl>`;
  return { 'stream.mpd': MPD['stream.mpd'].replaceAll('<mspr:pro>', `${element}<mspr:pro>`) };
};
const withIv = (iv: string) => ({
  'playlist.m3u8': PLAYLIST.replace(',KEYFORMATVERSIONS', `,IV=0x${iv},KEYFORMATVERSIONS`),
});
const box = (data: Partial<WidevinePsshData>) => ({
  'box.bin': buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [], ...data })),
});
const numbered = Object.fromEntries([1, 2, 3, 4].map((byte) => [`${byte}.key`, withKeyId(ofByte(byte))]));

it('a key file and what was packaged with it agree, by all that is compared', () => {
  expect(compare({ ...KEY_FILE, ...CENC, ...FAIRPLAY })).toEqual({
    compared: ['key_id', 'scheme', 'protection', 'checksum', 'license_address'],
    faults: [],
  });
  expect(compare(CENC)).toEqual({ compared: ['key_id', 'scheme', 'checksum'], faults: [] });
});

it.each<[what: string, inputs: Inputs, ...sentences: string[]]>([
  [
    'the byte order of the key id',
    { 'news.key': withKeyId(SWAPPED_KEY_ID), ...INIT },
    `E key_id_byte_order: The byte order of the key id differs: init.mp4 has ${UUID} where news.key has ` +
      `${SWAPPED_UUID}; both must be big endian (as in a UUID), so ask the license server which one is ` +
      'right, and correct the other.',
  ],
  [
    'the key id of boxes that come by themselves',
    { ...KEY_FILE, ...box({ keyIds: [Buffer.alloc(16, 7)] }) },
    'E key_id_mismatch: The pssh boxes of box.bin name key id 07070707-0707-0707-0707-070707070707, but news.key ' +
      `has another one (${UUID}), so players ask for another key; check whether they are of one stream, then restart ` +
      'it so that the packager reads the key file again.',
  ],
  [
    'the key id of all of many key files',
    { ...numbered, ...INIT },
    `E key_id_mismatch: init.mp4 has key id ${UUID}, but the 4 key files have another one, so players get no key ` +
      'for it; check whether they are of one stream, then restart it so that the packager reads the key file again.',
  ],
  [
    'the content key under one key id, which the checksum shows',
    { 'news.key': DASH_LINES.replace(cenc.contentkey, OTHER_KEY).replace(CHECKSUM, ''), ...MPD },
    'E checksum_mismatch: The PlayReady header in stream.mpd has the checksum of a different content key than ' +
      'news.key under the same key id; restart the stream so that the packager reads this key file, or write the ' +
      'key file again from the license server.',
  ],
  [
    'the content key of one key id in two key files',
    { 'a.key': DASH_LINES, 'b.key': DASH_LINES, 'c.key': DASH_LINES.replace(cenc.contentkey, OTHER_KEY) },
    'E content_keys_differ: c.key and a.key share a key id but have different content keys; give each key its own id, ' +
      'or both the same key.',
  ],
  [
    'the scheme',
    { ...DASH_ALONE, ...CBCS },
    'E scheme_mismatch: init.mp4 is encrypted with cbcs (AESCBC), but news.key has AESCTR; package with the ' +
      'scheme of the key file, or write key-file lines for this scheme (FairPlay for cbcs) and restart the stream.',
  ],
  [
    'key id and scheme, without a key file',
    { ...SOUND, ...MPD },
    `E key_id_mismatch: stream.mpd has key id ${UUID}, but a.mp4 has another one (${OTHER_UUID}), so players get ` +
      'no key for it; make both in one run of the packager.',
    'E scheme_mismatch: stream.mpd is encrypted with cenc (AESCTR), but a.mp4 has AESCBC; make both in one run of ' +
      'the packager.',
  ],
  [
    'the FairPlay address',
    { ...KEY_FILE, ...withAddress('skd://a/b') },
    `E license_address_differs: playlist.m3u8 has the FairPlay address skd://a/b, but news.key has another one ` +
      `(${fairplay.laurl}); check whether they are of one stream, then restart it.`,
  ],
  [
    'the FairPlay address, with something behind it',
    { ...KEY_FILE, ...withAddress(`${fairplay.laurl}?x=1`) },
    `E license_address_differs: playlist.m3u8 has the FairPlay address of news.key with something appended ` +
      `(${fairplay.laurl}?x=1); set cupertinoAppendQueryParamsToEncUrl to false in the packager.`,
  ],
  [
    'the PlayReady address',
    { ...KEY_FILE, ...withLaurl('https://other.example/rm?a=1&amp;b=2') },
    'W license_address_differs: stream.mpd has the PlayReady license address https://other.example/rm?a=1&b=2, ' +
      `but news.key has another one (${playready.laurl}); check which server has the key, and restart the stream if ` +
      'the key file was changed.',
  ],
  [
    'the content id of their Widevine data',
    { ...KEY_FILE, ...box({ contentId: Buffer.from('weather') }) },
    'W content_id_mismatch: The Widevine data in box.bin names content id weather, but news.key has another ' +
      'one (d7a29956-2980-4338-b627-87c1f079e091); check whether they are of one stream, and restart it if the key file ' +
      'was changed.',
  ],
  [
    'whether the manifest signals protection',
    { ...INIT, ...CLEAR_MPD },
    'E not_protected: stream.mpd does not signal the protection of init.mp4, so players request no license; package ' +
      'again with signalling.',
  ],
  [
    'whether one of init segment and media segment brings a key',
    { ...ROTATION, 'v1.m4s': media('cenc/v1.m4s') },
    'E all_zero: init.mp4 names no key (all zeros), and v1.m4s has none (seig); package again with a key id, or with ' +
      'key rotation.',
  ],
  ...Object.entries({ ...CLEAR_MPD, ...CLEAR_PLAYLIST, 'init.mp4': media('clear/v.mp4') }).map(
    ([name, text]): [string, Inputs, string] => [
      `whether they protect: ${name}`,
      { ...KEY_FILE, [name]: text, 'master.m3u8': manifest('clear/master.m3u8') },
      `E not_protected: ${name} is not protected, although news.key has keys; give the key file the name of the ` +
        'stream, and restart the stream.',
    ],
  ),
  [
    'whether they protect HLS',
    { ...DASH_ALONE, ...CLEAR_PLAYLIST },
    'E not_protected: playlist.m3u8 is not protected, although news.key has keys; add FairPlay or CMAF lines to the ' +
      'key file, which has no lines for HLS.',
  ],
])('inputs differ in %s', (_what, inputs, ...sentences) => {
  expect(said(inputs)).toEqual(sentences);
});

const RIGHT_ONE = manifest('two-keys/s.mpd').replaceAll(OTHER_UUID, 'd7f5580e-8446-9941-a9b1-438646ef4775');

it.each<[which: string, when: string, inputs: Inputs]>([
  ['news.key', 'contradicts itself', { 'news.key': DASH_LINES.replace(cenc.keyid, SWAPPED_KEY_ID), ...MPD }],
  ['news.key', 'is no random UUID', { 'news.key': withKeyId('1/VYDoRGmUGpsUOGRu9HdQ=='), ...SOUND }],
  ['stream.mpd', 'has none', { 'news.key': withKeyId('Dlj110aEQZmpsUOGRu9HdQ=='), 'stream.mpd': RIGHT_ONE }],
])('the byte order is reported as wrong in %s where its key id %s', (which, _when, inputs) => {
  expect(said(inputs)[0]).toContain(`, so correct the one in ${which}.`);
});

const IN_CAPITALS = playready.laurl.replace(/.*\//, (start) => start.toUpperCase());

it.each<[what: string, inputs: Inputs, ...codes: string[]]>([
  ['a body of the key-file API', { 'body.json': JSON.stringify(POST_MANUAL), ...CENC, ...FAIRPLAY }],
  ['FairPlay alone, but media for DASH', { ...FAIRPLAY_ALONE, ...INIT }, 'E scheme_mismatch'],
  ['a PlayReady address in capitals', { ...KEY_FILE, ...withLaurl(IN_CAPITALS) }],
  ['the IV of the key file', { ...KEY_FILE, ...withIv(fairplay.iv.toLowerCase()) }],
  [
    'the keys of all renditions',
    { ...DASH_ALONE, 'stream.mpd': TWO_KEYS['stream.mpd'].replaceAll('value="cbcs"', 'value="cenc"') },
  ],
  [
    'keys that rotate',
    { ...KEY_FILE, ...ROTATION, 'late.m4s': media('rotation/v4.m4s') },
    'W key_rotation',
    'W key_rotation',
  ],
  ['keys of FairPlay that rotate', { ...KEY_FILE, 'a.mp4': media('rotation-cbcs/a.mp4') }, 'W key_rotation'],
  ['the first of them', { ...KEY_FILE, 'first.m4s': media('rotation/v1.m4s') }],
  ['keys that rotate, and their manifest', { ...ROTATION, ...ROTATION_MPD }],
  ['a rendition in no manifest', { ...CENC, ...SOUND }, 'E key_id_mismatch'],
])('inputs agree, or not, with %s', (_what, inputs, ...expected) => {
  expect(codes(inputs)).toEqual(expected);
});

it('a different IV is reported, and not shown', () => {
  const [fault] = compare({ ...KEY_FILE, ...withIv('00112233445566778899aabbccddeeff') }, true).faults;
  expect(fault).toEqual({
    severity: 'error',
    code: 'iv_mismatch',
    inputs: ['playlist.m3u8', 'news.key'],
    description:
      'The FairPlay IV in playlist.m3u8 differs from the one in news.key; set cupertinostreaming-aes128-iv-include-in-chunklist ' +
      'to false, and restart the stream.',
  });
});

it('no secret that an address holds is shown, unless asked', () => {
  const secret = 'abcdefgh12345678';
  const inputs = { ...KEY_FILE, ...withAddress(`skd://a?token=${secret}`) };
  expect(JSON.stringify(compare(inputs))).not.toContain(secret);
  expect(JSON.stringify(compare(inputs, true))).toContain(secret);
});

it('a value that one input needs and another one has is not missing', () => {
  const withoutBoxes = Buffer.from(INIT['init.mp4'].toString('latin1').replaceAll('pssh', 'free'), 'latin1');
  const segment = media('cenc/v1.m4s');
  expect(left({ 'v1.m4s': segment })).toEqual([['no_init_segment']]);
  expect(left({ 'v1.m4s': segment, ...INIT })).toEqual([[], []]);
  expect(left({ 'init.mp4': withoutBoxes })).toEqual([['no_pssh_box']]);
  expect(left({ 'init.mp4': withoutBoxes, ...MPD })).toEqual([[], []]);
  expect(left(ROTATION_MPD)).toEqual([['names_nothing']]);
  expect(left({ ...ROTATION_MPD, ...ROTATION })).toEqual([[], []]);
  expect(left({ ...CLEAR_MPD, ...KEY_FILE })).toEqual([[], []]);
});
