import './retry-once';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import fs from 'fs-extra';
import request from 'supertest';
import { type KeyFile, keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { playReadyChecksum } from '../../src/drm/playready';
import { widevinePsshDataOf } from '../../src/drm/widevine';
import { listen } from '../../src/http/server';
import { createPackagerApp } from '../../src/platform/packager/app';
import { LIVE_LIMITS, type LiveLimits } from '../../src/platform/packager/live/session';
import { openMediaFolder } from '../../src/platform/packager/media-folder';
import { shakaPackagerOfNpm } from '../../src/platform/packager/shaka-packager';
import type { StreamDocument } from '../../src/platform/packager/stream-document';
import { Streams } from '../../src/platform/packager/streams';
import { afterTest } from './after-test';
import { writtenLog } from './written-log';

export const MEDIA_VECTORS = resolve(__dirname, '../vectors/media');

export const KEY_ID = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
export const CONTENT_KEY = Buffer.from('0f0e0d0c0b0a09080706050403020100', 'hex');
export const FAIRPLAY = {
  licenseUrl: 'skd://license.example/news',
  key: '1a'.repeat(16),
  iv: '2b'.repeat(16),
};
/** `fairPlayKeyId` of the address above. */
export const FAIRPLAY_KEY_ID = 'e00cc4a0-b140-5d83-971c-a7df6ec26f78';

/** The key file of a stream with all three DRM systems. */
export const KEY_FILE: KeyFile = {
  cenc: { keyId: KEY_ID.toString('base64'), contentKey: CONTENT_KEY.toString('base64') },
  widevine: { psshData: widevinePsshDataOf(KEY_ID, 'news') },
  playready: {
    licenseUrl: 'https://license.example/rightsmanager.asmx',
    checksum: playReadyChecksum(KEY_ID, CONTENT_KEY),
  },
  fairplay: FAIRPLAY,
};

export const textOfKeyFile = (keyFile: KeyFile): string => renderKeyFile(keyFileLines(keyFile));

interface TestPackagerOptions {
  readonly limits?: Partial<LiveLimits>;
  readonly apiKey?: string;
  readonly maxBytes?: number;
  /** In place of the folders of its own, for one that follows another. */
  readonly home?: string;
  readonly shakaPackager?: string;
  /** How often the size of all files is looked at. */
  readonly lookMs?: number;
  /** In place of the fake encoder. */
  readonly ffmpeg?: string;
  readonly rotate?: boolean;
  readonly keptParts?: number;
}

export type TestPackager = Awaited<ReturnType<typeof startPackager>>;

/** A new folder that is removed after the test. */
export function temporaryHome(): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'packager-test-')));
  afterTest(() => fs.remove(home));
  return home;
}

/** Starts a packager on a free port of loopback, which is stopped after the test. Its encoder is the fake one below. */
export async function startPackager(options: TestPackagerOptions = {}) {
  const { limits, apiKey, maxBytes = 1024 ** 3, home = temporaryHome(), rotate = false } = options;
  const keys = join(home, 'keys');
  mkdirSync(keys, { recursive: true });
  const clock = () => new Date();
  const now = () => performance.now();
  const { log, text: logText } = writtenLog(clock);
  const folder = await openMediaFolder(join(home, 'media'), randomUUID);
  const programs = {
    ffmpeg: options.ffmpeg ?? writeFakeEncoder(home),
    shakaPackager:
      options.shakaPackager ?? shakaPackagerOfNpm(process.platform, process.arch, `${__dirname}/x.js`),
    env: { PATH: process.env.PATH ?? '', TMPDIR: folder.temporary },
    folder: folder.temporary,
  };
  const streams = new Streams({
    ...{ keyFilesPath: keys, maxBytes, folder, programs, log, clock, now, lookMs: options.lookMs ?? 5000 },
    limits: { ...LIVE_LIMITS, retryMs: 100, ...limits },
    rotate,
  });
  let ids = 0;
  const newId = () => {
    ids += 1;
    return `request-${ids}`;
  };
  const { keptParts } = options;
  const app = createPackagerApp({ log, clock, now, newId, streams, programs, apiKey, keptParts });
  const server = await listen(app, '127.0.0.1', 0);
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    await Promise.all([streams.stop(), server.stop(0)]);
    await folder.release();
  };
  afterTest(stop);
  const api = request(server.url);
  const get = async (id: string): Promise<StreamDocument> => (await api.get(`/streams/${id}`)).body;
  return {
    url: server.url,
    /** Contains the folders of keys and media. */
    home,
    api,
    /** Writes a key file with this text. */
    provision: (name = 'news', text = textOfKeyFile(KEY_FILE)) =>
      writeFileSync(join(keys, `${name}.key`), text),
    /** Begins or repeats a live stream. */
    put: async (
      id: string,
      body: object = { source: sourceOf('live'), keyFile: 'news' },
    ): Promise<StreamDocument> => (await api.put(`/streams/${id}`).send(body)).body,
    get,
    /** Asks until the document is as it should be. */
    async until(id: string, isRight: (document: StreamDocument) => boolean): Promise<StreamDocument> {
      for (;;) {
        const document = await get(id);
        if (isRight(document)) return document;
        await pause(20);
      }
    },
    /** The log so far. */
    log: logText,
    stop,
  };
}

/** The same, with the key file of the stream `news`. */
export async function startProvisioned(options: TestPackagerOptions = {}): Promise<TestPackager> {
  const packager = await startPackager(options);
  packager.provision();
  return packager;
}

/** The same, when the live stream `news` is running. */
export async function startRunning(options: TestPackagerOptions = {}): Promise<TestPackager> {
  const packager = await startProvisioned(options);
  await packager.put('news');
  await packager.until('news', ({ state }) => state === 'running');
  return packager;
}

/** The address at which the fake encoder sends a transport stream of the test vectors. */
export function sourceOf(vector: string): string {
  return `rtmp://127.0.0.1:1/live/${vector}-SECRETTOKEN`;
}

/**
 * Replaces ffmpeg where it pulls: sends a file of the test vectors, and stays connected until there is a file
 * `<vector>.gone` in the home. `live-long` sends it again and again; `silent` sends nothing; `live-mute` announces sound, and
 * sends none; `refused` is refused, as is everybody while there is a file `<vector>.refused`.
 */
export function writeFakeEncoder(home: string): string {
  const path = join(home, 'fake-ffmpeg');
  // Something goes on to come, as from any encoder; so it ends when its reader has gone.
  writeFileSync(join(home, 'null-packet'), Buffer.from('471fff10'.padEnd(2 * 188, 'f'), 'hex'));
  writeFileSync(
    path,
    `#!/bin/sh
address=$(sed -n "s/^file '\\(.*\\)'$/\\1/p")
token=\${address##*/}
name=\${token##*#}
name=\${name%-SECRETTOKEN}
if [ "$name" = refused ] || [ -e "${home}/$name.refused" ]; then : > "${home}/$name.asked"; echo "Server error: nothing to play at $token" >&2; exit 1; fi
if [ "$name" = live-long ]; then
  while cat "${MEDIA_VECTORS}/live.mpegts"; do sleep 0.3; done
elif [ "$name" = live-mute ]; then
  case "$*" in *0:a*) head -c 1880 "${MEDIA_VECTORS}/live.mpegts" ;; *) cat "${MEDIA_VECTORS}/live-picture.mpegts" ;; esac
elif [ "$name" != silent ]; then cat "${MEDIA_VECTORS}/$name.mpegts" || exit 1; fi
while [ ! -e "${home}/$name.gone" ]; do
  sleep 0.05
  if [ "$name" = silent ]; then [ -e "${home}" ] || exit 1; else cat "${home}/null-packet" || exit 1; fi
done
`,
    { mode: 0o755 },
  );
  return path;
}

/** The encoder of a vector goes away; it comes back when it is pulled again. */
export async function encoderGoes({ home, until, get }: TestPackager, id = 'news', vector = 'live') {
  const path = join(home, `${vector}.gone`);
  const { started } = await get(id);
  writeFileSync(path, '');
  await until(id, ({ state }) => state === (started === null ? 'starting' : 'interrupted'));
  rmSync(path);
}

/** The processes that a packager runs, by what their arguments say. */
export function processesOf({ home }: Pick<TestPackager, 'home'>): { pid: number; args: string }[] {
  return execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(home))
    .map((line) => ({ pid: Number.parseInt(line, 10), args: line }));
}

/** All files below the folder of the media. */
export function filesOf({ home }: TestPackager): string[] {
  return readdirSync(join(home, 'media'), { recursive: true, encoding: 'utf8' });
}
