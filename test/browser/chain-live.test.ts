import { startBrowser } from '../support/dashboard-browser';
import { chainForAll } from '../support/real-chain';
import { decoded, playerPages, screenshot, shownBy, stateOf, told, untilPlays } from '../support/real-player';

jest.setTimeout(120_000);

const browser = startBrowser();
const chain = chainForAll();

const { open, channelPage } = playerPages(browser, chain);

test('an auto channel waits, plays by itself, and ends in a replay', async () => {
  const channel = await chain.channel({ title: 'Auto' });
  await chain.provision(channel.id);
  const dash = await channelPage(channel.id, 'dash');
  const hls = await channelPage(channel.id, 'hls');
  await chain.until('the embed to wait', async () => (await told(dash)).includes('Waiting for the event'));
  const encoder = chain.encoder(channel, { left: 'red', right: 'blue' });
  const event = await chain.event(channel);
  await Promise.all([dash, hls].map((page) => untilPlays(page, ['red', 'blue'])));
  await screenshot(dash, 'live-dash');
  await screenshot(hls, 'live-hls');
  expect(await stateOf(dash)).toBe('active');
  for (const type of ['mpd', 'm3u8']) {
    const url = `${chain.url('emulator')}/live/events/${event}.${type}`;
    const { exitCode, report, codes } = await chain.verify(url, chain.keyFilePath(channel.id));
    expect({ exitCode, codes, live: report.live }).toEqual({ exitCode: 0, codes: [], live: true });
    expect(report.renditions.map(({ kind, judgement }) => `${kind} ${judgement?.state}`).sort()).toEqual([
      'audio decrypts',
      'video decrypts',
    ]);
  }
  await encoder.stop();
  await chain.advance(61);
  for (const page of [dash, hls])
    await chain.until('the embed to wait again', async () => (await told(page)).includes('has ended'));
  expect(await stateOf(dash)).toBe('waiting');
  for (const format of ['dash', 'hls']) {
    const page = await open(`/embed/media.html?mediaId=${event}&format=${format}`);
    await untilPlays(page, ['red', 'blue']);
    expect((await decoded(page)).frames).toBeGreaterThan(15);
  }
});

const previewTokenOf = async (channelId: string): Promise<string> => {
  const { preview_url: urls } = await chain.platform('GET', `/channels/${channelId}/`);
  return /previews\/(\w+)\.m3u8/.exec(String(urls))?.[1] ?? '';
};

/** The status of everything that viewers could ask for under an event. */
async function statusesOf(event: string): Promise<number[]> {
  const paths = [
    `/v2/media/${event}`,
    ...['/live/events', '/manifests'].flatMap((place) =>
      ['.mpd', '.m3u8', '/dash/manifest.mpd', '/hls/master.m3u8', '/hls/video.m3u8'].map(
        (end) => `${place}/${event}${end}`,
      ),
    ),
  ];
  return Promise.all(paths.map(async (path) => (await chain.get(path)).status));
}

/** A segment as a playlist names it, below the place of the event. */
async function segmentPathOf(place: string): Promise<string> {
  const { text } = await chain.get(`${place}/hls/video.m3u8`);
  const [segment = ''] = text.match(/^[\w-]+\/\w+\.m4s$/m) ?? [];
  return `${place}/hls/${segment}`;
}

test('nobody sees a manual channel before it is published, but who has the address of its preview', async () => {
  const channel = await chain.channel({ title: 'Manual', publishing_mode: 'manual' });
  await chain.provision(channel.id);
  const page = await channelPage(channel.id, 'dash');
  chain.encoder(channel, { left: 'lime', right: 'magenta' });
  const event = await chain.event(channel);
  await chain.untilPackaged(event, ({ state }) => state === 'running');
  const token = await previewTokenOf(channel.id);
  const preview = await open(`/embed/media.html?preview=${token}`);
  await untilPlays(preview, ['lime', 'magenta']);
  await screenshot(preview, 'preview');
  const segment = await segmentPathOf(`/live/previews/${token}`);
  expect((await chain.get(segment)).status).toBe(200);
  const hidden = segment.replace(`/live/previews/${token}`, `/live/events/${event}`);
  expect(new Set([...(await statusesOf(event)), (await chain.get(hidden)).status])).toEqual(new Set([404]));
  expect(await stateOf(page)).toBe('waiting');
  expect(await decoded(page)).toEqual({ frames: 0, audioBytes: 0 });
  await chain.platform('PUT', `/channels/${channel.id}/events/${event}/publish/`);
  await untilPlays(page, ['lime', 'magenta']);
  expect((await chain.get(hidden)).status).toBe(200);
  expect(new Set(await statusesOf(event))).toEqual(new Set([200]));
});

test('a wrong stream key and a second encoder are refused, and disabling the channel ends the playback', async () => {
  const channel = await chain.channel({ title: 'One encoder' });
  await chain.provision(channel.id);
  const refused = chain.encoder({ streamKey: 'wrong-stream-key-0123456789' });
  expect(await refused.exit).toBe(1);
  const first = chain.encoder(channel, { left: 'yellow', right: 'blue' });
  const event = await chain.event(channel);
  await chain.untilPackaged(event, ({ state }) => state === 'running');
  const page = await channelPage(channel.id, 'hls');
  await untilPlays(page, ['yellow', 'blue']);
  const second = chain.encoder(channel, { left: 'cyan', right: 'cyan' });
  expect(await second.exit).toBe(1);
  const { frames } = await decoded(page);
  await chain.until('more pictures of the first', async () => (await decoded(page)).frames > frames + 30);
  expect((await shownBy(page)).halves).toEqual(['yellow', 'blue']);
  expect(first.isRunning()).toBe(true);
  await chain.platform('PUT', `/channels/${channel.id}/disable/`);
  expect(await first.exit).not.toBe(0);
  await chain.until('the embed to wait', async () => (await told(page)).includes('has ended'));
  expect(await page.locator('video').count()).toBe(0);
  expect(await chain.encoder(channel).exit).toBe(1);
  await chain.untilPackaged(event, ({ state }) => state === 'ended');
  expect(await chain.settledLeftovers()).toEqual({ processes: [], fifos: [] });
});
