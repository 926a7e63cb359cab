import type { Page } from 'playwright-core';
import { picture, SCREENS, type Screen, startBrowser } from '../support/dashboard-browser';
import { startEmulator } from '../support/start-emulator';
import { startWebhookReceiver } from '../support/webhook-receiver';

const browser = startBrowser();
jest.setTimeout(120_000);

const LONG_TITLE =
  'Town hall meeting with a title that needs more than one line, and averyverylongwordwithoutanyspaceinit';
const screens = Object.keys(SCREENS) as Screen[];
const ways = screens.flatMap((screen) => [
  { screen, javaScriptEnabled: true },
  { screen, javaScriptEnabled: false },
]);

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
  await page.getByText('The channel was created.').waitFor();
}

describe.each(ways)('on a $screen, script: $javaScriptEnabled', (way) => {
  test('a channel is made, streamed to, previewed, published, disabled and deleted', async () => {
    const { page, context } = await open(way);
    await page.goto('/dashboard');
    await page.getByRole('link', { name: 'Channels', exact: true }).click();
    await page.getByText('There is no channel yet.').waitFor();
    await createChannel(page, LONG_TITLE, 'manual');
    const [channel] = context.state.channels.all();
    const key = page.locator('#encoder-key');
    expect(await key.isVisible()).toBe(false);
    await page.locator('summary', { hasText: 'stream key' }).first().click();
    expect(await key.textContent()).toBe(channel?.streamKey);

    context.broadcast.connect(channel?.streamKey ?? '', () => undefined);
    await page.reload();
    const current = page.locator('#current');
    await current.getByText('preview', { exact: true }).waitFor();
    await current.getByRole('button', { name: 'Publish' }).click();
    await page.getByText('The event is published').waitFor();
    await current.getByText('live', { exact: true }).waitFor();
    expect(context.state.events.all().map(({ state }) => state)).toEqual(['live']);

    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByText('The channel is disabled').waitFor();
    expect(context.state.events.all().map(({ state }) => state)).toEqual(['ended']);
    await page.locator('summary', { hasText: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('The channel was deleted.').waitFor();
    expect(context.state.channels.all()).toEqual([]);
  });

  test('a webhook is made, its secret seen once, and a failed delivery is shown', async () => {
    const { page, context } = await open(way);
    const receiver = await startWebhookReceiver();
    receiver.answer(404);
    await page.goto('/dashboard/webhooks');
    await page.getByLabel('Name').fill('Newsroom');
    await page.getByLabel('URL').fill(receiver.url);
    await page.getByLabel('channel_created').check();
    await page.getByRole('button', { name: 'Create webhook' }).click();
    const [webhook] = context.webhooks.list();
    expect(await page.locator('#webhook-secret').textContent()).toBe(webhook?.secret);
    await page.reload();
    expect(await page.locator('#webhook-secret').count()).toBe(0);

    await createChannel(page, 'News', 'auto');
    await receiver.until(1);
    await page.goto(`/dashboard/webhooks/${webhook?.id}`);
    await page.getByText('Status 404').waitFor();
  });

  test('a credential is made, shown, replaced and deleted', async () => {
    const { page, context } = await open(way);
    await page.goto('/dashboard/credentials');
    await page.getByLabel('Key name').fill('Reader');
    await page.getByLabel('Permission', { exact: true }).selectOption('Viewer');
    await page.getByRole('button', { name: 'Add key name' }).click();
    await page.getByText('The credential was created.').waitFor();
    const row = page.getByRole('row').filter({ hasText: 'Reader' });
    await row.getByText('Show Credentials').click();
    const before = context.state.credentials.list().at(-1)?.secret;
    await row.getByText(before ?? '').waitFor();
    await row.locator('summary', { hasText: 'Replace' }).click();
    await row.getByRole('button', { name: 'Replace' }).click();
    await page.getByText('The credential has a new secret').waitFor();
    expect(context.state.credentials.list().at(-1)?.secret).not.toBe(before);
    await row.locator('summary', { hasText: 'Delete' }).click();
    await row.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('The credential was deleted').waitFor();
    expect(context.state.credentials.list()).toHaveLength(1);
  });

  test('what is wrong with a form is said above it, with what was typed kept', async () => {
    const { page } = await open(way);
    await page.goto('/dashboard/channels');
    await page.getByLabel('Title').fill('News');
    await page.getByLabel('Reconnect window').fill('soon');
    await page.getByRole('button', { name: 'Create channel' }).click();
    await page.getByRole('alert').getByText('Reconnect window must be a whole number of seconds.').waitFor();
    expect(await page.getByLabel('Title').inputValue()).toBe('News');
  });
});

test('script keeps states up to date without closing what is open', async () => {
  const { page, context } = await open({ screen: 'laptop' });
  await createChannel(page, 'News', 'auto');
  await page.goto('/dashboard/channels');
  await page.locator('summary', { hasText: 'stream key' }).first().click();
  const [channel] = context.state.channels.all();
  const key = page.locator(`#key-${channel?.id}`);
  await key.waitFor();
  context.broadcast.connect(channel?.streamKey ?? '', () => undefined);
  await page.getByRole('cell').getByText('active', { exact: true }).waitFor();
  expect(await key.isVisible()).toBe(true);
});

test('script copies what its button stands beside', async () => {
  const { page, url } = await open({ screen: 'laptop' });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto('/dashboard');
  await page.getByRole('button', { name: 'Copy address of the management API', exact: true }).click();
  await page.locator('#announcement', { hasText: 'Copied.' }).waitFor({ state: 'attached' });
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`${url}/v2`);
});

test('without script there are no buttons that would do nothing', async () => {
  const { page } = await open({ screen: 'laptop', javaScriptEnabled: false });
  await page.goto('/dashboard');
  expect(await page.locator('[data-copy]:visible').count()).toBe(0);
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

const looks = screens.flatMap((screen) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ screen, colorScheme })),
);

test.each(looks)(
  'nothing is cut or too wide on a $screen in $colorScheme',
  async ({ screen, colorScheme }) => {
    const { page, context } = await open({ screen, colorScheme });
    const receiver = await startWebhookReceiver();
    receiver.answer(204, 500);
    const events = ['channel_created', 'channel_active', 'channel_idle'] as const;
    const webhook = context.webhooks.create({
      name: 'Newsroom',
      description: 'Tells the newsroom what is on the air.',
      webhook_url: `${receiver.url}/${'long-path/'.repeat(8)}`,
      events: [...events],
      site_ids: ['demosite'],
    });
    for (const [title, mode] of [
      ['News', 'auto'],
      [LONG_TITLE, 'manual'],
      ['Sports', 'auto'],
      ['', 'auto'],
    ] as const) {
      await createChannel(page, title, mode);
    }
    const [news, townHall, sports] = context.state.channels.all();
    for (const channel of [news, townHall, sports])
      context.broadcast.connect(channel?.streamKey ?? '', () => undefined);
    await page.goto(`/dashboard/channels/${sports?.id}`);
    await page.getByRole('button', { name: 'Disable' }).click();
    await receiver.until(2);
    const faults: string[] = [];
    for (const [name, path] of Object.entries({
      overview: '',
      channels: '/channels',
      channel: `/channels/${townHall?.id}`,
      disabled: `/channels/${sports?.id}`,
      events: '/events',
      webhooks: '/webhooks',
      webhook: `/webhooks/${webhook.id}`,
      credentials: '/credentials',
      clients: '/clients',
      error: '/nothing',
    })) {
      await page.goto(`/dashboard${path}`);
      faults.push(...(await picture(page, `${screen}-${colorScheme}-${name}`)));
      for (const summary of await page.locator('main summary').all()) await summary.click();
      faults.push(...(await picture(page, `${screen}-${colorScheme}-${name}-open`)));
    }
    expect(faults).toEqual([]);
  },
);
