import { resolve } from 'node:path';
import { fairPlayKeyId } from '../../src/drm/packaging';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../src/drm/pssh';
import { afterAllTests } from './after-test';
import { startMediaServer } from './media-server';
import { type Packaging, packagedOnce } from './package-stream';
import { fairPlayLinesOf } from './post-manual';

export const CLIP = resolve(__dirname, '../../src/platform/demo/clip.mp4');

/** The keys of the test clip. */
export interface ClipKeys {
  readonly keyId: Buffer;
  readonly key: Buffer;
}

const KEY_URI = 'skd://fairplay.example/embed-test';
/** Of HLS, for all samples. */
export const IV = '0123456789abcdef0123456789abcdef';
export const KEYS: ClipKeys = {
  keyId: Buffer.from('e4f1a2b3c4d54e6f8a9b0c1d2e3f4a5b', 'hex'),
  key: Buffer.from('00112233445566778899aabbccddeeff', 'hex'),
};
export const FAIRPLAY_KEYS: ClipKeys = {
  keyId: fairPlayKeyId(KEY_URI),
  key: Buffer.from('ffeeddccbbaa99887766554433221100', 'hex'),
};

/** As the sidecar writes it, with the lines that a test decrypts with. */
export const keyFileOf = (cenc: ClipKeys) => `mpegdashstreaming-cenc-key-id: ${cenc.keyId.toString('base64')}
mpegdashstreaming-cenc-content-key: ${cenc.key.toString('base64')}
mpegdashstreaming-cenc-algorithm: AESCTR
${fairPlayLinesOf(KEY_URI, FAIRPLAY_KEYS.key, Buffer.from(IV, 'hex'))}`;

/** The address of the test clip, packaged as DASH under `cenc` or HLS under `cbcs`; without keys, clear. */
export async function servedClip(format: 'dash' | 'hls', keys: ClipKeys | undefined): Promise<string> {
  const packaging: Packaging | undefined = keys && {
    scheme: format === 'dash' ? 'cenc' : 'cbcs',
    keyId: keys.keyId.toString('hex'),
    key: keys.key.toString('hex'),
    pssh: buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keys.keyId]).toString('hex'),
    ...(format === 'hls' && { iv: IV }),
  };
  const flags = keys && format === 'hls' ? ['--protection_systems=FairPlay', `--hls_key_uri=${KEY_URI}`] : [];
  const folder = await packagedOnce({ source: CLIP, packaging, playlists: format, flags });
  return `${await serveMedia(folder)}/${format === 'dash' ? 'm.mpd' : 'master.m3u8'}`;
}

/** Serves a folder until the tests of the file are over, and answers its address. */
export const serveMedia = async (folder: string) => (await startMediaServer(folder, afterAllTests)).url;
