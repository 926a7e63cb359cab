import { execFileSync } from 'node:child_process';
import { encoderGoes, FAIRPLAY_KEY_ID, startPackager, type TestPackager } from '../support/start-packager';

const DASH = { path: '/media/news/dash/manifest.mpd', keyIds: ['00112233-4455-6677-8899-aabbccddeeff'] };
const HLS = { path: '/media/news/hls/master.m3u8', keyIds: [FAIRPLAY_KEY_ID] };

/** The processes that use a folder, by what their arguments say. */
function processesOf({ home }: TestPackager): string[] {
  return execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(home) && !line.includes('ps -eo'));
}

test('a live stream is packaged with its key file as DASH and HLS, and its end makes a replay of it', async () => {
  const packager = await startPackager();
  packager.provision();
  expect(await packager.put('news')).toEqual({
    ...{ id: 'news', kind: 'live', keyFile: 'news', protection: 'key_file', state: 'starting' },
    ...{ problem: null, started: null, seconds: 0, dash: null, hls: null },
  });
  const running = await packager.until('news', ({ dash, hls }) => dash !== null && hls !== null);
  expect(running).toEqual({
    ...{ id: 'news', kind: 'live', keyFile: 'news', protection: 'key_file', state: 'running' },
    ...{ problem: null, started: expect.any(String), seconds: expect.any(Number), dash: DASH, hls: HLS },
  });
  const live = await packager.api.get(HLS.path.replace('master', 'video'));
  expect(live.text).toContain('#EXT-X-PLAYLIST-TYPE:EVENT');
  expect(live.text).not.toContain('#EXT-X-ENDLIST');

  const { body } = await packager.api.post('/streams/news/end').expect(200);
  expect(body).toMatchObject({ state: 'ended', problem: null, dash: DASH, hls: HLS });
  expect(body.seconds).toBeCloseTo(6, 0);
  const replay = await packager.api.get(HLS.path.replace('master', 'video'));
  expect(replay.text).toContain('#EXT-X-ENDLIST');
  const seconds = [...replay.text.matchAll(/#EXTINF:([\d.]+)/g)].reduce(
    (sum, [, text]) => sum + Number(text),
    0,
  );
  expect(seconds).toBeCloseTo(6, 1);
  const manifest = await packager.api.get(DASH.path);
  expect(manifest.text).toContain('type="static"');
  expect(processesOf(packager)).toEqual([]);
});

test('an encoder that comes back begins a new part, which players are told', async () => {
  const packager = await startPackager();
  packager.provision();
  await packager.put('news');
  await packager.until('news', ({ state }) => state === 'running');
  encoderGoes(packager.home);
  await packager.until('news', ({ state }) => state === 'interrupted');
});
