import { chmod, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { createFile, MP4BoxBuffer } from 'mp4box';
import { freePort, Programs } from '../../../src/platform/demo/child-program';
import {
  guide,
  readDemoOptions,
  refusalIn,
  TEST_PICTURE,
  whyNoEncoder,
} from '../../../src/platform/demo/guide';
import { temporaryFolder } from '../../support/after-test';
import { listening } from '../../support/listening';

test.each([
  [[], { ok: true, once: false, help: false }],
  [['--once'], { ok: true, once: true, help: false }],
  [['--help'], { ok: true, once: false, help: true }],
])('reads the arguments %j', (args, options) => {
  expect(readDemoOptions(args)).toEqual(options);
});

test.each([
  [['--onec'], "'--onec'"],
  [['once'], "'once'"],
  [['--once=yes'], "'--once'"],
])('refuses the arguments %j and names the fault', (args, named) => {
  expect(readDemoOptions(args)).toEqual({ ok: false, fault: expect.stringContaining(named) });
});

const DONE = {
  sidecarUrl: 'http://127.0.0.1:9000',
  emulatorUrl: 'http://127.0.0.1:8080',
  streamId: 'demo',
  apiKey: 'key',
  request: { client: 'c', contentId: 'demo' },
  keyFile: 'name: value\nother: value\n',
  keyFilePath: '/keys/demo.key',
  clip: { ok: true, mediaId: 'clipclip', dashUrl: 'http://a.test/c.mpd', hlsUrl: 'http://a.test/c.m3u8' },
  verifyCommand: 'node cli.js verify http://a.test/c.mpd demo.key',
  channels: [
    { mode: 'auto', id: 'autoauto', streamKey: 'k1' },
    { mode: 'manual', id: 'handhand', streamKey: 'k2' },
  ],
  live: true,
  advice: undefined,
  controlUrl: 'http://127.0.0.1:8081',
  rtmpUrl: 'rtmp://127.0.0.1:1935/live',
  siteId: 'sitesite',
  apiSecret: 'secret',
} as const;

const CURL = "curl -sS http://127.0.0.1:9000/api/keyfile/demo -H 'x-api-key: key'";

const FFMPEG = `ffmpeg ${TEST_PICTURE.join(' ')} rtmp://127.0.0.1:1935/live`;

test('names the players first, then the test, the key file and the commands that repeat it', () => {
  expect(guide(DONE)).toBe(`A test clip plays with DRM. Open it in Chrome, Edge or Firefox:

  DASH, cenc   http://127.0.0.1:8080/embed/media.html?mediaId=clipclip
  HLS, cbcs    http://127.0.0.1:8080/embed/media.html?mediaId=clipclip&format=hls
  live         http://127.0.0.1:8080/embed/channel.html?channelId=autoauto

Its keys come from the key provider; the sidecar wrote them into a key file, with which the packager encrypted. The
browser gets them as ClearKey licenses from the emulator's DRM side. Test whether the stream decrypts with the key file,
with the command or on the page:

  node cli.js verify http://a.test/c.mpd demo.key
  http://127.0.0.1:8080/verify?url=http://a.test/c.mpd

The sidecar runs at http://127.0.0.1:9000, the emulator of the platform at http://127.0.0.1:8080.
The key file as written by POST /api/keyfile/demo:

name: value
other: value

It is /keys/demo.key

Provision it again:
  ${CURL} -H 'content-type: application/json' -d '{"client":"c","contentId":"demo"}'
Read it:
  ${CURL}
Delete it:
  ${CURL} -X DELETE

Live channels, protected with the same key file; the dashboard is http://127.0.0.1:8080/dashboard

Channel autoauto (auto: viewers see it as soon as an encoder streams)
  watch       http://127.0.0.1:8080/embed/channel.html?channelId=autoauto
  stream key  k1, with which ffmpeg streams now

Channel handhand (manual: viewers see it once it is published)
  watch       http://127.0.0.1:8080/embed/channel.html?channelId=handhand
  stream key  k2

Stream to a channel, with OBS (server rtmp://127.0.0.1:1935/live, and the stream key) or with ffmpeg:
  ${FFMPEG}/k2
Or with a simulated encoder, which sends no picture:
  curl -sS http://127.0.0.1:8081/encoder/connect -d '{"stream_key":"k2"}'
Their management API:
  curl -sS http://127.0.0.1:8080/v2/sites/sitesite/channels/ -H 'Authorization: Bearer secret'
`);
});

test('says how to get ffmpeg where there is none, and how to stream to the first channel', () => {
  const lines = guide({ ...DONE, live: false, advice: 'Install ffmpeg.' }).split('\n');
  expect(lines.slice(4, 7)).toEqual(['', 'Install ffmpeg.', '']);
  expect(lines.filter((line) => /^ {2}(?:stream key|ffmpeg) |encoder\/connect/.test(line))).toEqual([
    '  stream key  k1',
    '  stream key  k2',
    `  ${FFMPEG}/k1`,
    `  curl -sS http://127.0.0.1:8081/encoder/connect -d '{"stream_key":"k1"}'`,
  ]);
});

test('names no live player when nothing is to be streamed', () => {
  const text = guide({ ...DONE, live: false });
  expect(text.slice(0, text.indexOf('Its keys'))).not.toMatch(/live|ffmpeg/i);
});

test('says why nothing is packaged, and still shows the key file and the channels', () => {
  const why = 'The packager ended with exit code 2. It said nothing.';
  const lines = guide({ ...DONE, clip: { ok: false, why } }).split('\n');
  expect(lines.slice(0, 3)).toEqual([
    `No media are packaged. ${why}`,
    '',
    'The sidecar runs at http://127.0.0.1:9000, the emulator of the platform at http://127.0.0.1:8080.',
  ]);
  expect(lines).toEqual(expect.arrayContaining(['name: value', `  ${FFMPEG}/k1`]));
});

test.each([
  ['refused', 'The packager refuses the stream abc12345. Set it to AAC.'],
  ['failed', "The packager can't package the stream abc12345. Set it to AAC."],
] as const)('shows that a stream is %s, and why, from the log of the packager', (state, says) => {
  const entry = { level: 'warn', message: 'stream not packaged', stream: 'abc12345', state };
  const read = (changes: object) => {
    const line = JSON.stringify({ ...entry, reason: 'Set it to AAC.', ...changes });
    return refusalIn(line, 'http://127.0.0.1:8080');
  };
  expect(read({})).toBe(`${says}\n  http://127.0.0.1:8080/dashboard/events?q=abc12345\n`);
  expect(read({ state: 'interrupted' })).toBeUndefined();
  expect(read({ message: 'part of a stream started' })).toBeUndefined();
});

const HANGS = 'setInterval(() => {}, 1000); console.log(process.pid);';

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('passes over a port that another of its programs was promised', async () => {
  const port = await freePort(20_000);
  expect(await freePort(port, new Set([port, port + 1]))).toBeGreaterThan(port + 1);
});

test('passes over a port that is taken', async () => {
  const port = await listening(createServer());
  expect(await freePort(port)).toBeGreaterThan(port);
});

test('answers what a program wrote and how it ended, without the variables of this process', async () => {
  const programs = new Programs();
  const script = 'console.log(JSON.stringify(process.env)); console.error("no"); process.exitCode = 3;';
  const program = programs.start({ name: 'test', args: ['-e', script], variables: { ONE: '1' } });
  const { code, out, err } = await program.result;
  const env = JSON.parse(out);
  expect([code, err, env.ONE]).toEqual([3, 'no\n', '1']);
  expect(env).not.toHaveProperty('PATH');
  expect(await program.ended).toMatch(/^The test ended with exit code 3\. Its last lines:\n/);
});

test('hands on each line that a program writes', async () => {
  const lines: string[] = [];
  const script = 'process.stdout.write("one\\ntw"); process.stdout.write("o\\n");';
  const onLine = (line: string) => lines.push(line);
  await new Programs().start({ name: 'test', args: ['-e', script], variables: {}, onLine }).ended;
  expect(lines).toEqual(['one', 'two']);
});

test('reports a missing program', async () => {
  const start = { name: 'encoder', command: '/nowhere/ffmpeg', args: [], variables: {} };
  expect(await new Programs().start(start).ended).toMatch(/^The encoder can't be started: .*ENOENT/);
});

test('leaves no program running, and starts none, once it is stopped', async () => {
  const programs = new Programs();
  const before = process.listenerCount('exit');
  const started = [0, 1].map(() => programs.start({ name: 'test', args: ['-e', HANGS], variables: {} }));
  const other = new Programs();
  other.start({ name: 'test', args: ['-e', HANGS], variables: {} });
  expect(process.listenerCount('exit')).toBe(before + 1);
  const stopped = programs.stop();
  expect(programs.isOver).toBe(true);
  expect(() => programs.start({ name: 'late one', args: ['-e', HANGS], variables: {} })).toThrow(
    'The late one is not started: the demo ends.',
  );
  await Promise.all([stopped, other.stop()]);
  expect(process.listenerCount('exit')).toBe(before);
  const results = await Promise.all(started.map(({ result }) => result));
  for (const { out } of results) expect(out !== '' && isRunning(Number(out))).toBe(false);
  for (const { ended } of started) expect(await ended).toContain('The test ended with SIGTERM');
});

const CLIP = join(__dirname, '../../../src/platform/demo/clip.mp4');

test('the test clip is small, H.264 High with frames out of order, and AAC', async () => {
  const bytes = await readFile(CLIP);
  expect(bytes.length).toBeLessThan(500_000);
  const file = createFile();
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0), true);
  const { tracks } = file.getInfo();
  const shown = tracks.map(({ id, codec, duration, timescale, nb_samples }) => {
    const samples = file.getTrackSamplesInfo(id);
    const isReordered = samples.some(({ cts, dts }) => cts !== dts);
    return { codec, seconds: duration / timescale, nb_samples, isReordered };
  });
  expect(shown).toEqual([
    { codec: expect.stringMatching(/^avc1\.6400/), seconds: 12, nb_samples: 300, isReordered: true },
    { codec: 'mp4a.40.2', seconds: expect.closeTo(12, 1), nb_samples: 564, isReordered: false },
  ]);
});

/** A folder with a program of the name ffmpeg that lists these encoders. */
async function folderWith(encoders: string, mode = 0o755): Promise<string> {
  const folder = await temporaryFolder();
  const path = join(folder, 'ffmpeg');
  await writeFile(path, `#!/bin/sh\n[ "$2" = -encoders ] && echo '${encoders}'\n`);
  await chmod(path, mode);
  return folder;
}

test('takes the first ffmpeg of the path that may be run, if it encodes H.264', async () => {
  const notToRun = await folderWith(' V....D libx264', 0o644);
  const good = await folderWith(' V....D libx264   libx264 H.264 / AVC');
  const without = await folderWith(' V....D libopenh264');
  expect(whyNoEncoder([notToRun, good, without].join(delimiter), 'linux')).toBeUndefined();
  expect(whyNoEncoder([without, good].join(delimiter), 'linux')).toBe(
    'For a live test picture, take an ffmpeg with libx264: that of your PATH has none.',
  );
});

test.each([
  ['linux', /sudo apt-get install ffmpeg/],
  ['win32', /winget install Gyan\.FFmpeg/],
  ['openbsd', /install ffmpeg, and start the demo again\.$/],
] as const)('says in one sentence how to get ffmpeg on %s', async (platform, how) => {
  const advice = whyNoEncoder(await temporaryFolder(), platform);
  expect(advice).toMatch(/^For a live test picture, .*, and start the demo again\.$/);
  expect(advice).toMatch(how);
});
