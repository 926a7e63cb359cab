import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type RtmpIngest, startRtmpIngest } from '../../src/platform/emulator/live/rtmp-ingest';
import { type Channel, createChannel } from '../../src/platform/emulator/resources/channels';
import { openPage } from '../support/browser';
import { channelMetadata } from '../support/channel-metadata';
import { startEmulator, type TestEmulator } from '../support/start-emulator';

jest.setTimeout(60_000);

let emulator: TestEmulator;
let ingest: RtmpIngest;
let channel: Channel;
const children: ChildProcess[] = [];

beforeEach(async () => {
  emulator = await startEmulator();
  ingest = await startRtmpIngest(emulator.context, { host: '127.0.0.1', port: 0 });
  channel = createChannel(emulator.context, emulator.siteId, channelMetadata());
});

afterEach(async () => {
  await ingest.stop();
  for (const child of children.splice(0)) {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
  }
});

function ffmpeg(...args: string[]) {
  const child = spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  const exit = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  return { child, exit, complaints: () => complaints };
}

const address = (streamKey: string) => `rtmp://127.0.0.1:${ingest.port}/live/${streamKey}`;

/** Streams a test picture and a tone until it is stopped. */
function encode(streamKey: string) {
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=15'];
  const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440'];
  const codecs = [
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-tune',
    'zerolatency',
    '-g',
    '15',
    '-c:a',
    'aac',
  ];
  return ffmpeg(
    '-re',
    ...picture,
    ...tone,
    ...codecs,
    '-pix_fmt',
    'yuv420p',
    '-f',
    'flv',
    address(streamKey),
  );
}

test('shows viewers what a real encoder begins and ends', async () => {
  const { page, until, untilTrue } = await openPage();
  await page.goto(`${emulator.url}/embed/channel.html?channelId=${channel.id}`);
  await until('Waiting for the event to begin');
  const { child, exit } = encode(channel.streamKey);
  await untilTrue(() => page.locator('[data-state="active"]').isVisible());
  child.kill('SIGINT');
  await exit;
  await untilTrue(() => emulator.context.broadcast.sessionOf(channel.id) === undefined);
  emulator.context.clock.advance(1);
  await until('The event has ended');
});

test('hands a real player the frames of a real encoder', async () => {
  encode(channel.streamKey);
  while (!emulator.context.broadcast.sessionOf(channel.id))
    await new Promise((resolve) => setImmediate(resolve));
  const frames = ['-frames:v', '30', '-frames:a', '30', '-xerror', '-f', 'null', '-'];
  const { exit } = ffmpeg('-i', address(channel.streamKey), ...frames);
  expect(await exit).toBe(0);
});

test('lets a real player end without a complaint when the encoder ends', async () => {
  const encoder = encode(channel.streamKey);
  while (!emulator.context.broadcast.sessionOf(channel.id))
    await new Promise((resolve) => setImmediate(resolve));
  const { child, exit, complaints } = ffmpeg(
    '-i',
    address(channel.streamKey),
    '-c',
    'copy',
    '-xerror',
    '-f',
    'flv',
    '-',
  );
  // The first bytes of what it has received.
  await once(child.stdout, 'data');
  encoder.child.kill('SIGINT');
  expect(await exit).toBe(0);
  expect(complaints()).toBe('');
});

test('ends a real encoder that is refused, and one whose channel is disabled', async () => {
  expect(await encode('wrong').exit).not.toBe(0);
  const { exit } = encode(channel.streamKey);
  while (!emulator.context.broadcast.sessionOf(channel.id))
    await new Promise((resolve) => setImmediate(resolve));
  await emulator.admin.put(`/v2/sites/${emulator.siteId}/channels/${channel.id}/disable/`).expect(204);
  expect(await exit).not.toBe(0);
});
