import type { Page } from 'playwright-core';
import { startBrowser } from '../support/dashboard-browser';
import { FAINT_TEXTS } from '../support/faint-texts';
import { startEmulator } from '../support/start-emulator';

const browser = startBrowser();
jest.setTimeout(120_000);

/** As text: the tests are compiled without the DOM's types. A label counts for the box in it. */
const SMALL_TARGETS = `[...document.querySelectorAll('a, button, summary, input, select')]
  .filter((element) => !element.closest('.skip, .unseen') && element.checkVisibility() && element.type !== 'hidden')
  .map((element) => [element, element.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 24 || height < 24)
  .map(([element, { width, height }]) => element.outerHTML.slice(0, 100) + ' is ' + width + ' by ' + height)`;

const WIDE = `document.documentElement.scrollWidth > innerWidth`;

async function startWithChannels(width: number, colorScheme: 'light' | 'dark' = 'light') {
  const emulator = await startEmulator();
  const channels = [];
  for (const title of ['News at ten', 'Sports', 'Regional news'])
    channels.push(await emulator.createChannel({ title, publishing_mode: 'manual', tags: ['a-tag'] }));
  for (const channel of channels.slice(0, 2)) await emulator.connect(channel);
  const webhook = emulator.context.webhooks.create({
    name: 'Newsroom',
    description: '',
    webhook_url: 'http://127.0.0.1:9/hooks/production/on-air/notifications/of-the-newsroom',
    events: ['channel_active'],
    site_ids: [emulator.siteId],
  });
  const page = await browser.open({
    viewport: { width, height: 800 },
    reducedMotion: 'reduce',
    colorScheme,
    baseURL: emulator.url,
  });
  const paths = [
    '',
    '/channels',
    '/channels?q=weather',
    `/channels/${channels[0]?.id}`,
    '/events',
    '/webhooks',
    `/webhooks/${webhook.id}`,
    '/credentials',
    '/clients',
    '/nothing',
  ].map((path) => `/dashboard${path}`);
  return { ...emulator, page, paths: [...paths, `/embed/channel.html?channelId=${channels[2]?.id}`] };
}

/** What these programs find on each page, as it comes and with everything opened. */
async function findings(page: Page, paths: readonly string[], programs: Readonly<Record<string, string>>) {
  const found: unknown[] = [];
  for (const path of paths) {
    await page.goto(path);
    for (const way of ['closed', 'open']) {
      if (way === 'open')
        for (const summary of await page.locator('main summary').all()) await summary.click();
      for (const [name, program] of Object.entries(programs)) {
        const finding = await page.evaluate(program);
        if (finding !== false && JSON.stringify(finding) !== '[]') found.push({ path, way, name, finding });
      }
    }
  }
  return found;
}

test.each([
  [1280, 'light'],
  [1280, 'dark'],
  [360, 'light'],
  [360, 'dark'],
] as const)('can be hit, read and held at %d pixels in %s', async (width, colorScheme) => {
  const { page, paths } = await startWithChannels(width, colorScheme);
  const programs = { 'small targets': SMALL_TARGETS, 'faint texts': FAINT_TEXTS, 'too wide': WIDE };
  expect(await findings(page, paths, programs)).toEqual([]);
});

test.each([1280, 768, 360])('the cards of the overview are of equal height at %d pixels', async (width) => {
  const { page } = await startWithChannels(width);
  await page.goto('/dashboard');
  const heights = `[...new Set([...document.querySelectorAll('.tile')].map((tile) => tile.offsetHeight))].length`;
  expect(await page.evaluate(heights)).toBe(1);
});

test('an address breaks at its slashes, not within a word', async () => {
  const { page } = await startWithChannels(1280);
  await page.goto('/dashboard/webhooks');
  const lines = `(() => {
    const address = document.querySelector('td .address');
    const range = document.createRange();
    const lines = [];
    let bottom = -1;
    for (const node of address.childNodes) {
      if (node.nodeType !== 3) continue;
      range.selectNodeContents(node);
      const rows = [...range.getClientRects()];
      if (rows[0].top >= bottom - 2) lines.push('');
      lines[lines.length - 1] += node.data + (rows.length > 1 ? '(broken)' : '');
      bottom = rows.at(-1).bottom;
    }
    return lines;
  })()`;
  const ends = new Set<string>();
  for (let width = 1280; width >= 360; width -= 20) {
    await page.setViewportSize({ width, height: 800 });
    const found = await page.evaluate<string[]>(lines);
    expect(found.join('')).toBe('http://127.0.0.1:9/hooks/production/on-air/notifications/of-the-newsroom');
    for (const line of found.slice(0, -1)) ends.add(line.slice(-1));
  }
  expect([...ends]).toEqual(['/']);
});

test('script shows what matches while it is typed, keeps the focus and says how many match', async () => {
  const { page, url } = await startWithChannels(1280);
  await page.goto('/dashboard/channels');
  await page.getByRole('searchbox').pressSequentially('news');
  await page.getByText('2 of 3 channels').first().waitFor();
  expect(await page.locator('tbody .name').allTextContents()).toEqual(['Regional news', 'News at ten']);
  expect(page.url()).toBe(`${url}/dashboard/channels?q=news`);
  expect(await page.evaluate('document.activeElement.id')).toBe('search-q');
  await page.getByLabel('State').selectOption('unused');
  await page.getByText('1 of 3 channels').first().waitFor();
  expect(await page.locator('#announcement').textContent()).toContain('1 of 3 channels');
  await page.getByRole('searchbox').fill('weather');
  await page.getByText('None of the 3 channels matches.').first().waitFor();
  await page.getByRole('link', { name: 'Show all' }).click();
  await page.getByText('3 channels', { exact: true }).waitFor();
});

test('without script a list is searched with its button', async () => {
  const emulator = await startEmulator();
  for (const title of ['News', 'Sports']) await emulator.createChannel({ title });
  const page = await browser.open({ javaScriptEnabled: false, baseURL: emulator.url });
  await page.goto('/dashboard/channels');
  await page.getByRole('searchbox').fill('sport');
  await page.getByLabel('State').selectOption('unused');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('1 of 2 channels').waitFor();
  expect(page.url()).toBe(`${emulator.url}/dashboard/channels?q=sport&state=unused&mode=`);
});

test('the keyboard alone finds a channel, opens it and shows its stream key', async () => {
  const { page } = await startWithChannels(1280);
  await page.goto('/dashboard/channels');
  await page.getByRole('searchbox').focus();
  await page.keyboard.type('sports');
  await page.getByText('1 of 3 channels').first().waitFor();
  const focused = () => page.evaluate<string>('document.activeElement.textContent');
  while ((await focused()) !== 'Sports') await page.keyboard.press('Tab');
  expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Sports', level: 1 }).waitFor();
  while (!/^\S+ ShowHide stream key$/.test(await focused())) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.locator('#encoder-key').waitFor();
});
