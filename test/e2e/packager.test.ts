import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StreamDocument } from '../../src/platform/packager/stream-document';
import { callWithKey } from '../support/api-key';
import { startBuilt } from '../support/built-program';
import {
  KEY_FILE,
  processesOf,
  sourceOf,
  temporaryHome,
  textOfKeyFile,
  writeFakeEncoder,
} from '../support/start-packager';
import { until } from '../support/until';

let home: string;

beforeEach(() => {
  home = temporaryHome();
  mkdirSync(join(home, 'keys'));
  writeFileSync(join(home, 'keys/news.key'), textOfKeyFile(KEY_FILE));
});

const start = (ffmpeg = writeFakeEncoder(home)) =>
  startBuilt('packager', {
    cwd: home,
    env: {
      PATH: process.env.PATH ?? '',
      PACKAGER_FOLDER: join(home, 'media'),
      PACKAGER_FFMPEG: ffmpeg,
      PACKAGER_APIKEY: 'the-secret-api-key',
    },
  });

const call = (url: string, method: string, path: string, body?: object) =>
  callWithKey(url + path, method, body, 'the-secret-api-key');

async function documentOf(answer: Promise<Response>): Promise<StreamDocument> {
  return JSON.parse(await (await answer).text());
}

const put = (url: string) => documentOf(call(url, 'PUT', '/streams/news', { source: sourceOf('live') }));

const stateOf = async (url: string) => (await documentOf(call(url, 'GET', '/streams/news'))).state;

const playlistOf = async (url: string) => (await call(url, 'GET', '/media/news/hls/video.m3u8')).text();

test('a packager that is killed leaves no process, and the next one goes on with the stream', async () => {
  const killed = await start();
  await put(killed.url);
  await until(async () => (await stateOf(killed.url)) === 'running');
  killed.send('SIGKILL');
  await killed.ended;
  await until(() => processesOf({ home }).length === 0);

  const next = await start();
  expect(await stateOf(next.url)).toBe('interrupted');
  const before = await playlistOf(next.url);
  expect(before).toMatch(/part-1-\w+\/video_1\.m4s/);
  expect(await put(next.url)).toMatchObject({ id: 'news', kind: 'live', keyFile: 'news' });
  await until(async () => (await stateOf(next.url)) === 'running');
  const ended = await documentOf(call(next.url, 'POST', '/streams/news/end'));
  expect(ended.state).toBe('ended');
  const replay = await playlistOf(next.url);
  expect(replay).toMatch(/part-1-\w+\/video_1\.m4s.*#EXT-X-DISCONTINUITY\n.*part-2-\w+\/video_1\.m4s/s);
  expect(replay).toContain('#EXT-X-ENDLIST');

  next.send('SIGTERM');
  const { code, stdout } = await next.ended;
  expect(code).toBe(0);
  for (const secret of ['SECRETTOKEN', 'the-secret-api-key', '0f0e0d0c', '1a1a1a1a']) {
    expect(stdout).not.toContain(secret);
    expect(killed.stdout()).not.toContain(secret);
  }
  const again = await start();
  expect(await stateOf(again.url)).toBe('ended');
  expect(await playlistOf(again.url)).toBe(replay);
});

test('a packager that is killed amid a conversion leaves no process', async () => {
  const ffmpeg = join(home, 'busy-ffmpeg');
  writeFileSync(ffmpeg, '#!/bin/sh\nwhile :; do sleep 0.1; done\n', { mode: 0o755 });
  const killed = await start(ffmpeg);
  const converted = call(killed.url, 'POST', '/conversions', {}).catch(() => undefined);
  await until(() => processesOf({ home }).some((each) => each.args.includes(ffmpeg)));
  killed.send('SIGKILL');
  await killed.ended;
  expect(await converted).toBeUndefined();
  await until(() => processesOf({ home }).length === 0);
});
