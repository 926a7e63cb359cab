import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startBrowser } from '../support/dashboard-browser';
import { chainForAll, type TestChannel } from '../support/real-chain';
import { type Picture, pictureArguments } from '../support/real-encoder';
import { decoded, playerPages, screenshot, shownBy, stateOf, untilPlays } from '../support/real-player';

jest.setTimeout(180_000);

const browser = startBrowser();
const chain = chainForAll();

const { open, channelPage } = playerPages(browser, chain);

async function provisioned(title: string): Promise<TestChannel> {
  const channel = await chain.channel({ title });
  await chain.provision(channel.id);
  return channel;
}

/** Starts an encoder, and answers its event once there is something to play. */
async function onAir(channel: TestChannel, picture: Picture): Promise<string> {
  chain.encoder(channel, picture);
  const event = await chain.event(channel);
  await chain.untilPackaged(event, ({ state }) => state === 'running');
  return event;
}

const partsOf = async (event: string) => {
  const { text } = await chain.get(`/live/events/${event}/dash/manifest.mpd`);
  return text.split('<Period').length - 1;
};

/** Verify finds nothing wrong with an event, in either format. */
async function expectFaultless(event: string, { id }: TestChannel): Promise<void> {
  for (const type of ['mpd', 'm3u8']) {
    const url = `${chain.url('emulator')}/live/events/${event}.${type}`;
    const { exitCode, codes } = await chain.verify(url, chain.keyFilePath(id));
    expect({ type, exitCode, codes }).toEqual({ type, exitCode: 0, codes: [] });
  }
}

test('an encoder that is silent, or gone, for 20 s goes on in the same event, and its viewers with it', async () => {
  const silent = await provisioned('Silent');
  const gone = await provisioned('Gone');
  const events = [
    await onAir(silent, { left: 'red', right: 'yellow' }),
    await onAir(gone, { left: 'blue', right: 'cyan' }),
  ];
  const pages = [await channelPage(silent.id, 'dash'), await channelPage(gone.id, 'hls')];
  await untilPlays(pages[0] as Page, ['red', 'yellow']);
  await untilPlays(pages[1] as Page, ['blue', 'cyan']);
  const [first, second] = chain.encoders.filter((each) => each.isRunning());
  first?.send('SIGSTOP');
  second?.send('SIGKILL');
  const since = Date.now();
  await chain.untilPackaged(events[0] ?? '', ({ problem }) => problem?.code === 'encoder_silent');
  await chain.untilPackaged(events[1] ?? '', ({ state }) => state === 'interrupted');
  await chain.until('20 s to pass', () => Date.now() - since > 20_000);
  expect(await Promise.all(pages.map(stateOf))).toEqual(['active', 'active']);
  first?.send('SIGCONT');
  chain.encoder(gone, { left: 'lime', right: 'magenta' });
  expect(await Promise.all([silent, gone].map((channel) => chain.event(channel)))).toEqual(events);
  await Promise.all([
    untilPlays(pages[0] as Page, ['red', 'yellow'], 45_000),
    untilPlays(pages[1] as Page, ['lime', 'magenta'], 45_000),
  ]);
  expect(await Promise.all(events.map(partsOf))).toEqual([1, 2]);
});

test('a change of resolution, a jump of time and a stream without a picture play', async () => {
  const channels = [
    await provisioned('Resolution'),
    await provisioned('Jump'),
    await provisioned('Only sound'),
  ] as const;
  const [resolution, jump, sound] = channels;
  const list = join(chain.home, 'list');
  const small = join(chain.home, 'small.flv');
  const large = join(chain.home, 'large.flv');
  const whole = join(chain.home, 'whole.flv');
  await chain.makeFile(small, pictureArguments({ left: 'red', right: 'lime', seconds: 5 }));
  await chain.makeFile(
    large,
    pictureArguments({ left: 'blue', right: 'yellow', size: '640x360', seconds: 40 }),
  );
  await chain.makeFile(whole, pictureArguments({ left: 'cyan', right: 'magenta', seconds: 40 }));
  writeFileSync(list, `ffconcat version 1.0\nfile ${small}\nfile ${large}\n`);
  chain.ffmpeg(['-re', '-f', 'concat', '-safe', '0', '-i', list, '-c', 'copy'], resolution);
  const skip = 'setts=pts=PTS+if(gt(DTS\\,5000)\\,60000):dts=DTS+if(gt(DTS\\,5000)\\,60000)';
  chain.ffmpeg(['-re', '-i', whole, '-c', 'copy', '-bsf:v', skip, '-bsf:a', skip], jump);
  chain.encoder(sound, { only: 'audio' });
  const events = await Promise.all(channels.map((channel) => chain.event(channel)));
  const [resized = '', jumped = '', heard = ''] = events;
  const pages = await Promise.all([
    channelPage(resolution.id, 'dash'),
    channelPage(jump.id, 'hls'),
    channelPage(sound.id, 'dash'),
  ]);
  await untilPlays(pages[0], ['blue', 'yellow'], 45_000);
  await untilPlays(pages[1], ['cyan', 'magenta'], 45_000);
  await chain.until('sound', async () => (await decoded(pages[2])).audioBytes > 20_000);
  expect((await decoded(pages[2])).frames).toBe(0);
  await screenshot(pages[2], 'only-sound');
  await chain.until(
    'both parts',
    async () => (await Promise.all([resized, jumped].map(partsOf))).join() === '2,2',
  );
  expect(await partsOf(heard)).toBe(1);
  for (const [index, channel] of channels.entries()) await expectFaultless(events[index] ?? '', channel);
});

test('viewers go on when the packager was killed, and the replay has what was before and after', async () => {
  const channel = await provisioned('Killed packager');
  const event = await onAir(channel, { left: 'magenta', right: 'yellow' });
  const page = await channelPage(channel.id, 'dash');
  await untilPlays(page, ['magenta', 'yellow']);
  const before = (await chain.packaged(event))?.seconds ?? 0;
  await chain.kill('packager');
  // Neither ffmpeg nor shaka-packager outlives it.
  expect((await chain.settledLeftovers()).processes).toEqual([]);
  await chain.startPackager();
  await chain.until('the second part', async () => (await partsOf(event)) === 2);
  await untilPlays(page, ['magenta', 'yellow'], 45_000);
  browser.forgive(/status of 50\d/);
  await expectFaultless(event, channel);
  await Promise.all(chain.encoders.filter((each) => each.isRunning()).map((each) => each.stop()));
  await chain.advance(61);
  const { seconds } = await chain.untilPackaged(event, ({ state }) => state === 'ended');
  expect(seconds).toBeGreaterThan(before + 2);
  const replay = await open(`/embed/media.html?mediaId=${event}&format=hls`);
  await untilPlays(replay, ['magenta', 'yellow']);
  const length = await replay.evaluate<number>("document.querySelector('video').duration");
  expect(Math.abs(length - seconds)).toBeLessThan(2.5);
});

test('five channels at once show each its own picture, and leave no process behind', async () => {
  const colours = [
    ['red', 'lime'],
    ['lime', 'blue'],
    ['blue', 'yellow'],
    ['yellow', 'cyan'],
    ['cyan', 'red'],
  ] as const;
  const channels = await Promise.all(colours.map((_, index) => provisioned(`Channel ${index}`)));
  const events = await Promise.all(
    channels.map((channel, index) =>
      onAir(channel, { left: colours[index]?.[0] ?? 'red', right: colours[index]?.[1] ?? 'red' }),
    ),
  );
  const keyIds = await Promise.all(
    events.map(async (event) => (await chain.packaged(event))?.dash?.keyIds[0]),
  );
  expect(new Set(keyIds).size).toBe(5);
  for (const [index, channel] of channels.entries()) {
    const page = await channelPage(channel.id, index % 2 === 0 ? 'dash' : 'hls');
    await untilPlays(page, colours[index] ?? ['red', 'red']);
    expect((await shownBy(page)).halves).toEqual(colours[index]);
    await page.close();
  }
  await Promise.all(chain.encoders.filter((each) => each.isRunning()).map((each) => each.stop()));
  await chain.advance(61);
  for (const event of events) await chain.untilPackaged(event, ({ state }) => state === 'ended');
  expect(await chain.settledLeftovers()).toEqual({ processes: [], fifos: [] });
});
