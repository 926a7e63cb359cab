import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fs from 'fs-extra';
import { createGet } from '../../src/http/get';
import type { StreamReport } from '../../src/verify/stream-report';
import { verifyStream } from '../../src/verify/verify-stream';
import { afterAllTests, temporaryFolder } from '../support/after-test';
import { startMediaServer } from '../support/media-server';
import { SOURCE } from '../support/package-stream';
import { CONTENT_KEY, codesOf, KEY_ID, keyFileText, statesOf } from '../support/start-stream';

jest.setTimeout(60_000);

const run = promisify(execFile);
const { get, close } = createGet({ userAgent: 'test' });
let folder: string;
let url: string;

beforeAll(async () => {
  folder = await temporaryFolder(afterAllTests);
  ({ url } = await startMediaServer(folder, afterAllTests));
});

afterAll(close);

const ffmpeg = (...args: string[]) =>
  run('ffmpeg', ['-v', 'error', '-y', '-i', SOURCE, ...args], { cwd: folder });
const verify = (path: string, keyFiles: { name: string; text: string }[] = []): Promise<StreamReport> =>
  verifyStream(`${url}/${path}`, { get, keyFiles, now: () => new Date() });

test.each([
  ['HLS with transport streams', 'ts.m3u8', ['-f', 'hls', '-hls_playlist_type', 'vod']],
  [
    'HLS with one fragmented mp4 and byte ranges',
    'ranges.m3u8',
    ['-f', 'hls', '-hls_segment_type', 'fmp4', '-hls_flags', 'single_file', '-hls_playlist_type', 'vod'],
  ],
  ['DASH with a timeline', 'timeline.mpd', ['-f', 'dash', '-seg_duration', '2']],
  ['DASH with one file a track', 'single.mpd', ['-f', 'dash', '-single_file', '1', '-seg_duration', '2']],
])('clear %s of ffmpeg is read, and nothing is wrong with it', async (_what, name, args) => {
  await ffmpeg('-c', 'copy', ...args, name);
  const report = await verify(name);
  expect([report.faults, new Set(statesOf(report))]).toEqual([[], new Set(['clear'])]);
});

test('AES-128 of ffmpeg decrypts with the key that its playlist names', async () => {
  await fs.writeFile(join(folder, 'aes.key'), Buffer.from(CONTENT_KEY, 'hex'));
  await fs.writeFile(join(folder, 'key-info'), 'aes.key\naes.key\n');
  await ffmpeg(
    ...['-c', 'copy', '-f', 'hls', '-hls_playlist_type', 'vod', '-start_number', '7'],
    ...['-hls_key_info_file', 'key-info', 'aes.m3u8'],
  );
  const report = await verify('aes.m3u8');
  expect([codesOf(report).errors, statesOf(report)]).toEqual([[], ['decrypts']]);
});

test('a flat cenc file of ffmpeg decrypts with its key, and not with another', async () => {
  await ffmpeg(
    ...['-c', 'copy', '-encryption_scheme', 'cenc-aes-ctr'],
    ...['-encryption_key', CONTENT_KEY, '-encryption_kid', KEY_ID, 'flat.mp4'],
  );
  const playlist = '#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\nflat.mp4\n#EXT-X-ENDLIST\n';
  await fs.writeFile(join(folder, 'flat.m3u8'), playlist);
  const other = keyFileText({
    cenc: { keyId: Buffer.from(KEY_ID, 'hex').toString('base64'), contentKey: '/+7dzLuqmYh3ZlVEMyIRAA==' },
  });
  expect(statesOf(await verify('flat.m3u8', [{ name: 'a.key', text: keyFileText() }]))).toEqual(['decrypts']);
  expect(statesOf(await verify('flat.m3u8', [{ name: 'b.key', text: other }]))).toEqual(['garbage']);
});

test('VP9 and Opus are named, and nothing is claimed of WebM', async () => {
  const codecs = '-t 2 -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus'.split(' ');
  await ffmpeg(...codecs, '-f', 'dash', '-dash_segment_type', 'mp4', 'vp9.mpd');
  const report = await verify('vp9.mpd');
  expect([report.faults, report.renditions.map(({ codec }) => codec)]).toEqual([[], ['vp09', 'opus']]);
  await ffmpeg(...codecs, '-f', 'dash', '-dash_segment_type', 'webm', 'webm.mpd');
  expect(codesOf(await verify('webm.mpd'))).toEqual({ errors: ['not_media'], warnings: [] });
});
