import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RtmpIngest, startRtmpIngest } from '../../src/platform/emulator/live/rtmp-ingest';
import { type Channel, createChannel } from '../../src/platform/emulator/resources/channels';
import { shakaPackagerOfNpm } from '../../src/platform/packager/shaka-packager';
import { channelMetadata } from '../support/channel-metadata';
import { startEmulator, type TestEmulator } from '../support/start-emulator';
import {
  CONTENT_KEY,
  FAIRPLAY,
  FAIRPLAY_KEY_ID,
  KEY_ID,
  startPackager,
  type TestPackager,
} from '../support/start-packager';
import { until } from '../support/until';

jest.setTimeout(60_000);

let emulator: TestEmulator;
let ingest: RtmpIngest;
let channel: Channel;
let packager: TestPackager;

beforeEach(async () => {
  emulator = await startEmulator();
  ingest = await startRtmpIngest(emulator.context, { host: '127.0.0.1', port: 0 });
  channel = createChannel(emulator.context, emulator.siteId, channelMetadata());
  packager = await startPackager({ ffmpeg: 'ffmpeg', limits: { silentMs: 1500 } });
  packager.provision();
});

afterEach(async () => {
  await packager.stop();
  await ingest.stop();
  for (const encoder of encoders.splice(0)) encoder.kill('SIGKILL');
});

const address = () => `rtmp://127.0.0.1:${ingest.port}/live/${channel.streamKey}`;

function ffmpeg(...args: string[]): Buffer {
  return execFileSync('ffmpeg', ['-hide_banner', '-loglevel', 'error', '-y', ...args]);
}

/** Encodes some seconds of a moving picture with a tone. */
function encoded(name: string, ...args: string[]): string {
  const path = join(packager.home, name);
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=15'];
  const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440'];
  const codecs = ['-c:v', 'libx264', '-preset', 'veryfast', '-g', '15', '-bf', '2', '-c:a', 'aac'];
  ffmpeg(...picture, ...tone, ...codecs, '-pix_fmt', 'yuv420p', '-t', '6', ...args, path);
  return path;
}

const encoders: ChildProcess[] = [];

/** Streams a file to the ingest, as fast as it is played, and answers when it is over. */
async function stream(file: string, ...args: string[]): Promise<void> {
  const child = spawn(
    'ffmpeg',
    [
      '-hide_banner',
      '-loglevel',
      'error',
      '-re',
      ...(file.endsWith('list') ? ['-f', 'concat', '-safe', '0'] : []),
      '-i',
      file,
      '-c',
      'copy',
      ...args,
      '-f',
      'flv',
      address(),
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  encoders.push(child);
  await once(child, 'close');
}

/** The hash of each picture of a file as it is shown, or of each piece of sound as it is encoded. */
function hashesOf(file: string, kind: 'video' | 'audio', ...args: string[]): string[] {
  const map = kind === 'video' ? ['-map', '0:v:0'] : ['-map', '0:a:0', '-c', 'copy'];
  const text = ffmpeg(...args, '-i', file, ...map, '-f', 'framemd5', '-').toString();
  return text
    .split('\n')
    .filter((line) => /^\d/.test(line))
    .map((line) => line.split(',').at(-1)?.trim() ?? '');
}

/** The segments of a rendition, each behind its initialization, in their order. */
async function segmentsOf(system: 'dash' | 'hls', kind: 'video' | 'audio'): Promise<Buffer[]> {
  const { text } = await packager.api.get(`/media/news/hls/${kind}.m3u8`).expect(200);
  const segments: Buffer[] = [];
  let initialization = Buffer.alloc(0);
  for (const [, uri = ''] of text.matchAll(/^(?:#EXT-X-MAP:URI="|)([\w-]+\/\w+\.(?:mp4|m4s))/gm)) {
    const answer = await fetch(`${packager.url}/media/news/${system}/${uri}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (uri.endsWith('.mp4')) initialization = bytes;
    else segments.push(Buffer.concat([initialization, bytes]));
  }
  return segments;
}

/** What all segments of a rendition hold when they are decrypted, each one by itself. */
async function decrypted(system: 'dash' | 'hls', kind: 'video' | 'audio'): Promise<string[]> {
  const segments = await segmentsOf(system, kind);
  return segments.flatMap((bytes, index) => {
    const path = join(packager.home, `${system}-${kind}-${index}.mp4`);
    writeFileSync(path, bytes);
    // An independent reader of `cenc`; of `cbcs` and of a first piece of sound, ffmpeg 5.1 makes garbage.
    if (system === 'dash' && kind === 'video')
      return hashesOf(path, kind, '-decryption_key', CONTENT_KEY.toString('hex'));
    return hashesOf(decryptedFile(path, system, kind), kind);
  });
}

function decryptedFile(file: string, system: 'dash' | 'hls', kind: string): string {
  const output = `${file}.clear.mp4`;
  const [keyId, key] =
    system === 'dash'
      ? [KEY_ID.toString('hex'), CONTENT_KEY.toString('hex')]
      : [FAIRPLAY_KEY_ID.replaceAll('-', ''), FAIRPLAY.key];
  execFileSync(shakaPackagerOfNpm(process.platform, process.arch, __filename), [
    `in=${file},stream=${kind},output=${output}`,
    '--enable_raw_key_decryption',
    `--keys=label=:key_id=${keyId}:key=${key}`,
    '--quiet',
  ]);
  return output;
}

const put = () => packager.put('news', { source: address(), keyFile: 'news' });
const isRunning = ({ state }: { state: string }) => state === 'running';

test('every picture of an encoder, which pauses meanwhile, comes out of the encryption as it went in', async () => {
  const source = encoded('source.flv');
  const streaming = stream(source);
  const putting = setInterval(() => void put(), 500);
  await packager.until('news', isRunning);
  encoders[0]?.kill('SIGSTOP');
  const paused = await packager.until('news', ({ state }) => state === 'interrupted');
  expect(paused.problem?.code).toBe('encoder_silent');
  encoders[0]?.kill('SIGCONT');
  await packager.until('news', isRunning);
  await streaming;
  clearInterval(putting);
  await packager.api.post('/streams/news/end').expect(200);
  for (const kind of ['video', 'audio'] as const) {
    const wanted = hashesOf(source, kind);
    expect(wanted.length).toBeGreaterThan(80);
    expect(await decrypted('dash', kind)).toEqual(wanted);
    expect(await decrypted('hls', kind)).toEqual(wanted);
  }
  expect((await packager.api.get('/media/news/hls/video.m3u8')).text).not.toContain('DISCONTINUITY');

  // The recording is the same, clear; a piece of it begins and ends where it was asked for.
  const recorded = async (query: string) => {
    const path = join(packager.home, 'recording.mp4');
    const answer = await fetch(`${packager.url}/streams/news/recording${query}`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'video/mp4']);
    writeFileSync(path, Buffer.from(await answer.arrayBuffer()));
    return hashesOf(path, 'video');
  };
  const pictures = hashesOf(source, 'video');
  expect(await recorded('')).toEqual(pictures);
  const piece = await recorded('?from=2&to=4');
  const first = pictures.indexOf(piece[0] ?? '');
  expect(first).toBeCloseTo(30, -1);
  expect(piece.length).toBeCloseTo(30, -1);
  // The last ones are cut in the order of their decoding.
  expect(pictures.slice(first, first + piece.length - 3)).toEqual(piece.slice(0, -3));
  const beyond = await packager.api.get('/streams/news/recording?from=100').expect(409);
  expect(beyond.body.errors[0].code).toBe('nothing_recorded');
});

test('a change of resolution, and of time, within a connection begins a part each, of whole pictures', async () => {
  const small = encoded('small.flv', '-s', '160x90', '-t', '3');
  const large = encoded('large.flv', '-t', '8');
  const list = join(packager.home, 'list');
  writeFileSync(list, `ffconcat version 1.0\nfile ${small}\nfile ${large}\n`);
  // Six seconds on, a minute is skipped.
  const jump = 'setts=pts=PTS+if(gt(DTS\\,6000)\\,60000):dts=DTS+if(gt(DTS\\,6000)\\,60000)';
  const streaming = stream(list, '-bsf:v', jump, '-bsf:a', jump);
  const putting = setInterval(() => void put(), 500);
  await streaming;
  clearInterval(putting);
  await packager.api.post('/streams/news/end');
  expect(packager.log().match(/"stream changed; it is pulled again"/g)?.length).toBeGreaterThanOrEqual(2);
  const [before, after] = [hashesOf(small, 'video'), hashesOf(large, 'video')];
  for (const system of ['dash', 'hls'] as const) {
    const shown = await decrypted(system, 'video');
    const second = shown.filter((hash) => after.includes(hash));
    expect(shown.filter((hash) => before.includes(hash) || after.includes(hash))).toEqual(shown);
    expect(new Set(second).size).toBeGreaterThan(after.length / 2);
  }
});

test('a simulcast target gets the stream as it is, from when it can be reached, and a player ends with the encoder without a complaint', async () => {
  const target = createChannel(emulator.context, emulator.siteId, channelMetadata());
  const url = `rtmp://127.0.0.1:${ingest.port}/live/${target.streamKey}`;
  const lost = `rtmp://127.0.0.1:1/live/${target.streamKey}`;
  const streaming = stream(encoded('source.flv', '-t', '20'));
  const body = { source: address(), keyFile: 'news', simulcast: [{ url: lost }, { url }] };
  const putting = setInterval(() => void packager.put('news', body), 500);
  await until(() => emulator.context.broadcast.sessionOf(target.id) !== undefined);
  const copy = join(packager.home, 'copy.flv');
  await once(
    spawn('ffmpeg', ['-loglevel', 'error', '-i', url, '-c', 'copy', '-frames:v', '30', copy]),
    'close',
  );
  expect(hashesOf(join(packager.home, 'source.flv'), 'video')).toEqual(
    expect.arrayContaining(hashesOf(copy, 'video').slice(0, 28)),
  );
  await packager.until('news', isRunning);
  // A player of the channel itself, which ends with the encoder.
  const play = ['-i', address(), '-c', 'copy', '-xerror', '-f', 'flv', '-'];
  const player = spawn('ffmpeg', ['-loglevel', 'error', ...play], { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaints = '';
  player.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  await once(player.stdout, 'data');
  player.stdout.resume();
  const over = once(player, 'close');
  encoders[0]?.kill('SIGINT');
  await streaming;
  expect([await over, complaints]).toEqual([[0, null], '']);
  clearInterval(putting);
  await packager.api.post('/streams/news/end');
  await until(() => emulator.context.broadcast.sessionOf(target.id) === undefined);
  expect(packager.log()).toContain('"simulcast ended; it is tried again"');
  expect(packager.log()).not.toContain(target.streamKey);
  expect(packager.log()).not.toContain(channel.streamKey);
});
