import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { REFRESH, SCREENS, type Screen, startBrowser } from '../support/dashboard-browser';
import { startLibraryPages, type TestLibraryPages } from '../support/start-library-pages';

const browser = startBrowser();
jest.setTimeout(120_000);

const VECTORS = join(__dirname, '..', 'vectors', 'media');
const bytesOf = (name: string) => readFileSync(join(VECTORS, name));
const FILM = { name: 'Evening news.mp4', type: 'video/mp4', bytes: bytesOf('film.mp4') };
const PICTURE = { name: 'poster.png', type: 'image/png', bytes: bytesOf('picture.png') };
const TRACK = {
  name: 'en.vtt',
  type: 'text/vtt',
  bytes: Buffer.from('WEBVTT\n\n00:00.000 --> 00:01.000\nHi\n'),
};
const EMPTY = { name: 'empty.mp4', type: 'video/mp4', bytes: Buffer.alloc(0) };

/** Drags files over an element and drops them there, as a hand would. */
async function drop(target: Locator, files: readonly (typeof FILM)[]): Promise<void> {
  const sent = files.map(({ bytes, ...file }) => ({ ...file, base64: bytes.toString('base64') }));
  // As text: the tests are compiled without the DOM's types.
  const dataTransfer = await target.page().evaluateHandle(`(() => {
    const carried = new DataTransfer();
    for (const { name, type, base64 } of ${JSON.stringify(sent)})
      carried.items.add(new File([Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0))], name, { type, lastModified: 1 }));
    return carried;
  })()`);
  await target.dispatchEvent('dragover', { dataTransfer });
  await target.dispatchEvent('drop', { dataTransfer });
}

async function open(options: { screen: Screen; javaScriptEnabled?: boolean }) {
  const emulator = await startLibraryPages();
  const { screen, ...rest } = options;
  const page = await browser.open({ ...SCREENS[screen], ...rest, baseURL: emulator.url });
  return { ...emulator, page };
}

/** Lets a media be processed, on the emulator's clock, until its page says that it is ready. */
async function untilReady({ context, advance }: TestLibraryPages, page: Page) {
  const [media] = context.state.media.all();
  while (media?.status !== 'ready') {
    await advance(5);
    await page.waitForTimeout(20);
  }
  await advance(5);
  return media;
}

const zone = (page: Page, id = 'upload-media') => page.locator(`#${id}`);
const sent = (page: Page, id?: string) => zone(page, id).locator('.transfer-done');

test('a file that is dropped becomes a media, its picture the poster, and its text track is published', async () => {
  const { page, ...emulator } = await open({ screen: 'phone' });
  await page.goto('/dashboard/media');
  await drop(zone(page), [FILM]);
  await sent(page).waitFor();
  await page.getByRole('link', { name: 'Evening news', exact: true }).waitFor();
  const media = await untilReady(emulator as TestLibraryPages, page);
  await page.getByRole('cell').getByText('ready', { exact: true }).waitFor();
  expect([media.metadata.title, media.file?.size]).toEqual(['Evening news', FILM.bytes.length]);
  await zone(page).getByRole('link', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'Evening news', level: 1 }).waitFor();

  await drop(zone(page, 'upload-picture'), [PICTURE]);
  await page.getByRole('button', { name: 'Use as poster' }).click();
  await page.getByText('The poster was chosen.').waitFor();
  expect(emulator.context.state.thumbnails.all().map(({ isPoster }) => isPoster)).toEqual([false, true]);
  await page.locator('.picture-poster img').scrollIntoViewIfNeeded();
  const width = `document.querySelector('.picture-poster img').naturalWidth`;
  while ((await page.evaluate(width)) === 0) await page.waitForTimeout(20);

  const track = page.locator('#upload-track');
  await track.getByLabel('Label').fill('English');
  await track.getByLabel('Language code').fill('en');
  const choose = ({ name, type: mimeType, bytes: buffer }: typeof FILM) =>
    track.getByLabel('File', { exact: true }).setInputFiles({ name, mimeType, buffer });
  await choose(EMPTY);
  await page.getByRole('button', { name: 'Create text track' }).click();
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  await choose(TRACK);
  await page.getByRole('button', { name: 'Try again' }).click();
  await sent(page, 'upload-track').waitFor();
  expect([await track.locator('.transfer').count(), await track.getByLabel('Label').inputValue()]).toEqual([
    1,
    '',
  ]);
  const row = page.getByRole('row').filter({ hasText: 'English' });
  await row.getByRole('button', { name: 'Publish' }).click();
  await page.getByText('The text track was published').waitFor();
  expect(emulator.context.state.textTracks.all()).toMatchObject([
    { status: 'ready', isPublished: true, metadata: { label: 'English', srclang: 'en' } },
  ]);
});

test('files that are dropped together are sent one after the other, also in a browser that blocks cookies; an empty one says why it was not taken', async () => {
  const { page, context } = await open({ screen: 'laptop' });
  await page.addInitScript(
    "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('', 'SecurityError'); } })",
  );
  await page.goto('/dashboard/media');
  await drop(zone(page), [EMPTY, FILM]);
  await sent(page).waitFor();
  await zone(page).locator('.transfer-failed').getByText('The file is empty.').waitFor();
  await zone(page).getByRole('button', { name: 'Try again empty.mp4' }).waitFor();
  expect(context.state.media.all().map(({ metadata }) => metadata.title)).toEqual(['Evening news']);
});

test('an upload that is cancelled leaves nothing behind, also when the connection breaks once', async () => {
  const { page, context } = await open({ screen: 'laptop' });
  await page.route('**/uploads/**', () => undefined);
  await page.route('**/delete', (route) => route.abort('connectionreset'), { times: 1 });
  await page.goto('/dashboard/media');
  await drop(zone(page), [FILM]);
  await page.waitForRequest('**/uploads/**');
  expect(context.state.media.all()).toHaveLength(1);
  const undone = page.waitForResponse('**/delete');
  await page.getByRole('button', { name: 'Cancel Evening news.mp4' }).click();
  await undone;
  await page.getByText('There is no media yet.').waitFor();
  expect([context.state.media.all(), await page.locator('.transfer').count()]).toEqual([[], 0]);
  browser.forgive(/ERR_CONNECTION_RESET/);
});

test('an upload that is cancelled while its media is being made leaves nothing behind', async () => {
  const { page, context } = await open({ screen: 'laptop' });
  await page.goto('/dashboard/media');
  await page.route('**/dashboard/media', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    const response = await route.fetch();
    await page.getByRole('button', { name: 'Cancel Evening news.mp4' }).click();
    return route.fulfill({ response }).catch(() => undefined);
  });
  const undone = page.waitForResponse('**/delete');
  await drop(zone(page), [FILM]);
  await undone;
  expect(context.state.media.all()).toEqual([]);
});

test('a broken connection is tried again by itself', async () => {
  const { page, context } = await open({ screen: 'laptop' });
  let tries = 0;
  await page.route('**/uploads/**', (route) => {
    tries += 1;
    return tries === 1 ? route.abort('connectionreset') : route.continue();
  });
  await page.goto('/dashboard/media');
  await drop(zone(page), [FILM]).catch(() => undefined);
  await sent(page).waitFor();
  expect([tries, context.state.media.all().length]).toEqual([2, 1]);
  browser.forgive(/ERR_CONNECTION_RESET/);
});

test('a large file goes in parts, and after a reload of the page only those that are missing', async () => {
  const { page, ...emulator } = await open({ screen: 'laptop' });
  const { id } = await emulator.createReady({ title: 'News' });
  const media = emulator.context.state.media.find(id);
  const parts: string[] = [];
  let isBroken = true;
  await page.route('**/uploads/*/parts/*', (route) => {
    const part = /parts\/(\d+)/.exec(route.request().url())?.[1] ?? '';
    if (isBroken && part === '3') return route.abort('connectionreset');
    parts.push(part);
    return route.continue();
  });
  const partBytes = Math.ceil(FILM.bytes.length / 4);
  const path = `/dashboard/media/${id}`;
  const dropFilm = async () => {
    await page.evaluate(`document.querySelector('#upload-content').dataset.partBytes = ${partBytes}`);
    await drop(zone(page, 'upload-content'), [FILM]);
  };
  await page.goto(path);
  await dropFilm();
  await page.waitForRequest((request) => /parts\/3/.test(request.url()));
  page.once('dialog', (dialog) => void dialog.accept());
  await page.goto(path);
  const before = [...parts];
  isBroken = false;
  await dropFilm();
  await sent(page, 'upload-content').waitFor();
  expect([before, parts]).toEqual([
    ['1', '2'],
    ['1', '2', '3', '4'],
  ]);
  expect(media?.file?.size).toBe(FILM.bytes.length);
  browser.forgive(/ERR_CONNECTION_RESET/);
});

test('an upload that is cancelled while its connection is broken sends none of its parts any more', async () => {
  const { page, ...emulator } = await open({ screen: 'laptop' });
  const { id } = await emulator.createReady({ title: 'News' });
  let tries = 0;
  await page.route('**/uploads/*/parts/*', (route) => {
    tries += 1;
    return route.abort('connectionreset');
  });
  await page.clock.install();
  await page.goto(`/dashboard/media/${id}`);
  await page.evaluate("document.querySelector('#upload-content').dataset.partBytes = 1000");
  const broken = page.waitForEvent('requestfailed');
  await drop(zone(page, 'upload-content'), [FILM]);
  await broken;
  await page.getByRole('button', { name: 'Cancel Evening news.mp4' }).click();
  await page.clock.runFor(60_000);
  await page.evaluate("fetch('/dashboard')");
  expect(tries).toBe(1);
  browser.forgive(/ERR_CONNECTION_RESET/);
});

test('typed text stays in a form while states around it change', async () => {
  const { page, context, post, createReady } = await open({ screen: 'laptop' });
  const { id } = await createReady();
  await post(`media/${id}/tracks`, { label: 'English', position: '0', track_kind: 'captions' });
  await page.goto(`/dashboard/media/${id}`);
  await page.getByLabel('Title').fill('Late news');
  await page.locator('summary', { hasText: 'Change' }).click();
  const label = page.locator('#tracks').getByLabel('Label');
  await label.fill('British English');
  await page.getByRole('heading', { name: 'Renditions' }).click();
  const [track] = context.state.textTracks.all();
  await post(`media/${id}/tracks/${track?.id}/publish`);
  await post(`media/${id}/source`, { source_url: 'https://cdn.example.com/b.mp4' });
  await page.evaluate(REFRESH);
  await page.locator('#content-facts').getByText('https://cdn.example.com/b.mp4').waitFor();
  expect(await label.inputValue()).toBe('British English');
  expect(await page.getByLabel('Title').inputValue()).toBe('Late news');
});
