import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LiveStream } from '../../../src/platform/packager/live/live-stream';
import { LIVE_LIMITS } from '../../../src/platform/packager/live/session';
import { STREAM_RECORD } from '../../../src/platform/packager/stream-document';
import {
  CONTENT_KEY,
  encoderGoes,
  FAIRPLAY_KEY_ID,
  filesOf,
  KEY_FILE,
  processesOf,
  sourceOf,
  startProvisioned,
  startRunning,
  temporaryHome,
  textOfKeyFile,
} from '../../support/start-packager';
import { until } from '../../support/until';
import { writtenLog } from '../../support/written-log';

const DASH = { path: '/media/news/dash/manifest.mpd', keyIds: ['00112233-4455-6677-8899-aabbccddeeff'] };
const HLS = { path: '/media/news/hls/master.m3u8', keyIds: [FAIRPLAY_KEY_ID] };
const VIDEO = '/media/news/hls/video.m3u8';
const streamFolder = ({ home }: { home: string }) => join(home, 'media/packager-media/streams/news');
const isRunning = ({ state }: { state: string }) => state === 'running';
const lengthOf = (playlist: string) =>
  [...playlist.matchAll(/#EXTINF:([\d.]+)/g)].reduce((sum, [, text]) => sum + Number(text), 0);
const countOf = (text: string, piece: string) => text.split(piece).length - 1;

test('a live stream is packaged with its key file as DASH and HLS, and its end makes a replay of it', async () => {
  const packager = await startProvisioned();
  expect(await packager.put('news')).toEqual({
    ...{ id: 'news', kind: 'live', keyFile: 'news', protection: 'key_file', state: 'starting' },
    ...{ problem: null, started: null, seconds: 0, dash: null, hls: null },
  });
  const running = await packager.until(
    'news',
    ({ state, dash, hls }) => state === 'running' && dash !== null && hls !== null,
  );
  expect(running).toEqual({
    ...{ id: 'news', kind: 'live', keyFile: 'news', protection: 'key_file', state: 'running' },
    ...{ problem: null, started: expect.any(String), seconds: expect.any(Number), dash: DASH, hls: HLS },
  });
  const live = await packager.api.get(VIDEO);
  expect(live.text).toContain('#EXT-X-PLAYLIST-TYPE:EVENT');
  expect(live.text).not.toContain('#EXT-X-ENDLIST');

  const { body } = await packager.api.post('/streams/news/end').expect(200);
  expect(body).toMatchObject({ state: 'ended', problem: null, dash: DASH, hls: HLS });
  expect(body.seconds).toBeCloseTo(6, 0);
  const replay = await packager.api.get(VIDEO);
  expect(replay.text).toContain('#EXT-X-ENDLIST');
  expect(lengthOf(replay.text)).toBeCloseTo(6, 1);
  const manifest = await packager.api.get(DASH.path);
  expect(manifest.text).toContain('type="static"');
  expect(processesOf(packager)).toEqual([]);

  // Another PUT, or a second end, changes nothing.
  expect(await packager.put('news')).toEqual(body);
  expect((await packager.api.post('/streams/news/end')).body).toEqual(body);
});

test('segments are half as long at low latency, from the next encoder on, and players start closer to the end', async () => {
  const packager = await startProvisioned();
  const source = sourceOf('live');
  const put = (id: string, latency?: string) => packager.put(id, { source, keyFile: 'news', latency });
  await put('news', 'low');
  await put('usual');
  for (const id of ['news', 'usual']) await packager.until(id, isRunning);
  // That of a stream that goes on stays.
  await put('usual', 'low');
  const manifestOf = async (id: string) => (await packager.api.get(`/media/${id}/dash/manifest.mpd`)).text;
  expect(await manifestOf('news')).toMatch(/minimumUpdatePeriod="PT1S" suggestedPresentationDelay="PT3S"/);
  const playlistOf = async (id: string) => (await packager.api.get(`/media/${id}/hls/video.m3u8`)).text;
  expect(await playlistOf('news')).toContain('#EXT-X-TARGETDURATION:1\n');
  expect(await manifestOf('usual')).toMatch(/minimumUpdatePeriod="PT2S" suggestedPresentationDelay="PT6S"/);
  const lengths = async (id: string) => {
    await packager.api.post(`/streams/${id}/end`).expect(200);
    return [...(await playlistOf(id)).matchAll(/#EXTINF:([\d.]+)/g)].map(([, seconds]) => Number(seconds));
  };
  expect(await lengths('news')).toEqual([1, 1, 1, 1, 1, 1]);
  expect(await lengths('usual')).toEqual([2, 2, 2]);
  const refused = { source, latency: 'lowest' };
  const { body } = await packager.api.put('/streams/other').send(refused).expect(400);
  expect(body.errors[0].description).toContain('latency: must be one of default, low');
});

test('an encoder that comes back starts a new part, which the manifests report; the one before is read once', async () => {
  const packager = await startRunning();
  await encoderGoes(packager);
  const gone = await packager.get('news');
  expect(gone.problem?.code).toBe('encoder_gone');
  await packager.put('news');
  await packager.until('news', ({ state, seconds }) => state === 'running' && seconds > 10);
  const isJoined = async () => countOf((await packager.api.get(DASH.path)).text, '<Period ') === 2;
  while (!(await isJoined())) await packager.get('news');
  await packager.api.get(VIDEO);
  const [first = ''] = readdirSync(streamFolder(packager)).filter((name) => name.startsWith('part-1'));
  rmSync(join(streamFolder(packager), first, 'dash', 'manifest.mpd'));
  rmSync(join(streamFolder(packager), first, 'hls', 'video.m3u8'));
  await packager.api.post('/streams/news/end');
  const { text } = await packager.api.get(VIDEO);
  expect(countOf(text, '#EXT-X-DISCONTINUITY\n')).toBe(1);
  expect(lengthOf(text)).toBeCloseTo(12, 1);
  const manifest = await packager.api.get(DASH.path);
  expect(countOf(manifest.text, '<Period ')).toBe(2);
});

test('an encoder that has gone is soon pulled again, and is the reported problem until then', async () => {
  const retryMs = 500;
  const packager = await startRunning({ limits: { retryMs } });
  writeFileSync(join(packager.home, 'live.refused'), '');
  await encoderGoes(packager);
  const isAsked = () => existsSync(join(packager.home, 'live.asked'));
  // A source that refuses is left alone for five times as long.
  const late = performance.now() + 4 * retryMs;
  await until(() => isAsked() || performance.now() > late);
  expect(isAsked()).toBe(true);
  const { state, problem } = await packager.until('news', (reported) => reported.problem !== null);
  expect([state, problem?.code]).toEqual(['interrupted', 'encoder_gone']);
});

test('a key file that was changed takes effect when the encoder comes back, and both keys are listed', async () => {
  const packager = await startRunning();
  const keyId = Buffer.alloc(16, 0x77).toString('base64');
  const cenc = { keyId, contentKey: CONTENT_KEY.toString('base64') };
  const { playready: _, ...rest } = KEY_FILE;
  packager.provision('news', textOfKeyFile({ ...rest, cenc }));
  await encoderGoes(packager);
  const { dash } = await packager.until('news', (document) => document.dash?.keyIds.length === 2);
  expect(dash?.keyIds).toEqual([...DASH.keyIds, '77777777-7777-7777-7777-777777777777']);
});

test('a key file that is gone when the encoder comes back refuses the stream, and leaves nothing clear', async () => {
  const packager = await startRunning();
  packager.provision('news', '');
  await encoderGoes(packager);
  const { problem } = await packager.until('news', ({ state }) => state === 'refused');
  expect(problem?.code).toBe('key_file_torn');
  // A recording is clear, and is never sent to players.
  expect(countOf(filesOf(packager).join('\n'), 'video_init.mp4')).toBe(2);
  packager.provision();
  await packager.put('news');
  expect(await packager.until('news', ({ seconds }) => seconds > 10)).toMatchObject({ problem: null });
});

test('the length of a stream is read from its playlists again after a hundred times as long as that took', () => {
  let at = 0;
  const now = () => {
    at += 1;
    return at;
  };
  const clock = () => new Date();
  const folder = temporaryHome();
  const record = STREAM_RECORD.parse({
    ...{
      id: 'news',
      kind: 'live',
      keyFile: null,
      protection: 'none',
      started: null,
      isEnded: false,
      parts: [],
    },
  });
  const stream = new LiveStream(folder, record, {
    ...{ clock, now, log: writtenLog(clock).log, limits: LIVE_LIMITS, keyFilesPath: '', rotate: false },
    ...{ hasRoom: () => true, programs: { ffmpeg: '', shakaPackager: '', env: {}, folder } },
  });
  const keys = { dash: undefined, hls: 'none' } as const;
  const { name } = stream.newPart('default', { video: true, audio: false }, keys, false);
  const hls = join(folder, name, 'hls');
  mkdirSync(hls, { recursive: true });
  writeFileSync(join(hls, 'master.m3u8'), '#EXT-X-STREAM-INF:BANDWIDTH=1\nvideo.m3u8\n');
  const lengthWith = (segments: number) => {
    writeFileSync(join(hls, 'video.m3u8'), '#EXTINF:2,\nvideo_1.m4s\n'.repeat(segments));
    return stream.document().seconds;
  };
  expect([lengthWith(1), lengthWith(2)]).toEqual([2, 2]);
  at += 100;
  expect(lengthWith(3)).toBe(6);
});

test('a stream that is deleted takes its processes and files with it, and can start again', async () => {
  const packager = await startRunning();
  await packager.api.delete('/streams/news').expect(204);
  expect(processesOf(packager)).toEqual([]);
  expect(filesOf(packager).filter((name) => /news|m4s|\.ts/.test(name))).toEqual([]);
  await packager.api.get('/streams/news').expect(404);
  await packager.api.get(VIDEO).expect(404);
  await packager.api
    .put('/streams/news')
    .send({ source: sourceOf('live') })
    .expect(201);
  await packager.until('news', isRunning);
});
