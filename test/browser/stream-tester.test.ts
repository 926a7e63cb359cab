import type { Page } from 'playwright-core';
import { picture, SCREENS, type Screen, startBrowser } from '../support/dashboard-browser';
import { FAINT_TEXTS } from '../support/faint-texts';
import { KEYS, keyFileOf, servedClip } from '../support/packaged-clip';
import { decoded } from '../support/real-player';
import { startEmulator, type TestEmulator } from '../support/start-emulator';
import { until } from '../support/until';

jest.setTimeout(60_000);

const browser = startBrowser();
let emulator: TestEmulator;

beforeEach(async () => {
  emulator = await startEmulator();
});

async function openTester(screen: Screen, address: string): Promise<Page> {
  const page = await browser.open(SCREENS[screen]);
  await page.goto(`${emulator.url}/verify?url=${encodeURIComponent(address)}`);
  return page;
}

test.each(['laptop', 'phone'] as const)('shows what a stream is, and plays it, on a %s', async (screen) => {
  emulator.context.issuedKeys.remember(KEYS);
  const address = await servedClip('dash', KEYS);
  const page = await openTester(screen, address);
  await picture(page, `tester-form-${screen}`);
  await page.getByLabel('Key file', { exact: true }).fill(keyFileOf(KEYS));
  await page.getByRole('button', { name: 'Test' }).click();
  // The result is visible without scrolling.
  await page.locator('#verdict').waitFor();
  await until(async () => ((await page.locator('#findings').boundingBox())?.y ?? 9999) < 800);
  await page.getByText('DASH, decrypted with ClearKey').waitFor();
  // On a phone, what is out of sight is paused.
  await page.locator('video').scrollIntoViewIfNeeded();
  await until(async () => (await decoded(page)).frames > 25);
  const top = async (id: string) => (await page.locator(id).boundingBox())?.y ?? 0;
  if (screen === 'phone') expect(await top('#findings')).toBeLessThan(await top('#stage'));
  const plays = page.getByText('It plays: DASH, decrypted with ClearKey');
  await plays.waitFor();
  await page.evaluate("document.querySelector('video').pause()");
  await plays.waitFor({ state: 'detached' });
  await page.evaluate("document.querySelector('video').play()");
  await plays.waitFor();
  expect(await picture(page, `tester-${screen}`)).toEqual([]);
  expect(await page.getByLabel('Key file', { exact: true }).inputValue()).toBe(keyFileOf(KEYS));
  expect(page.url()).not.toContain(KEYS.key.toString('base64'));
  expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
});

test('recognizes a wrong key by decrypting the stream, and by playing it', async () => {
  emulator.context.issuedKeys.remember(KEYS);
  const address = await servedClip('dash', { ...KEYS, key: Buffer.alloc(16, 0x55) });
  const page = await openTester('laptop', address);
  await page.getByLabel('Key file', { exact: true }).fill(keyFileOf(KEYS));
  await page.getByRole('button', { name: 'Test' }).click();
  const renditions = page.getByRole('region', { name: 'Renditions' });
  await renditions.getByText('Does not decrypt', { exact: true }).first().waitFor();
  await page.getByText('another key than the license has').first().waitFor();
  expect(await picture(page, 'tester-wrong-key')).toEqual([]);
  expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
});

test('says so when the address is wrong or answers nothing', async () => {
  const page = await openTester('phone', 'http://127.0.0.1:1/a.mpd');
  await page.getByRole('button', { name: 'Test' }).click();
  await page.locator('#findings').getByText('nothing listens there').waitFor();
  expect(await page.locator('#announcement').textContent()).toBe('1 fault. ');
  expect(await picture(page, 'tester-unreachable-phone')).toEqual([]);
  await page.getByText('Key file from the sidecar, former key file').click();
  await page.getByLabel('Address of the sidecar').fill('http://127.0.0.1:1');
  await page.getByRole('button', { name: 'Test' }).click();
  await page.locator('#tester-problems').getByText('Give the stream id').waitFor();
  expect(await picture(page, 'tester-sidecar-phone')).toEqual([]);
});
