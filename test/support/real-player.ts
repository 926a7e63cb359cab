import { execFileSync } from 'node:child_process';
import type { Page } from 'playwright-core';
import { screenshot } from './chromium';
import type { DashboardBrowser } from './dashboard-browser';
import type { RealChain } from './real-chain';
import type { Colour } from './real-encoder';

/** The size to which a screenshot is reduced; each cell is the mean of what it covers. */
const COLUMNS = 32;
const ROWS = 18;

const COLOURS: Readonly<Record<Colour | 'white' | 'black' | 'grey', readonly [number, number, number]>> = {
  red: [255, 0, 0],
  lime: [0, 255, 0],
  blue: [0, 0, 255],
  yellow: [255, 255, 0],
  cyan: [0, 255, 255],
  magenta: [255, 0, 255],
  white: [255, 255, 255],
  black: [0, 0, 0],
  grey: [128, 128, 128],
};

/** Opens pages of the chain's emulator, in which a player has the shape of the picture. */
export function playerPages(browser: Pick<DashboardBrowser, 'open'>, chain: Pick<RealChain, 'url'>) {
  const open = async (path: string): Promise<Page> => {
    const page = await browser.open({ viewport: { width: 480, height: 420 } });
    await page.goto(`${chain.url('emulator')}${path}`);
    return page;
  };
  const channelPage = (id: string, format: 'dash' | 'hls') =>
    open(`/embed/channel.html?channelId=${id}&format=${format}`);
  return { open, channelPage };
}

/** The key ids (base64url) for which a page asks the license server from now on. */
export function licensedKeys(page: Page): ReadonlySet<string> {
  const licensed = new Set<string>();
  page.on('request', (request) => {
    if (request.method() !== 'POST' || !request.url().endsWith('/clearkey')) return;
    for (const kid of request.postDataJSON().kids) licensed.add(kid);
  });
  return licensed;
}

/** The output of the decoders of a page's player. As text: the tests are compiled without the DOM's types. */
export const decoded = (page: Page): Promise<{ frames: number; audioBytes: number }> =>
  page.evaluate(`(() => {
    const video = document.querySelector('video');
    return {
      frames: video ? video.getVideoPlaybackQuality().totalVideoFrames : 0,
      audioBytes: video ? video.webkitAudioDecodedByteCount : 0,
    };
  })()`);

/** The picture of a player: the names of the colours of both halves, and the cells between them and the upper edge. */
interface Shown {
  readonly halves: readonly [string, string];
  readonly upper: Buffer;
}

/** @param page one whose player has the shape of the picture. */
async function shownBy(page: Page): Promise<Shown> {
  const png = await page.locator('video').screenshot();
  const cells = execFileSync(
    'ffmpeg',
    [
      ...['-hide_banner', '-loglevel', 'error', '-f', 'png_pipe', '-i', 'pipe:0'],
      ...['-vf', `scale=${COLUMNS}:${ROWS}:flags=area`, '-pix_fmt', 'rgb24', '-f', 'rawvideo', 'pipe:1'],
    ],
    { input: png, env: { PATH: process.env.PATH } },
  );
  const nameAt = (column: number) => nameOf(cells.subarray((10 * COLUMNS + column) * 3).subarray(0, 3));
  return { halves: [nameAt(6), nameAt(26)], upper: cells.subarray(2 * COLUMNS * 3, 6 * COLUMNS * 3) };
}

function nameOf(cell: Buffer): string {
  const distance = ([red, green, blue]: readonly [number, number, number]) =>
    ((cell[0] ?? 0) - red) ** 2 + ((cell[1] ?? 0) - green) ** 2 + ((cell[2] ?? 0) - blue) ** 2;
  const [[name] = ['nothing']] = Object.entries(COLOURS).sort(
    ([, one], [, other]) => distance(one) - distance(other),
  );
  return name;
}

/** How much two screenshots differ, as the largest difference of a cell. */
function movement(one: Shown, other: Shown): number {
  return Math.max(...one.upper.map((value, index) => Math.abs(value - (other.upper[index] ?? 0))));
}

/** The page's text about the playback, below the player. */
export const said = (page: Page): Promise<string> =>
  page.evaluate(`document.querySelector('#playback')?.textContent ?? ''`);

/** The text in the player. */
export const messageOf = (page: Page): Promise<string> =>
  page.evaluate(`document.querySelector('#stage [role=status]')?.innerText ?? ''`);

/** `waiting`, `active`, `media`: what the embed shows. */
export const stateOf = (page: Page): Promise<string> =>
  page.evaluate(`document.querySelector('#stage [data-state]')?.dataset.state ?? ''`);

/**
 * Waits until a player shows this picture moving, with sound: frames and pieces of sound come out of the decoders, and a
 * screenshot has the colours. Where time alone goes on, nothing is seen. @throws Error that says what was seen.
 */
export async function untilPlays(
  page: Page,
  halves: readonly [Colour, Colour],
  withinMs = 30_000,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  const start = await decoded(page);
  let seen = start;
  let before: Shown | undefined;
  let shown: Shown | undefined;
  for (;;) {
    // A short replay may end before all is seen.
    await page.evaluate(`document.querySelector('video')?.ended && document.querySelector('video').play()`);
    const has = await page.locator('video').count();
    seen = await decoded(page);
    // A player that was created again counts from 0.
    const from = seen.frames < start.frames ? { frames: 0, audioBytes: 0 } : start;
    const isDecoding = seen.frames - from.frames >= 15 && seen.audioBytes - from.audioBytes >= 4000;
    if (has > 0 && isDecoding) {
      before = shown;
      shown = await shownBy(page);
      const isRight = shown.halves.join() === halves.join();
      if (isRight && before && movement(before, shown) > 60) return;
    }
    if (Date.now() > deadline) {
      await screenshot(page, `chain-pictures/failed-${Date.now()}`);
      const all = { ...seen, halves: shown?.halves, said: await said(page), message: await messageOf(page) };
      throw new Error(`The player did not show ${halves.join(' and ')}: ${JSON.stringify(all)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
