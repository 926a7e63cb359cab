import type { Page } from 'playwright-core';
import {
  type Channel,
  type ChannelMetadata,
  createChannel,
} from '../../src/platform/emulator/resources/channels';
import { openPage, servePage } from '../support/browser';
import { channelMetadata } from '../support/channel-metadata';
import { screenshot } from '../support/chromium';
import { startFakePackager } from '../support/fake-packager';
import { startEmulator, type TestEmulator } from '../support/start-emulator';

jest.setTimeout(60_000);

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

const WAITING = 'Waiting for the event to begin';
const ENDED = 'The event has ended';
const LIVE = '[data-state="active"]';

let emulator: TestEmulator;

beforeEach(async () => {
  emulator = await startEmulator();
});

function channel(changes: Partial<ChannelMetadata> = {}): Channel {
  const metadata = channelMetadata({ title: 'Town hall <b>2030</b>', ...changes });
  return createChannel(emulator.context, emulator.siteId, metadata);
}

const encoder = (does: 'connect' | 'disconnect', { streamKey }: Channel) =>
  emulator.control.post(`/encoder/${does}`).send({ stream_key: streamKey }).expect(200);

async function endEvent(of: Channel): Promise<void> {
  await encoder('disconnect', of);
  emulator.context.clock.advance(1000);
}

const embedPage = ({ id }: Pick<Channel, 'id'>) => `${emulator.url}/embed/channel.html?channelId=${id}`;

/** Answers how often the channel's document has come in by now. */
function countPolls(page: Page): () => number {
  let polls = 0;
  page.on('response', (response) => {
    if (response.url().includes('/live/channels/')) polls += 1;
  });
  return () => polls;
}

/** A publisher's page at another origin, with this script after the embed's. */
const publisherPage = (script: string, before = '') =>
  servePage(`<!doctype html><html lang="en"><title>Publisher</title><body>${before}
    <div id="one"></div><div id="two"></div>
    <script src="${emulator.url}/embed/channel.js"></script>
    <script id="caller">${script}</script><p>below</p></body></html>`);

const active = (page: Page) => () => page.locator(LIVE).first().isVisible();

test('shows the player of each event, keeps it while the server fails, says what changes, and ends with the channel', async () => {
  const town = channel();
  const { page, until, untilTrue, complaints } = await openPage();
  const polls = countPolls(page);
  await page.goto(embedPage(town));
  await until(WAITING);
  const status = page.getByRole('status');
  expect(await status.getAttribute('aria-live')).toBe('polite');
  expect(await status.textContent()).toBe(`${WAITING}The player will start automatically.`);
  await screenshot(page, 'channel-embed/waiting');
  await encoder('connect', town);
  await untilTrue(active(page));
  expect(await page.locator('video').count()).toBe(1);
  await untilTrue(
    async () =>
      (await status.textContent()) ===
      'Town hall <b>2030</b>The stream has no picture yet. It will start automatically.',
  );
  await screenshot(page, 'channel-embed/active');
  expect(complaints).toEqual([]);
  await page.evaluate("document.querySelector('video').id = 'same'");
  emulator.context.faults.add('GET /live/channels/*', { kind: 'fail', status: 500 }, 2);
  const before = polls();
  await untilTrue(() => polls() > before + 3);
  expect(await page.locator('video#same').count()).toBe(1);
  await endEvent(town);
  await until(ENDED);
  expect(await page.locator('video').count()).toBe(0);
  await screenshot(page, 'channel-embed/ended');
  await encoder('connect', town);
  await untilTrue(active(page));
  await emulator.admin.delete(`/v2/sites/${emulator.siteId}/channels/${town.id}/`).expect(204);
  await until('This channel does not exist');
  expect(await page.locator('video').count()).toBe(0);
});

test('says that a stream which the packager refuses is not available, and to its owner why, until it is packaged', async () => {
  const packager = await startFakePackager();
  emulator = await startEmulator({ EMULATOR_PACKAGERURL: packager.url });
  const problem = { code: 'codec_unsupported', description: 'The key file a$&b.key does not exist.' };
  const { onPut } = packager;
  packager.onPut = (document) => ({ ...document, state: 'refused', problem, dash: null, hls: null });
  const town = channel({ title: 'W'.repeat(1000) });
  const viewer = await openPage();
  await viewer.page.goto(embedPage(town));
  await viewer.until(WAITING);
  await encoder('connect', town);
  await viewer.until('The stream is not available.');
  const heightOf = async (place: string) => (await viewer.page.locator(place).boundingBox())?.height ?? 0;
  expect(await heightOf('[role=status]')).toBeLessThan(await heightOf('#stage'));
  const said = (page: Page) => page.locator('#playback').textContent();
  expect(await said(viewer.page)).toBe('The dashboard says why.');
  expect(await viewer.page.getByText('Live', { exact: true }).isVisible()).toBe(false);
  await screenshot(viewer.page, 'channel-embed/not-available');
  const owner = await openPage();
  await owner.page.goto(`${emulator.url}/dashboard/events`);
  await owner.page.getByRole('link', { name: 'Preview' }).click();
  await owner.until(problem.description);
  expect(await said(owner.page)).toBe('Correct this; the stream will then start automatically.');
  await screenshot(owner.page, 'channel-embed/refused-preview');
  packager.onPut = onPut;
  packager.forget();
  await viewer.untilTrue(active(viewer.page));
  expect(await viewer.page.getByText('not available').count()).toBe(0);
});

const PICTURES = '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nnothing.ts\n';

test('says that the stream has no picture yet over an empty playlist, until there is one', async () => {
  const town = channel();
  const { page, until, untilTrue } = await openPage();
  await page.goto(embedPage(town));
  await encoder('connect', town);
  await until('The stream has no picture yet');
  expect(await page.locator('#stage').textContent()).not.toMatch(/browser/i);
  expect(await page.locator('video[src]').count()).toBe(0);
  await screenshot(page, 'channel-embed/no-picture');
  await page.route('**/*.m3u8', (route) => route.fulfill({ body: PICTURES }));
  await untilTrue(async () => !(await page.getByText('The stream has no picture yet').isVisible()));
});

test.each([
  ["can't be read", 'cannot be reached', (page: Page) => page.route('**/*.m3u8', (route) => route.abort())],
  [
    'is none',
    'cannot be read',
    (page: Page) => page.route('**/*.m3u8', (route) => route.fulfill({ body: 'not found' })),
  ],
] as const)('leaves a playlist that %s to the player, and says that it %s', async (_does, says, prepare) => {
  const town = channel();
  const { page, until } = await openPage();
  await prepare(page);
  await page.goto(embedPage(town));
  await encoder('connect', town);
  await until(says);
  expect(await page.getByText('The stream has no picture yet').count()).toBe(0);
});

test('waits on when the server answers with errors, broken connections or silence, and goes on by itself', async () => {
  const town = channel();
  const { page, until } = await openPage();
  await page.goto(embedPage(town));
  await until(WAITING);
  for (const fault of [
    { kind: 'fail', status: 503 },
    { kind: 'reset' },
    { kind: 'delay', ms: 3_600_000 },
  ] as const) {
    emulator.context.faults.add('GET /live/channels/*', fault, 3);
    await until('The channel cannot be reached');
    await screenshot(page, `channel-embed/trouble-${fault.kind}`);
    await until(WAITING);
  }
});

test('asks again for a playlist that comes later than the event', async () => {
  const town = channel();
  emulator.context.faults.add('GET /v2/media/*', { kind: 'fail', status: 404 }, 2);
  const { page, until, untilTrue } = await openPage();
  await page.goto(embedPage(town));
  await encoder('connect', town);
  await until('The event is about to begin');
  await untilTrue(active(page));
});

test('waits longer after each failure', async () => {
  const town = channel();
  emulator.context.faults.add('GET /live/channels/*', { kind: 'fail', status: 503 }, 1000);
  const { page, untilTrue } = await openPage();
  const times: number[] = [];
  page.on('response', async (response) => {
    if (response.url().includes('/live/channels/')) times.push(Number(await page.evaluate('Date.now()')));
  });
  await page.goto(embedPage(town));
  await untilTrue(() => times.length > 4);
  const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0));
  expect(gaps).toEqual([...gaps].sort((one, other) => one - other));
  expect(gaps.slice(0, 4).map((gap) => gap > 39_000)).toEqual([false, false, false, true]);
});

test('shows each channel once on a page of another origin, in its element or behind its script, and asks no more when it is destroyed or taken away', async () => {
  const [town, match, other] = [channel(), channel(), channel()];
  const inOne = `channelEmbed.setup({ channelId: '${town.id}', element: '#one' });`;
  const url = await publisherPage(
    `${inOne}${inOne}
     window.embed = channelEmbed.setup({ channelId: '${match.id}', element: document.getElementById('two') });
     channelEmbed.setup({ channelId: '${other.id}' })`,
  );
  const { page, untilTrue } = await openPage();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(url);
  await encoder('connect', match);
  await untilTrue(() => page.locator(`#two ${LIVE}`).isVisible());
  expect(await page.locator('#one').getByText(WAITING).isVisible()).toBe(true);
  expect(await page.locator('#one > *').count()).toBe(1);
  expect(await page.locator('#caller + div').getByText(WAITING).count()).toBe(1);
  await screenshot(page, 'channel-embed/two');
  await page.evaluate("embed.destroy(); document.getElementById('one').remove()");
  expect(await page.locator('#two > *').count()).toBe(0);
  // The last embed's polls show that time passes.
  const polls = ({ id }: Channel) => asked.filter((address) => address.endsWith(`${id}.json`)).length;
  const [destroyed, removed, before] = [polls(match), polls(town), polls(other)];
  await untilTrue(() => polls(other) > before + 3);
  expect(polls(match)).toBe(destroyed);
  // It notices at its next poll.
  expect(polls(town)).toBeLessThanOrEqual(removed + 1);
});

test("hands the playlist to the page's own player, removes that at the end, and notifies the page of both", async () => {
  const town = channel();
  const url = await publisherPage(
    `window.seen = [];
     for (const type of ['channelactive', 'channelidle'])
       document.addEventListener(type, (event) => seen.push([type, event.target.id, event.detail]));
     window.calls = [];
     window.jwplayer = (id) => ({
       setup: (options) => calls.push(['setup', document.getElementById(id) !== null, options]),
       remove: () => calls.push(['remove']),
     });
     channelEmbed.setup({ channelId: '${town.id}', element: '#one', player: { mute: true, playlist: 'other' } })`,
  );
  const { page, until, untilTrue } = await openPage();
  const polls = countPolls(page);
  await page.goto(url);
  await untilTrue(() => polls() > 2);
  await encoder('connect', town);
  const eventId = town.currentEventId;
  await untilTrue(active(page));
  await endEvent(town);
  await until(ENDED);
  const playlist = `${emulator.url}/v2/media/${eventId}`;
  expect(await page.evaluate('calls')).toEqual([
    ['setup', true, { width: '100%', height: '100%', mute: true, playlist }],
    ['remove'],
  ]);
  expect(await page.evaluate('seen')).toEqual([
    ['channelidle', 'one', { channelId: town.id }],
    ['channelactive', 'one', { channelId: town.id, eventId, title: 'Town hall <b>2030</b>' }],
    ['channelidle', 'one', { channelId: town.id }],
  ]);
});

test('throws to callers of setup what is wrong', async () => {
  const { page } = await openPage();
  await page.goto(await publisherPage(''));
  const thrownBy = (options: string) =>
    page.evaluate(
      `(() => { try { channelEmbed.setup(${options}) } catch ({ message }) { return message } })()`,
    );
  const noId = 'channelEmbed.setup: channelId must be the id of a channel';
  for (const [options, message] of [
    ['{}', noId],
    ['', noId],
    ["{ channelId: 'abcd1234', element: '#nowhere' }", 'channelEmbed.setup: there is no element #nowhere'],
    ["{ channelId: 'abcd1234', element: null }", 'channelEmbed.setup: there is no element null'],
  ] as const)
    expect([options, await thrownBy(options)]).toEqual([options, message]);
});

test('shows texts as text, whatever they hold', async () => {
  const town = channel();
  const { page, until, untilTrue } = await openPage();
  await page.goto(
    await publisherPage(
      `channelEmbed.setup({ channelId: '${town.id}', element: '#one', messages: { waiting: '<b>Soon</b>' } })`,
    ),
  );
  await until('<b>Soon</b>');
  await encoder('connect', town);
  await untilTrue(active(page));
  await until('Town hall <b>2030</b>');
  expect(await page.locator('b').count()).toBe(0);
  const direction = "getComputedStyle(document.querySelector('[role=status] > :last-child')).direction";
  // At once, as the embed writes its own text again.
  const arabic = "document.querySelector('[role=status]').firstChild.textContent = 'قريبًا!'";
  expect(await page.evaluate(`${arabic}; ${direction}`)).toBe('rtl');
});

test('asks for a channel id when the address names none, and fits a phone while waiting, in a light scheme, and while active, in a dark one', async () => {
  const town = channel();
  const { page, untilTrue, complaints } = await openPage({ ...PHONE, colorScheme: 'light' });
  await page.goto(`${emulator.url}/embed/channel.html`);
  await screenshot(page, 'channel-embed/phone-form');
  await page.getByLabel('Channel id').fill(town.id);
  await page.getByRole('button', { name: 'Show' }).click();
  const fits = async (state: string) => {
    await untilTrue(() => page.locator(`[data-state="${state}"]`).isVisible());
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.viewport.width);
    await screenshot(page, `channel-embed/phone-${state}`);
  };
  await fits('waiting');
  expect(complaints).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await encoder('connect', town);
  await fits('active');
});
