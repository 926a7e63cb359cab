import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import nodeFs, { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readPackagerConfig } from '../../../src/platform/packager/config';
import {
  ChangeWatch,
  PacketReader,
  readProgramMap,
} from '../../../src/platform/packager/live/transport-stream';
import { type MediaFolder, openMediaFolder } from '../../../src/platform/packager/media-folder';
import { MEDIA_VECTORS, temporaryHome } from '../../support/start-packager';

const DEFAULTS = {
  host: '127.0.0.1',
  port: 8082,
  apiKey: undefined,
  keyFilesPath: resolve('keys'),
  folder: tmpdir(),
  maxBytes: 8192 * 1024 * 1024,
  rotate: false,
  ffmpeg: 'ffmpeg',
  shakaPackager: undefined,
  logLevel: 'info',
  unknownVariables: [],
};

test('starts without any variable, and takes an empty one as absent', () => {
  expect(readPackagerConfig({})).toEqual(DEFAULTS);
  expect(readPackagerConfig({ PACKAGER_PORT: '', PACKAGER_APIKEY: '', PATH: '/bin' })).toEqual(DEFAULTS);
});

test('takes every variable, and names the nearest of one that it does not know', () => {
  const env = {
    PACKAGER_HOST: '0.0.0.0',
    PACKAGER_PORT: '0',
    PACKAGER_APIKEY: '0123456789abcdef',
    PACKAGER_KEYFILESPATH: '/keys',
    PACKAGER_FOLDER: '/media',
    PACKAGER_MAXMB: '1',
    PACKAGER_ROTATE: 'true',
    PACKAGER_FFMPEG: './bin/ffmpeg',
    PACKAGER_SHAKAPACKAGER: relative('', __filename),
    PACKAGER_LOGLEVEL: 'debug',
    PACKAGER_FOLDR: '/x',
  };
  expect(readPackagerConfig(env)).toEqual({
    host: '0.0.0.0',
    port: 0,
    apiKey: '0123456789abcdef',
    keyFilesPath: '/keys',
    folder: '/media',
    maxBytes: 1024 * 1024,
    rotate: true,
    ffmpeg: resolve('bin/ffmpeg'),
    shakaPackager: __filename,
    logLevel: 'debug',
    unknownVariables: ['PACKAGER_FOLDR (did you mean PACKAGER_FOLDER?)'],
  });
});

test('reports every fault at once, and quotes no value', () => {
  const before = process.cwd();
  const folder = join(temporaryHome(), 'a,$SECRET');
  mkdirSync(folder);
  process.chdir(folder);
  const env = {
    PACKAGER_PORT: '70000',
    PACKAGER_APIKEY: 'SECRET',
    PACKAGER_FOLDER: './media',
    PACKAGER_MAXMB: '0',
    PACKAGER_ROTATE: 'yes',
    PACKAGER_SHAKAPACKAGER: '/no/SECRET',
    PACKAGER_LOGLEVEL: 'loud',
  };
  const read = () => readPackagerConfig(env);
  expect(read).toThrow(
    `The configuration has 8 faults:
  - PACKAGER_PORT: must be at most 65535
  - PACKAGER_APIKEY: must have at least 16 characters
  - PACKAGER_FOLDER: must be a path without a comma
  - PACKAGER_FOLDER: must be a path without $
  - PACKAGER_MAXMB: must be a whole number of megabytes, from 1 to 99999999
  - PACKAGER_ROTATE: must be true or false
  - PACKAGER_SHAKAPACKAGER: there is no such file
  - PACKAGER_LOGLEVEL: must be one of error, warn, info, debug, silent`,
  );
  process.chdir(before);
});

const media = (name: string) => readFileSync(join(MEDIA_VECTORS, `${name}.mpegts`));
const mapOf = (bytes: Buffer) => readProgramMap(new PacketReader().push(bytes));
const codecs = (name: string) => mapOf(media(name))?.map(({ kind, codec }) => `${kind} ${codec}`);

test.each([
  ['live', ['video H.264', 'audio AAC']],
  ['live-sound', ['audio AAC']],
  ['live-hevc', ['video H.265']],
])('the program map of %s is read', (name, expected) => {
  expect(codecs(name)).toEqual(expect.arrayContaining(expected));
});

test('there is no program map before its packet has come, nor in other bytes', () => {
  expect(mapOf(media('live').subarray(0, 188))).toBeUndefined();
  expect(mapOf(Buffer.alloc(1880, 0x47))).toBeUndefined();
});

/** Whether a watch of the first stream reports a change in these bytes, in pieces of any length. */
function changes(bytes: Buffer): boolean {
  const found = [188, 1000, bytes.length].map((piece) => {
    const [reader, watch] = [new PacketReader(), new ChangeWatch(mapOf(bytes) ?? [])];
    for (let at = 0; at < bytes.length; at += piece)
      if (watch.push(reader.push(bytes.subarray(at, at + piece)))) return true;
    return false;
  });
  expect(new Set(found).size).toBe(1);
  return found[0] === true;
}

test('a stream that goes on has not changed; one that begins again has jumped back', () => {
  expect(changes(media('live'))).toBe(false);
  expect(changes(Buffer.concat([media('live'), media('live')]))).toBe(true);
  expect(changes(Buffer.concat([media('live-sound'), media('live-sound')]))).toBe(true);
});

/** The packet in which a picture of this time begins, without a byte of it. */
function pictureAt(time: number): Buffer {
  const packet = Buffer.alloc(188, 0xff);
  packet.set([0x47, 0x41, 0, 0x10, 0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21]);
  packet.writeUInt16BE(((time >> 15) << 1) | 1, 14);
  packet.writeUInt16BE(((time & 0x7fff) << 1) | 1, 16);
  return packet;
}

test('a time at which ffmpeg stays has gone back at the encoder, unless it does for a few pictures alone', () => {
  const staysFor = (count: number) => {
    const times = Array.from({ length: count }, (_, index) => 12_000 + index);
    const video = { pid: 256, kind: 'video', codec: 'H.264' } as const;
    return new ChangeWatch([video]).push([0, 6000, ...times, 18_000].map(pictureAt));
  };
  expect([1, 8, 20].map(staysFor)).toEqual([false, false, true]);
});

test('other parameters of the picture are a change', () => {
  const bytes = Buffer.from(media('live'));
  const last = bytes.lastIndexOf(Buffer.from([0, 0, 1, 0x67]));
  expect(last).toBeGreaterThan(0);
  // The level of the stream.
  bytes[last + 6] = (bytes[last + 6] ?? 0) ^ 1;
  expect(changes(bytes)).toBe(true);
});

describe('the folder of media', () => {
  const opened: MediaFolder[] = [];

  afterEach(async () => {
    for (const folder of opened.splice(0)) await folder.release();
  });

  async function open(home: string): Promise<MediaFolder> {
    const folder = await openMediaFolder(home, randomUUID);
    opened.push(folder);
    return folder;
  }

  test('the folder is found again with its streams, and without what was temporary, once the packager before has released it', async () => {
    const home = temporaryHome();
    const first = await open(home);
    mkdirSync(first.of('news'));
    writeFileSync(join(first.temporary, 'rest'), '');
    await expect(open(home)).rejects.toThrow('another packager uses');
    await first.release();
    expect(existsSync(first.temporary)).toBe(false);
    const second = await open(home);
    expect(second.ids()).toEqual(['news']);
    expect([second.isLocked, existsSync(join(second.temporary, 'rest'))]).toEqual([true, false]);
  });

  test('a folder whose path is too long for a socket, where the system has no shorter one, is used without a lock, which is known', async () => {
    const { platform } = process;
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    const folder = await open(join(temporaryHome(), 'a'.repeat(200)));
    Object.defineProperty(process, 'platform', { value: platform });
    expect(folder.isLocked).toBe(false);
  });

  test('a process that waits for a packager that was killed to write to it ends', async () => {
    const home = temporaryHome();
    const first = await open(home);
    await first.release();
    const fifo = join(first.temporary, 'news-part-1-dash');
    mkdirSync(first.temporary);
    execFileSync('mkfifo', [fifo, join(first.temporary, 'not-read')]);
    const reader = spawn('sh', ['-c', 'echo begun; exec cat "$0"', fifo]);
    await once(reader.stdout, 'data');
    // Until it has come to wait for a writer.
    await sleep(200);
    const ended = once(reader, 'close');
    await open(home);
    expect(await ended).toEqual([0, null]);
  });

  test('a link in the place of the folder is refused', async () => {
    const home = temporaryHome();
    mkdirSync(join(home, 'other'));
    symlinkSync('other', join(home, 'packager-media'));
    await expect(open(home)).rejects.toThrow('is not a folder of the user that the packager runs as');
  });

  test('a folder that can not be made is reported with the reason', async () => {
    const home = temporaryHome();
    writeFileSync(join(home, 'file'), '');
    await expect(open(join(home, 'file'))).rejects.toThrow(/PACKAGER_FOLDER: .* can't be used \(E\w+\)/);
  });

  test('a folder on a read-only file system is reported as that', async () => {
    const home = temporaryHome();
    const mkdir = jest.spyOn(nodeFs, 'mkdirSync').mockImplementation((path, options) => {
      if (path === home) return undefined;
      // As Node fails there.
      const code = Object(options).recursive ? 'ENOENT' : 'EROFS';
      throw Object.assign(new Error(code), { code });
    });
    const opening = expect(open(home)).rejects.toThrow("packager-media can't be used (EROFS)");
    mkdir.mockRestore();
    await opening;
  });
});
