import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { resize } from '../support/chromium';
import { picture, SCREENS, startBrowser } from '../support/dashboard-browser';
import { FAINT_TEXTS } from '../support/faint-texts';
import { startLibraryPages } from '../support/start-library-pages';

const browser = startBrowser();
jest.setTimeout(180_000);

const LONG_TITLE =
  'Town hall meeting with a title that needs more than one line, and averyverylongwordwithoutanyspaceinit';
const PICTURE = readFileSync(join(__dirname, '..', 'vectors', 'media', 'picture.png'));

/** As text: the tests are compiled without the DOM's types. A label counts for the box in it. */
const SMALL_TARGETS = `[...document.querySelectorAll('a, button, summary, input, select, textarea')]
  .filter((element) => !element.closest('.skip, .unseen') && element.checkVisibility() && element.type !== 'hidden')
  .map((element) => [element, element.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 24 || height < 24)
  .map(([element, { width, height }]) => element.outerHTML.slice(0, 100) + ' is ' + width + ' by ' + height)`;
const OVERLAPS = `[...document.querySelectorAll('details')]
  .filter((element) => parseFloat(getComputedStyle(element).marginTop) < 0)
  .map((element) => element.outerHTML.slice(0, 100) + ' overlaps what is above it')`;
const DOUBLE_IDS = `[...document.querySelectorAll('[id]')]
  .map(({ id }) => id)
  .filter((id, place, ids) => ids.indexOf(id) !== place)`;
/** Chromium alone breaks lines there. */
const LOST_BREAKS = `[...document.querySelectorAll(':has(> wbr)')]
  .filter((element) => getComputedStyle(element).whiteSpace === 'nowrap')
  .map((element) => element.outerHTML.slice(0, 100) + ' does not break')`;

const LOST_HINTS = `[...document.querySelectorAll('[aria-describedby]')]
  .flatMap((element) => element.getAttribute('aria-describedby').split(' '))
  .filter((id) => !document.getElementById(id))`;
/** WebKit counts a list without its marks as none. */
const LOST_LISTS = `[...document.querySelectorAll('main :is(ul, ol):not([role])')]
  .filter((element) => getComputedStyle(element).listStyleType === 'none')
  .map((element) => element.outerHTML.slice(0, 100) + ' is no list in WebKit')`;

/** An emulator with something on every page, and the paths of all of them. */
async function startFilled() {
  const emulator = await startLibraryPages();
  const { admin, siteId, context, post, createReady, createMedia, createChannel, onAir } = emulator;
  const { channel } = await onAir({
    title: LONG_TITLE,
    publishing_mode: 'manual',
    tags: ['a-very-long-tag'],
  });
  const disabled = await createChannel({ title: 'Sports' });
  await post(`channels/${disabled.id}/disable`);
  const address = `http://127.0.0.1:9/${'long-path/'.repeat(8)}`;
  const webhook = emulator.createWebhook(address, ['media_created', 'channel_idle'], {
    name: 'Newsroom',
    description: 'Is notified of what is on the air.',
  });
  const tags = ['news', 'evening news', 'averyverylongtagwithoutanyspaceinitatall'];
  const media = await createReady({ title: LONG_TITLE, tags, custom_params: { channel: 'one' } });
  await createReady({ title: 'نشرة الأخبار المسائية', tags: ['news'] });
  await createMedia({ title: 'Tomorrow', publish_start_date: '2031-01-01T00:00:00Z' });
  await emulator.unauthenticated
    .post(`/dashboard/media/${media.id}/pictures/file`)
    .attach('file', PICTURE, { filename: 'poster.png', contentType: 'image/png' });
  for (const label of ['English', LONG_TITLE])
    await post(`media/${media.id}/tracks`, { label, srclang: 'en', position: '0', track_kind: 'captions' });
  const playlists = ['manual_playlist', 'dynamic_playlist', 'search_playlist'];
  for (const type of playlists) await post('playlists', { site: siteId, title: LONG_TITLE, type });
  const [manual, dynamic, search] = context.state.playlists.all();
  for (const { id } of context.state.media.all()) await post(`playlists/${manual?.id}/add`, { media: id });
  const metadata = { name: LONG_TITLE, setup_config: { autostart: true } };
  await admin.post(`/v2/sites/${siteId}/players/`).send({ metadata }).expect(201);
  for (let day = 0; day < 20; day += 1)
    context.state.usage.count(siteId, new Date(Date.UTC(2029, 11, 10 + day)), 'deliveries', (day * 7) % 23);
  await admin
    .post(`/v2/sites/${siteId}/players/?q=${'long'.repeat(20)}`)
    .send({ metadata: { naame: LONG_TITLE } })
    .expect(400);
  const paths = {
    overview: '',
    channels: '/channels',
    'no-channels': '/channels?q=weather',
    channel: `/channels/${channel.id}`,
    disabled: `/channels/${disabled.id}`,
    events: '/events',
    media: '/media',
    'media-page': `/media/${media.id}`,
    playlists: '/playlists',
    manual: `/playlists/${manual?.id}`,
    dynamic: `/playlists/${dynamic?.id}`,
    search: `/playlists/${search?.id}?search=news`,
    players: '/players',
    player: `/players/${context.state.players.all()[0]?.id}`,
    tags: '/tags',
    usage: '/usage',
    webhooks: '/webhooks',
    webhook: `/webhooks/${webhook.id}`,
    requests: '/requests',
    request: `/requests/${context.journal.last}`,
    credentials: '/credentials',
    clients: '/clients',
    tester: '/stream-tester',
    migration: '/migration',
    error: '/nothing',
  };
  return { ...emulator, paths };
}

/** How many tiles are in each row. */
const ROWS = `Object.values(Object.groupBy(document.querySelectorAll('.tile'), (tile) => tile.getBoundingClientRect().top))
  .map((row) => row.length)`;

test('the overview has even rows of counts, and on a phone a menu that unfolds and folds', async () => {
  const { url } = await startLibraryPages();
  const laptop = await browser.open({
    ...SCREENS.laptop,
    colorScheme: 'light',
    reducedMotion: 'reduce',
    baseURL: url,
  });
  await laptop.goto('/dashboard');
  await laptop.getByRole('link', { name: 'New channel' }).hover();
  await laptop.waitForTimeout(50);
  expect(await laptop.evaluate(FAINT_TEXTS)).toEqual([]);
  expect(await laptop.evaluate(ROWS)).toEqual([4, 4]);
  expect(await laptop.getByRole('link', { name: 'Stream tester' }).isVisible()).toBe(true);
  expect(await laptop.getByRole('button', { name: 'Menu' }).isVisible()).toBe(false);
  const phone = await browser.open({ ...SCREENS.phone, baseURL: url });
  await phone.goto('/dashboard');
  const link = phone.getByRole('link', { name: 'Stream tester' });
  expect(await link.isVisible()).toBe(false);
  await phone.getByRole('button', { name: 'Menu' }).tap();
  await link.waitFor();
  expect(await picture(phone, 'phone-menu')).toEqual([]);
  await phone.keyboard.press('Escape');
  await link.waitFor({ state: 'hidden' });
  await phone.getByRole('button', { name: 'Menu' }).tap();
  await link.tap();
  await phone.getByRole('heading', { name: 'Stream tester' }).waitFor();
  expect(await link.isVisible()).toBe(false);
});

test.each([
  [SCREENS.laptop, 'light', { laptop: SCREENS.laptop.viewport, tablet: { width: 800, height: 900 } }],
  [SCREENS.phone, 'dark', { phone: SCREENS.phone.viewport, narrow: { width: 320, height: 568 } }],
] as const)(
  'nothing is cut, too wide, too small or faint on any page of the screen %j, %s',
  async (options, colorScheme, sizes) => {
    const { paths, url } = await startFilled();
    const page = await browser.open({ ...options, colorScheme, reducedMotion: 'reduce', baseURL: url });
    const faults: string[] = [];
    for (const [name, path] of Object.entries(paths)) {
      await page.goto(`/dashboard${path}`);
      await page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true");
      for (const [screen, viewport] of Object.entries(sizes)) {
        await resize(page, viewport);
        const found = await picture(page, `${screen}-${name}`);
        const programs = [
          FAINT_TEXTS,
          SMALL_TARGETS,
          OVERLAPS,
          DOUBLE_IDS,
          LOST_BREAKS,
          LOST_HINTS,
          LOST_LISTS,
        ];
        for (const program of programs) found.push(...(await page.evaluate<string[]>(program)));
        faults.push(...found.map((fault) => `${screen}-${name}: ${fault}`));
      }
    }
    expect(faults).toEqual([]);
  },
);
