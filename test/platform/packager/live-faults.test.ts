import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  filesOf,
  processesOf,
  sourceOf,
  startPackager,
  startProvisioned,
  temporaryHome,
} from '../../support/start-packager';
import { until } from '../../support/until';

const isRunning = ({ state }: { state: string }) => state === 'running';

/** Stands in for shaka-packager. `$input` is what it is to read. */
function fakeShaka(home: string, script: string): string {
  const path = join(home, 'fake-shaka');
  const input = `for a; do case $a in in=*) input=$(echo "$a" | cut -d= -f2 | cut -d, -f1);; esac; done`;
  writeFileSync(path, `#!/bin/sh\n${input}\n${script}\n`, { mode: 0o755 });
  return path;
}

test('a process of shaka-packager that is killed is followed by another one, which is told', async () => {
  const packager = await startProvisioned({ limits: { retryMs: 1000 } });
  await packager.put('news', { source: sourceOf('live-long'), keyFile: 'news' });
  await packager.until('news', isRunning);
  const told = '"code":"packaging_failed","reason":"shaka-packager ended: SIGKILL. It is started again."';
  // A process of a part that is complete may still write, and is followed by none.
  for (; !packager.log().includes(told); await sleep(500)) {
    const shaka = processesOf(packager).findLast(({ args }) => args.includes('--mpd_output'));
    if (shaka) process.kill(shaka.pid, 'SIGKILL');
  }
  await packager.until('news', ({ state, problem }) => state === 'running' && problem === null);
  await until(async () => {
    const { text } = await packager.api.get('/media/news/hls/video.m3u8');
    return text.includes('#EXT-X-DISCONTINUITY\n');
  });
});

test('a process of shaka-packager that takes nothing is ended, and told', async () => {
  const home = temporaryHome();
  const shakaPackager = fakeShaka(home, 'exec sleep 1000 < "$input"');
  const limits = { waitingBytes: 1000, stalledMs: 200, finishMs: 300, retryMs: 20 };
  const packager = await startProvisioned({
    home,
    shakaPackager,
    limits,
  });
  await packager.put('news', { source: sourceOf('live-long'), keyFile: 'news' });
  const { problem } = await packager.until('news', (document) => document.problem !== null);
  expect(problem?.code).toBe('packaging_stalled');
  await packager.until('news', ({ state }) => state === 'failed');
  await packager.until('news', () => processesOf(packager).length === 0);
});

test('a process of shaka-packager that can not begin is told with its last words, without keys, and given up', async () => {
  const home = temporaryHome();
  const shakaPackager = fakeShaka(
    home,
    'echo "E1122 16:00:00.000000 1 a.cc:1] No good: $(cat /dev/fd/3 | tr "\\n" " ")" >&2; exit 1',
  );
  const packager = await startProvisioned({ home, shakaPackager, limits: { retryMs: 20 } });
  await packager.put('news', { source: sourceOf('live-long'), keyFile: 'news' });
  const { problem } = await packager.until('news', ({ state }) => state === 'failed');
  expect(problem?.description).toMatch(/^shaka-packager ended: No good: .* It is started again\.$/);
  const told = `${problem?.description} ${packager.log()}`;
  for (const secret of ['0f0e0d0c0b0a09080706050403020100', '1a1a1a1a', '2b2b2b2b', 'SECRETTOKEN'])
    expect(told).not.toContain(secret);
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
  // What came until then is played.
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
  // A file stands where the folder of the stream belongs.
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
  // As it stands until a part is over.
  const path = join(before.home, 'media/packager-media/streams/news/stream.json');
  const record = JSON.parse(readFileSync(path, 'utf8'));
  const parts = record.parts.map((part: object) => ({ ...part, seconds: 0, isDone: false }));
  writeFileSync(path, JSON.stringify({ ...record, parts }));
  const after = await startPackager({ home: before.home });
  const { seconds } = await after.get('news');
  expect([seconds > 5.9, seconds < 6.2]).toEqual([true, true]);
});
