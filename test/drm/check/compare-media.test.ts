import { chooseKeys } from '../../../src/drm/cpix/choose';
import { cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { buildPlayReadyObject } from '../../../src/drm/playready';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { withFormerCmaf } from '../../support/former-cmaf';
import { FAIRPLAY, HD, MADE, madeCpix, PLAYREADY_URL, SD } from '../../support/made-cpix';
import { POST_MANUAL_FILE } from '../../support/post-manual';
import { right } from '../../support/right';
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

/** A PlayReady object of the key id of the packaged media, with a checksum. */
function objectWith(checksum: string): string {
  const header =
    '<WRMHEADER xmlns="http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader" version="4.0.0.0"><DATA><PROTECTINFO>' +
    '<KEYLEN>16</KEYLEN><ALGID>AESCTR</ALGID></PROTECTINFO><KID>71LaRCNFjgloVHd+4yJoHQ==</KID>' +
    `<CHECKSUM>${checksum}</CHECKSUM></DATA></WRMHEADER>`;
  return buildPlayReadyObject([{ type: 1, value: Buffer.from(header, 'utf16le') }]).toString('base64');
}
const withChecksum = (checksum: string) => ({
  'header.mpd': `<MPD xmlns:mspr="urn:microsoft:playready"><ContentProtection><mspr:pro>${objectWith(checksum)}</mspr:pro></ContentProtection></MPD>`,
});

const FAIRPLAY_MEDIA = media('fairplay/v.mp4');
const OTHER_FAIRPLAY = { 'fp.mp4': withKeyId(FAIRPLAY_MEDIA, Buffer.alloc(16, 7)) };
/** Media for FairPlay with a box for ClearKey players. */
const withBox = (keyId: Buffer) => {
  const box = buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keyId]);
  return { 'fp.mp4': Buffer.concat([withKeyId(FAIRPLAY_MEDIA, keyId), box]) };
};
const swapped = (mpd: string) => mpd.replaceAll('44da52ef-4523-098e', 'ef52da44-2345-8e09');
const DASH_ALONE = { 'news.key': BOTH['news.key'].split('\n').slice(0, 10).join('\n') };
const AUDIO_PLAYLIST = { 'a.m3u8': AUDIO['a.m3u8'] };
const CLEAR_MPD = { 'stream.mpd': manifest('clear/s.mpd') };
const CLEAR_AUDIO = { 'a.mp4': CLEAR['init.mp4'] };

it.each<[what: string, inputs: Inputs, ...codes: string[]]>([
  ['cenc, and a key file with lines for both schemes', { ...BOTH, ...INIT, ...MPD }],
  ['cbcs, and such a one', { ...BOTH, ...CBCS, ...TWO_KEYS }],
  ['a playlist for FairPlay whose media are not there', { ...BOTH, ...INIT, ...MPD, ...PLAYLIST }],
  ['those of another key id', { ...WITHOUT_CMAF, ...INIT, ...MPD, ...OTHER_FAIRPLAY }],
  ['those with their playlist', { ...WITHOUT_CMAF, ...INIT, ...MPD, ...OTHER_FAIRPLAY, ...PLAYLIST }],
  ['a box of another key id', { ...WITHOUT_CMAF, ...withBox(Buffer.alloc(16, 7)) }, 'E key_id_mismatch'],
  // The findings of the key file are not repeated.
  [
    'a manifest with swapped ids',
    { ...BOTH, ...INIT, 'stream.mpd': swapped(MPD['stream.mpd']) },
    'E key_id_byte_order',
  ],
  ['media of another scheme', { ...DASH_ALONE, ...CBCS, ...MPD }, 'E scheme_mismatch'],
  ['clear media', { ...BOTH, ...CLEAR, ...MPD }, 'E not_protected'],
  ['a clear manifest', { ...BOTH, ...INIT, ...CLEAR_MPD }, 'E not_protected'],
  ['a manifest that may be of other media', { ...CBCS, ...TWO_KEYS, ...AUDIO_PLAYLIST }, 'W key_id_mismatch'],
  [
    'one with swapped ids',
    { ...CBCS, ...TWO_KEYS, 'old.mpd': swapped(TWO_KEYS['stream.mpd']) },
    'E key_id_byte_order',
  ],
  [
    'clear media, and keys that rotate',
    { ...CLEAR, 'stream.mpd': manifest('rotation/s.mpd') },
    'E not_protected',
  ],
])('media and manifests agree, or not: %s', (_what, inputs, ...expected) => {
  expect(codes(inputs)).toEqual(expected);
});

const SCHEME =
  'stream.mpd is encrypted with cenc (AESCTR), but init.mp4 has AESCBC; make both in one run of the packager.';
const clearAlthough = (promising: string) =>
  `E not_protected: init.mp4 is not protected, although ${promising} signalling for protection; give the key file ` +
  'the name of the stream, and restart the stream.';

it.each<[what: string, inputs: Inputs, sentence: string]>([
  [
    'the scheme, where the manifest may be of other media',
    { ...BOTH, ...CBCS, ...MPD, ...PLAYLIST },
    `W scheme_mismatch: ${SCHEME} If stream.mpd belongs to other media, check it together with them.`,
  ],
  [
    'the checksum of their PlayReady headers',
    { ...INIT, ...withChecksum('AAAAAAAAAAA=') },
    'E checksum_mismatch: The PlayReady headers in header.mpd and init.mp4 have different checksums under one key id; ' +
      'make both in one run of the packager.',
  ],
  ['protection, which a manifest promises', { ...CLEAR, ...MPD }, clearAlthough('stream.mpd has')],
  [
    'protection, which both promise',
    { ...CLEAR, ...MPD, ...PLAYLIST },
    clearAlthough('stream.mpd and playlist.m3u8 have'),
  ],
])('media and manifests differ in %s', (_what, inputs, sentence) => {
  expect(said(inputs)).toEqual([sentence]);
});

it('media and manifests differ in the key id where each key file vouches for one of them', () => {
  const audio = { cenc: { keyId: 'Dlj110aEQZmpsUOGRu9HdQ==', contentKey: 'SvEMxZMGndWHIqCMoD45YA==' } };
  const keyFiles = { ...BOTH, 'audio.key': withFormerCmaf(renderKeyFile(keyFileLines(audio))) };
  const ofKeyIds = (inputs: Inputs) => codes(inputs).filter((code) => code.includes('key_id'));
  expect(ofKeyIds({ ...keyFiles, ...CBCS, ...AUDIO_PLAYLIST })).toEqual(['E key_id_mismatch']);
  expect(ofKeyIds({ ...keyFiles, ...CBCS, ...AUDIO, ...TWO_KEYS })).toEqual([]);
  expect(ofKeyIds({ ...keyFiles, ...CBCS, ...TWO_KEYS, ...AUDIO_PLAYLIST })).toEqual([]);
});

it('agreements are named: the checksum of PlayReady headers, and that nothing is protected', () => {
  const right = /checksum\W+value\W+([\w+/]+=)/.exec(JSON.stringify(checkAll(INIT)[0]?.result.fields))?.[1];
  const agreed = { compared: ['key_id', 'checksum'], faults: [] };
  expect(compare({ ...INIT, ...withChecksum(`${right}`) })).toEqual(agreed);
  expect(compare({ ...CLEAR, ...CLEAR_MPD })).toEqual({ compared: ['protection'], faults: [] });
});

it('clear media are reported once', () => {
  expect(left({ ...CLEAR, ...MPD })).toEqual([[], []]);
  expect(left({ ...INIT, ...CLEAR_MPD })).toEqual([[], []]);
  expect(left({ ...INIT, ...CLEAR_AUDIO, ...MPD })).toEqual([[], ['not_protected'], []]);
  expect(left({ ...CLEAR, ...CLEAR_MPD })).toEqual([['not_protected'], ['not_protected']]);
});

/** The key file of a track of the document. */
function keyFile(track: string): string {
  const { value } = right(chooseKeys(MADE, { track }));
  return renderKeyFile(keyFileLines(right(cpixKeyFile(MADE, value, {})).keyFile));
}

const CPIX = { 'film.xml': madeCpix() };
const HD_FILE = keyFile('HD');
const base64 = (bytes: Buffer) => bytes.toString('base64');
const upperHex = (bytes: Buffer) => bytes.toString('hex').toUpperCase();
const box = (keyId: Buffer) => ({
  'box.bin': buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [keyId] })),
});
/** The key file of HD with other texts in place of its own. */
const changed = (...changes: [from: string, to: string][]) => ({
  'hd.key': changes.reduce((text, [from, to]) => text.replace(from, to), HD_FILE),
});
const WITH_OTHER_KEY = changed([base64(HD.key), base64(SD.key)]);
const WITHOUT_VALUES = {
  'film.xml': madeCpix({ keys: MADE.keys.map((key) => ({ ...key, value: undefined })) }),
};
const OF_CBCS = {
  'film.xml': madeCpix({ keys: MADE.keys.map((key) => ({ ...key, scheme: 'cbcs' as const })) }),
};

it('a CPIX document agrees with its key files, and with boxes of its keys', () => {
  expect(compare({ ...CPIX, 'sd.key': keyFile('SD'), 'hd.key': HD_FILE })).toEqual({
    compared: ['key', 'key_id', 'iv', 'license_address'],
    faults: [],
  });
  expect(compare({ ...CPIX, ...box(HD.keyId) })).toEqual({ compared: ['key_id', 'protection'], faults: [] });
});

it.each<[what: string, inputs: Inputs, ...codes: string[]]>([
  [
    'a swapped key id',
    { ...CPIX, ...changed([base64(HD.keyId), '1/VYDoRGmUGpsUOGRu9HdQ==']) },
    'E key_id_byte_order',
  ],
  [
    'another FairPlay key, IV and addresses',
    {
      ...CPIX,
      ...changed(
        [upperHex(FAIRPLAY.key), upperHex(SD.key)],
        [upperHex(FAIRPLAY.iv), upperHex(HD.key)],
        ['skd://license.example/film-1', 'skd://license.example/film-2'],
        [PLAYREADY_URL, 'https://other.example/rightsmanager.asmx'],
      ),
    },
    'E fairplay_key_differs',
    'E iv_mismatch',
    'W license_address_differs',
    'E license_address_differs',
  ],
  ['no keys of its own, for it only asks for them', { ...WITHOUT_VALUES, ...WITH_OTHER_KEY }],
  ['a box of another key', { ...CPIX, ...box(FAIRPLAY.iv) }, 'E key_id_mismatch'],
  ['media of another key, and no scheme', { ...CPIX, ...MPD }, 'E key_id_mismatch'],
  ['media of another key and scheme', { ...OF_CBCS, ...MPD }, 'E key_id_mismatch', 'E scheme_mismatch'],
])('a CPIX document is compared with %s', (_what, inputs, ...expected) => {
  expect(codes(inputs)).toEqual(expected);
});

it('a CPIX document differs in key id and content key, and no key is quoted', () => {
  const otherId = said({ ...CPIX, ...changed([base64(HD.keyId), 'AAECAwQFBgcICQoLDA0ODw==']) });
  expect(otherId[0]).toBe(
    'E key_id_mismatch: hd.key has key id 00010203-0405-0607-0809-0a0b0c0d0e0f, which film.xml has no key for; ' +
      'check whether they are of one stream, or write the key file again from the document.',
  );
  const otherKey = said({ ...CPIX, ...WITH_OTHER_KEY });
  expect(otherKey).toEqual([
    expect.stringMatching(
      /^E content_keys_differ: (?:hd\.key and film\.xml|film\.xml and hd\.key) share a key id/,
    ),
  ]);
  for (const secret of [HD.key, SD.key]) expect(otherKey.join()).not.toContain(base64(secret));
  const [id, key] = [base64(HD.keyId), base64(HD.key)];
  expect(codes({ ...CPIX, ...changed([id, 'x'], [key, id], [': x', `: ${key}`]) })).toContain(
    'E key_and_key_id_swapped',
  );
});
