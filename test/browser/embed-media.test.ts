import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Page } from 'playwright-core';
import { servePage } from '../support/browser';
import { startBrowser } from '../support/dashboard-browser';
import { CLIP, type ClipKeys, FAIRPLAY_KEYS, KEYS, packageClip, serveMedia } from '../support/packaged-clip';
import { decoded } from '../support/real-player';
import { startEmulator, type TestEmulator } from '../support/start-emulator';
import { until } from '../support/until';

jest.setTimeout(60_000);

const browser = startBrowser();
let emulator: TestEmulator;

beforeEach(async () => {
  emulator = await startEmulator();
});

/** What the license server knows. */
function issue(...all: readonly ClipKeys[]): void {
  for (const { keyId, key } of all) emulator.context.issuedKeys.remember({ keyId, key });
}

async function open(
  item: object,
  options = '',
  prepare: (page: Page) => Promise<unknown> = async () => undefined,
): Promise<Page> {
  const url = await servePage(`<!doctype html><html lang="en"><title>Publisher</title>
    <body style="margin:0"><div id="one"></div><script src="${emulator.url}/embed/channel.js"></script>
    <script>
      window.seen = [];
      document.addEventListener('playback', ({ detail }) => seen.push(detail));
      channelEmbed.setup({ item: ${JSON.stringify(item)}, element: '#one', ${options} });
    </script></html>`);
  const page = await browser.open({ viewport: { width: 640, height: 360 } });
  await prepare(page);
  await page.goto(url);
  return page;
}

const seen = (page: Page): Promise<{ state: string }[]> => page.evaluate('seen');

async function untilState(page: Page, state: string): Promise<object> {
  let found: object | undefined;
  await until(async () => {
    found = (await seen(page)).find((each) => each.state === state);
    return found !== undefined;
  });
  return found ?? {};
}

/** For a person to look at. */
async function screenshot(page: Page, name: string): Promise<void> {
  const folder = join(tmpdir(), 'channel-embed');
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

const clearKey = () => ({ clearkey: { url: `${emulator.url}/keyprovider/clearkey` } });

async function dashItem(keys: ClipKeys | undefined) {
  const file = `${await serveMedia(await packageClip('dash', keys))}/m.mpd`;
  return { title: 'Test clip', sources: [{ file, type: 'application/dash+xml', drm: clearKey() }] };
}

test('plays DASH with the license of the DRM side', async () => {
  issue(KEYS);
  const page = await open(await dashItem(KEYS));
  expect(await untilState(page, 'playing')).toEqual({
    state: 'playing',
    format: 'dash',
    isLive: false,
    isEncrypted: true,
    keySystem: 'org.w3.clearkey',
    keyIds: [asUuid(KEYS.keyId)],
  });
  await until(async () => (await decoded(page)).frames > 50 && (await decoded(page)).audioBytes > 10_000);
  await screenshot(page, 'media-dash');
});

async function hlsItem(keys: ClipKeys | undefined, keyIds?: readonly Buffer[]) {
  const file = `${await serveMedia(await packageClip('hls', keys))}/master.m3u8`;
  const { clearkey } = clearKey();
  const drm = {
    fairplay: { processSpcUrl: `${emulator.url}/spc`, certificateUrl: `${emulator.url}/certificate` },
    clearkey: { ...clearkey, ...(keyIds && { keyIds: keyIds.map((each) => each.toString('base64url')) }) },
  };
  return { title: 'Test clip', sources: [{ file, type: 'application/vnd.apple.mpegurl', drm }] };
}

test.each([
  ['that the document names', [FAIRPLAY_KEYS.keyId]],
  ['that is found in its initialization segments', undefined],
])('plays HLS that names FairPlay with the license for the key id %s', async (_from, keyIds) => {
  issue(FAIRPLAY_KEYS);
  const page = await open(await hlsItem(FAIRPLAY_KEYS, keyIds));
  expect(await untilState(page, 'playing')).toMatchObject({
    format: 'hls',
    isEncrypted: true,
    keySystem: 'org.w3.clearkey',
  });
  await until(async () => (await decoded(page)).frames > 50 && (await decoded(page)).audioBytes > 10_000);
  await screenshot(page, 'media-hls');
});

const swapped = (keyId: Buffer) =>
  Buffer.from(
    [3, 2, 1, 0, 5, 4, 7, 6, ...Array.from({ length: 8 }, (_, at) => at + 8)].map((at) => keyId[at] ?? 0),
  );

const asUuid = (keyId: Buffer) =>
  keyId.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const OTHER = Buffer.from('0f0e0d0c0b0a09080706050403020100', 'hex');

const FORMATS = [
  ['dash', KEYS, (keys?: ClipKeys) => dashItem(keys)],
  ['hls', FAIRPLAY_KEYS, (keys?: ClipKeys) => hlsItem(keys, keys && [keys.keyId])],
] as const;

async function showsFailure(page: Page, name: string, expected: object, sentence: string): Promise<void> {
  expect(await untilState(page, 'failed')).toMatchObject(expected);
  expect(await decoded(page)).toMatchObject({ frames: 0 });
  expect(await page.getByText(sentence).isVisible()).toBe(true);
  await screenshot(page, name);
}

test.each(FORMATS)('says of a wrong key in %s that the license has another', async (format, keys, itemOf) => {
  issue({ keyId: keys.keyId, key: OTHER });
  const page = await open(await itemOf(keys));
  const sentence = 'encrypted with another key than the license has';
  await showsFailure(page, `media-wrong-key-${format}`, { reason: 'wrongKey' }, sentence);
});

test.each(FORMATS)(
  'says of a key id in another byte order in %s that it has no license',
  async (format, keys, itemOf) => {
    issue(keys);
    const keyId = swapped(keys.keyId);
    const page = await open(await itemOf({ keyId, key: keys.key }));
    const uuid = asUuid(keyId);
    const sentence = `There is no license for the key id ${uuid}`;
    await showsFailure(page, `media-swapped-${format}`, { reason: 'noLicense', detail: uuid }, sentence);
  },
);

test.each(FORMATS)('names the key id in %s that has no license', async (format, keys, itemOf) => {
  const page = await open(await itemOf(keys));
  const uuid = asUuid(keys.keyId);
  const sentence = `There is no license for the key id ${uuid}`;
  await showsFailure(page, `media-no-license-${format}`, { reason: 'noLicense', detail: uuid }, sentence);
});

test.each(FORMATS)(
  'plays %s that is not encrypted, and tells that it is not',
  async (_format, keys, itemOf) => {
    issue(keys);
    const page = await open(await itemOf(undefined));
    expect(await untilState(page, 'playing')).toMatchObject({
      isEncrypted: false,
      keySystem: '',
      keyIds: [],
    });
  },
);

test.each(FORMATS)(
  'says of encrypted %s without a license server that it cannot be decrypted',
  async (format, keys, itemOf) => {
    const { title, sources } = await itemOf(keys);
    const page = await open({ title, sources: sources.map(({ drm: _drm, ...source }) => source) });
    const sentence = 'The stream is encrypted, and no license server';
    await showsFailure(page, `media-no-system-${format}`, { reason: 'noKeySystem' }, sentence);
  },
);

const tracksOf = (page: Page): Promise<unknown> =>
  page.evaluate(`[...document.querySelector('video').textTracks]
    .filter(({ kind, label }) => kind !== 'metadata' && label !== 'Shaka Player TextTrack')
    .map(({ kind, label, language }) => ({ kind, label, language }))`);

const VTT = 'WEBVTT\n\n00:00.000 --> 00:10.000\nA line of text\n';

test('offers the text tracks of the item', async () => {
  issue(KEYS);
  const item = await dashItem(KEYS);
  const tracks = [
    { kind: 'captions', file: `${emulator.url}/captions.vtt`, label: 'English', language: 'en' },
  ];
  const page = await open({ ...item, tracks }, '', (each) =>
    each.route('**/captions.vtt', (route) =>
      route.fulfill({ body: VTT, contentType: 'text/vtt', headers: { 'access-control-allow-origin': '*' } }),
    ),
  );
  await untilState(page, 'playing');
  await until(async () => JSON.stringify(await tracksOf(page)).includes('English'));
  expect(await tracksOf(page)).toContainEqual({ kind: 'captions', label: 'English', language: 'en' });
});

test('plays what is not packaged as it was uploaded', async () => {
  const media = await serveMedia(dirname(CLIP));
  const sources = [
    { file: `${emulator.url}/manifests/nothing0.m3u8`, type: 'application/vnd.apple.mpegurl' },
    { file: `${media}/clip.mp4`, type: 'video/mp4' },
  ];
  const page = await open({ title: 'Uploaded', sources });
  browser.forgive(/404/);
  expect(await untilState(page, 'playing')).toMatchObject({ format: 'file', isEncrypted: false });
  await until(async () => (await decoded(page)).frames > 10);
});

test('waits for the first segment, and then plays by itself', async () => {
  issue(KEYS);
  const item = await dashItem(KEYS);
  let isThere = false;
  const page = await open(item, '', (each) =>
    each.route('**/m.mpd', (route) => (isThere ? route.continue() : route.fulfill({ status: 404 }))),
  );
  await untilState(page, 'pictureless');
  expect(await page.getByText('The video is being prepared').isVisible()).toBe(true);
  isThere = true;
  await untilState(page, 'playing');
  expect(await page.getByText('The video is being prepared').count()).toBe(0);
});

test('says that a stream has stopped, and goes on with it when it comes again', async () => {
  issue(KEYS);
  const item = await dashItem(KEYS);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const page = await open(item, '', (each) =>
    each.route(/[va]3\.m4s$/, async (route) => {
      await held;
      await route.continue();
    }),
  );
  await untilState(page, 'stalled');
  expect(await page.getByText('The picture has stopped').isVisible()).toBe(true);
  await screenshot(page, 'media-stalled');
  release();
  await until(async () => (await seen(page)).filter(({ state }) => state === 'playing').length === 2);
  expect(await page.getByText('The picture has stopped').count()).toBe(0);
});

test('tries again when the right key is there', async () => {
  issue({ keyId: KEYS.keyId, key: OTHER });
  const page = await open(await dashItem(KEYS));
  await untilState(page, 'failed');
  issue(KEYS);
  await untilState(page, 'playing');
  await until(async () => (await decoded(page)).frames > 10);
});

test('plays to the end, and once more when it is asked to', async () => {
  issue(KEYS);
  const page = await open(await dashItem(KEYS));
  await untilState(page, 'playing');
  await page.evaluate("document.querySelector('video').currentTime = 11");
  await untilState(page, 'ended');
  await page.evaluate("document.querySelector('video').play()");
  await until(() =>
    page.evaluate("(({ currentTime, ended }) => !ended && currentTime < 6)(document.querySelector('video'))"),
  );
});
