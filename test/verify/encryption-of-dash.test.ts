import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fs from 'fs-extra';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../src/drm/pssh';
import { decryptSample } from '../../src/verify/media/decrypt';
import { openMedia } from '../../src/verify/media/open-media';
import {
  base64,
  type Case,
  changeFiles,
  hideBox,
  INIT,
  IV_SIZE,
  named,
  OTHER_KEY,
  PICTURE,
  PROTECTED,
  patchBox,
  tenc,
  testEncryptionCases,
  WIDEVINE_BOX,
} from '../support/encryption-case';
import { SOURCE } from '../support/package-stream';
import {
  CONTENT_KEY,
  dashPackaging,
  KEY_FILE,
  KEY_ID,
  keyFileText,
  type ServedStream,
  startStream,
} from '../support/start-stream';

const OTHER_ID = '99999999888847777666555544443333';
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

const schm = (stream: ServedStream, scheme: string) =>
  patchBox(stream.folder, INIT, 'schm', (box) => box.write(scheme, 4, 'latin1'));
const OF_TWO_KEYS = { packaging: undefined, flags: TWO_KEYS };
const ofPicture = { name: 'sd.key', text: keyFileText() };
const former = { formerKeyFiles: [{ name: 'old.key', text: keyFileText() }] };
const withoutProtection = (stream: ServedStream) =>
  stream.change('m.mpd', (text) =>
    text.replaceAll(/<ContentProtection[^>]*\/>|<ContentProtection[\s\S]*?<\/ContentProtection>/g, ''),
  );

/** Puts files of clear DASH in the place of those of the stream. */
async function takeClear(stream: ServedStream, files: RegExp): Promise<void> {
  const { folder } = await startStream('dash', { packaging: undefined });
  await changeFiles(stream, files, (_own, name) => fs.readFileSync(join(folder, name)));
}

/** Makes the first pictures of a segment, by default the last, clear, although they are said to be encrypted. */
async function clearPictures(stream: ServedStream, count: number, of = /^v3/): Promise<void> {
  const init = await fs.readFile(join(stream.folder, 'v.mp4'));
  await changeFiles(stream, of, (segment) => {
    const opened = openMedia(init, segment);
    for (const { content } of opened.ok ? opened.value.tracks : [])
      for (const sample of content.samples.slice(0, count)) {
        const clear = decryptSample(sample, content.format, Buffer.from(CONTENT_KEY, 'hex'));
        clear.copy(segment, segment.indexOf(sample.data));
      }
    return segment;
  });
}

const withIv = (iv: string): Case => ({ options: { packaging: { ...dashPackaging(), iv } } });

/** One file of the picture in another's place; `undefined`: none. */
const instead = (file: string, content?: string | Buffer): Partial<Case> => ({
  change: ({ folder }) =>
    content === undefined ? fs.remove(join(folder, file)) : fs.writeFile(join(folder, file), content),
  states: 'none decrypts',
});
const PAGE = '<!DOCTYPE html><html>blocked</html>';
const SWAPPED = 'd3756a4b4980dc4eb82ac7a2680c5781';
const SWAPPED_UUID = 'd3756a4b-4980-dc4e-b82a-c7a2680c5781';
const OTHER_BOX = `000000387073736800000000edef8ba979d64acea3c827dcd51d21ed000000181210${KEY_ID}48e3dc959b06`;

const OF_FFMPEG: Readonly<Record<string, Case>> = {
  'ffmpeg, which writes no IVs into DASH, nor ContentProtection: E iv_missing, E not_protected': {
    change: async ({ folder }) => {
      const format = `encryption_scheme=cenc-aes-ctr:encryption_key=${CONTENT_KEY}:encryption_kid=${KEY_ID}`;
      const args = ['-v', 'error', '-y', '-i', SOURCE, '-c', 'copy', '-f', 'dash', '-format_options', format];
      await promisify(execFile)('ffmpeg', [...args, join(folder, 'm.mpd')]);
    },
  },
  'a file of ffmpeg, which leaves AC-3 clear: E not_encrypted': {
    change: async ({ folder }) => {
      const keys = `-encryption_scheme cenc-aes-ctr -encryption_key ${CONTENT_KEY} -encryption_kid ${KEY_ID}`;
      const options = keys.split(' ');
      const args = ['-v', 'error', '-y', '-i', SOURCE, '-c:v', 'copy', '-c:a', 'ac3', ...options];
      await promisify(execFile)('ffmpeg', [...args, join(folder, 'x.mp4')]);
      await fs.writeFile(join(folder, 'm.mpd'), OF_ONE_FILE);
    },
    says: /^The audio of x\.mp4 is not encrypted, although /,
  },
};
const OF_ONE_FILE = `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S"><Period>
<AdaptationSet mimeType="video/mp4"><ContentProtection xmlns:cenc="urn:mpeg:cenc:2013" value="cenc"
 schemeIdUri="urn:mpeg:dash:mp4protection:2011" cenc:default_KID="4b6a75d3-8049-4edc-b82a-c7a2680c5781"/>
<Representation id="1" bandwidth="1"><BaseURL>x.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>`;
const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0;

/** The encryption cases of the WAVE project's test content, and faults in them. */
testEncryptionCases({
  'a counter that wraps, and is the same for picture and sound: W iv_reused': {
    ...withIv('f'.repeat(32)),
    states: 'decrypts decrypts',
    says: 'a1.m4s has samples with the key and IV of samples in v1.m4s: under cenc, both can be decrypted without the key. Let the packager give each track IVs of its own.',
  },
  'several keys': {
    options: OF_TWO_KEYS,
    verify: { keyFiles: [ofPicture, { name: 'sound.key', text: keyFile(OTHER_ID, OTHER_KEY) }] },
  },
  'IVs in saiz and saio alone': { change: ({ folder }) => hideBox(folder, MEDIA, 'senc') },
  'no boxes in the init segments': { change: ({ folder }) => hideBox(folder, INIT, 'pssh') },
  'a clear lead: W clear_lead': { options: { flags: ['--clear_lead=2'] } },
  'a clear lead in one file: W clear_lead': {
    options: { single: true, flags: ['--clear_lead=2'] },
    says: /^The stream has a clear lead: v\.mp4 is not encrypted at its start, and v\.mp4 is at its end\. /,
  },
  'a clear lead, and a frame of sound alone at the end: W clear_lead': {
    options: { flags: ['--clear_lead=2'] },
    change: async ({ folder }) => {
      await hideBox(folder, /^a3/, 'senc');
      await patchBox(folder, /^a3/, 'trun', (box) => box.writeUInt32BE(1, 4));
    },
    states: 'decrypts decrypts',
  },
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
    change: (stream) =>
      stream.change('m.mpd', (text) => text.replaceAll(/(?<=default_KID=")\w+/g, '99999999')),
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
  'an IV size of 16 for IVs of 8: E senc_malformed': {
    ...withIv('0011223344556677'),
    change: (stream) => tenc(stream, (box) => box.writeUInt8(16, IV_SIZE)),
  },
  'samples that are said to be clear, without a key file: E not_signalled': {
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
  'a picture that is clear among encrypted ones: W partly_noise': {
    change: (stream) => clearPictures(stream, 1),
    states: 'decrypts decrypts',
    says: /^Some samples of v3\.m4s are noise, .* In v3\.m4s: 19 of 20 pictures are valid/,
  },
  'sound in place of the last picture: W undetermined': {
    change: ({ folder }) => fs.copy(join(folder, 'a3.m4s'), join(folder, 'v3.m4s')),
    states: 'unknown decrypts',
  },
  'all pictures of the first segment clear: E not_encrypted': {
    change: (stream) => clearPictures(stream, 20, /^v1/),
    says: /^v1\.m4s is not encrypted, although its init segment or playlist says that it is, /,
  },
  'a picture of the first segment clear: W partly_noise': {
    change: (stream) => clearPictures(stream, 1, /^v1/),
    says: /^Some samples of v1\.m4s are noise, /,
  },
  'half of the pictures of the first segment clear: W undetermined': {
    change: (stream) => clearPictures(stream, 10, /^v1/),
    says: /^Whether the key decrypts v1\.m4s \(avc1\.64000c\) is undetermined\. Some samples decrypt and some do not: /,
  },
  'the key id in the other byte order: E key_id_byte_order': {
    options: { packaging: dashPackaging(keyFile(SWAPPED, CONTENT_KEY)) },
    says: `The byte order of the key id differs: m.mpd has ${SWAPPED_UUID} where news.key has 4b6a75d3-8049-4edc-b82a-c7a2680c5781; both must be big endian (as in a UUID), so correct the one in m.mpd. The same is true of v.mp4 and a.mp4.`,
  },
  'a key file in the other byte order, which is no longer suspected: E key_id_byte_order': {
    verify: named(keyFile(SWAPPED, CONTENT_KEY)),
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
  'another scheme than the lines of the key file ask for: E scheme_mismatch': {
    options: { packaging: { ...dashPackaging(), scheme: 'cbcs' } },
    verify: named(keyFileText({ ...KEY_FILE, fairplay: undefined as never })),
  },
  'another Widevine box in the manifest than in the init segment: W pssh_differs': {
    change: (stream) =>
      stream.change('m.mpd', (text) => text.replaceAll(base64(WIDEVINE_BOX), base64(OTHER_BOX))),
  },
  'an init segment that is a web page: E not_media': instead('v.mp4', PAGE),
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
  ...(hasFfmpeg && OF_FFMPEG),
});
