import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fs from 'fs-extra';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../src/drm/pssh';
import { SOURCE } from '../support/package-stream';
import { hideBox, patchBox } from '../support/patch-mp4';
import { processorMs } from '../support/processor-time';
import { rowsOf } from '../support/rows-of';
import {
  CONTENT_KEY,
  codesOf,
  dashPackaging,
  FAIRPLAY_FLAGS,
  hlsPackaging,
  KEY_ID,
  keyFileText,
  type ServedStream,
  startStream,
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
}

/** Where `tenc` has the pattern, the protection, the size of the IV, the key id, and the size of a constant IV. */
const [PATTERN, PROTECTED, IV_SIZE, KEY_ID_AT, CONSTANT_IV] = [5, 6, 7, 8, 24];
const tenc = (stream: ServedStream, patch: (box: Buffer) => void) =>
  patchBox(stream.folder, INIT, 'tenc', patch);
const schm = (stream: ServedStream, scheme: string) =>
  patchBox(stream.folder, INIT, 'schm', (box) => box.write(scheme, 4, 'latin1'));
const named = (text: string) => ({ keyFiles: [{ name: 'news.key', text }] });
const both = {
  keyFiles: [
    { name: 'a.key', text: keyFileText() },
    { name: 'b.key', text: keyFile(OTHER_ID, OTHER_KEY) },
  ],
};

/**
 * What the WAVE project's test content tries in encryption, and what goes wrong there. Behind what a stream has come its
 * errors and warnings.
 */
const CASES: Readonly<Record<string, Case>> = {
  'an IV of 8 bytes under cenc': { options: { packaging: { ...dashPackaging(), iv: '0011223344556677' } } },
  'an IV of 16 bytes under cenc': {
    options: { packaging: { ...dashPackaging(), iv: '00112233445566778899aabbccddeeff' } },
  },
  'a counter that wraps': {
    options: { packaging: { ...dashPackaging(), iv: 'ffffffffffffffffffffffffffffffff' } },
  },
  'cbcs with the pattern 1:9': { kind: 'hls' },
  'cbcs with the pattern 5:5': {
    kind: 'hls',
    options: { flags: [...FAIRPLAY_FLAGS, '--crypt_byte_block=5', '--skip_byte_block=5'] },
  },
  'cbcs with the pattern 10:0': {
    kind: 'hls',
    options: { flags: [...FAIRPLAY_FLAGS, '--crypt_byte_block=10', '--skip_byte_block=0'] },
  },
  'several keys': { options: { packaging: undefined, flags: TWO_KEYS }, verify: both },
  'IVs in saiz and saio alone': { change: ({ folder }) => hideBox(folder, MEDIA, 'senc') },
  'no boxes in the init segments': { change: ({ folder }) => hideBox(folder, INIT, 'pssh') },
  'a single file a track': { options: { single: true } },
  'a clear lead: W clear_lead': { options: { flags: ['--clear_lead=2'] } },
  'several keys of which one is given: E key_id_unknown': {
    options: { packaging: undefined, flags: TWO_KEYS },
  },
  'a wrong key: E content_key_wrong': { verify: named(keyFile(KEY_ID, OTHER_KEY)) },
  'another key id in tenc: E key_id_mismatch': {
    change: (stream) => tenc(stream, (box) => box.write(OTHER_ID, KEY_ID_AT, 'hex')),
  },
  'another default_KID: E key_id_mismatch': {
    change: (stream) =>
      stream.change('m.mpd', (text) =>
        text.replaceAll(/default_KID="[^"]*"/g, 'default_KID="99999999-8888-4777-7666-555544443333"'),
      ),
  },
  'another scheme in schm: E scheme_mismatch': { change: (stream) => schm(stream, 'cbcs') },
  'an unknown scheme in schm: E scheme_unknown': { change: (stream) => schm(stream, 'cenx') },
  'no senc, saiz and saio: E iv_missing': {
    change: async ({ folder }) => {
      for (const type of ['senc', 'saiz', 'saio']) await hideBox(folder, MEDIA, type);
    },
  },
  'no constant IV: E iv_missing': {
    kind: 'hls',
    change: (stream) => tenc(stream, (box) => box.writeUInt8(0, CONSTANT_IV)),
  },
  'another constant IV: E iv_wrong': {
    kind: 'hls',
    change: (stream) => tenc(stream, (box) => box.fill(7, CONSTANT_IV + 1)),
  },
  'a pattern of zero: E pattern_wrong': {
    kind: 'hls',
    change: (stream) => tenc(stream, (box) => box.writeUInt8(0, PATTERN)),
  },
  'a pattern of no encrypted blocks: E pattern_wrong': {
    kind: 'hls',
    change: (stream) => tenc(stream, (box) => box.writeUInt8(9, PATTERN)),
  },
  'an IV size of 16 for IVs of 8: E senc_malformed': {
    options: { packaging: { ...dashPackaging(), iv: '0011223344556677' } },
    change: (stream) => tenc(stream, (box) => box.writeUInt8(16, IV_SIZE)),
  },
  'samples that are said to be clear: E not_signalled': {
    change: (stream) => tenc(stream, (box) => box.writeUInt8(0, PROTECTED)),
  },
  'clear samples: E not_encrypted': {
    change: async (stream) => {
      const clear = await startStream('dash', { packaging: undefined });
      for (const name of ['v1', 'v2', 'v3', 'a1', 'a2', 'a3'])
        await fs.copy(join(clear.folder, `${name}.m4s`), join(stream.folder, `${name}.m4s`));
    },
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
  async (_what, { kind = 'dash', options, change, verify }, expected) => {
    const packaging = kind === 'hls' ? hlsPackaging() : dashPackaging();
    const stream = await startStream(kind, { packaging, ...options });
    await change?.(stream);
    let found: string[] = [];
    const ms = await processorMs(async () => {
      const { errors, warnings } = codesOf(await stream.verify(verify));
      found = [...errors.map((code) => `E ${code}`), ...warnings.map((code) => `W ${code}`)];
    });
    expect(found).toEqual(expected);
    expect(ms).toBeLessThan(1000);
  },
);
