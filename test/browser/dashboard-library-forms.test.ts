import type { Page } from 'playwright-core';
import { REFRESH, SCREENS, type Screen, startBrowser } from '../support/dashboard-browser';
import { startLibraryPages } from '../support/start-library-pages';

const browser = startBrowser();
jest.setTimeout(120_000);

async function open(screen: Screen, { javaScriptEnabled = true, env = {} } = {}) {
  const emulator = await startLibraryPages(env);
  const page = await browser.open({ ...SCREENS[screen], javaScriptEnabled, baseURL: emulator.url });
  return { ...emulator, page };
}

/** A page with a manual playlist of three media: One, Two and Three. */
async function openPlaylist(screen: Screen, options = {}) {
  const emulator = await open(screen, options);
  const { post, siteId, context, createReady, page } = emulator;
  await post('playlists', { site: siteId, title: 'Favourites', type: 'manual_playlist' });
  const [playlist] = context.state.playlists.all();
  if (!playlist) throw new Error('There is no playlist.');
  for (const title of ['One', 'Two', 'Three'])
    await post(`playlists/${playlist.id}/add`, { media: (await createReady({ title })).id });
  const stored = () => {
    const { media_filter: filter } = playlist.metadata as {
      media_filter: { include: { values: readonly string[] } };
    };
    return filter.include.values.map((id) => context.state.media.find(id)?.metadata.title);
  };
  const untilStored = async (...titles: string[]) => {
    for (let tries = 0; tries < 100 && stored().join() !== titles.join(); tries += 1)
      await page.waitForTimeout(50);
    expect(stored()).toEqual(titles);
  };
  await page.goto(`/dashboard/playlists/${playlist.id}`);
  return { ...emulator, playlist, untilStored };
}

/** Moves of the pointer arrive with the next frame. */
async function untilShown(page: Page, ...titles: string[]) {
  const names = page.locator('.order .name');
  for (let tries = 0; tries < 140 && (await names.allTextContents()).join() !== titles.join(); tries += 1)
    await page.waitForTimeout(50);
  expect(await names.allTextContents()).toEqual(titles);
}

/** Drags the handle of one row to the middle of another's, a little beyond. */
async function dragTo(page: Page, name: string, other: string) {
  const handle = page.locator(`.order li[data-name="${name}"] .handle`);
  await handle.scrollIntoViewIfNeeded();
  const from = await handle.boundingBox();
  const to = await page.locator(`.order li[data-name="${other}"]`).boundingBox();
  if (!from || !to) throw new Error('A row is not shown.');
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  const beyond = to.y > from.y ? to.y + to.height - 2 : to.y + 2;
  await page.mouse.move(from.x + from.width / 2, (from.y + beyond) / 2, { steps: 4 });
  await page.mouse.move(from.x + from.width / 2, beyond, { steps: 4 });
}

test('media of a playlist are dragged into another order, which is kept, and so is the focus', async () => {
  const { page, untilStored } = await openPlaylist('phone');
  await dragTo(page, 'One', 'Three');
  await untilShown(page, 'Two', 'Three', 'One');
  const focused = page.evaluate(`new Promise((done) => {
    const live = document.querySelector('.order').closest('[data-live]');
    new MutationObserver(() => done(document.activeElement.ariaLabel)).observe(live, { childList: true });
  })`);
  await page.mouse.up();
  await untilStored('Two', 'Three', 'One');
  expect(await focused).toMatch(/^Move One:/);
  await page.reload();
  await untilShown(page, 'Two', 'Three', 'One');
});

test('a form has a row more as soon as its last name and value are begun', async () => {
  const { page, context } = await open('phone');
  await page.goto('/dashboard/players');
  await page.getByLabel('Name', { exact: true }).fill('Main');
  for (const [number, name] of ['a', 'b', 'c'].entries()) {
    await page.getByLabel(`Custom parameters: name ${number + 1}`).fill(name);
    await page.getByLabel(`Custom parameters: value ${number + 1}`).fill(String(number));
  }
  await page.getByRole('button', { name: 'Create player' }).click();
  await page.getByText('The player was created.').waitFor();
  const [player] = context.state.players.all();
  expect(player?.metadata.custom_params).toEqual({ a: '0', b: '1', c: '2' });
});

test('the arrow keys move a media, say where it is, and keep the focus', async () => {
  const { page, untilStored } = await openPlaylist('laptop');
  await page.getByRole('button', { name: 'Move One:' }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.locator('#announcement', { hasText: 'One is at place 3.' }).waitFor({ state: 'attached' });
  await untilStored('Two', 'Three', 'One');
  await page.keyboard.press('ArrowUp');
  await untilStored('Two', 'One', 'Three');
  expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toMatch(/^Move One:/);
  const unsaved = page.getByRole('alert').filter({ hasText: 'The order was not saved.' });
  await page.route('**/order', (route) => route.fulfill({ status: 409 }));
  await page.keyboard.press('ArrowUp');
  await unsaved.waitFor();
  await page.unroute('**/order');
  await page.keyboard.press('ArrowDown');
  await unsaved.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Up: One' }).focus();
  await page.keyboard.press('Enter');
  await untilStored('One', 'Two', 'Three');
  expect(await page.evaluate('document.activeElement.closest("li").dataset.name')).toBe('One');
});

test('a row that is dragged stays in the hand while others change the list, and Escape puts it back', async () => {
  const { page, playlist, post, untilStored, createReady } = await openPlaylist('laptop');
  await dragTo(page, 'Three', 'One');
  const weather = await createReady({ title: 'Weather' });
  await post(`playlists/${playlist.id}/add`, { media: weather.id });
  // The second answer is asked for when the first has been shown, or has not.
  for (let times = 0; times < 2; times += 1) {
    const answered = page.waitForResponse((response) => response.url().includes('/dashboard/playlists/'));
    await page.evaluate(REFRESH);
    await answered;
  }
  await untilShown(page, 'Three', 'One', 'Two');
  await page.keyboard.press('Escape');
  await page.mouse.up();
  await page.evaluate(REFRESH);
  await untilShown(page, 'One', 'Two', 'Three', 'Weather');
  await dragTo(page, 'Weather', 'One');
  await page.mouse.up();
  await untilStored('Weather', 'One', 'Two', 'Three');
});
