import { join } from 'node:path';
import fs from 'fs-extra';
import { type KeyFile, keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { boxesOf, fairPlayKeyId, readPackagingKeys } from '../../src/drm/packaging';
import { createGet } from '../../src/http/get';
import type { StreamReport } from '../../src/verify/stream-report';
import { type VerifyOptions, verifyStream } from '../../src/verify/verify-stream';
import { afterAllTests, afterTest, temporaryFolder } from './after-test';
import { startMediaServer } from './media-server';
import { type PackageOptions, type Packaging, packagedOnce } from './package-stream';
import { right } from './right';

/** The values of a key file; no other test uses these pairs of key id and key. */
export const KEY_ID = '4b6a75d380494edcb82ac7a2680c5781';
export const CONTENT_KEY = '0f1e2d3c4b5a69788796a5b4c3d2e1f0';
export const FAIRPLAY_KEY = 'a0b1c2d3e4f5061728394a5b6c7d8e9f';
export const FAIRPLAY_IV = '00112233445566778899aabbccddeeff';
export const FAIRPLAY_URL = 'skd://fairplay.example.com/news';

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');

export const KEY_FILE: KeyFile = {
  cenc: { keyId: base64(KEY_ID), contentKey: base64(CONTENT_KEY) },
  widevine: { psshData: base64(`1210${KEY_ID}`) },
  fairplay: { licenseUrl: FAIRPLAY_URL, key: FAIRPLAY_KEY, iv: FAIRPLAY_IV },
};

/** A key file's text, with other values in some parts. */
export function keyFileText(other: Partial<KeyFile> = {}): string {
  return renderKeyFile(keyFileLines({ ...KEY_FILE, ...other }));
}

/** How a packager makes DASH, and HLS, of that key file. */
export function dashPackaging(text = keyFileText()): Packaging {
  const { dash } = right(readPackagingKeys(text)).keys;
  if (!dash) throw new Error('The key file has nothing for DASH');
  return {
    scheme: 'cenc',
    keyId: dash.keyId.toString('hex'),
    key: dash.key.toString('hex'),
    pssh: boxesOf(dash, true).toString('hex'),
  };
}

export function hlsPackaging(text = keyFileText()): Packaging {
  const { hls } = right(readPackagingKeys(text)).keys;
  if (!hls) throw new Error('The key file has nothing for HLS');
  return {
    scheme: 'cbcs',
    keyId: fairPlayKeyId(hls.keyUri).toString('hex'),
    key: hls.key.toString('hex'),
    iv: hls.iv.toString('hex'),
    pssh: boxesOf(hls, true).toString('hex'),
  };
}

export const FAIRPLAY_FLAGS = ['--protection_systems=FairPlay', `--hls_key_uri=${FAIRPLAY_URL}`];

export type ServedStream = Awaited<ReturnType<typeof startStream>>;

/** Packages a stream, by default with the key file, and serves it. */
export async function startStream(kind: 'dash' | 'hls', options: Omit<PackageOptions, 'playlists'> = {}) {
  const isHls = kind === 'hls';
  const once = await packagedOnce({
    packaging: isHls ? hlsPackaging() : dashPackaging(),
    flags: isHls ? FAIRPLAY_FLAGS : [],
    ...options,
    playlists: kind,
  });
  const folder = await temporaryFolder(afterAllTests);
  await fs.copy(once, folder);
  const server = await startMediaServer(folder);
  const { get, close } = createGet({ userAgent: 'test' });
  afterTest(close);
  const manifest = isHls ? 'master.m3u8' : 'm.mpd';
  return {
    ...server,
    folder,
    manifest,
    /** The manifest's or a playlist's text, changed. */
    change: async (file: string, change: (text: string) => string) => {
      const path = join(folder, file);
      await fs.writeFile(path, change(await fs.readFile(path, 'utf8')));
    },
    /** Tests it, by default with the key file. */
    verify: ({
      path = `/${manifest}`,
      ...verifyOptions
    }: Partial<VerifyOptions> & { readonly path?: string } = {}) =>
      verifyStream(server.url + path, {
        get,
        keyFiles: [{ name: 'news.key', text: keyFileText() }],
        now: () => new Date(),
        ...verifyOptions,
      }),
  };
}

/** The codes of a report's errors, and of its warnings. */
export function codesOf({ faults }: StreamReport): { errors: string[]; warnings: string[] } {
  const of = (severity: string) =>
    faults.filter((fault) => fault.severity === severity).map(({ code }) => code);
  return { errors: of('error'), warnings: of('warning') };
}

/** The judgements of a report's renditions. */
export function statesOf({ renditions }: StreamReport): (string | undefined)[] {
  return renditions.map(({ judgement }) => judgement?.state);
}

/** Expects that a report has no fault, and that each of so many renditions decrypts. */
export function expectToPlay(report: StreamReport, renditions = 2): void {
  const states = Array(renditions).fill('decrypts');
  expect({ faults: report.faults, states: statesOf(report) }).toEqual({ faults: [], states });
}
