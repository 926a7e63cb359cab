import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import express from 'express';
import fs from 'fs-extra';
import { fairPlayKeyId } from '../../src/drm/packaging';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../src/drm/pssh';
import { listen } from '../../src/http/server';

const ROOT = resolve(__dirname, '../..');
const CLIP = join(ROOT, 'src/emulator/demo/clip.mp4');
const PACKAGER = join(ROOT, 'node_modules/shaka-packager/index.js');

const made: string[] = [];
const servers: { stop(graceMs: number): Promise<void> }[] = [];

afterAll(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop(0)));
  await Promise.all(made.splice(0).map((folder) => fs.remove(folder)));
});

/** What the test clip is encrypted with. */
export interface ClipKeys {
  readonly keyId: Buffer;
  readonly key: Buffer;
}

export const KEY_URI = 'skd://fairplay.example/embed-test';
export const KEYS: ClipKeys = {
  keyId: Buffer.from('e4f1a2b3c4d54e6f8a9b0c1d2e3f4a5b', 'hex'),
  key: Buffer.from('00112233445566778899aabbccddeeff', 'hex'),
};
export const FAIRPLAY_KEYS: ClipKeys = {
  keyId: fairPlayKeyId(KEY_URI),
  key: Buffer.from('ffeeddccbbaa99887766554433221100', 'hex'),
};

/**
 * Packages the test clip with shaka-packager: DASH under `cenc` or HLS under `cbcs`; without keys, clear.
 * @returns the folder, with `manifest.mpd` or `master.m3u8` in it; it is removed after the tests of the file.
 */
export async function packageClip(format: 'dash' | 'hls', keys: ClipKeys | undefined): Promise<string> {
  const folder = await fs.mkdtemp(join(tmpdir(), 'packaged-clip-'));
  made.push(folder);
  const stream = (name: string) =>
    [
      `in=${CLIP}`,
      `stream=${name}`,
      `init_segment=${folder}/${name}-init.mp4`,
      `segment_template=${folder}/${name}-$Number$.m4s`,
      ...(format === 'hls' ? [`playlist_name=${name}.m3u8`] : []),
    ].join(',');
  const output =
    format === 'dash'
      ? ['--generate_static_live_mpd', `--mpd_output=${folder}/manifest.mpd`]
      : [`--hls_master_playlist_output=${folder}/master.m3u8`];
  const protection = keys ? protectionOf(format, keys) : [];
  const flags = [stream('video'), stream('audio'), '--segment_duration=2', ...output, ...protection];
  await promisify(execFile)(process.execPath, [PACKAGER, ...flags, '--quiet']);
  for (const name of await fs.readdir(folder)) {
    if (name.endsWith('.m3u8')) await dropIdentityLines(join(folder, name));
  }
  return folder;
}

/** The common box makes shaka-packager write a line that names an address of FairPlay as one of a plain key. */
async function dropIdentityLines(playlist: string): Promise<void> {
  const text = await fs.readFile(playlist, 'utf8');
  await fs.writeFile(playlist, text.replaceAll(/^#EXT-X-KEY:.*KEYFORMAT="identity".*\n/gm, ''));
}

function protectionOf(format: 'dash' | 'hls', { keyId, key }: ClipKeys): string[] {
  const box = buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keyId]);
  return [
    '--enable_raw_key_encryption',
    `--keys=label=:key_id=${keyId.toString('hex')}:key=${key.toString('hex')}`,
    `--pssh=${box.toString('hex')}`,
    '--clear_lead=0',
    ...(format === 'dash'
      ? ['--protection_scheme=cenc']
      : [
          '--protection_scheme=cbcs',
          '--iv=0123456789abcdef0123456789abcdef',
          '--protection_systems=FairPlay',
          `--hls_key_uri=${KEY_URI}`,
        ]),
  ];
}

/** Serves a folder to pages of any origin until the tests of the file are over, and answers its address. */
export async function serveMedia(folder: string): Promise<string> {
  const app = express();
  app.use((_request, response, next) => {
    response.set('access-control-allow-origin', '*');
    next();
  });
  app.use(express.static(folder));
  const server = await listen(app, '127.0.0.1', 0);
  servers.push(server);
  return server.url;
}
