import { execFile, spawnSync } from 'node:child_process';
import { createCipheriv } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fs from 'fs-extra';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../src/drm/pssh';
import { WIDEVINE_SYSTEM_ID } from '../../src/drm/widevine';
import { decryptSample } from '../../src/verify/media/decrypt';
import { openMedia } from '../../src/verify/media/open-media';
import type { StreamReport } from '../../src/verify/stream-report';
import { SOURCE } from '../support/package-stream';
import { processorMs } from '../support/processor-time';
import { rowsOf } from '../support/rows-of';
import {
  CONTENT_KEY,
  codesOf,
  dashPackaging,
  FAIRPLAY_FLAGS,
  FAIRPLAY_IV,
  FAIRPLAY_KEY,
  FAIRPLAY_URL,
  hlsPackaging,
  KEY_FILE,
  KEY_ID,
  keyFileText,
  type ServedStream,
  startStream,
  statesOf,
} from '../support/start-stream';

const OTHER_ID = '99999999888847777666555544443333';
const OTHER_KEY = 'ffeeddccbbaa99887766554433221100';
const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const INIT = /^[va]\.mp4$/;
const PICTURE = /^v\d\.m4s$/;
const MEDIA = /^[va]\d\.m4s$/;

/** A key file of other values for DASH. */
const keyFile = (keyId: string, key: string) =>
  keyFileText({
    cenc: { keyId: base64(keyId), contentKey: base64(key) },
    widevine: { psshData: base64(`1210${keyId}`) },
  });
const two = [KEY_ID, OTHER_ID].map((id) => Buffer.from(id, 'hex'));
const TWO_KEYS = [
  '--enable_raw_key_encryption',
  `--keys=label=SD:key_id=${KEY_ID}:key=${CONTENT_KEY},label=AUDIO:key_id=${OTHER_ID}:key=${OTHER_KEY}`,
  '--clear_lead=0',
  `--pssh=${buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), two).toString('hex')}`,
];

interface Case {
  readonly kind?: 'dash' | 'hls';
  readonly options?: Parameters<typeof startStream>[1];
  readonly change?: (stream: ServedStream) => Promise<unknown>;
  readonly verify?: Parameters<ServedStream['verify']>[0];
  /** The verdicts on the renditions; by default both decrypt, unless there is a fault. */
  readonly states?: string;
  readonly schemes?: string;
  /** The first fault's sentence. */
  readonly says?: RegExp | string;
}

/** Changes bytes of a box in each file of a packaged stream that has one: `box` has its body, behind size and type. */
async function patchBox(
  folder: string,
  files: RegExp,
  type: string,
  patch: (box: Buffer, whole: Buffer) => void,
): Promise<void> {
  let found = 0;
  for (const name of await fs.readdir(folder)) {
    if (!files.test(name)) continue;
    const path = join(folder, name);
    const bytes = await fs.readFile(path);
    for (let at = bytes.indexOf(type); at >= 4; at = bytes.indexOf(type, at + 4)) {
      const end = at - 4 + bytes.readUInt32BE(at - 4);
      if (end > bytes.length || end < at + 4) continue;
      found += 1;
      patch(bytes.subarray(at + 4, end), bytes.subarray(at - 4, end));
    }
    await fs.writeFile(path, bytes);
  }
  if (found === 0) throw new Error(`No file has a box ${type}`);
}

/** Renames a box, so that readers pass over it. */
const hideBox = (folder: string, files: RegExp, type: string): Promise<void> =>
  patchBox(folder, files, type, (_box, whole) => whole.write('free', 4, 'latin1'));

/** Where `tenc` has the pattern, the protection, the size of the IV, the key id, and the size of a constant IV. */
const [PATTERN, PROTECTED, IV_SIZE, KEY_ID_AT, CONSTANT_IV] = [5, 6, 7, 8, 24];
const tenc = (stream: ServedStream, patch: (box: Buffer) => void) =>
  patchBox(stream.folder, INIT, 'tenc', patch);
const schm = (stream: ServedStream, scheme: string) =>
  patchBox(stream.folder, INIT, 'schm', (box) => box.write(scheme, 4, 'latin1'));
const named = (text: string) => ({ keyFiles: [{ name: 'news.key', text }] });
const OF_TWO_KEYS = { packaging: undefined, flags: TWO_KEYS };
const ofPicture = { name: 'sd.key', text: keyFileText() };
const former = { formerKeyFiles: [{ name: 'old.key', text: keyFileText() }] };
const withFairPlay = (part: Partial<Record<'licenseUrl' | 'key' | 'iv', string>>) =>
  named(keyFileText({ fairplay: { licenseUrl: FAIRPLAY_URL, key: FAIRPLAY_KEY, iv: FAIRPLAY_IV, ...part } }));

const changePlaylists = (stream: ServedStream, change: (text: string) => string) =>
  Promise.all(['v.m3u8', 'a.m3u8'].map((file) => stream.change(file, change)));
const KEY_LINE = `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${FAIRPLAY_URL}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`;
const withDefaultKid = (stream: ServedStream, keyId: string) =>
  stream.change('m.mpd', (text) => text.replaceAll(/default_KID="[^"]*"/g, `default_KID="${keyId}"`));
const withoutProtection = (stream: ServedStream) =>
  stream.change('m.mpd', (text) =>
    text.replaceAll(/<ContentProtection[^>]*\/>|<ContentProtection[\s\S]*?<\/ContentProtection>/g, ''),
  );

async function changeFiles(
  { folder }: ServedStream,
  files: RegExp,
  change: (bytes: Buffer, name: string) => Buffer,
): Promise<void> {
  for (const name of (await fs.readdir(folder)).filter((each) => files.test(each))) {
    const path = join(folder, name);
    await fs.writeFile(path, change(await fs.readFile(path), name));
  }
}

/** Puts files of clear DASH in the place of those of the stream. */
async function takeClear(stream: ServedStream, files: RegExp): Promise<void> {
  const { folder } = await startStream('dash', { packaging: undefined });
  await changeFiles(stream, files, (_own, name) => fs.readFileSync(join(folder, name)));
}

/** Puts a clear picture of HLS, with its init segment, where the playlist matches. */
async function addClear(stream: ServedStream, at: RegExp, keyLine = ''): Promise<void> {
  const clear = await startStream('hls', { packaging: undefined, flags: [] });
  for (const file of ['v.mp4', 'v1.m4s'])
    await fs.copy(join(clear.folder, file), join(stream.folder, `clear-${file}`));
  const part = `${keyLine}#EXT-X-MAP:URI="clear-v.mp4"\n#EXTINF:2,\nclear-v1.m4s\n#EXT-X-DISCONTINUITY\n`;
  await stream.change('v.m3u8', (text) => text.replace(at, part));
}

const withIv = (iv: string): Case => ({ options: { packaging: { ...dashPackaging(), iv } } });
const withPattern = (crypt: number, skip: number): Case => {
  const flags = [...FAIRPLAY_FLAGS, `--crypt_byte_block=${crypt}`, `--skip_byte_block=${skip}`];
  return { kind: 'hls', options: { flags } };
};
const ofHls = (patch: (box: Buffer) => void): Case => ({
  kind: 'hls',
  change: (stream) => tenc(stream, patch),
});

/** Transport streams whose playlists have a key line. */
const underLine = (line: string, encrypt = (bytes: Buffer) => bytes): Case => ({
  kind: 'hls',
  options: { extension: 'ts', packaging: undefined, flags: [] },
  change: async (stream) => {
    await changePlaylists(stream, (text) => text.replace('#EXTINF', `#EXT-X-KEY:${line}\n#EXTINF`));
    await changeFiles(stream, /ts$/, encrypt);
  },
});

/** One file of the picture in another's place; `undefined`: none. */
const instead = (file: string, content?: string | Buffer): Partial<Case> => ({
  change: ({ folder }) =>
    content === undefined ? fs.remove(join(folder, file)) : fs.writeFile(join(folder, file), content),
  states: 'none decrypts',
});
const PAGE = '<!DOCTYPE html><html>blocked</html>';
const SWAPPED = 'd3756a4b4980dc4eb82ac7a2680c5781';
const SWAPPED_UUID = 'd3756a4b-4980-dc4e-b82a-c7a2680c5781';
const WIDEVINE_BOX = dashPackaging().pssh?.slice(0, 100) ?? '';
const OTHER_BOX = `000000387073736800000000edef8ba979d64acea3c827dcd51d21ed000000181210${KEY_ID}48e3dc959b06`;

/**
 * The encryption cases of the WAVE project's test content, and faults in them. The errors and warnings of a stream
 * follow its properties.
 */
const CASES: Readonly<Record<string, Case>> = {
  'a counter that wraps, and is the same for picture and sound: W iv_reused': {
    ...withIv('f'.repeat(32)),
    states: 'decrypts decrypts',
    says: 'a1.m4s has samples with the key and IV of samples in v1.m4s: under cenc, both can be decrypted without the key. Let the packager give each track IVs of its own.',
  },
  'cbcs with the pattern 5:5': withPattern(5, 5),
  'cbcs with the pattern 10:0': withPattern(10, 0),
  'several keys': {
    options: OF_TWO_KEYS,
    verify: { keyFiles: [ofPicture, { name: 'sound.key', text: keyFile(OTHER_ID, OTHER_KEY) }] },
  },
  'IVs in saiz and saio alone': { change: ({ folder }) => hideBox(folder, MEDIA, 'senc') },
  'no boxes in the init segments': { change: ({ folder }) => hideBox(folder, INIT, 'pssh') },
  'a clear lead: W clear_lead': { options: { flags: ['--clear_lead=2'] } },
  'a clear lead as long as the stream: W clear_lead': {
    options: { flags: ['--clear_lead=100'] },
    states: 'clear clear',
    says: /^v3\.m4s is not encrypted, as in a clear lead, although .*\. The same is true of a3\.m4s\.$/,
  },
  'several keys of which one is given: E key_id_unknown': {
    options: OF_TWO_KEYS,
    verify: { keyFiles: [ofPicture] },
    says: 'There is no key for a3.m4s (key id 99999999-8888-4777-7666-555544443333) in sd.key; give the key file of this stream, or package the stream again so that the packager reads it.',
  },
  'the same where keys may be missing: W key_id_unknown': {
    options: OF_TWO_KEYS,
    verify: { allowMissingKeys: true },
  },
  'several keys of which one is wrong: E content_key_wrong': {
    options: OF_TWO_KEYS,
    verify: { keyFiles: [ofPicture, { name: 'sound.key', text: keyFile(OTHER_ID, CONTENT_KEY) }] },
    says: /^The content key of sound\.key does not decrypt a3\.m4s/,
  },
  'a wrong key: E content_key_wrong': {
    verify: named(keyFile(KEY_ID, OTHER_KEY)),
    states: 'garbage garbage',
    says: /^The content key of news\.key does not decrypt v3\.m4s.*\. Package the stream again so that .* The same is true of a3\.m4s\. In v3\.m4s: \S.*\.$/,
  },
  'a first segment with another key: E content_key_wrong': {
    change: async (stream) => {
      const other = await startStream('dash', { packaging: { ...dashPackaging(), key: OTHER_KEY } });
      await fs.copy(join(other.folder, 'v1.m4s'), join(stream.folder, 'v1.m4s'));
    },
    states: 'decrypts decrypts',
    says: /^The content key of news\.key does not decrypt v1\.m4s/,
  },
  'a wrong key where the last segment of the sound has a frame alone: E content_key_wrong': {
    options: { flags: ['--segment_duration=5.96'] },
    verify: named(keyFile(KEY_ID, OTHER_KEY)),
    states: 'garbage garbage',
  },
  'a wrong key where PlayReady has a checksum of the right one: E content_key_wrong': {
    options: { packaging: { ...dashPackaging(), pssh: '' }, flags: ['--protection_systems=PlayReady'] },
    verify: named(keyFile(KEY_ID, OTHER_KEY)),
    states: 'garbage garbage',
  },
  'another default_KID: E key_id_mismatch': {
    change: (stream) => withDefaultKid(stream, '99999999-8888-4777-7666-555544443333'),
    states: 'decrypts decrypts',
  },
  'default_KID in the other byte order: E key_id_byte_order': {
    change: (stream) => withDefaultKid(stream, SWAPPED_UUID),
    states: 'decrypts decrypts',
  },
  'another scheme in schm: E scheme_mismatch': { change: (stream) => schm(stream, 'cbcs') },
  'an unknown scheme in schm: E scheme_unknown': { change: (stream) => schm(stream, 'cenx') },
  'no senc, saiz and saio: E iv_missing': {
    change: async ({ folder }) => {
      for (const type of ['senc', 'saiz', 'saio']) await hideBox(folder, MEDIA, type);
    },
    // The key is not blamed.
    verify: { ...named(keyFile(KEY_ID, OTHER_KEY)), ...former },
    states: 'unknown unknown',
  },
  'no constant IV: E iv_missing': ofHls((box) => box.writeUInt8(0, CONSTANT_IV)),
  'pictures without subsamples and a key id, as of nginx-vod-module: W undetermined': {
    kind: 'hls',
    change: async (stream) => {
      for (const type of ['senc', 'saiz', 'saio']) await hideBox(stream.folder, PICTURE, type);
      await hideBox(stream.folder, INIT, 'pssh');
      await tenc(stream, (box) => box.fill(0, KEY_ID_AT, KEY_ID_AT + 16));
    },
    states: 'unknown decrypts',
  },
  'another constant IV, and the address of another content: E license_address_differs': {
    ...ofHls((box) => box.fill(7, CONSTANT_IV + 1)),
    verify: withFairPlay({ licenseUrl: 'skd://fairplay.example.com/sport' }),
    states: 'garbage garbage',
  },
  'another constant IV: E iv_wrong': {
    kind: 'hls',
    change: (stream) => tenc(stream, (box) => box.fill(7, CONSTANT_IV + 1)),
    states: 'garbage garbage',
  },
  'a pattern of zero: E pattern_wrong': ofHls((box) => box.writeUInt8(0, PATTERN)),
  'an IV size of 16 for IVs of 8: E senc_malformed': {
    ...withIv('0011223344556677'),
    change: (stream) => tenc(stream, (box) => box.writeUInt8(16, IV_SIZE)),
  },
  'samples that are said to be clear: E not_signalled': {
    change: (stream) => tenc(stream, (box) => box.writeUInt8(0, PROTECTED)),
  },
  'the same without a key file: E not_signalled': {
    change: (stream) => tenc(stream, (box) => box.writeUInt8(0, PROTECTED)),
    verify: { keyFiles: [] },
  },
  'clear samples: E not_encrypted': { change: (stream) => takeClear(stream, MEDIA) },
  'the same with another key file, scheme and box: E not_encrypted': {
    change: async (stream) => {
      await takeClear(stream, MEDIA);
      await schm(stream, 'cbcs');
      await stream.change('m.mpd', (text) => text.replaceAll(base64(WIDEVINE_BOX), base64(OTHER_BOX)));
    },
    verify: named(keyFile(OTHER_ID, OTHER_KEY)),
  },
  'samples that are said to be clear, with another key file: E not_signalled': {
    change: (stream) => tenc(stream, (box) => box.writeUInt8(0, PROTECTED)),
    verify: named(keyFile(OTHER_ID, OTHER_KEY)),
  },
  'a clear lead in a manifest that says nothing of the protection: E not_protected': {
    options: { flags: ['--clear_lead=2'] },
    change: withoutProtection,
  },
  'samples that were encrypted twice: E encrypted_twice': {
    kind: 'hls',
    change: async (stream) => {
      const init = await fs.readFile(join(stream.folder, 'a.mp4'));
      await changeFiles(stream, /^a3/, (segment) => {
        const opened = openMedia(init, segment);
        const samples = opened.ok ? opened.value.tracks.flatMap(({ content }) => content.samples) : [];
        for (const { data } of samples) {
          const whole = data.subarray(0, data.length - (data.length % 16));
          const [key, iv] = [Buffer.from(FAIRPLAY_KEY, 'hex'), Buffer.from(FAIRPLAY_IV, 'hex')];
          const cipher = createCipheriv('aes-128-cbc', key, iv).setAutoPadding(false);
          cipher.update(whole).copy(segment, segment.indexOf(whole));
        }
        return segment;
      });
    },
    states: 'decrypts garbage',
  },
  'a picture that is clear among encrypted ones: W partly_noise': {
    change: async (stream) => {
      const init = await fs.readFile(join(stream.folder, 'v.mp4'));
      await changeFiles(stream, /^v3/, (segment) => {
        const opened = openMedia(init, segment);
        for (const { content } of opened.ok ? opened.value.tracks : []) {
          const [sample = { data: segment, encryption: undefined }] = content.samples;
          const clear = decryptSample(sample, content.format, Buffer.from(CONTENT_KEY, 'hex'));
          clear.copy(segment, segment.indexOf(sample.data));
        }
        return segment;
      });
    },
    states: 'decrypts decrypts',
    says: /^Some samples of v3\.m4s are noise, .* In v3\.m4s: 19 of 20 pictures are valid/,
  },
  'the key id in the other byte order: E key_id_byte_order': {
    options: { packaging: dashPackaging(keyFile(SWAPPED, CONTENT_KEY)) },
    says: `The byte order of the key id differs: m.mpd has ${SWAPPED_UUID} where news.key has 4b6a75d3-8049-4edc-b82a-c7a2680c5781; both must be big endian (as in a UUID), so correct the one in m.mpd. The same is true of v.mp4 and a.mp4.`,
  },
  'a key file in the other byte order, which is no longer suspected: E key_id_byte_order': {
    verify: named(keyFile(SWAPPED, CONTENT_KEY)),
  },
  'a key that the key file does not have: E key_id_mismatch': {
    verify: named(keyFile(OTHER_ID, OTHER_KEY)),
    states: 'no_key no_key',
  },
  'the key of the former key file: E former_key': {
    verify: { ...named(keyFile(OTHER_ID, OTHER_KEY)), ...former },
    says: 'v3.m4s is encrypted with the key of old.key, not with the key of news.key: it was packaged with the former key file. Package the stream again, so that the packager reads the new one. The same is true of a3.m4s.',
  },
  'the former content key under the same key id: E former_key': {
    verify: { ...named(keyFile(KEY_ID, OTHER_KEY)), ...former },
  },
  'clear media in a manifest that says that they are protected: E not_protected': {
    change: (stream) => takeClear(stream, /^[va]\d?\.m(?:p4|4s)$/),
    states: 'clear clear',
  },
  'clear media where there is a key file: E not_protected': { options: { packaging: undefined } },
  'a manifest that says nothing of the protection: E not_protected': { change: withoutProtection },
  'a box in the manifest that is not base64: E not_base64': {
    change: (stream) => stream.change('m.mpd', (text) => text.replaceAll(/(?<=<cenc:pssh>)[^<]*/g, '!')),
    states: 'decrypts decrypts',
    says: /base64/,
  },
  'another scheme in the manifest than in the media: E scheme_mismatch': {
    change: (stream) => stream.change('m.mpd', (text) => text.replaceAll('value="cenc"', 'value="cbcs"')),
    verify: { keyFiles: [] },
  },
  'another scheme than the lines of the key file ask for: E scheme_mismatch': {
    options: { packaging: { ...dashPackaging(), scheme: 'cbcs' } },
    verify: named(keyFileText({ ...KEY_FILE, fairplay: undefined as never })),
  },
  'another Widevine box in the manifest than in the init segment: W pssh_differs': {
    change: (stream) =>
      stream.change('m.mpd', (text) => text.replaceAll(base64(WIDEVINE_BOX), base64(OTHER_BOX))),
  },
  'an init segment that is a web page: E not_media': instead('v.mp4', PAGE),
  'an init segment that is an error in JSON: E not_media': instead('v.mp4', '{"error":"no token"}'),
  'an init segment that is empty: E not_media': instead('v.mp4', ''),
  'a segment that is an error in one word: E not_media': instead('v3.m4s', 'Forbidden\n'),
  'a segment that is an error in XML: E not_media': {
    ...instead('v3.m4s', '<?xml version="1.0"?>\n<Error><Code>NoSuchKey</Code></Error>'),
    says: 'In v3.m4s: The segment is a web page or another text instead of media; open its address in a browser: usually it is the error of a server or CDN.',
    schemes: 'cenc cenc',
  },
  'subtitles in TTML': {
    ...instead('a3.m4s', '<?xml version="1.0"?>\n<!-- news -->\n<tt:tt xmlns:tt="x"/>'),
    states: 'decrypts none',
  },
  'subtitles in WebVTT': { ...instead('a3.m4s', 'WEBVTT\n'), states: 'decrypts none' },
  'a segment of WebM: E not_media': {
    ...instead('v3.m4s', Buffer.from('1a45dfa39f4286810142f78101', 'hex')),
    says: 'In v3.m4s: The segment is WebM, whose encryption cannot be tested; test the renditions in mp4.',
  },
  'one file of WebM, which has another index: E not_media': {
    ...instead('v.mp4', Buffer.from('1a45dfa39f4286810142f78101'.padEnd(9000, '0'), 'hex')),
    options: { single: true },
  },
  'an empty segment: E no_samples': instead('v3.m4s', ''),
  'a segment that is cut off: E media_cut_short': {
    change: (stream) => changeFiles(stream, /^v3/, (bytes) => bytes.subarray(0, bytes.length / 2)),
    states: 'decrypts decrypts',
  },
  'no last segment, which GPAC announces: E segment_not_found': {
    ...instead('v3.m4s'),
    states: 'decrypts decrypts',
  },
  'no init segment: E segment_not_found': instead('v.mp4'),
  'another key of FairPlay: E content_key_wrong': { kind: 'hls', verify: withFairPlay({ key: OTHER_KEY }) },
  'another key of FairPlay in MPEG-TS: E content_key_wrong': {
    kind: 'hls',
    options: { extension: 'ts' },
    verify: withFairPlay({ key: OTHER_KEY }),
    says: /^The content key or IV of news\.key does not decrypt v3\.ts, .* The same is true of a3\.ts\./,
  },
  "the key of DASH in the place of FairPlay's: E content_key_wrong": {
    kind: 'hls',
    options: { packaging: { ...hlsPackaging(), keyId: KEY_ID, key: CONTENT_KEY, pssh: '' } },
    says: /^The content key of news\.key does not .* used another content key, perhaps the one for DASH\./,
  },
  'AES with 256 bits: W undetermined': {
    ...underLine('METHOD=AES-256,URI="one.key"', (bytes) => {
      const cipher = createCipheriv('aes-256-cbc', Buffer.alloc(32, 7), Buffer.alloc(16));
      return Buffer.concat([cipher.update(bytes), cipher.final()]);
    }),
    schemes: 'aes-256 aes-256',
    says: /^Whether the key decrypts v3\.ts is undetermined\. The playlist names AES with 256 bits, which is not /,
  },
  'samples that are encrypted, under AES with 256 bits: W undetermined': {
    kind: 'hls',
    options: { extension: 'ts' },
    change: (stream) =>
      changePlaylists(stream, (text) =>
        text.replaceAll(/(#EXT-X-KEY:).*/g, '$1METHOD=AES-256,URI="one.key"'),
      ),
    schemes: 'aes-256 aes-256',
    says: /^Whether the key decrypts v3\.ts is undetermined\. The playlist says that it is encrypted as a whole \(AES-256\), but /,
  },
  'a clear transport stream under SAMPLE-AES-CTR: E not_encrypted': underLine(
    `METHOD=SAMPLE-AES-CTR,URI="data:;base64,${base64(WIDEVINE_BOX)}",KEYFORMAT="urn:uuid:${WIDEVINE_SYSTEM_ID}",KEYID=0x${KEY_ID}`,
  ),
  'another IV than the media have: E iv_mismatch': { kind: 'hls', verify: withFairPlay({ iv: OTHER_KEY }) },
  'the address of another content: E license_address_differs': {
    kind: 'hls',
    verify: withFairPlay({ licenseUrl: 'skd://fairplay.example.com/sport', key: OTHER_KEY }),
  },
  'an address with the id of a session: E session_id_in_address': {
    kind: 'hls',
    change: (stream) =>
      changePlaylists(stream, (text) => text.replace(FAIRPLAY_URL, `${FAIRPLAY_URL}?wowzasessionid=17`)),
    states: 'decrypts decrypts',
  },
  'no key line for encrypted media: E not_protected': {
    kind: 'hls',
    change: (stream) => changePlaylists(stream, (text) => text.replaceAll(/#EXT-X-KEY:.*\n/g, '')),
  },
  'playlists without an init segment: E no_init_segment': {
    kind: 'hls',
    change: (stream) => changePlaylists(stream, (text) => text.replaceAll(/#EXT-X-MAP.*\n/g, '')),
    says: /^In v3\.m4s: There is no moov box: the manifest or playlist must name an init segment /,
  },
  'clear media whose playlists name a key: E not_protected': {
    kind: 'hls',
    options: { packaging: undefined, flags: [] },
    change: (stream) => changePlaylists(stream, (text) => text.replace('#EXTINF', `${KEY_LINE}\n#EXTINF`)),
    states: 'clear clear',
  },
  'a media playlist that is not there: E playlist_not_found': {
    kind: 'hls',
    change: ({ folder }) => fs.remove(join(folder, 'a.m3u8')),
    states: 'decrypts',
    says: /\/a\.m3u8 is not there \(404\); the multivariant playlist names it\.$/,
  },
  'media playlists without a segment yet: E no_segment': {
    kind: 'hls',
    change: (stream) => changePlaylists(stream, (text) => text.replaceAll(/#EXTINF.*\n.*\n/g, '')),
    states: 'none none',
  },
  'session keys that no media playlist has: W session_key_differs': {
    kind: 'hls',
    change: (stream) =>
      stream.change('master.m3u8', (text) =>
        text.replace(
          '#EXT-X-STREAM-INF',
          `${KEY_LINE.replace('KEY', 'SESSION-KEY').replace(FAIRPLAY_URL, 'skd://other/1')}\n#EXT-X-STREAM-INF`,
        ),
      ),
  },
  'a clear part with an init segment of its own before the encrypted one: W clear_lead': {
    kind: 'hls',
    change: (stream) => addClear(stream, /(?=#EXT-X-(?:MAP|KEY))/),
    states: 'decrypts decrypts',
  },
  'a clear part at the end: W not_protected': {
    kind: 'hls',
    change: (stream) => addClear(stream, /(?=#EXT-X-ENDLIST)/, '#EXT-X-KEY:METHOD=NONE\n'),
    states: 'decrypts decrypts',
    says: /^video .* is not protected at its end, while the segments before are; unless that is a clear ad, /,
  },
  'no tenc: E no_tenc_box': { change: ({ folder }) => hideBox(folder, INIT, 'tenc') },
  'subsamples longer than their sample: E subsamples_malformed': {
    change: ({ folder }) => patchBox(folder, PICTURE, 'senc', (box) => box.writeUInt32BE(1e6, 8 + 8 + 2 + 2)),
  },
  'subsamples shorter than their sample: E subsamples_malformed': {
    change: ({ folder }) => patchBox(folder, PICTURE, 'senc', (box) => box.writeUInt32BE(16, 8 + 8 + 2 + 2)),
  },
  'fewer entries in senc than samples: E senc_malformed': {
    change: ({ folder }) => patchBox(folder, PICTURE, 'senc', (box) => box.writeUInt32BE(1, 4)),
  },
};

const OF_FFMPEG: Readonly<Record<string, Case>> = {
  'ffmpeg, which writes no IVs into DASH, nor ContentProtection: E iv_missing, E not_protected': {
    change: async ({ folder }) => {
      const format = `encryption_scheme=cenc-aes-ctr:encryption_key=${CONTENT_KEY}:encryption_kid=${KEY_ID}`;
      const args = ['-v', 'error', '-y', '-i', SOURCE, '-c', 'copy', '-f', 'dash', '-format_options', format];
      await promisify(execFile)('ffmpeg', [...args, join(folder, 'm.mpd')]);
    },
  },
};
const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0;

test.each(rowsOf({ ...CASES, ...(hasFfmpeg && OF_FFMPEG) }))(
  '%s',
  async (_what, { kind = 'dash', options, change, verify, states, schemes, says }, expected) => {
    const packaging = kind === 'hls' ? hlsPackaging() : dashPackaging();
    const stream = await startStream(kind, { packaging, ...options });
    await change?.(stream);
    const reports: StreamReport[] = [];
    const ms = await processorMs(async () => reports.push(await stream.verify(verify)));
    const [report] = reports as [StreamReport];
    const { errors, warnings } = codesOf(report);
    expect([...errors.map((code) => `E ${code}`), ...warnings.map((code) => `W ${code}`)]).toEqual(expected);
    const wanted = states ?? (expected.length === 0 ? 'decrypts decrypts' : undefined);
    const judged = statesOf(report).map((state) => state ?? 'none');
    if (wanted !== undefined) expect(judged.join(' ')).toBe(wanted);
    if (schemes !== undefined) expect(report.renditions.map(({ scheme }) => scheme).join(' ')).toBe(schemes);
    if (says !== undefined)
      expect(report.faults[0]?.description).toEqual(
        typeof says === 'string' ? says : expect.stringMatching(says),
      );
    expect(ms).toBeLessThan(1000);
  },
);
