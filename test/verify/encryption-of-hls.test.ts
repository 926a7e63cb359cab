import { createCipheriv } from 'node:crypto';
import { join } from 'node:path';
import fs from 'fs-extra';
import { WIDEVINE_SYSTEM_ID } from '../../src/drm/widevine';
import { openMedia } from '../../src/verify/media/open-media';
import {
  base64,
  type Case,
  CONSTANT_IV,
  changeFiles,
  hideBox,
  INIT,
  KEY_ID_AT,
  named,
  OTHER_KEY,
  PATTERN,
  PICTURE,
  patchBox,
  tenc,
  testEncryptionCases,
  WIDEVINE_BOX,
} from '../support/encryption-case';
import {
  CONTENT_KEY,
  FAIRPLAY_FLAGS,
  FAIRPLAY_IV,
  FAIRPLAY_KEY,
  FAIRPLAY_URL,
  hlsPackaging,
  KEY_ID,
  keyFileText,
  type ServedStream,
  startStream,
} from '../support/start-stream';

const withFairPlay = (part: Partial<Record<'licenseUrl' | 'key' | 'iv', string>>) =>
  named(keyFileText({ fairplay: { licenseUrl: FAIRPLAY_URL, key: FAIRPLAY_KEY, iv: FAIRPLAY_IV, ...part } }));

const changePlaylists = (stream: ServedStream, change: (text: string) => string) =>
  Promise.all(['v.m3u8', 'a.m3u8'].map((file) => stream.change(file, change)));
const KEY_LINE = `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${FAIRPLAY_URL}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`;

/** Puts a clear picture of HLS, with its init segment, where the playlist matches. */
async function addClear(stream: ServedStream, at: RegExp, keyLine = ''): Promise<void> {
  const clear = await startStream('hls', { packaging: undefined, flags: [] });
  for (const file of ['v.mp4', 'v1.m4s'])
    await fs.copy(join(clear.folder, file), join(stream.folder, `clear-${file}`));
  const part = `${keyLine}#EXT-X-MAP:URI="clear-v.mp4"\n#EXTINF:2,\nclear-v1.m4s\n#EXT-X-DISCONTINUITY\n`;
  await stream.change('v.m3u8', (text) => text.replace(at, part));
}

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

/** The encryption cases of the WAVE project's test content, and faults in them. */
testEncryptionCases({
  'cbcs with the pattern 10:0': {
    kind: 'hls',
    options: { flags: [...FAIRPLAY_FLAGS, '--crypt_byte_block=10', '--skip_byte_block=0'] },
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
  'the same before a last segment of one sample: W undetermined': {
    kind: 'hls',
    change: async ({ folder }) => {
      for (const type of ['senc', 'saiz', 'saio']) await hideBox(folder, /^v[12]/, type);
      await hideBox(folder, /^v3/, 'senc');
      await patchBox(folder, /^v3/, 'trun', (box) => box.writeUInt32BE(1, 4));
    },
    states: 'unknown decrypts',
    says: /No box \(senc\) says which bytes/,
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
});
