import { resolve } from 'node:path';
import { fairPlayKeyId } from '../../src/drm/packaging';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../src/drm/pssh';
import { afterAllTests, temporaryFolder } from './after-test';
import { startMediaServer } from './media-server';
import { type Packaging, packageStream } from './package-stream';
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

const packaged = new Map<string, Promise<string>>();

/** The address of the packaged test clip, which is packaged and served once for the tests of a file. */
export function servedClip(format: 'dash' | 'hls', keys: ClipKeys | undefined): Promise<string> {
  const name = `${format} ${keys?.keyId.toString('hex')} ${keys?.key.toString('hex')}`;
  const known = packaged.get(name) ?? packageClip(format, keys).then(serveMedia);
  packaged.set(name, known);
  return known.then((url) => `${url}/${format === 'dash' ? 'm.mpd' : 'master.m3u8'}`);
}

/**
 * Packages the test clip: DASH under `cenc` or HLS under `cbcs`; without keys, clear.
 * @returns the folder, with `m.mpd` or `master.m3u8` in it; it is removed after the tests of the file.
 */
async function packageClip(format: 'dash' | 'hls', keys: ClipKeys | undefined): Promise<string> {
  const folder = await temporaryFolder(afterAllTests);
  const packaging: Packaging | undefined = keys && {
    scheme: format === 'dash' ? 'cenc' : 'cbcs',
    keyId: keys.keyId.toString('hex'),
    key: keys.key.toString('hex'),
    pssh: buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keys.keyId]).toString('hex'),
    ...(format === 'hls' && { iv: IV }),
  };
  const flags = keys && format === 'hls' ? ['--protection_systems=FairPlay', `--hls_key_uri=${KEY_URI}`] : [];
  await packageStream({ source: CLIP, folder, packaging, playlists: format, flags });
  return folder;
}

/** Serves a folder until the tests of the file are over, and answers its address. */
export const serveMedia = async (folder: string) => (await startMediaServer(folder, afterAllTests)).url;
