import type { Page } from 'playwright-core';
import { SCREENS, type Screen, startBrowser } from '../support/dashboard-browser';
import { startEmulator } from '../support/start-emulator';

const browser = startBrowser();
jest.setTimeout(120_000);

const LONG_TITLE =
  'Town hall meeting with a title that needs more than one line, and averyverylongwordwithoutanyspaceinit';
const WITHOUT_SCRIPT = { screen: 'laptop', javaScriptEnabled: false } as const;

async function open(options: {
  screen: Screen;
  javaScriptEnabled?: boolean;
  colorScheme?: 'light' | 'dark';
}) {
  const emulator = await startEmulator();
  const { screen, ...rest } = options;
  const page = await browser.open({ ...SCREENS[screen], ...rest, baseURL: emulator.url });
  return { ...emulator, page };
}

async function createChannel(page: Page, title: string, mode: 'auto' | 'manual') {
  await page.goto('/dashboard/channels');
  await page.getByLabel('Title').fill(title);
  await page.getByLabel('Publishing mode').selectOption(mode);
  await page.getByRole('button', { name: 'Create channel' }).click();
  const done = 'The channel was created.';
  await page.getByText(done).waitFor();
  expect(await page.evaluate('document.activeElement.textContent')).toBe(done);
}

test.each([{ screen: 'phone', javaScriptEnabled: true }, WITHOUT_SCRIPT] as const)(
  'a channel is made, streamed to, previewed, published, disabled and deleted on a $screen, script: $javaScriptEnabled',
  async (way) => {
    const { page, context } = await open(way);
    await page.goto('/dashboard');
    const menu = page.getByRole('button', { name: 'Menu' });
    if (await menu.isVisible()) await menu.click();
    await page.getByRole('link', { name: 'Channels', exact: true }).click();
    await page.getByText('There is no channel yet.').waitFor();
    await createChannel(page, LONG_TITLE, 'manual');
    const [channel] = context.state.channels.all();
    const key = page.locator('#encoder-key code');
    expect(await key.isVisible()).toBe(false);
    await page.locator('summary', { hasText: 'stream key' }).first().click();
    expect(await key.textContent()).toBe(channel?.streamKey);

    context.broadcast.connect(channel?.streamKey ?? '', () => undefined);
    await page.reload();
    const current = page.locator('#current');
    await current.getByText('preview', { exact: true }).waitFor();
    await current.getByRole('button', { name: 'Publish' }).click();
    await page.getByText('The event was published').waitFor();
    await current.getByText('live', { exact: true }).waitFor();
    expect(context.state.events.all().map(({ state }) => state)).toEqual(['live']);

    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByText('The channel was disabled').waitFor();
    expect(context.state.events.all().map(({ state }) => state)).toEqual(['ended']);
    await page.locator('summary', { hasText: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('The channel was deleted.').waitFor();
    expect(context.state.channels.all()).toEqual([]);
  },
);

test('script keeps states up to date without closing what is open', async () => {
  const { page, context } = await open({ screen: 'laptop' });
  await createChannel(page, 'News', 'auto');
  await page.clock.install();
  await page.goto('/dashboard/channels');
  await page.locator('summary', { hasText: 'stream key' }).first().click();
  const [channel] = context.state.channels.all();
  const key = page.locator(`#key-${channel?.id} code`);
  await key.waitFor();
  context.broadcast.connect(channel?.streamKey ?? '', () => undefined);
  await page.clock.fastForward(10_000);
  await page.getByRole('cell').getByText('active', { exact: true }).waitFor();
  expect(await key.isVisible()).toBe(true);
  const asked: unknown[] = [];
  await page.route('**/dashboard/channels', (route) => void asked.push(route));
  for (const timeout of [50, 50, 50]) {
    await page.clock.fastForward(10_000);
    await page.waitForTimeout(timeout);
  }
  // The next answer is asked for when this one is there.
  expect(asked).toHaveLength(1);
});

test('script copies the text next to its button', async () => {
  const { page, url } = await open({ screen: 'laptop' });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto('/dashboard');
  await page.getByRole('button', { name: 'Copy address of Management API', exact: true }).click();
  await page.locator('#announcement', { hasText: 'Copied.' }).waitFor({ state: 'attached' });
  expect(await page.evaluate("getComputedStyle(document.querySelector('.copied'), '::before').content")).toBe(
    '"✓"',
  );
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`${url}/v2`);
});

test('the keyboard reaches the content first, then shows where it is', async () => {
  const { page } = await open({ screen: 'laptop' });
  await page.goto('/dashboard');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement.id')).toBe('content');
  await page.keyboard.press('Tab');
  expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
});

test('script applies a filter as soon as it is chosen', async () => {
  const { page, url, createChannel: create } = await open({ screen: 'laptop' });
  await create({ title: 'News' });
  await page.goto('/dashboard/channels?q=news');
  await page.getByLabel('Filter by state').selectOption('idle');
  await page.getByText("The one channel doesn't match.").waitFor();
  expect(page.url()).toBe(`${url}/dashboard/channels?q=news&state=idle&mode=`);
  await page.goBack();
  expect(await page.getByLabel('Filter by state').inputValue()).toBe('');
});
