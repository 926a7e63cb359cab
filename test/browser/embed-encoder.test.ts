import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Channel } from '../../src/emulator/live/channel';
import { createChannel } from '../../src/emulator/live/channels';
import { type RtmpIngest, startRtmpIngest } from '../../src/emulator/live/rtmp-ingest';
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

function ffmpeg(...args: string[]): { child: ChildProcess; exit: Promise<number | null> } {
  const child = spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', ...args], { stdio: 'ignore' });
  children.push(child);
  return { child, exit: new Promise((resolve) => child.once('exit', (code) => resolve(code))) };
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

test('ends a real encoder that is refused, and one whose channel is disabled', async () => {
  expect(await encode('wrong').exit).not.toBe(0);
  const { exit } = encode(channel.streamKey);
  while (!emulator.context.broadcast.sessionOf(channel.id))
    await new Promise((resolve) => setImmediate(resolve));
  await emulator.admin.put(`/v2/sites/${emulator.siteId}/channels/${channel.id}/disable/`).expect(204);
  expect(await exit).not.toBe(0);
});
