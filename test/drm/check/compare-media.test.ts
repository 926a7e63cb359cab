import { chooseKeys } from '../../../src/drm/cpix/choose';
import { cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { fairPlayKeyId } from '../../../src/drm/packaging';
import { buildPlayReadyObject } from '../../../src/drm/playready';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { withFormerCmaf } from '../../support/former-cmaf';
import { FAIRPLAY, HD, MADE, madeCpix, PLAYREADY_URL, SD } from '../../support/made-cpix';
import { POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { packagedManifest as manifest, packagedMedia as media } from '../../vectors/packaged-media';
import { checkAll, codes, compare, type Inputs, left, said, withKeyId } from './checked';

/** A key file with DASH lines of cenc, CMAF lines of cbcs, and FairPlay. */
const BOTH = { 'news.key': withFormerCmaf(POST_MANUAL_FILE) };
const WITHOUT_CMAF = { 'news.key': POST_MANUAL_FILE };
const INIT = { 'init.mp4': media('cenc/v.mp4') };
const CBCS = { 'init.mp4': media('two-keys/v.mp4') };
const CLEAR = { 'init.mp4': media('clear/v.mp4') };
const MPD = { 'stream.mpd': manifest('cenc/s.mpd') };
const PLAYLIST = { 'playlist.m3u8': manifest('fairplay/v.m3u8') };
const AUDIO = { 'a.mp4': media('two-keys/a.mp4'), 'a.m3u8': manifest('two-keys/a.m3u8') };
const TWO_KEYS = { 'stream.mpd': manifest('two-keys/s.mpd') };

const SCHEME =
  'stream.mpd is encrypted with cenc (AESCTR), but init.mp4 has AESCBC; make both in one run of the packager.';
const withChecksum = (checksum: string) => ({
  'header.mpd': `<MPD xmlns:mspr="urn:microsoft:playready"><ContentProtection><mspr:pro>${objectWith(checksum)}</mspr:pro></ContentProtection></MPD>`,
});

/** A PlayReady object of the key id of the packaged media, with a checksum. */
function objectWith(checksum: string): string {
  const header =
    '<WRMHEADER xmlns="http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader" version="4.0.0.0"><DATA><PROTECTINFO>' +
    '<KEYLEN>16</KEYLEN><ALGID>AESCTR</ALGID></PROTECTINFO><KID>71LaRCNFjgloVHd+4yJoHQ==</KID>' +
    `<CHECKSUM>${checksum}</CHECKSUM></DATA></WRMHEADER>`;
  return buildPlayReadyObject([{ type: 1, value: Buffer.from(header, 'utf16le') }]).toString('base64');
}

describe('media and a manifest beside a key file', () => {
  it('differ in the scheme though the key file has lines for both', () => {
    expect(codes({ ...BOTH, ...INIT, ...MPD })).toEqual([]);
    expect(codes({ ...BOTH, ...CBCS, ...TWO_KEYS })).toEqual([]);
    expect(said({ ...BOTH, ...CBCS, ...MPD })).toEqual([`E scheme_mismatch: ${SCHEME}`]);
    expect(codes({ ...BOTH, ...INIT, ...PLAYLIST })).toEqual(['E scheme_mismatch']);
  });

  it('are warned of where another manifest has the scheme, for the manifest may be of other media', () => {
    expect(said({ ...BOTH, ...CBCS, ...MPD, ...PLAYLIST })).toEqual([
      `W scheme_mismatch: ${SCHEME} If stream.mpd belongs to other media, check it together with them.`,
    ]);
  });

  it('agree where a playlist for FairPlay, or a file of it, is of a manifest or media that are not there', () => {
    expect(codes({ ...BOTH, ...INIT, ...MPD, ...PLAYLIST })).toEqual([]);
    expect(codes({ ...BOTH, ...INIT, ...MPD, 'fp.mp4': media('fairplay/v.mp4') })).toEqual([]);
    const ofOtherKeyId = withKeyId(media('fairplay/v.mp4'), Buffer.alloc(16, 7));
    const inputs = { ...WITHOUT_CMAF, ...INIT, ...MPD, 'fp.mp4': ofOtherKeyId };
    expect(codes(inputs)).toEqual([]);
    expect(codes({ ...inputs, ...PLAYLIST })).toEqual([]);
  });

  it('agree where the key id of FairPlay is made of its address, and a box for ClearKey players names it', () => {
    const withBox = (keyId: Buffer) => {
      const box = buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keyId]);
      return { 'fp.mp4': Buffer.concat([withKeyId(media('fairplay/v.mp4'), keyId), box]) };
    };
    const own = fairPlayKeyId(POST_MANUAL.fairplay.laurl);
    expect(codes({ ...WITHOUT_CMAF, ...withBox(own) })).toEqual([]);
    expect(codes({ ...WITHOUT_CMAF, ...withBox(Buffer.alloc(16, 7)) })).toEqual(['E key_id_mismatch']);
  });

  it('differ in the key id where each key file vouches for one of them', () => {
    const audio = { cenc: { keyId: 'Dlj110aEQZmpsUOGRu9HdQ==', contentKey: 'SvEMxZMGndWHIqCMoD45YA==' } };
    const keyFiles = { ...BOTH, 'audio.key': withFormerCmaf(renderKeyFile(keyFileLines(audio))) };
    const ofKeyIds = (inputs: Inputs) => codes(inputs).filter((code) => code.includes('key_id'));
    expect(ofKeyIds({ ...keyFiles, ...CBCS, 'a.m3u8': AUDIO['a.m3u8'] })).toEqual(['E key_id_mismatch']);
    expect(ofKeyIds({ ...keyFiles, ...CBCS, ...AUDIO, ...TWO_KEYS })).toEqual([]);
    expect(ofKeyIds({ ...keyFiles, ...CBCS, ...TWO_KEYS, 'a.m3u8': AUDIO['a.m3u8'] })).toEqual([]);
  });

  it('are not told again of what the key file told', () => {
    const swapped = MPD['stream.mpd'].replaceAll(
      '44da52ef-4523-098e-6854-777ee322681d',
      'ef52da44-2345-8e09-6854-777ee322681d',
    );
    expect(codes({ ...BOTH, ...INIT, 'stream.mpd': swapped })).toEqual(['E key_id_byte_order']);
    const dashAlone = { 'news.key': BOTH['news.key'].split('\n').slice(0, 10).join('\n') };
    expect(codes({ ...dashAlone, ...CBCS, ...MPD })).toEqual(['E scheme_mismatch']);
    expect(codes({ ...BOTH, ...CLEAR, ...MPD })).toEqual(['E not_protected']);
    expect(codes({ ...BOTH, ...INIT, 'stream.mpd': manifest('clear/s.mpd') })).toEqual(['E not_protected']);
  });

  it('are compared with each other where the key file has no keys', () => {
    const inputs = { 'news.key': 'mpegdashstreaming-cenc-algorithm: AESCTR\n', ...CBCS, ...MPD };
    expect(said(inputs)).toEqual([`E scheme_mismatch: ${SCHEME}`]);
  });
});

describe('media and several manifests', () => {
  it('are warned of where one manifest may be of other media, but not where the byte order differs', () => {
    expect(codes({ ...CBCS, ...TWO_KEYS, 'a.m3u8': AUDIO['a.m3u8'] })).toEqual(['W key_id_mismatch']);
    const swapped = TWO_KEYS['stream.mpd'].replaceAll('44da52ef-4523-098e', 'ef52da44-2345-8e09');
    expect(codes({ ...CBCS, ...TWO_KEYS, 'old.mpd': swapped })).toEqual(['E key_id_byte_order']);
  });

  it('differ in the checksum of their PlayReady headers', () => {
    const right = /checksum\W+value\W+([\w+/]+=)/.exec(JSON.stringify(checkAll(INIT)[0]?.result.fields))?.[1];
    expect(right).toBeDefined();
    expect(compare({ ...INIT, ...withChecksum(right ?? '') })).toEqual({
      compared: ['key_id', 'checksum'],
      faults: [],
    });
    expect(said({ ...INIT, ...withChecksum('AAAAAAAAAAA=') })).toEqual([
      'E checksum_mismatch: The PlayReady headers in header.mpd and init.mp4 have different checksums under one key id; ' +
        'make both in one run of the packager.',
    ]);
  });
});

describe('clear media', () => {
  const sentence = (promising: string) =>
    `E not_protected: init.mp4 is not protected, although ${promising} signalling for protection; give the key file ` +
    'the name of the stream, and restart the stream.';

  it('differ from a manifest that promises protection', () => {
    expect(said({ ...CLEAR, ...MPD })).toEqual([sentence('stream.mpd has')]);
    expect(said({ ...CLEAR, ...PLAYLIST })).toEqual([sentence('playlist.m3u8 has')]);
    expect(said({ ...CLEAR, ...MPD, ...PLAYLIST })).toEqual([sentence('stream.mpd and playlist.m3u8 have')]);
    expect(codes({ ...CLEAR, 'stream.mpd': manifest('rotation/s.mpd') })).toEqual(['E not_protected']);
  });

  it('agree with a clear manifest, and beside encrypted media', () => {
    expect(compare({ ...CLEAR, 'stream.mpd': manifest('clear/s.mpd') })).toEqual({
      compared: ['protection'],
      faults: [],
    });
    expect(codes({ ...INIT, 'a.mp4': CLEAR['init.mp4'], ...MPD })).toEqual([]);
  });

  it('are told of once', () => {
    expect(left({ ...CLEAR, ...MPD })).toEqual([[], []]);
    expect(left({ ...INIT, 'stream.mpd': manifest('clear/s.mpd') })).toEqual([[], []]);
    expect(left({ ...INIT, 'a.mp4': CLEAR['init.mp4'], ...MPD })).toEqual([[], ['not_protected'], []]);
    expect(left({ ...CLEAR, 'stream.mpd': manifest('clear/s.mpd') })).toEqual([
      ['not_protected'],
      ['not_protected'],
    ]);
  });
});

/** The key file of a track of the document. */
function keyFile(track: string): string {
  const chosen = chooseKeys(MADE, { track });
  const made = chosen.ok ? cpixKeyFile(MADE, chosen.value, {}) : undefined;
  if (!made?.ok) throw new Error('no key file');
  return renderKeyFile(keyFileLines(made.keyFile));
}

const CPIX = { 'film.xml': madeCpix() };
const HD_FILE = keyFile('HD');
const base64 = (bytes: Buffer) => bytes.toString('base64');

describe('a CPIX document and the key files that were made of it', () => {
  it('agree', () => {
    expect(compare({ ...CPIX, 'sd.key': keyFile('SD'), 'hd.key': HD_FILE })).toEqual({
      compared: ['key', 'key_id', 'iv', 'license_address'],
      faults: [],
    });
  });

  it('differ in the key id', () => {
    const other = 'AAECAwQFBgcICQoLDA0ODw==';
    const text = HD_FILE.replace(base64(HD.keyId), other);
    expect(said({ ...CPIX, 'hd.key': text })[0]).toBe(
      'E key_id_mismatch: hd.key has key id 00010203-0405-0607-0809-0a0b0c0d0e0f, which film.xml has no key for; ' +
        'check whether they are of one stream, or write the key file again from the document.',
    );
  });

  it('differ in the byte order of the key id', () => {
    const text = HD_FILE.replace(base64(HD.keyId), '1/VYDoRGmUGpsUOGRu9HdQ==');
    expect(codes({ ...CPIX, 'hd.key': text })).toEqual(['E key_id_byte_order']);
  });

  it('differ in the content key, and neither is quoted', () => {
    const sentences = said({ ...CPIX, 'hd.key': HD_FILE.replace(base64(HD.key), base64(SD.key)) });
    expect(sentences).toEqual([
      expect.stringMatching(
        /^E content_keys_differ: (?:hd\.key and film\.xml|film\.xml and hd\.key) share a key id/,
      ),
    ]);
    for (const secret of [HD.key, SD.key]) expect(sentences.join()).not.toContain(base64(secret));
  });

  it('have key and key id swapped', () => {
    const text = HD_FILE.replace(base64(HD.keyId), 'x')
      .replace(base64(HD.key), base64(HD.keyId))
      .replace(': x', `: ${base64(HD.key)}`);
    expect(codes({ ...CPIX, 'hd.key': text })).toContain('E key_and_key_id_swapped');
  });

  it('differ in the FairPlay key, its IV and the addresses', () => {
    const upperHex = (bytes: Buffer) => bytes.toString('hex').toUpperCase();
    const text = HD_FILE.replace(upperHex(FAIRPLAY.key), upperHex(SD.key))
      .replace(upperHex(FAIRPLAY.iv), upperHex(HD.key))
      .replace('skd://license.example/film-1', 'skd://license.example/film-2')
      .replace(PLAYREADY_URL, 'https://other.example/rightsmanager.asmx');
    expect(codes({ ...CPIX, 'hd.key': text })).toEqual([
      'E fairplay_key_differs',
      'E iv_mismatch',
      'W license_address_differs',
      'E license_address_differs',
    ]);
  });

  it('are not compared by keys that are encrypted or only asked for', () => {
    const keys = MADE.keys.map((key) => ({ ...key, value: undefined }));
    const text = HD_FILE.replace(base64(HD.key), base64(SD.key));
    expect(codes({ 'request.xml': madeCpix({ keys }), 'hd.key': text })).toEqual([]);
  });
});

describe('a CPIX document and what was packaged with its keys', () => {
  const box = (keyId: Buffer) => buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [keyId] }));

  it('agree by the key id', () => {
    expect(compare({ ...CPIX, 'box.bin': box(HD.keyId) })).toEqual({
      compared: ['key_id', 'protection'],
      faults: [],
    });
  });

  it('differ in the key id of samples and of boxes', () => {
    expect(codes({ ...CPIX, 'init.mp4': media('cenc/v.mp4') })).toContain('E key_id_mismatch');
    expect(codes({ ...CPIX, 'box.bin': box(FAIRPLAY.iv) })).toEqual(['E key_id_mismatch']);
  });

  it('leave the media to the key file when there is one', () => {
    const sentences = said({ ...CPIX, 'hd.key': HD_FILE, 'box.bin': box(SD.keyId) });
    expect(sentences).toEqual([expect.stringContaining('hd.key has another one')]);
  });

  it('differ in the scheme, when the document names one', () => {
    const keys = MADE.keys.map((key) => ({ ...key, scheme: 'cbcs' as const }));
    const track = { 'stream.mpd': manifest('cenc/s.mpd') };
    expect(codes({ 'film.xml': madeCpix({ keys }), ...track })).toContain('E scheme_mismatch');
    expect(codes({ ...CPIX, ...track })).not.toContain('E scheme_mismatch');
  });
});
