import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  FAIRPLAY,
  filesOf,
  KEY_FILE,
  processesOf,
  sourceOf,
  startPackager,
  startProvisioned,
  type TestPackager,
  temporaryHome,
  textOfKeyFile,
} from '../../support/start-packager';
import { until } from '../../support/until';

const WHOLE = textOfKeyFile(KEY_FILE);
const { fairplay: _, ...DASH_ALONE } = KEY_FILE;

/** The fault of the key file, with the code of the refusal. */
const KEY_FILES: readonly (readonly [string, string, (folder: string) => void])[] = [
  ['is missing', 'key_file_missing', () => undefined],
  ['is cut off', 'key_file_torn', (folder) => writeFileSync(join(folder, 'news.key'), WHOLE.slice(0, 200))],
  ['is a folder', 'not_a_key_file', (folder) => mkdirSync(join(folder, 'news.key'))],
  ['is a symbolic link', 'not_a_key_file', linkToAnother],
];

function linkToAnother(folder: string): void {
  writeFileSync(join(folder, 'other.key'), WHOLE);
  symlinkSync('other.key', join(folder, 'news.key'));
}

async function nothingIsPackaged(packager: TestPackager): Promise<void> {
  expect(processesOf(packager)).toEqual([]);
  expect(filesOf(packager).filter((name) => /\.(?:mp4|m4s|ts|mpd|m3u8)$/.test(name))).toEqual([]);
  await packager.api.get('/media/news/hls/master.m3u8').expect(404);
  await packager.api.get('/media/news/dash/manifest.mpd').expect(404);
}

test.each(KEY_FILES)(
  'a stream whose key file %s is refused with %s, and packaged once it is right',
  async (_, code, prepare) => {
    const packager = await startPackager();
    prepare(join(packager.home, 'keys'));
    expect(await packager.put('news')).toEqual({
      ...{ id: 'news', kind: 'live', keyFile: 'news', protection: 'key_file', state: 'refused' },
      problem: { code, description: expect.stringMatching(/^The key file news\.key .*\.$/) },
      ...{ started: null, seconds: 0, dash: null, hls: null },
    });
    await nothingIsPackaged(packager);
    if (code !== 'key_file_missing') return;
    packager.provision();
    await packager.put('news');
    expect(await packager.until('news', ({ state }) => state === 'running')).toMatchObject({ problem: null });
  },
);

test('a sub-folder that is a link is not followed to a key file', async () => {
  const packager = await startPackager();
  const folder = join(packager.home, 'keys');
  mkdirSync(join(packager.home, 'elsewhere'));
  writeFileSync(join(packager.home, 'elsewhere', 'news.key'), WHOLE);
  symlinkSync(join(packager.home, 'elsewhere'), join(folder, 'sub'));
  const { problem } = await packager.put('news', { source: sourceOf('live'), keyFile: 'sub/news' });
  expect(problem?.code).toBe('not_a_key_file');
});

test('a key file with one kind of key makes one kind of stream', async () => {
  const packager = await startPackager();
  packager.provision('news', textOfKeyFile(DASH_ALONE));
  packager.provision('apple', textOfKeyFile({ fairplay: FAIRPLAY }));
  await packager.put('news');
  await packager.put('apple', { source: sourceOf('live') });
  const isRunning = ({ state }: { state: string }) => state === 'running';
  const keyIds = [expect.any(String)];
  expect(await packager.until('news', isRunning)).toMatchObject({ dash: { keyIds }, hls: null });
  expect(await packager.until('apple', isRunning)).toMatchObject({ dash: null, hls: { keyIds } });
  expect(processesOf(packager).filter(({ args }) => args.includes('--io_cache_size'))).toHaveLength(2);
  await packager.api.get('/media/news/hls/master.m3u8').expect(404);
});

test('an encoder that sends H.265 is refused, with what to set it to, and stays so while it is tried again', async () => {
  const packager = await startProvisioned();
  await packager.put('news', { source: sourceOf('live-hevc') });
  const { problem } = await packager.until('news', ({ state }) => state === 'refused');
  expect(problem).toEqual({
    code: 'codec_unsupported',
    description: 'The encoder sends video as H.265. Set it to H.264 video and AAC audio.',
  });
  await nothingIsPackaged(packager);
  const states = new Set<string>();
  for (let round = 0; round < 10; round += 1) {
    await sleep(50);
    states.add((await packager.put('news', { source: sourceOf('live-hevc') })).state);
  }
  expect([...states]).toEqual(['refused']);
  // A transport stream has no name for the codec; its sound alone would be half of what is sent.
  await packager.put('flash', { source: sourceOf('live-flash'), keyFile: 'news' });
  const flash = await packager.until(
    'flash',
    ({ state, started }) => state === 'refused' || started !== null,
  );
  expect(flash.problem?.description).toBe(
    'The encoder sends media as stream type 0x06. Set it to H.264 video and AAC audio.',
  );
});

test('an encoder that sends sound alone is packaged as sound', async () => {
  const packager = await startProvisioned();
  await packager.put('news', { source: sourceOf('live-sound'), keyFile: 'news' });
  await packager.until('news', ({ state }) => state === 'running');
  const { text } = await packager.api.get('/media/news/hls/master.m3u8').expect(200);
  expect(text).toContain('CODECS="mp4a.40.2"');
  await packager.api.get('/media/news/hls/video.m3u8').expect(404);
});

test('an encoder that announces sound and sends none is packaged as a picture', async () => {
  const packager = await startProvisioned({ limits: { silentMs: 500 } });
  await packager.put('news', { source: sourceOf('live-mute'), keyFile: 'news' });
  await packager.until('news', ({ state }) => state === 'running');
  const { text } = await packager.api.get('/media/news/hls/master.m3u8').expect(200);
  expect(text).toMatch(/CODECS="avc1\.\w+"/);
  expect(packager.log()).toContain('sends none of the sound that it announces');
});

test('a source that refuses is reported without its secret, and is asked again', async () => {
  const packager = await startProvisioned();
  await packager.put('news', { source: sourceOf('KEY#refused') });
  const { state, problem } = await packager.until('news', ({ problem: reported }) => reported !== null);
  const description =
    "The source can't be pulled: Server error: nothing to play at ***. The packager tries again.";
  expect([state, problem]).toEqual(['starting', { code: 'source_unavailable', description }]);
  expect(packager.log()).not.toContain('SECRETTOKEN');
  await packager.put('news', { source: sourceOf('live') });
  await packager.until('news', ({ state: now }) => now === 'running');
});

test('a source that sends nothing is reported, and its puller is ended', async () => {
  const packager = await startProvisioned({ limits: { firstMediaMs: 300, retryMs: 60_000 } });
  // So many targets may a channel of the emulator have.
  const simulcast = Array.from({ length: 20 }, () => ({ url: sourceOf('silent') }));
  await packager.put('news', { source: sourceOf('silent'), simulcast });
  const { state, problem } = await packager.until('news', ({ problem: reported }) => reported !== null);
  expect([state, problem?.code]).toEqual(['starting', 'no_media']);
  await packager.until('news', () => processesOf(packager).length === 0);
});

test('a packager without ffmpeg says so', async () => {
  const packager = await startProvisioned({ ffmpeg: '/nowhere/ffmpeg' });
  await packager.put('news');
  const { problem } = await packager.until('news', ({ state }) => state === 'failed');
  expect(problem).toEqual({
    code: 'ffmpeg_missing',
    description: "/nowhere/ffmpeg can't be started (ENOENT). Install ffmpeg, or set PACKAGER_FFMPEG.",
  });
});

test('a stream is clear only where that is asked for', async () => {
  const packager = await startPackager();
  const clear = { source: sourceOf('live'), protection: 'none' };
  await packager.put('film', clear);
  const isWhole = ({ dash, hls }: { dash: unknown; hls: unknown }) => hls !== null && dash !== null;
  const { keyFile, dash, hls } = await packager.until('film', isWhole);
  expect([keyFile, dash?.keyIds, hls?.keyIds]).toEqual([null, [], []]);
  const { text } = await packager.api.get('/media/film/hls/video.m3u8');
  expect(text).not.toContain('#EXT-X-KEY');
  const protectedOne = { source: sourceOf('live') };
  const { body } = await packager.api.put('/streams/film').send(protectedOne).expect(409);
  const existsAs = (how: string) => [
    { code: 'stream_of_another_kind', description: `The stream exists ${how}. Delete it first.` },
  ];
  expect(body.errors).toEqual(existsAs('without protection'));
  const file = await packager.api.put('/streams/film/file').send('any').expect(409);
  expect(file.body.errors).toEqual(existsAs('as live'));
  const both = await packager.api
    .put('/streams/film')
    .send({ ...clear, keyFile: 'film' })
    .expect(400);
  const description = 'keyFile: is not read with protection none; leave out one of the two';
  expect(both.body.errors).toEqual([{ code: 'invalid_body', description }]);
});

describe('a process of shaka-packager', () => {
  const isRunning = ({ state }: { state: string }) => state === 'running';

  /** A fake shaka-packager. `$input` is its input. */
  function fakeShaka(home: string, script: string): string {
    const path = join(home, 'fake-shaka');
    const input = `for a; do case $a in in=*) input=$(echo "$a" | cut -d= -f2 | cut -d, -f1);; esac; done`;
    writeFileSync(path, `#!/bin/sh\n${input}\n${script}\n`, { mode: 0o755 });
    return path;
  }

  test('a process of shaka-packager that is killed is followed by another one, which is reported', async () => {
    const packager = await startProvisioned({ limits: { retryMs: 1000 } });
    await packager.put('news', { source: sourceOf('live-long'), keyFile: 'news' });
    await packager.until('news', isRunning);
    const reported =
      '"code":"packaging_failed","reason":"shaka-packager ended: SIGKILL. It is started again."';
    // A process of a part that is complete may still write, and is followed by none.
    for (; !packager.log().includes(reported); await sleep(500)) {
      const shaka = processesOf(packager).findLast(({ args }) => args.includes('--mpd_output'));
      if (shaka) process.kill(shaka.pid, 'SIGKILL');
    }
    await packager.until('news', ({ state, problem }) => state === 'running' && problem === null);
    await until(async () => {
      const { text } = await packager.api.get('/media/news/hls/video.m3u8');
      return text.includes('#EXT-X-DISCONTINUITY\n');
    });
  });

  test('a process of shaka-packager that takes nothing is ended, and reported', async () => {
    const home = temporaryHome();
    const shakaPackager = fakeShaka(home, 'exec sleep 1000 < "$input"');
    const limits = { waitingBytes: 1000, stalledMs: 200, finishMs: 300, retryMs: 20 };
    const packager = await startProvisioned({ home, shakaPackager, limits });
    await packager.put('news', { source: sourceOf('live-long'), keyFile: 'news' });
    const { problem } = await packager.until('news', (document) => document.problem !== null);
    expect(problem?.code).toBe('packaging_stalled');
    await packager.until('news', ({ state }) => state === 'failed');
    await packager.until('news', () => processesOf(packager).length === 0);
  });

  test('a process of shaka-packager that can not start is reported with its error, without keys, and given up', async () => {
    const home = temporaryHome();
    const words = 'E1122 16:00:00.000000 1 a.cc:1] No good: $(cat /dev/fd/3 | tr "\\n" " ")';
    const shakaPackager = fakeShaka(home, `echo "${words}" >&2; exit 1`);
    const packager = await startProvisioned({ home, shakaPackager, limits: { retryMs: 20 } });
    await packager.put('news', { source: sourceOf('live-long'), keyFile: 'news' });
    const { problem } = await packager.until('news', ({ state }) => state === 'failed');
    expect(problem?.description).toMatch(/^shaka-packager ended: No good: .* It is started again\.$/);
    const reported = `${problem?.description} ${packager.log()}`;
    for (const secret of ['0f0e0d0c0b0a09080706050403020100', '1a1a1a1a', '2b2b2b2b', 'SECRETTOKEN'])
      expect(reported).not.toContain(secret);
    expect(processesOf(packager)).toEqual([]);
  });

  test('streams end with a clear problem when their files reach the limit, and go on when there is room', async () => {
    const packager = await startProvisioned({ maxBytes: 150_000, lookMs: 50 });
    await packager.put('news');
    const { problem } = await packager.until('news', ({ state }) => state === 'failed');
    expect(problem).toEqual({
      code: 'media_full',
      description: 'All files together have reached the limit (PACKAGER_MAXMB). Delete streams, or raise it.',
    });
    // The media until then can be played.
    await packager.until('news', ({ dash, hls }) => dash !== null && hls !== null);
    await packager.until('news', () => processesOf(packager).length === 0);
    expect((await packager.put('other')).problem?.code).toBe('media_full');
    await packager.api.delete('/streams/news').expect(204);
    await packager.api.delete('/streams/other').expect(204);
    await packager.put('other', { source: sourceOf('live-sound'), keyFile: 'news' });
    await packager.until('other', ({ started }) => started !== null);
  });

  test('a folder that can not be written to fails a stream with why, and lets it go on when it can', async () => {
    const packager = await startProvisioned();
    await packager.put('first');
    await packager.until('first', isRunning);
    const streams = join(packager.home, 'media/packager-media/streams');
    // A file is in the place of the stream's folder.
    writeFileSync(join(streams, 'news'), '');
    const wanted = { source: sourceOf('live-long'), keyFile: 'news' };
    await packager.put('news', wanted);
    const { problem } = await packager.until('news', (document) => document.problem !== null);
    expect(problem?.code).toBe('part_not_started');
    expect(await packager.get('first')).toMatchObject({ state: 'running', problem: null });
    rmSync(join(streams, 'news'));
    await packager.put('news', wanted);
    await packager.until('news', isRunning);
    expect(filesOf(packager).filter((name) => name.includes('fifo'))).toEqual([]);
  });

  test('the length of a part whose packager was killed is that of its segments', async () => {
    const before = await startPackager();
    before.provision();
    await before.put('news');
    await before.until('news', ({ state, seconds }) => state === 'running' && seconds > 5);
    await before.stop();
    // As it is until a part is over.
    const path = join(before.home, 'media/packager-media/streams/news/stream.json');
    const record = JSON.parse(readFileSync(path, 'utf8'));
    const parts = record.parts.map((part: object) => ({ ...part, seconds: 0, isDone: false }));
    writeFileSync(path, JSON.stringify({ ...record, parts }));
    const after = await startPackager({ home: before.home });
    const { seconds } = await after.get('news');
    expect([seconds > 5.9, seconds < 6.2]).toEqual([true, true]);
  });
});
