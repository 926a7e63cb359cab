import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import type { Page } from 'playwright-core';
import { fairPlayKeyId } from '../../src/drm/packaging';
import { playReadyChecksum } from '../../src/drm/playready';
import { widevinePsshDataOf } from '../../src/drm/widevine';
import { type RtmpIngest, startRtmpIngest } from '../../src/platform/emulator/live/rtmp-ingest';
import { type Channel, createChannel } from '../../src/platform/emulator/resources/channels';
import { channelMetadata } from '../support/channel-metadata';
import { SCREENS, startBrowser } from '../support/dashboard-browser';
import { CLIP } from '../support/packaged-clip';
import { showsBars } from '../support/pixels';
import { decoded } from '../support/real-player';
import { startEmulator, type TestEmulator } from '../support/start-emulator';
import {
  CONTENT_KEY,
  FAIRPLAY,
  FAIRPLAY_KEY_ID,
  KEY_ID,
  startPackager,
  type TestPackager,
  textOfKeyFile,
} from '../support/start-packager';
import { until } from '../support/until';

jest.setTimeout(120_000);

// Hooks run in the order in which they are set: this one before the browser's own fails the test for what was logged.
afterEach(() => {
  // A segment that is refused once is asked for again; what is seen is what counts.
  browser.forgive(/status of 50[24]/);
});

const browser = startBrowser();
let emulator: TestEmulator;
let packager: TestPackager;
let ingest: RtmpIngest;
let encoder: ChildProcess | undefined;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

beforeEach(async () => {
  const port = await freePort();
  packager = await startPackager({ ffmpeg: 'ffmpeg' });
  packager.provision();
  emulator = await startEmulator({
    EMULATOR_PACKAGERURL: packager.url,
    EMULATOR_PACKAGERRTMPURL: `rtmp://127.0.0.1:${port}/live`,
  });
  ingest = await startRtmpIngest(emulator.context, { host: '127.0.0.1', port });
  const { issuedKeys } = emulator.context;
  issuedKeys.remember({ keyId: KEY_ID, key: CONTENT_KEY });
  const keyId = Buffer.from(FAIRPLAY_KEY_ID.replaceAll('-', ''), 'hex');
  issuedKeys.remember({ keyId, key: Buffer.from(FAIRPLAY.key, 'hex') });
});

afterEach(async () => {
  await disconnect();
  await packager.stop();
  await ingest.stop();
});

function channel(changes: object = {}): Channel {
  const metadata = channelMetadata({ title: 'Town hall', custom_params: { stream_id: 'news' }, ...changes });
  return createChannel(emulator.context, emulator.siteId, metadata);
}

/** Streams the test clip over and over, as an encoder does. */
function connect({ streamKey }: Channel): void {
  const address = `rtmp://127.0.0.1:${ingest.port}/live/${streamKey}`;
  const clip = ['-re', '-stream_loop', '-1', '-i', CLIP, '-c', 'copy', '-f', 'flv', address];
  encoder = spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', '-nostdin', ...clip], { stdio: 'ignore' });
}

async function disconnect(): Promise<void> {
  if (!encoder || encoder.exitCode !== null || encoder.signalCode !== null) return;
  const gone = once(encoder, 'exit');
  encoder.kill('SIGKILL');
  await gone;
}

async function plays(page: Page): Promise<void> {
  // What is out of sight is paused.
  await page.locator('video').scrollIntoViewIfNeeded();
  const before = await decoded(page);
  await until(async () => {
    const now = await decoded(page);
    return now.frames > before.frames + 40 && now.audioBytes > before.audioBytes + 5000;
  });
  await until(() => showsBars(page, 'video'));
}

async function open(path: string): Promise<Page> {
  const page = await browser.open(SCREENS.laptop);
  await page.goto(`${emulator.url}${path}`);
  return page;
}

const note = (page: Page, text: string) =>
  page.locator('#playback').getByText(text).waitFor({ timeout: 40_000 });

test('goes on when a channel gets other keys, with DASH and with HLS', async () => {
  const town = channel({ reconnect_window: 60 });
  connect(town);
  const pages = [];
  for (const format of ['dash', 'hls']) {
    const page = await open(`/embed/channel.html?channelId=${town.id}&format=${format}`);
    await note(page, 'decrypted with ClearKey');
    await plays(page);
    pages.push(page);
  }
  const cenc = { keyId: Buffer.from('5f0e6b9a2c1d4e3f8a7b6c5d4e3f2a1b', 'hex'), key: Buffer.alloc(16, 0x77) };
  const fairplay = { ...FAIRPLAY, licenseUrl: 'skd://license.example/news-2', key: '3c'.repeat(16) };
  const { issuedKeys } = emulator.context;
  issuedKeys.remember(cenc);
  issuedKeys.remember({ keyId: fairPlayKeyId(fairplay.licenseUrl), key: Buffer.from(fairplay.key, 'hex') });
  packager.provision(
    'news',
    textOfKeyFile({
      cenc: { keyId: cenc.keyId.toString('base64'), contentKey: cenc.key.toString('base64') },
      widevine: { psshData: widevinePsshDataOf(cenc.keyId, 'news') },
      playready: {
        licenseUrl: 'https://license.example/rightsmanager.asmx',
        checksum: playReadyChecksum(cenc.keyId, cenc.key),
      },
      fairplay,
    }),
  );
  await disconnect();
  connect(town);
  const id = town.currentEventId ?? '';
  await packager.until(id, ({ dash }) => (dash?.keyIds.length ?? 0) > 1);
  for (const page of pages) {
    await plays(page);
    await plays(page);
    await plays(page);
  }
});
