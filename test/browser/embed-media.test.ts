import { dirname } from 'node:path';
import type { Page } from 'playwright-core';
import { swapKeyIdOrder } from '../../src/drm/bytes';
import { afterAllTests, onceForAll } from '../support/after-test';
import { screenshot } from '../support/chromium';
import { startBrowser } from '../support/dashboard-browser';
import { CLIP, type ClipKeys, FAIRPLAY_KEYS, KEYS, servedClip, serveMedia } from '../support/packaged-clip';
import { decoded } from '../support/real-player';
import { serve } from '../support/serve';
import { startEmulator, type TestEmulator } from '../support/start-emulator';
import { type OwnBrowser, testsTogether } from '../support/tests-together';
import { gate, until } from '../support/until';

jest.setTimeout(60_000);

const browser = startBrowser(true);
const start = onceForAll(startEmulator);
let emulator: TestEmulator;

/** Where pages are served at another origin than the platform's. */
let publisher: string;
const served: string[] = [];

beforeAll(async () => {
  emulator = await start();
  const { url } = await serve(
    ({ url = '' }, response) =>
      void response.setHeader('content-type', 'text/html').end(served[Number(url.slice(1))]),
    afterAllTests,
  );
  publisher = url;
  issue(KEYS, FAIRPLAY_KEYS, { keyId: OTHER_ID, key: OTHER });
});

/** Makes a browser block autoplay. */
const BLOCKED = `Object.defineProperty(HTMLMediaElement.prototype, 'autoplay', { set() {} });
  HTMLMediaElement.prototype.play = async () => { throw new DOMException('', 'NotAllowedError'); };`;

/** Gives the license server these keys. */
function issue(...all: readonly ClipKeys[]): void {
  for (const { keyId, key } of all) emulator.context.issuedKeys.remember({ keyId, key });
}

/** Opens a page of a publisher with an embed of each item, in the element of its name. */
async function open(
  own: OwnBrowser,
  items: Readonly<Record<string, object>>,
  prepare: (page: Page) => Promise<unknown> = async () => undefined,
): Promise<Page> {
  const names = Object.keys(items);
  const page = await own.open({ viewport: { width: 640, height: 360 * names.length } });
  await prepare(page);
  const setUp = ([name, item]: [string, object]) =>
    `channelEmbed.setup({ item: ${JSON.stringify(item)}, element: '#${name}' });`;
  const place = served.push(`<!doctype html><html lang="en"><title>Publisher</title>
    <body style="margin:0">${names.map((name) => `<div id="${name}"></div>`).join('')}
    <script src="${emulator.url}/embed/channel.js"></script>
    <script>
      window.seen = [];
      document.addEventListener('playback', ({ detail, target }) => seen.push([target.id, detail]));
      ${Object.entries(items).map(setUp).join('\n')}
    </script></html>`);
  await page.goto(`${publisher}/${place - 1}`);
  return page;
}

const seen = async (page: Page, of = 'one'): Promise<{ state: string }[]> => {
  const all = await page.evaluate<[string, { state: string }][]>('seen');
  return all.filter(([name]) => name === of).map(([, detail]) => detail);
};

async function untilState(page: Page, state: string, of?: string): Promise<object> {
  let found: object | undefined;
  await until(async () => {
    found = (await seen(page, of)).find((each) => each.state === state);
    return found !== undefined;
  });
  return found ?? {};
}

const clearKey = () => ({ clearkey: { url: `${emulator.url}/keyprovider/clearkey` } });

async function dashItem(keys: ClipKeys | undefined) {
  const file = await servedClip('dash', keys);
  return { title: 'Test clip', sources: [{ file, type: 'application/dash+xml', drm: clearKey() }] };
}

async function hlsItem(keys: ClipKeys | undefined, keyIds?: readonly Buffer[]) {
  const file = await servedClip('hls', keys);
  const { clearkey } = clearKey();
  const drm = {
    fairplay: { processSpcUrl: `${emulator.url}/spc`, certificateUrl: `${emulator.url}/certificate` },
    clearkey: { ...clearkey, ...(keyIds && { keyIds: keyIds.map((each) => each.toString('base64url')) }) },
  };
  return { title: 'Test clip', sources: [{ file, type: 'application/vnd.apple.mpegurl', drm }] };
}

const untilDecodes = (page: Page) =>
  until(async () => (await decoded(page)).frames > 30 && (await decoded(page)).audioBytes > 10_000);

const asUuid = (keyId: Buffer) =>
  keyId.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** A key id of which the license server knows another key than the clip has. */
const OTHER_ID = Buffer.from('0a1b2c3d4e5f40718293a4b5c6d7e8f9', 'hex');
const OTHER = Buffer.from('0f0e0d0c0b0a09080706050403020100', 'hex');

/** Of one format, what can go wrong with keys, each in an embed of its own. */
async function showsFailures(
  own: OwnBrowser,
  keys: ClipKeys,
  itemOf: (keys?: ClipKeys) => ReturnType<typeof dashItem | typeof hlsItem>,
  format: string,
): Promise<void> {
  const keyId = swapKeyIdOrder(keys.keyId);
  const { title, sources } = await itemOf(keys);
  const clear = await itemOf();
  const page = await open(own, {
    wrong: await itemOf({ ...keys, keyId: OTHER_ID }),
    swapped: await itemOf({ ...keys, keyId }),
    unlicensed: { title, sources: sources.map(({ drm: _drm, ...source }) => source) },
    // What is no address is left out.
    clear: { ...clear, image: 'http://[', sources: [{ file: 'http://[' }, ...clear.sources] },
  });
  const uuid = asUuid(keyId);
  for (const [name, reason, sentence] of [
    ['wrong', { reason: 'wrongKey' }, 'encrypted with another key than the license has'],
    ['swapped', { reason: 'noLicense', detail: uuid }, `There is no license for the key id ${uuid}`],
    ['unlicensed', { reason: 'noKeySystem' }, 'or the system does not take the codec of the stream'],
  ] as const) {
    expect([name, await untilState(page, 'failed', name)]).toMatchObject([name, reason]);
    expect(await page.locator(`#${name}`).getByText(sentence).isVisible()).toBe(true);
    expect((await seen(page, name)).map(({ state }) => state)).not.toContain('playing');
  }
  expect(await untilState(page, 'playing', 'clear')).toMatchObject({
    isEncrypted: false,
    keySystem: '',
    keyIds: [],
  });
  await screenshot(page, `channel-embed/media-keys-${format}`);
}

const tracksOf = (page: Page): Promise<unknown> =>
  page.evaluate(`[...document.querySelector('video').textTracks]
    .filter(({ kind, label }) => kind !== 'metadata' && label !== 'Shaka Player TextTrack')
    .map(({ kind, label, language }) => ({ kind, label, language }))`);

const VTT = 'WEBVTT\n\n00:00.000 --> 00:10.000\nA line of text\n';

describe('the content', () => {
  testsTogether(browser, {
    'plays DASH with the license of the DRM side, and offers the text tracks of the item': async (own) => {
      const tracks = [
        { kind: 'captions', file: `${emulator.url}/captions.vtt`, label: 'English', language: 'en' },
      ];
      const page = await open(own, { one: { ...(await dashItem(KEYS)), tracks } }, (each) =>
        each.route('**/captions.vtt', (route) =>
          route.fulfill({
            body: VTT,
            contentType: 'text/vtt',
            headers: { 'access-control-allow-origin': '*' },
          }),
        ),
      );
      expect(await untilState(page, 'playing')).toEqual({
        state: 'playing',
        format: 'dash',
        isLive: false,
        isEncrypted: true,
        keySystem: 'org.w3.clearkey',
        keyIds: [asUuid(KEYS.keyId)],
      });
      await untilDecodes(page);
      await screenshot(page, 'channel-embed/media-dash');
      await until(async () => JSON.stringify(await tracksOf(page)).includes('English'));
      expect(await tracksOf(page)).toContainEqual({ kind: 'captions', label: 'English', language: 'en' });
    },

    'plays HLS that names FairPlay with the license for the key id that the document names, or that is found in its initialization segments':
      async (own) => {
        for (const keyIds of [[FAIRPLAY_KEYS.keyId], undefined]) {
          const page = await open(own, { one: await hlsItem(FAIRPLAY_KEYS, keyIds) });
          expect(await untilState(page, 'playing')).toMatchObject({
            format: 'hls',
            isEncrypted: true,
            keySystem: 'org.w3.clearkey',
          });
          await untilDecodes(page);
          await screenshot(page, 'channel-embed/media-hls');
        }
      },

    'says of DASH with a wrong key, no license or no license server why it is not decrypted, and of clear DASH that it is not encrypted':
      (own) => showsFailures(own, KEYS, dashItem, 'dash'),

    'says of HLS with a wrong key, no license or no license server why it is not decrypted, and of clear HLS that it is not encrypted':
      (own) => showsFailures(own, FAIRPLAY_KEYS, (keys) => hlsItem(keys, keys && [keys.keyId]), 'hls'),

    'shows the first picture where nothing plays by itself, and, as in Firefox, no picture is counted before it plays':
      async (own) => {
        const page = await open(own, { one: await dashItem(KEYS) }, (each) =>
          each.addInitScript(`${BLOCKED}
            HTMLVideoElement.prototype.getVideoPlaybackQuality = () => ({ totalVideoFrames: 0 });`),
        );
        await untilState(page, 'playing');
        expect(await page.evaluate("document.querySelector('video').paused")).toBe(true);
      },

    'shows the player where nothing plays by itself, and nothing is loaded before': async (own) => {
      const sources = [{ file: `${emulator.url}/never.mp4`, type: 'video/mp4' }];
      const page = await open(own, { one: { title: 'Blocked', sources } }, async (each) => {
        await each.addInitScript(BLOCKED);
        await each.route('**/never.mp4', () => undefined);
      });
      await page.locator('video:not([inert])').waitFor();
      expect(await page.evaluate("document.querySelector('video').style.opacity")).toBe('1');
    },

    'plays what is not packaged as it was uploaded': async (own) => {
      const media = await serveMedia(dirname(CLIP));
      const sources = [
        { file: `${emulator.url}/manifests/nothing0.m3u8`, type: 'application/vnd.apple.mpegurl' },
        { file: `${media}/clip.mp4`, type: 'video/mp4' },
      ];
      let asked = 0;
      const page = await open(own, { one: { title: 'Uploaded <b>', sources } }, async (each) =>
        each.on('request', (request) => {
          if (request.url().endsWith('/clip.mp4')) asked += 1;
        }),
      );
      expect(await untilState(page, 'playing')).toMatchObject({ format: 'file', isEncrypted: false });
      await until(async () => (await decoded(page)).frames > 10);
      expect(asked).toBe(1);
      expect(await page.locator('video').getAttribute('aria-label')).toBe('Uploaded <b>');
    },
  });
});

describe('changes', () => {
  testsTogether(browser, {
    'waits for the first segment, and then plays by itself': async (own) => {
      let isThere = false;
      const page = await open(own, { one: await dashItem(KEYS) }, (each) =>
        each.route('**/m.mpd', (route) => (isThere ? route.continue() : route.fulfill({ status: 404 }))),
      );
      await untilState(page, 'pictureless');
      expect(await page.getByText('The video is being prepared').isVisible()).toBe(true);
      isThere = true;
      await untilState(page, 'playing');
      expect(await page.getByText('The video is being prepared').count()).toBe(0);
    },

    'says that a stream has stopped, and goes on with it when it comes again': async (own) => {
      const { opened: held, open: release } = gate();
      const page = await open(own, { one: await dashItem(KEYS) }, (each) =>
        each.route(/[va]3\.m4s$/, async (route) => {
          await held;
          await route.continue();
        }),
      );
      await untilState(page, 'stalled');
      expect(await page.getByText('The picture has stopped').isVisible()).toBe(true);
      await screenshot(page, 'channel-embed/media-stalled');
      release();
      await until(async () => (await seen(page)).filter(({ state }) => state === 'playing').length === 2);
      expect(await page.getByText('The picture has stopped').count()).toBe(0);
    },

    'tries again when the right key is there': async (own) => {
      const keyId = Buffer.from('1b2c3d4e5f60418293a4b5c6d7e8f90a', 'hex');
      issue({ keyId, key: OTHER });
      const page = await open(own, { one: await dashItem({ ...KEYS, keyId }) });
      await untilState(page, 'failed');
      issue({ ...KEYS, keyId });
      await untilState(page, 'playing');
      await until(async () => (await decoded(page)).frames > 10);
    },

    'plays to the end, and once more when it is asked to': async (own) => {
      const page = await open(own, { one: await dashItem(KEYS) });
      await untilState(page, 'playing');
      await page.evaluate("document.querySelector('video').currentTime = 11");
      await untilState(page, 'ended');
      await page.evaluate("document.querySelector('video').play()");
      await until(() =>
        page.evaluate(
          "(({ currentTime, ended }) => !ended && currentTime < 6)(document.querySelector('video'))",
        ),
      );
    },
  });
});
