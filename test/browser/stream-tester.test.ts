import type { Page } from 'playwright-core';
import { picture, SCREENS, type Screen, startBrowser } from '../support/dashboard-browser';
import { FAINT_TEXTS } from '../support/faint-texts';
import {
  type ClipKeys,
  FAIRPLAY_KEYS,
  KEY_URI,
  KEYS,
  packageClip,
  serveMedia,
} from '../support/packaged-clip';
import { startEmulator, type TestEmulator } from '../support/start-emulator';
import { until } from '../support/until';

jest.setTimeout(60_000);

const browser = startBrowser();
let emulator: TestEmulator;

beforeEach(async () => {
  emulator = await startEmulator();
});

/** As the sidecar writes it, with the lines that a test decrypts with. */
const keyFile = (
  cenc: ClipKeys,
  fairPlay: ClipKeys,
) => `mpegdashstreaming-cenc-key-id: ${cenc.keyId.toString('base64')}
mpegdashstreaming-cenc-content-key: ${cenc.key.toString('base64')}
mpegdashstreaming-cenc-algorithm: AESCTR
cupertinostreaming-aes128-method: SAMPLE-AES
cupertinostreaming-aes128-url: ${KEY_URI}
cupertinostreaming-aes128-key: ${fairPlay.key.toString('hex')}
cupertinostreaming-aes128-iv: 0123456789abcdef0123456789abcdef
cupertinostreaming-aes128-iv-include-in-chunklist: false
cupertinostreaming-aes128-key-format: com.apple.streamingkeydelivery
cupertinostreaming-aes128-key-format-version: 1
`;

async function openTester(screen: Screen, address: string): Promise<Page> {
  const page = await browser.open(SCREENS[screen]);
  await page.goto(`${emulator.url}/verify?url=${encodeURIComponent(address)}`);
  return page;
}

const frames = (page: Page): Promise<number> =>
  page.evaluate(
    "(() => { const video = document.querySelector('video'); return video ? video.getVideoPlaybackQuality().totalVideoFrames : 0; })()",
  );

test.each(['laptop', 'phone'] as const)('shows what a stream is, and plays it, on a %s', async (screen) => {
  emulator.context.issuedKeys.remember(KEYS);
  const address = `${await serveMedia(await packageClip('dash', KEYS))}/m.mpd`;
  const page = await openTester(screen, address);
  await picture(page, `tester-form-${screen}`);
  await page.getByLabel('Key file', { exact: true }).fill(keyFile(KEYS, FAIRPLAY_KEYS));
  await page.getByRole('button', { name: 'Test' }).click();
  await page.getByText('It plays, decrypted with ClearKey').waitFor();
  // On a phone, what is out of sight is paused.
  await page.locator('video').scrollIntoViewIfNeeded();
  await until(async () => (await frames(page)) > 25);
  expect(await picture(page, `tester-${screen}`)).toEqual([]);
  expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
});
