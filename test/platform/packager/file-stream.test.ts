import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, watch } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type FileStream, packageFile } from '../../../src/platform/packager/file-stream';
import { joinMediaPlaylists, masterPlaylist } from '../../../src/platform/packager/playlists/hls-playlists';
import { CLEAR } from '../../../src/platform/packager/shaka-packager';
import { folderOfEachTest } from '../../support/after-test';
import { errorBody } from '../../support/error-body';
import { SHAKA_PACKAGER } from '../../support/package-stream';
import { decryptedSamples, joinSegments, PACKAGING_KEYS, samplesOf } from '../../support/packaged-samples';
import {
  filesOf,
  MEDIA_VECTORS,
  startPackager,
  startProvisioned,
  type TestPackager,
  temporaryHome,
} from '../../support/start-packager';

describe('the streams of a file', () => {
  const root = folderOfEachTest();

  const media = (name: string) => join(MEDIA_VECTORS, name);
  const run = (source: string, change: Partial<FileStream> = {}) =>
    packageFile({
      programs: { ffmpeg: 'ffmpeg', shakaPackager: SHAKA_PACKAGER, env: { TMPDIR: root }, folder: root },
      source,
      folder: join(root, 'out'),
      keys: PACKAGING_KEYS,
      signal: new AbortController().signal,
      ...change,
    });
  /** A program in the place of shaka-packager, and the other options that a test changes. */
  const runAs = (shakaPackager: string, change: Partial<FileStream> = {}, folder = root) =>
    run(media('film.mp4'), {
      programs: { ffmpeg: 'ffmpeg', shakaPackager, env: { TMPDIR: folder }, folder },
      ...change,
    });
  /** A program of this script, in which `SHAKA` is shaka-packager with its arguments. */
  const spying = async (script: string) => {
    const spy = join(root, 'spy');
    const text = `#!/bin/sh\n${script.replace('SHAKA', `exec "${SHAKA_PACKAGER}" "$@"`)}\n`;
    await writeFile(spy, text, { mode: 0o755 });
    return spy;
  };
  const text = (path: string) => readFile(join(root, 'out', path), 'utf8');

  test.each([
    ['film.mp4', ['video', 'audio'], 2.1],
    ['two-sounds.mp4', ['video', 'audio', 'audio-2'], 2.1],
    ['fragmented.mp4', ['video'], 2],
    ['turned.mov', ['video'], 1.4],
    ['sound.m4a', ['audio'], 2.1],
  ])(
    'each sample of %s comes out of both outputs as it went in, and only with the key',
    async (file, tracks, seconds) => {
      const packaged = await run(media(file));
      expect(packaged).toEqual({ ok: true, seconds: expect.any(Number), systems: ['dash', 'hls'] });
      expect(packaged.ok && packaged.seconds).toBeCloseTo(seconds, 0);
      const source = await samplesOf(media(file));
      for (const output of ['dash', 'hls'] as const) {
        for (const [index, name] of tracks.entries()) {
          const folder = join(root, 'out', output);
          const kind = name.startsWith('audio') ? 'audio' : 'video';
          const samples = source[index]?.samples ?? [];
          expect(await decryptedSamples(folder, name, kind, output)).toEqual(samples);
          const [encrypted] = await samplesOf(await joinSegments(folder, name));
          expect(encrypted?.samples).toHaveLength(samples.length);
          // Too short a sample has no whole block to encrypt.
          const long = encrypted?.samples.filter((sample) => sample.length > 2 * 128);
          expect(long?.filter((sample) => samples.includes(sample))).toEqual([]);
        }
      }
    },
  );

  test('the playlists name every track, its language, and FairPlay alone', async () => {
    await run(media('two-sounds.mp4'));
    expect(masterPlaylist([await text('hls/master.m3u8')], undefined)).toMatch(
      /^#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-MEDIA:TYPE=AUDIO,URI="audio.m3u8",GROUP-ID="audio",LANGUAGE="en",NAME="Audio 1 \(eng\)",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="1"\n#EXT-X-MEDIA:TYPE=AUDIO,URI="audio-2.m3u8",GROUP-ID="audio",LANGUAGE="de",NAME="Audio 2 \(deu\)",DEFAULT=NO,AUTOSELECT=YES,CHANNELS="1"\n#EXT-X-STREAM-INF:BANDWIDTH=\d+,AVERAGE-BANDWIDTH=\d+,CODECS="avc1.64000a,mp4a.40.2",RESOLUTION=64x36,FRAME-RATE=5.000,AUDIO="audio",CLOSED-CAPTIONS=NONE\nvideo.m3u8\n$/,
    );
    const labels = (await text('dash/manifest.mpd')).match(/<Label>.*<\/Label>/g);
    expect(labels).toEqual(['<Label>Audio 1 (eng)</Label>', '<Label>Audio 2 (deu)</Label>']);
    const part = { folder: 'part-1', text: await text('hls/video.m3u8') };
    expect(joinMediaPlaylists([part], { ended: true, windowSeconds: undefined })).toBe(`#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://fairplay.example/demo",KEYFORMATVERSIONS="1",KEYFORMAT="com.apple.streamingkeydelivery"
#EXT-X-MAP:URI="part-1/video_init.mp4"
#EXTINF:2.000,
part-1/video_1.m4s
#EXT-X-ENDLIST
`);
  });

  test('a file is left clear on request, and then names no keys', async () => {
    const systems = ['dash', 'hls'];
    expect(await run(media('film.mp4'), { keys: CLEAR })).toMatchObject({ ok: true, systems });
    const manifests = `${await text('dash/manifest.mpd')}${await text('hls/video.m3u8')}`;
    expect(manifests).not.toMatch(/ContentProtection|EXT-X-KEY/);
    const [source] = await samplesOf(media('film.mp4'));
    const [clear] = await samplesOf(await joinSegments(join(root, 'out/dash'), 'video'));
    expect(clear?.samples).toEqual(source?.samples);
  });

  test('a key file without FairPlay gives DASH alone', async () => {
    const keys = { ...PACKAGING_KEYS, hls: undefined };
    expect(await run(media('film.mp4'), { keys })).toMatchObject({ ok: true, systems: ['dash'] });
    expect(await readdir(join(root, 'out'))).toEqual(['dash']);
  });

  describe('a file that can not be packaged is refused with the remedy, and leaves nothing', () => {
    const refused = async (bytes: Buffer) => {
      const source = join(root, 'upload');
      await writeFile(source, bytes);
      const packaged = await run(source);
      expect(await readdir(root)).toEqual(['upload']);
      return packaged.ok ? undefined : packaged.problem;
    };
    const unreadable = {
      code: 'media_unreadable',
      description:
        'This is no media file that can be read, or a MOV with sound. Upload an MP4 with H.264 and AAC.',
    };

    test.each(['', 'hello', '\0\0\0\x08free'])('the bytes %j', async (bytes) => {
      expect(await refused(Buffer.from(bytes))).toEqual(unreadable);
    });

    test.each([200, 4000])('a file that was cut off behind %d bytes', async (length) => {
      expect(await refused((await readFile(media('film.mp4'))).subarray(0, length))).toEqual({
        code: 'media_incomplete',
        description: 'The file ends before its last box does. Upload the whole file.',
      });
    });

    test('a file that is encrypted already', async () => {
      await run(media('film.mp4'));
      const joined = await readFile(await joinSegments(join(root, 'out/dash'), 'video'));
      await rm(join(root, 'out'), { recursive: true });
      expect(await refused(joined)).toEqual({
        code: 'media_encrypted',
        description: 'The file is encrypted already. Upload the clear one.',
      });
    });

    test('another codec', async () => {
      const bytes = await readFile(media('sound.m4a'));
      const at = bytes.indexOf('mp4a', bytes.indexOf('stsd'));
      bytes.write('Opus', at, 'latin1');
      expect((await refused(bytes))?.code).toMatch(/^media_un/);
    });
  });

  test('the keys are in no argument, and in no file by the time that the process runs', async () => {
    const spy = await spying(
      `echo "$@" >> ${root}/arguments\nls -AR ${root} >> ${root}/files\nreadlink /dev/fd/3 >> ${root}/opened\nSHAKA`,
    );
    // One at a time: the file of the other may be there for a moment while the first one runs.
    for (const system of ['dash', 'hls'] as const) {
      const keys = { dash: undefined, hls: undefined, [system]: PACKAGING_KEYS[system] };
      const folder = join(root, `out-${system}`);
      expect(await runAs(spy, { keys, folder })).toMatchObject({ ok: true });
    }
    const given = await readFile(join(root, 'arguments'), 'utf8');
    expect(given).toContain('--flagfile=/dev/fd/3');
    const { dash, hls } = PACKAGING_KEYS;
    for (const secret of [dash.key, hls.key, hls.iv]) expect(given).not.toContain(secret.toString('hex'));
    expect(await readFile(join(root, 'files'), 'utf8')).not.toMatch(/flags/);
    // A folder of its own could not be removed while it is open, on NFS and FUSE.
    const opened = (await readFile(join(root, 'opened'), 'utf8')).trimEnd().split('\n');
    expect(opened.map((path) => dirname(path))).toEqual([root, root]);
  });

  test('a program that reads a file has a limit of memory, so that a table of it that claims too much takes no more', async () => {
    expect(await runAs(await spying(`ulimit -v >> ${root}/limits\nSHAKA`))).toMatchObject({ ok: true });
    expect(await readFile(join(root, 'limits'), 'utf8')).toBe('4194304\n'.repeat(3));
  });

  test('the file of flags is made where the next packager removes what a killed one left', async () => {
    const temporary = join(root, 'temporary');
    await mkdir(temporary);
    await mkdir(join(root, 'out'));
    const seen: string[] = [];
    const watchers = [join(root, 'out'), temporary].map((folder) =>
      watch(folder, (_, name) => void seen.push(join(folder, name ?? '').replace(/flags-.*/, 'flags'))),
    );
    expect(await runAs(SHAKA_PACKAGER, {}, temporary)).toMatchObject({ ok: true });
    for (const watcher of watchers) watcher.close();
    expect([...new Set(seen.filter((name) => name.endsWith('flags')))]).toEqual([join(temporary, '.flags')]);
  });

  test('an error of shaka-packager is reported without keys and paths', async () => {
    const key = PACKAGING_KEYS.dash.key.toString('hex');
    const words = `E1122 15:49:14.061605   10467 local_file.cc:83] no room in ${root}/out/dash for ${key}`;
    const spy = await spying(`case "$*" in *dump*) SHAKA;; esac\necho '${words}' >&2\nexit 1`);
    expect(await runAs(spy, { keys: { ...PACKAGING_KEYS, hls: undefined } })).toEqual({
      ok: false,
      problem: {
        code: 'packaging_failed',
        description: "shaka-packager can't package the file: no room in dash for ***.",
      },
    });
  });

  test('a cancelled file leaves neither folder nor process', async () => {
    const spy = await spying(`case "$*" in *dump*) SHAKA;; esac\necho $$ >> ${root}/started\nexec sleep 60`);
    const abort = new AbortController();
    const packaged = runAs(spy, { signal: abort.signal });
    const started = async () =>
      (await readFile(join(root, 'started'), 'utf8').catch(() => '')).split('\n').length > 2;
    while (!(await started())) await new Promise((resolve) => setTimeout(resolve, 20));
    abort.abort();
    await expect(packaged).rejects.toMatchObject({ name: 'AbortError' });
    expect((await readdir(root)).sort()).toEqual(['spy', 'started']);
    const pids = (await readFile(join(root, 'started'), 'utf8')).trim().split('\n');
    await expect(promisify(execFile)('ps', ['-o', 'stat=', '-p', pids.join(',')])).rejects.toMatchObject({
      code: 1,
    });
  });
});

describe('uploads', () => {
  const FILM = readFileSync(join(MEDIA_VECTORS, 'film.mp4'));
  const NOT_FOUND = errorBody('stream_not_found', 'There is no stream with this id.');

  const upload = ({ api }: TestPackager, id: string, query: string, body = FILM) =>
    api.put(`/streams/${id}/file?${query}`).set('content-type', 'application/octet-stream').send(body);

  /** Begins to send a file, and sends no more than its first bytes. */
  async function beginUpload({ url, home }: TestPackager, id: string, query: string) {
    const path = `${url}/streams/${id}/file?${query}`;
    const sending: ClientRequest = request(path, {
      method: 'PUT',
      headers: { 'content-length': FILM.length },
    });
    const answered = new Promise<number>((resolve) => {
      sending.on('error', () => resolve(0));
      sending.on('response', (answer: IncomingMessage) => resolve(answer.resume().statusCode ?? 0));
    });
    sending.write(FILM.subarray(0, 1000));
    const temporary = join(home, 'media/packager-media/temporary');
    while (!readdirSync(temporary).some((name) => name.startsWith(`${id}-part-`))) await sleep(10);
    return { breakOff: () => sending.destroy(), answered };
  }

  test('clear media is gone as soon as a protected file is to replace it, even one that never comes', async () => {
    const packager = await startProvisioned();
    await upload(packager, 'film', 'protection=none').expect(201);
    const { breakOff } = await beginUpload(packager, 'film', 'keyFile=news');
    expect(await packager.get('film')).toEqual({
      ...{ id: 'film', kind: 'file', keyFile: 'news', protection: 'key_file', state: 'starting' },
      ...{ problem: null, started: expect.any(String), seconds: 0, dash: null, hls: null },
    });
    await packager.api.get('/media/film/hls/master.m3u8').expect(404);
    breakOff();
    while ((await packager.api.get('/streams/film')).status !== 404) await sleep(10);
    expect(filesOf(packager).filter((name) => name.includes('film'))).toEqual([]);
  });

  test('a protected file that broke off leaves the protected one before it in place', async () => {
    const packager = await startProvisioned();
    packager.provision('other');
    const { body: before } = await upload(packager, 'film', 'keyFile=news').expect(201);
    const { breakOff } = await beginUpload(packager, 'film', 'keyFile=other');
    breakOff();
    while (filesOf(packager).some((name) => name.includes('temporary/film'))) await sleep(10);
    expect(await packager.get('film')).toEqual(before);
    expect((await packager.api.get('/media/film/hls/video.m3u8')).text).toContain('METHOD=SAMPLE-AES');
    expect(packager.log()).not.toContain('request failed');
  });

  test('a stream is deleted at once while its file comes slowly, and the sender gets an error', async () => {
    const packager = await startProvisioned();
    const { answered } = await beginUpload(packager, 'film', 'keyFile=news');
    await packager.api.delete('/streams/film').expect(204);
    expect(await answered).toBe(409);
    const { body } = await packager.api.get('/streams/film').expect(404);
    expect(body).toEqual(NOT_FOUND);
    expect(filesOf(packager).filter((name) => name.includes('film'))).toEqual([]);
  });

  test('a file that waits behind one that breaks off is packaged', async () => {
    const packager = await startProvisioned();
    const { breakOff } = await beginUpload(packager, 'film', 'keyFile=news');
    const second = upload(packager, 'film', 'keyFile=news').then(({ body }) => body);
    await sleep(50);
    breakOff();
    expect(await second).toMatchObject({ state: 'ended', protection: 'key_file' });
    expect(await packager.get('film')).toEqual(await second);
  });

  test('a file that is announced holds its room until it has come or broken off', async () => {
    const packager = await startProvisioned({ maxBytes: FILM.length * 3 });
    const { breakOff } = await beginUpload(packager, 'slow', 'keyFile=news');
    const { body } = await upload(packager, 'film', 'keyFile=news').expect(507);
    const description =
      'All files together would be more than the limit (PACKAGER_MAXMB). Delete streams, or raise it.';
    expect(body).toEqual(errorBody('insufficient_storage', description));
    breakOff();
    while (filesOf(packager).some((name) => name.includes('temporary/slow'))) await sleep(10);
    await upload(packager, 'film', 'keyFile=news').expect(201);
  });

  test.each([
    ['a large box without a length', [1, 'free', 0]],
    ['a box that is shorter than its header', [4, 'free', 0]],
  ] as const)('%s is refused, and holds up nothing', async (_, [size, type, large]) => {
    const packager = await startProvisioned();
    const file = Buffer.alloc(32);
    file.writeUInt32BE(size, 0);
    file.write(type, 4);
    file.writeBigUInt64BE(BigInt(large), 8);
    const { body } = await upload(packager, 'film', 'keyFile=news', file).expect(201);
    expect(body.problem).toEqual({
      code: 'media_unreadable',
      description:
        'The file has a box that is shorter than its own header, or over a million boxes. Write the file again.',
    });
  });

  test('the leftovers of a killed packager for a file that never came are removed by the next one', async () => {
    const home = temporaryHome();
    const left = join(home, 'media/packager-media/streams/film/part-1-x/dash');
    const first = await startPackager({ home });
    first.provision();
    await upload(first, 'kept', 'keyFile=news').expect(201);
    await first.stop();
    mkdirSync(left, { recursive: true });
    mkdirSync(join(home, 'media/packager-media/streams/kept/part-9-x'));
    const second = await startPackager({ home });
    expect(filesOf(second).filter((name) => /film|part-9-x/.test(name))).toEqual([]);
    expect(await second.get('kept')).toMatchObject({ id: 'kept', state: 'ended' });
    await second.api.get('/media/kept/hls/video.m3u8').expect(200);
  });
});
