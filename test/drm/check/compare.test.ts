import { buildPsshBox } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { POST_MANUAL, POST_MANUAL_FILE, SWAPPED_KEY_ID } from '../../support/post-manual';
import { packagedManifest as manifest, packagedMedia as media } from '../../vectors/packaged-media';
import { codes, compare, left, said, UUID } from './checked';

const { cenc, fairplay, playready } = POST_MANUAL;
const SWAPPED_UUID = 'ef52da44-2345-8e09-6854-777ee322681d';
const OTHER_UUID = '0e58f5d7-4684-4199-a9b1-438646ef4775';

const PLAYLIST = manifest('fairplay/v.m3u8');
const CENC = { 'init.mp4': media('cenc/v.mp4'), 'stream.mpd': manifest('cenc/s.mpd') };
const FAIRPLAY = { 'fp.mp4': media('fairplay/v.mp4'), 'playlist.m3u8': PLAYLIST };
const KEY_FILE = { 'news.key': POST_MANUAL_FILE };
const DASH_ALONE = `${POST_MANUAL_FILE.split('\n').slice(0, 10).join('\n')}\n`;
const CHECKSUM = /.*checksum.*\n/;
/** Its DASH lines with another key id, and without the checksum that goes with the former. */
const withKeyId = (keyId: string) => DASH_ALONE.replace(cenc.keyid, keyId).replace(CHECKSUM, '');

describe('a key file and what was packaged with it', () => {
  it('agree', () => {
    expect(compare({ ...KEY_FILE, ...CENC, ...FAIRPLAY })).toEqual({
      compared: ['key_id', 'scheme', 'protection', 'checksum', 'license_address'],
      faults: [],
    });
  });

  it('agree as a body of the key-file API', () => {
    expect(codes({ 'body.json': JSON.stringify(POST_MANUAL), ...CENC, ...FAIRPLAY })).toEqual([]);
  });

  it('differ in the byte order of the key id', () => {
    const inputs = { 'news.key': withKeyId(SWAPPED_KEY_ID), 'init.mp4': media('cenc/v.mp4') };
    expect(said(inputs)).toEqual([
      `E key_id_byte_order: The byte order of the key id differs: init.mp4 has ${UUID} where news.key has ` +
        `${SWAPPED_UUID}; both must be big endian (as in a UUID), so ask the license server which one is ` +
        'right, and correct the other.',
    ]);
  });

  it('tell which of them has the wrong byte order when one contradicts itself', () => {
    const inputs = {
      'news.key': DASH_ALONE.replace(cenc.keyid, SWAPPED_KEY_ID),
      'stream.mpd': manifest('cenc/s.mpd'),
    };
    expect(said(inputs)).toEqual([expect.stringContaining(', so correct the one in news.key.')]);
  });

  it('tell which of them has the wrong byte order when one alone is a random UUID', () => {
    const keyFile = withKeyId('Dlj110aEQZmpsUOGRu9HdQ==');
    const mpd = manifest('two-keys/s.mpd').replaceAll(OTHER_UUID, 'd7f5580e-8446-9941-a9b1-438646ef4775');
    expect(said({ 'news.key': keyFile, 'stream.mpd': mpd })[0]).toContain(
      ', so correct the one in stream.mpd.',
    );
    const turned = withKeyId('1/VYDoRGmUGpsUOGRu9HdQ==');
    expect(said({ 'news.key': turned, 'init.mp4': media('two-keys/a.mp4') })[0]).toContain(
      ', so correct the one in news.key.',
    );
  });

  it('differ in the key id of boxes that come by themselves', () => {
    const box = buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [Buffer.alloc(16, 7)] }));
    expect(said({ ...KEY_FILE, 'box.bin': box })).toEqual([
      'E key_id_mismatch: The pssh boxes of box.bin name key id 07070707-0707-0707-0707-070707070707, but news.key ' +
        `has another one (${UUID}), so players ask for another key; check whether they are of one stream, then restart ` +
        'it so that the packager reads the key file again.',
    ]);
  });

  it('differ in the content key under one key id, of which the checksum tells', () => {
    const keyFile = DASH_ALONE.replace(cenc.contentkey, 'SvEMxZMGndWHIqCMoD45YA==').replace(CHECKSUM, '');
    expect(said({ 'news.key': keyFile, ...CENC })).toEqual(
      ['init.mp4', 'stream.mpd'].map(
        (name) =>
          `E checksum_mismatch: The PlayReady header in ${name} has the checksum of a different content key than ` +
          'news.key under the same key id; restart the stream so that the packager reads this key file, or write the ' +
          'key file again from the license server.',
      ),
    );
  });

  it('differ in the scheme', () => {
    expect(said({ 'news.key': DASH_ALONE, 'init.mp4': media('two-keys/v.mp4') })).toEqual([
      'E scheme_mismatch: init.mp4 is encrypted with cbcs (AESCBC), but news.key has AESCTR; package with the ' +
        'scheme of the key file, or write key-file lines for this scheme (FairPlay for cbcs) and restart the stream.',
    ]);
    const fairplayAlone = POST_MANUAL_FILE.split('\n').slice(10).join('\n');
    expect(codes({ 'news.key': fairplayAlone, ...FAIRPLAY })).toEqual([]);
    expect(codes({ 'news.key': fairplayAlone, 'init.mp4': media('cenc/v.mp4') })).toEqual([
      'E scheme_mismatch',
    ]);
  });

  it('differ in the FairPlay address', () => {
    const address = fairplay.laurl;
    expect(said({ ...KEY_FILE, 'playlist.m3u8': PLAYLIST.replace(address, 'skd://a/b') })).toEqual([
      `E license_address_differs: playlist.m3u8 has the FairPlay address skd://a/b, but news.key has another one ` +
        `(${address}); check whether they are of one stream, then restart it.`,
    ]);
    expect(said({ ...KEY_FILE, 'playlist.m3u8': PLAYLIST.replace(address, `${address}?x=1`) })).toEqual([
      `E license_address_differs: playlist.m3u8 has the FairPlay address of news.key with something appended ` +
        `(${address}?x=1); set cupertinoAppendQueryParamsToEncUrl to false in the packager.`,
    ]);
  });

  it('differ in the PlayReady address, in a manifest as in a header', () => {
    const address = 'https://other.example/rm?a=1&amp;b=2';
    const mpd = manifest('cenc/s.mpd').replaceAll(
      '<mspr:pro>',
      `<dashif:Laurl>${address}</dashif:Laurl><mspr:pro>`,
    );
    expect(said({ ...KEY_FILE, 'stream.mpd': mpd })).toEqual([
      'W license_address_differs: stream.mpd has the PlayReady license address https://other.example/rm?a=1&b=2, ' +
        `but news.key has another one (${playready.laurl}); check which server has the key, and restart the stream if ` +
        'the key file was changed.',
    ]);
    const inCapitals = playready.laurl.replace(/.*\//, (start) => start.toUpperCase());
    expect(codes({ ...KEY_FILE, 'stream.mpd': mpd.replaceAll(address, inCapitals) })).toEqual([]);
    const header = `<WRMHEADER version="4.0.0.0"><DATA><LA_URL>https://other.example/</LA_URL></DATA></WRMHEADER>`;
    expect(codes({ ...KEY_FILE, 'header.xml': header })).toEqual(['W license_address_differs']);
  });

  it('differ in the IV, which is not shown', () => {
    const withIv = (iv: string) => PLAYLIST.replace(',KEYFORMATVERSIONS', `,IV=0x${iv},KEYFORMATVERSIONS`);
    const iv = '00112233445566778899aabbccddeeff';
    expect(codes({ ...KEY_FILE, 'playlist.m3u8': withIv(fairplay.iv.toLowerCase()) })).toEqual([]);
    const [fault] = compare({ ...KEY_FILE, 'playlist.m3u8': withIv(iv) }, true).faults;
    expect(fault).toEqual({
      severity: 'error',
      code: 'iv_mismatch',
      inputs: ['playlist.m3u8', 'news.key'],
      description:
        'The FairPlay IV in playlist.m3u8 differs from the one in news.key; set cupertinostreaming-aes128-iv-include-in-chunklist ' +
        'to false, and restart the stream.',
    });
  });

  it('differ in the content id of their Widevine data', () => {
    const data = buildWidevinePsshData({ keyIds: [], contentId: Buffer.from('weather') });
    const box = buildPsshBox(WIDEVINE_SYSTEM_ID, data);
    expect(said({ ...KEY_FILE, 'box.bin': box })).toEqual([
      'W content_id_mismatch: The Widevine data in box.bin names content id weather, but news.key has another ' +
        'one (d7a29956-2980-4338-b627-87c1f079e091); check whether they are of one stream, and restart it if the key file ' +
        'was changed.',
    ]);
  });

  it('differ where one protects and the other does not', () => {
    const clear = {
      'stream.mpd': manifest('clear/s.mpd'),
      'playlist.m3u8': manifest('clear/v.m3u8'),
      'init.mp4': media('clear/v.mp4'),
      'master.m3u8': manifest('clear/master.m3u8'),
    };
    const sentence = (name: string, remedy: string) =>
      `E not_protected: ${name} is not protected, although news.key has keys; ${remedy}.`;
    const rename = 'give the key file the name of the stream, and restart the stream';
    expect(said({ ...KEY_FILE, ...clear })).toEqual(
      ['stream.mpd', 'playlist.m3u8', 'init.mp4'].map((name) => sentence(name, rename)),
    );
    expect(said({ 'news.key': DASH_ALONE, 'playlist.m3u8': manifest('clear/v.m3u8') })).toEqual([
      sentence('playlist.m3u8', 'add FairPlay or CMAF lines to the key file, which has no lines for HLS'),
    ]);
  });
});

describe('no difference is told', () => {
  it('of a manifest that names the keys of all renditions', () => {
    const mpd = manifest('two-keys/s.mpd').replaceAll('value="cbcs"', 'value="cenc"');
    expect(codes({ 'news.key': DASH_ALONE, 'stream.mpd': mpd })).toEqual([]);
  });

  it('of a key of FairPlay, which has no id in a key file', () => {
    const other = POST_MANUAL_FILE.replace(cenc.keyid, Buffer.alloc(16, 7).toString('base64'));
    expect(codes({ 'news.key': other.replace(CHECKSUM, ''), ...FAIRPLAY })).toEqual([]);
  });

  it('of the key ids of a stream that rotates its keys, but that it does', () => {
    const inputs = { ...KEY_FILE, 'init.mp4': media('rotation/v.mp4'), 'late.m4s': media('rotation/v4.m4s') };
    expect(codes(inputs)).toEqual(['W key_rotation', 'W key_rotation']);
    expect(codes({ ...KEY_FILE, 'first.m4s': media('rotation/v1.m4s') })).toEqual([]);
  });
});

describe('media and manifests without a key file', () => {
  it('agree', () => {
    expect(compare(CENC)).toEqual({ compared: ['key_id', 'scheme', 'checksum'], faults: [] });
    const both = {
      'v.mp4': media('two-keys/v.mp4'),
      'a.mp4': media('two-keys/a.mp4'),
      'stream.mpd': manifest('two-keys/s.mpd'),
      'a.m3u8': manifest('two-keys/a.m3u8'),
    };
    expect(codes(both)).toEqual([]);
    expect(codes({ 'init.mp4': media('rotation/v.mp4'), 'stream.mpd': manifest('rotation/s.mpd') })).toEqual(
      [],
    );
  });

  it('differ in key id and scheme', () => {
    expect(said({ 'a.mp4': media('two-keys/a.mp4'), 'stream.mpd': manifest('cenc/s.mpd') })).toEqual([
      `E key_id_mismatch: stream.mpd has key id ${UUID}, but a.mp4 has another one (${OTHER_UUID}), so players get ` +
        'no key for it; make both in one run of the packager.',
      'E scheme_mismatch: stream.mpd is encrypted with cenc (AESCTR), but a.mp4 has AESCBC; make both in one run of ' +
        'the packager.',
    ]);
  });

  it('differ where a rendition is in no manifest', () => {
    const inputs = { ...CENC, 'a.mp4': media('two-keys/a.mp4') };
    expect(codes(inputs)).toEqual(['E key_id_mismatch']);
  });

  it('differ where the manifest says nothing of the protection', () => {
    expect(said({ 'init.mp4': media('cenc/v.mp4'), 'stream.mpd': manifest('clear/s.mpd') })).toEqual([
      'E not_protected: stream.mpd does not signal the protection of init.mp4, so players request no license; package ' +
        'again with signalling.',
    ]);
  });

  it('differ where an init segment names no key and a media segment brings none', () => {
    const init = { 'init.mp4': media('rotation/v.mp4') };
    expect(codes({ ...init, 'v1.m4s': media('rotation/v1.m4s') })).toEqual([]);
    expect(said({ ...init, 'v1.m4s': media('cenc/v1.m4s') })).toEqual([
      'E all_zero: init.mp4 names no key (all zeros), and v1.m4s has none (seig); package again with a key id, or with ' +
        'key rotation.',
    ]);
  });
});

describe('key files among each other', () => {
  it('differ in the content key of one key id', () => {
    const other = POST_MANUAL_FILE.replace(cenc.contentkey, 'SvEMxZMGndWHIqCMoD45YA==');
    expect(said({ 'a.key': POST_MANUAL_FILE, 'b.key': POST_MANUAL_FILE, 'c.key': other })).toEqual([
      'E content_keys_differ: c.key and a.key share a key id but have different content keys; give each key its own id, ' +
        'or both the same key.',
    ]);
  });

  it('are counted where they are many', () => {
    const keyFiles = Object.fromEntries(
      [1, 2, 3, 4].map((number) => [`${number}.key`, withKeyId(Buffer.alloc(16, number).toString('base64'))]),
    );
    expect(said({ ...keyFiles, 'init.mp4': media('cenc/v.mp4') })).toEqual([
      `E key_id_mismatch: init.mp4 has key id ${UUID}, but the 4 key files have another one, so players get no key ` +
        'for it; check whether they are of one stream, then restart it so that the packager reads the key file again.',
    ]);
  });
});

describe('a comparison', () => {
  it('shows no secret that an address holds, unless asked', () => {
    const secret = 'abcdefgh12345678';
    const inputs = {
      ...KEY_FILE,
      'playlist.m3u8': PLAYLIST.replace(fairplay.laurl, `skd://a?token=${secret}`),
    };
    expect(JSON.stringify(compare(inputs))).not.toContain(secret);
    expect(JSON.stringify(compare(inputs, true))).toContain(secret);
  });

  it('takes away what an input asks for and another one brings', () => {
    const bare = media('cenc/v.mp4');
    const withoutBoxes = Buffer.from(bare.toString('latin1').replaceAll('pssh', 'free'), 'latin1');
    const segment = media('cenc/v1.m4s');
    const rotation = { 'stream.mpd': manifest('rotation/s.mpd') };
    expect(left({ 'v1.m4s': segment })).toEqual([['no_init_segment']]);
    expect(left({ 'v1.m4s': segment, 'init.mp4': bare })).toEqual([[], []]);
    expect(left({ 'init.mp4': withoutBoxes })).toEqual([['no_pssh_box']]);
    expect(left({ 'init.mp4': withoutBoxes, 'stream.mpd': manifest('cenc/s.mpd') })).toEqual([[], []]);
    expect(left(rotation)).toEqual([['names_nothing']]);
    expect(left({ ...rotation, 'init.mp4': media('rotation/v.mp4') })).toEqual([[], []]);
    expect(left({ 'stream.mpd': manifest('clear/s.mpd'), ...KEY_FILE })).toEqual([[], []]);
  });
});
