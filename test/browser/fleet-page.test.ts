import { join } from 'node:path';
import fs from 'fs-extra';
import type { BrowserContextOptions } from 'playwright-core';
import { FLEET_STATES, type FleetState, LACK_REASONS, type LackReason } from '../../src/api/fleet';
import type { FleetAnswer, FleetPackager } from '../../src/api/fleet-answers';
import { temporaryFolder } from '../support/after-test';
import { openPage } from '../support/browser';
import { screenshot } from '../support/chromium';
import { FAINT_TEXTS } from '../support/faint-texts';
import { createFakeFleet, PACKAGER } from '../support/fake-fleet';
import { CENC_ONLY } from '../support/post-manual';
import { API_KEY, startSidecar } from '../support/start-sidecar';
import { gate } from '../support/until';

jest.setTimeout(60_000);

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const LAPTOP = { viewport: { width: 1280, height: 900 } };

/** A packager with which all is well. */
const packagerOf = (name: string, more: Partial<FleetPackager> = {}): FleetPackager => ({
  ...PACKAGER,
  ...{ name, applied: 7, clock_ahead_ms: 12 },
  ...more,
});

const lacking = (why: FleetPackager['lacks'][number]['why'], ...streams: string[]) => ({
  lacks: streams.map((streamid) => ({ streamid, why })),
  lacking: streams.length,
});

/** A fleet with which hardly anything is well. */
const TROUBLED: Partial<FleetAnswer> = {
  missing: 3,
  compacted: false,
  engine: [
    {
      url: 'https://etcd-1.example.com:2379',
      version: '3.4.23',
      leader: false,
      size: 24_576,
      quota: 2 ** 31,
    },
    {
      url: 'https://etcd-2.example.com:2379',
      version: '3.4.23',
      leader: true,
      size: 1_900_000_000,
      size_in_use: 1_000_000,
      quota: 2 ** 31,
      alarms: ['NOSPACE'],
    },
    { url: 'https://etcd-3.example.com:2379', fault: 'connect ECONNREFUSED 10.0.0.3:2379' },
    { url: 'https://etcd-4.example.com:2379' },
  ],
  packagers: [
    packagerOf('origin-1', { propagation_ms: [12, 18, 25, 31, 90] }),
    packagerOf('origin-2', { state: 'wrong_secret', ...lacking('unreadable', 'news', 'live/channel-2') }),
    packagerOf('origin-3', {
      live: false,
      behind: 2,
      behind_seconds: 310,
      ...lacking('behind', 'news', 'live/channel-10'),
    }),
    packagerOf('berlin-1', {
      streams: ['berlin-', 'news'],
      clock_ahead_ms: 3_600_000,
      propagation_ms: [41, 44, 160, 2300],
      lacks: [
        { streamid: 'news-of-the-morning-with-a-name-that-is-longer-than-a-phone-is-wide', why: 'kept' },
        { streamid: 'berlin-7', why: 'failed' },
        { streamid: 'berlin-8', why: 'older' },
      ],
      lacking: 3000,
    }),
  ],
};

/** Opens `/fleet` of a sidecar in a fleet of three; nothing is asked for yet. */
async function openFleetPage(options: BrowserContextOptions = LAPTOP) {
  const fleet = createFakeFleet();
  const sidecar = await startSidecar({}, undefined, { fleet: fleet.open });
  return { ...(await openPageOf(sidecar.url, options)), fleet, sidecar };
}

async function openPageOf(url: string, options: BrowserContextOptions = LAPTOP) {
  const opened = await openPage(options);
  const { page, untilTrue } = opened;
  /** The requests to the sidecar, and to others. */
  const asked: { readonly path: string; readonly apiKey: string | undefined }[] = [];
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    const address = request.url();
    if (address.startsWith(`${url}/`))
      asked.push({ path: address.slice(url.length), apiKey: request.headers()['x-api-key'] });
    else if (!address.startsWith('data:')) elsewhere.push(address);
  });
  await page.goto(`${url}/fleet`);
  const giveKey = async (apiKey = API_KEY) => {
    await page.getByLabel('API key').fill(apiKey);
    await page.getByRole('button', { name: 'Show the fleet' }).click();
  };
  return {
    ...opened,
    asked,
    elsewhere,
    giveKey,
    /** Gives the key, and waits for the fleet. */
    async enter() {
      await giveKey();
      await untilTrue(() => page.getByRole('heading', { name: 'Packagers', exact: true }).isVisible());
    },
    /** The texts of a table's cells, row by row. */
    rows: (id: string): Promise<string[][]> =>
      page.evaluate(
        `[...document.querySelectorAll('#${id} tbody tr')].map((row) => [...row.cells].map(({ innerText }) => innerText.replace(/\\s+/g, ' ').trim()))`,
      ),
  };
}

const LOOKS: [string, BrowserContextOptions][] = [
  ['desktop-light', { ...LAPTOP, colorScheme: 'light' }],
  ['phone-dark', { ...PHONE, colorScheme: 'dark' }],
];

/** Labels of one word in two lines. */
const BROKEN_BADGES =
  "[...document.querySelectorAll('.badge')].filter((badge) => badge.offsetHeight > 32).map((badge) => badge.textContent).filter((text) => !text.includes(' '))";

const ofFleet = ({ path }: { readonly path: string }) => path === '/api/fleet';

describe.each(LOOKS)('the page on a screen: %s', (name, options) => {
  it('loads nothing from elsewhere, breaks no policy, is no wider than the screen and has letters that stand out', async () => {
    const { page, complaints, elsewhere, enter, fleet, sidecar, until } = await openFleetPage(options);
    const isFit = async () => {
      const width = page.viewportSize()?.width;
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
      expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
      expect(await page.evaluate(BROKEN_BADGES)).toEqual([]);
    };
    await isFit();
    await screenshot(page, `fleet-page/${name}-api-key`);
    fleet.hold('origin-2', 'kept');
    await sidecar.api.post('/api/keyfile/news').send(CENC_ONLY);
    fleet.say(TROUBLED);
    await enter();
    await page.getByLabel('Stream id').fill('news');
    await page.getByRole('button', { name: 'Look', exact: true }).click();
    await until('has a key file');
    await isFit();
    await screenshot(page, `fleet-page/${name}-troubled`);
    fleet.say({});
    fleet.release('origin-2');
    await until('Every packager has its streams');
    await isFit();
    expect([complaints, elsewhere]).toEqual([[], []]);
  });
});

describe('the API key', () => {
  it('is asked for, sent to the sidecar, and kept in memory alone: it is forgotten with the page', async () => {
    const { page, enter, asked, sidecar } = await openFleetPage();
    expect(asked.filter(({ path }) => path.startsWith('/api'))).toEqual([]);
    await enter();
    expect(asked.filter(({ path }) => path.startsWith('/api'))[0]).toEqual({
      path: '/api/fleet',
      apiKey: API_KEY,
    });
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state])',
    );
    expect(kept).toBe(JSON.stringify([{}, {}, '', `${sidecar.url}/fleet`, null]));
    expect(await page.evaluate('indexedDB.databases()')).toEqual([]);
    expect(
      await page.evaluate("[...document.querySelectorAll('input')].map(({ value }) => value).join('')"),
    ).toBe('');
    expect(await page.content()).not.toContain(API_KEY);
    await page.reload();
    expect(await page.getByLabel('API key').isVisible()).toBe(true);
    expect(await page.locator('#fleet').isVisible()).toBe(false);
  });

  it('is forgotten on demand, and nothing is asked after that', async () => {
    const { page, enter, fleet, asked, until, untilTrue } = await openFleetPage();
    await enter();
    fleet.say({ state: 'wrong_secret' });
    await page.getByLabel('Stream id').fill('no-such-stream');
    await page.keyboard.press('Enter');
    await until('The fleet has no entry for this stream.');
    await until('Put the secret of the fleet into');
    expect(await page.title()).toBe('(1) Fleet');
    await page.getByRole('button', { name: 'Forget the key' }).click();
    const left = "[document.title, document.querySelector('#where').textContent].join()";
    expect(await page.evaluate(left)).not.toMatch(/\(1\)|no entry/);
    expect(await page.locator('#where-stream').inputValue()).toBe('');
    const before = asked.length;
    for (let seconds = 0; seconds < 10; seconds += 1) await page.clock.fastForward(1000);
    expect([await page.getByLabel('API key').isVisible(), asked.length - before]).toEqual([true, 0]);
    await enter();
    await untilTrue(() => asked.length > before);
    // The browser keeps a page that is left, to go back to it.
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))");
    expect(await page.getByLabel('API key').isVisible()).toBe(true);
  });

  it('says what is wrong with a key that is none, or that does not reach all streams, and asks again', async () => {
    const apiKeysFile = join(await temporaryFolder(), 'keys.json');
    const key = 'a-key-of-a-customer-of-the-tests';
    await fs.writeJson(apiKeysFile, { keys: [{ name: 'customer', key, streams: ['customer/'] }] });
    const { fleet } = await openFleetPage();
    const { url } = await startSidecar({ apiKeysFile }, undefined, { fleet: fleet.open });
    const { page, giveKey, until } = await openPageOf(url);
    await giveKey('another-key-that-is-none');
    await until('This is not an API key of this sidecar.');
    expect(await page.evaluate('document.activeElement?.id')).toBe('api-key');
    await giveKey('a key with a ☃');
    await until('printable ASCII characters');
    await giveKey(key);
    await until('This API key has stream limits.');
    expect(await page.locator('#fleet').isVisible()).toBe(false);
    await giveKey();
    await until('No stream is missing.');
  });
});

it('says what to set where the sidecar is in no fleet', async () => {
  const { url } = await startSidecar();
  const { page, giveKey, until } = await openPageOf(url);
  await giveKey();
  await until('PACKAGERDRMAPI_FLEET_URLS');
  expect(await page.getByText('This sidecar is not in a fleet.').count()).toBe(1);
});

it('keeps what it showed while the sidecar is away, says since when, and goes on by itself', async () => {
  const { page, enter, until, rows } = await openFleetPage();
  await enter();
  await page.route('**/api/fleet', (route) => route.abort());
  await until('This sidecar does not answer.');
  await until('This state is from');
  expect((await rows('packagers')).map(([name]) => name)).toHaveLength(3);
  await page.unroute('**/api/fleet');
  await until('As of');
  expect(await page.locator('#asked').textContent()).toMatch(/^As of \d\d:\d\d:\d\d UTC$/);
  expect(await page.getByText('This sidecar does not answer.').isVisible()).toBe(false);
});

it('says when the sidecar is away from the start', async () => {
  const { page, giveKey, until } = await openFleetPage();
  await page.route('**/api/fleet', (route) => route.abort());
  await giveKey();
  await until('Check that the sidecar runs');
});

it('says that it asks while an answer takes long, and that nothing is known of packagers that are not in the answer', async () => {
  const { page, giveKey, fleet, until } = await openFleetPage();
  fleet.say({ state: 'away', packagers: [] });
  const { opened: asked, open: answer } = gate();
  await page.route('**/api/fleet', async (route) => {
    await asked;
    await route.continue();
  });
  await giveKey();
  await until('Asking the sidecar …');
  answer();
  await until('Not known: no packager is shown.');
  expect(await page.locator('#tiles').textContent()).not.toContain('none is missing');
});

it('shows which streams are missing where, finds where one is, and that it arrives', async () => {
  const { page, enter, fleet, sidecar, until, untilTrue, rows } = await openFleetPage();
  await enter();
  await until('No stream is missing.');
  fleet.hold('origin-2', 'kept');
  fleet.hold('origin-3', 'failed');
  await sidecar.api.post('/api/keyfile/live%2Fchannel-1').send(CENC_ONLY).expect(200);
  await until('could not be written or removed');
  const nobody = ['no', 'nothing', 'right'];
  expect(await rows('packagers')).toEqual([
    ['origin-3 takes all streams', 'runs version 1.2.3', 'level', 'no', '1 stream failed', 'right'],
    ['origin-2 takes all streams', 'runs version 1.2.3', 'level', 'no', '1 stream kept', 'right'],
    ['origin-1 (this one) takes all streams', 'runs version 1.2.3', 'level', ...nobody],
  ]);
  expect(await rows('missing')).toEqual([['live/channel-1', 'kept origin-2 failed origin-3']]);
  await page.getByRole('button', { name: 'live/channel-1' }).click();
  await until('1 of 3 packagers that take it');
  expect((await rows('where-packagers')).map(([name, has]) => [name, has?.split(' ')[0]])).toEqual([
    ['origin-2', 'kept'],
    ['origin-3', 'failed'],
    ['origin-1', 'yes'],
  ]);
  expect(await page.evaluate('document.activeElement?.id')).toBe('where-stream');
  // Then there are no findings of packagers.
  fleet.say({ state: 'wrong_secret' });
  await untilTrue(
    async () => (await rows('where-packagers')).map(([, has]) => has).join() === 'kept,failed,yes',
  );
  fleet.say({});
  fleet.release('origin-2');
  fleet.release('origin-3');
  await until('3 of 3 packagers that take it');
  await until('No stream is missing.');
  await page.getByLabel('Stream id').fill('no-such-stream');
  await page.keyboard.press('Enter');
  await untilTrue(() => page.getByText('The fleet has no entry for this stream.').isVisible());
  expect(await rows('where-packagers')).toEqual([]);
  // A packager that names only some of its missing streams.
  const packagers = [{ name: 'origin-2', live: true, has: false }];
  const json = { streamid: 'unnamed', revision: 1, state: 'file', etag: '"tag"', packagers };
  await page.route('**/api/fleet/unnamed', (route) => route.fulfill({ json }));
  await page.getByLabel('Stream id').fill('unnamed');
  await page.keyboard.press('Enter');
  await until('0 of 1 packager that takes it');
  expect(await rows('where-packagers')).toEqual([['origin-2', 'no', 'runs']]);
});

it('finds streams and packagers among many, and says when more streams are missing than are named', async () => {
  const { page, enter, fleet, rows, until } = await openFleetPage();
  fleet.say(TROUBLED);
  await enter();
  await until('missing at berlin-1 (3,000)');
  expect((await rows('engine')).map(([, role, , alarms]) => [role, alarms])).toEqual([
    ['follower', 'not known'],
    ['leader', 'NOSPACE'],
    ['does not answer connect ECONNREFUSED 10.0.0.3:2379', 'not known'],
    ['not known', 'not known'],
  ]);
  expect((await rows('missing')).map(([stream]) => stream)).toEqual([
    'news',
    'berlin-7',
    'berlin-8',
    'live/channel-2',
    'live/channel-10',
    'news-of-the-morning-with-a-name-that-is-longer-than-a-phone-is-wide',
  ]);
  await page.getByLabel('Search missing streams').fill('CHANNEL');
  expect((await rows('missing')).map(([stream]) => stream)).toEqual(['live/channel-2', 'live/channel-10']);
  expect(await page.locator('#announcement').textContent()).toMatch(/^2 of 6 streams\./);
  await page.getByRole('button', { name: 'Show the 2 streams missing at origin-2' }).click();
  expect((await rows('missing')).map(([stream]) => stream)).toEqual(['news', 'live/channel-2']);
  await page.getByLabel('Search packagers').fill('gone');
  expect((await rows('packagers')).map(([name]) => name)).toEqual(['origin-3 takes all streams']);
  expect(await page.locator('#announcement').textContent()).toBe('1 of 4 packagers');
  await page.getByLabel('Search packagers').fill('');
  await page.getByLabel('Order of the packagers').selectOption('By name');
  expect((await rows('packagers')).map(([name]) => name?.split(' ')[0])).toEqual([
    'berlin-1',
    'origin-1',
    'origin-2',
    'origin-3',
  ]);
});

it('knows every state and every reason, and what to do about each', async () => {
  const { page, enter, fleet, until, untilTrue } = await openFleetPage();
  await enter();
  const findings = async () => (await page.locator('#findings').textContent()) ?? '';
  for (const state of Object.keys(FLEET_STATES) as FleetState[]) {
    if (state === 'level') continue;
    const own = `origin-1 is not level with the fleet: ${FLEET_STATES[state]} (${state}, since `;
    fleet.say({ state, packagers: [packagerOf('origin-1'), packagerOf('origin-2', { state })] });
    await untilTrue(async () => (await findings()).includes(own));
    // The registered packagers may be of another fleet: the page does not advise to retire them.
    const isForeign = ['wrong_secret', 'other_fleet', 'lost_fleet'].includes(state);
    expect((await findings()).includes('origin-2')).toBe(!isForeign);
    expect(await page.locator('#findings li').first().locator('p').count()).toBe(2);
  }
  for (const why of Object.keys(LACK_REASONS) as LackReason[]) {
    fleet.say({ packagers: [packagerOf('origin-2', lacking(why, 'news'))] });
    await untilTrue(() => page.locator('#missing .badge', { hasText: why }).isVisible());
    if (why !== 'behind') await until(`${LACK_REASONS[why]}: news at origin-2.`);
  }
  const clocks = [70_000, 3000].map((ahead) => packagerOf(`ahead-${ahead}`, { clock_ahead_ms: ahead }));
  fleet.say({ packagers: clocks });
  await until('ahead-3000 (+3 s)');
  expect(await page.locator('#findings .badge').allTextContents()).toEqual(['Act', 'Look']);
});

it('shows how long changes took, as strips and as numbers', async () => {
  const { page, enter, fleet, rows, until, untilTrue } = await openFleetPage();
  const times = Array.from({ length: 50 }, (_, index) => index + 1);
  fleet.say({ packagers: [packagerOf('origin-1', { propagation_ms: times }), packagerOf('origin-2')] });
  await enter();
  expect(await rows('times')).toEqual([['origin-1', '', '25 ms', '50 ms', '50']]);
  const places = () =>
    page.evaluate(
      "[...document.querySelectorAll('#times circle')].map((circle) => [circle.getAttribute('class'), circle.getAttribute('cx')])",
    );
  // From 1 ms to 1 s, each decade a third.
  expect(await places()).toEqual([
    ['p50', '46.60%'],
    ['p99', '56.63%'],
  ]);
  expect(await page.locator('#times .axis text').allTextContents()).toEqual([
    '1 ms',
    '10 ms',
    '100 ms',
    '1 s',
  ]);
  fleet.say({
    packagers: [
      packagerOf('origin-1', { propagation_ms: [10] }),
      packagerOf('origin-2', { propagation_ms: [20_000, -5] }),
    ],
  });
  await untilTrue(async () => (await rows('times')).length === 3);
  expect(await rows('times')).toEqual([
    ['all packagers', '', '10 ms', '20 s', '3'],
    ['origin-1', '', '10 ms', '10 ms', '1'],
    ['origin-2', '', '−5 ms', '20 s', '2'],
  ]);
  fleet.say({ packagers: [packagerOf('origin-1')] });
  await until('No packager has reported a change yet');
});

it('asks every two seconds, while it is visible and not paused', async () => {
  const { page, enter, asked, untilTrue } = await openFleetPage();
  await enter();
  const polls = () => asked.filter(ofFleet).length;
  /** How often it asks in so many seconds. */
  const within = async (seconds: number) => {
    const before = polls();
    for (let each = 0; each < seconds * 2; each += 1) {
      await page.clock.fastForward(500);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    return polls() - before;
  };
  expect(await within(10)).toBeGreaterThanOrEqual(3);
  expect(await within(10)).toBeLessThanOrEqual(5);
  const hide = (isHidden: boolean) =>
    page.evaluate(
      `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
    );
  await hide(true);
  expect(await within(10)).toBeLessThanOrEqual(1);
  expect(await within(10)).toBe(0);
  const before = polls();
  await hide(false);
  await untilTrue(() => polls() > before);
  await page.getByRole('button', { name: 'Pause' }).click();
  await within(4);
  expect(await within(10)).toBe(0);
  await page.getByRole('button', { name: 'Resume' }).click();
  expect(await within(6)).toBeGreaterThan(1);
});

it('is used by keyboard, and keeps what is typed and focused while it is refreshed', async () => {
  const { page, fleet, asked, untilTrue } = await openFleetPage();
  fleet.say(TROUBLED);
  expect(await page.evaluate('document.activeElement?.id')).toBe('api-key');
  await page.keyboard.type(API_KEY);
  await page.keyboard.press('Enter');
  await untilTrue(() => page.locator('#fleet').isVisible());
  expect(await page.evaluate('document.activeElement?.id')).toBe('title');
  const tabTo = async (selector: string) => {
    for (let count = 0; count < 60; count += 1) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(`document.activeElement?.matches(${JSON.stringify(selector)})`)) return;
    }
    throw new Error(`${selector} is not reached`);
  };
  await tabTo('#packagers-search');
  await page.keyboard.type('origin');
  await tabTo('[data-missing-at="origin-2"]');
  const before = asked.length;
  fleet.say({ ...TROUBLED, streams: 99 });
  await untilTrue(() => asked.length > before + 1);
  expect(await page.evaluate('document.activeElement?.dataset.missingAt')).toBe('origin-2');
  expect(await page.getByLabel('Search packagers').inputValue()).toBe('origin');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement?.id')).toBe('missing-search');
});

it('is read by screen readers: tables with their heads, and what changes by itself', async () => {
  const { page, enter, fleet, until } = await openFleetPage();
  await enter();
  const table = page.getByRole('table', { name: 'Packagers of the fleet' });
  expect(await table.getByRole('columnheader').allTextContents()).toEqual([
    'Packager',
    'Sidecar',
    'State',
    'Behind',
    'Missing',
    'Clock',
  ]);
  expect(await table.getByRole('rowheader').count()).toBe(3);
  fleet.setLive('origin-3', false);
  await until('origin-3 is not live');
  expect(await page.locator('#announcement').textContent()).toContain('origin-3 is not live');
});

it('renders the slowest of 500 packagers, and of a new answer only what has changed', async () => {
  const { page, enter, fleet, rows, until, untilTrue } = await openFleetPage();
  const packagers = Array.from({ length: 500 }, (_, at) =>
    packagerOf(`packager-${at + 1}`, {
      ...lacking('behind', ...Array.from({ length: 100 }, (_each, index) => `live/channel-${at + index}`)),
      lacking: 3000,
      behind: 3000,
      behind_seconds: 75,
      propagation_ms: Array.from({ length: 50 }, (_each, index) => 10 + ((at * 7 + index * 13) % 90)),
    }),
  );
  fleet.say({ packagers });
  await enter();
  await until('Of 500 packagers, the 20 slowest are shown.');
  expect(
    [await rows('packagers'), await rows('missing'), await rows('times')].map(({ length }) => length),
  ).toEqual([20, 10, 21]);
  await page.getByRole('button', { name: 'Show all 500 packagers' }).click();
  expect(await rows('packagers')).toHaveLength(500);
  // Unchanged parts stay the same elements.
  const pieces = "[...document.querySelectorAll('#packagers tbody td > div > *')]";
  await page.evaluate(`${pieces}.forEach((piece) => { piece.isOld = true })`);
  fleet.say({ packagers: packagers.map((each, at) => (at === 3 ? { ...each, live: false } : each)) });
  await until('packager-4 is not live');
  await untilTrue(async () => (await rows('packagers'))[0]?.[0]?.startsWith('packager-4 ') ?? false);
  // Of one row, whether its sidecar runs and the state that it reported, each with a line below.
  expect(await page.evaluate(`${pieces}.filter(({ isOld }) => !isOld).length`)).toBe(4);
});
