import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { screenshot } from '../support/chromium';
import { startBrowser } from '../support/dashboard-browser';
import { chainForAll, type TestChannel } from '../support/real-chain';
import type { Picture } from '../support/real-encoder';
import { decoded, messageOf, playerPages, stateOf, untilPlays } from '../support/real-player';
import { testsTogether } from '../support/tests-together';

jest.setTimeout(180_000);

// Hooks run in the order in which they are set: this one before the browser's own fails the test for what was logged.
afterEach(() => {
  // A segment that is refused once is asked for again; what is seen is what counts.
  browser.forgive(/status of 50[24]/);
});

const browser = startBrowser(true);
const chain = chainForAll();

type Viewer = ReturnType<typeof playerPages>;

const bothPages = ({ channelPage }: Viewer, { id }: TestChannel): Promise<Page[]> =>
  Promise.all((['dash', 'hls'] as const).map((format) => channelPage(id, format)));

const bothPlay = async (pages: readonly Page[], halves: Parameters<typeof untilPlays>[1]): Promise<void> =>
  void (await Promise.all(pages.map((page) => untilPlays(page, halves, 45_000))));

const untilTold = (page: Page, words: RegExp) =>
  chain.until(`the embed to say ${words}`, async () => words.test(await messageOf(page)));

async function provisioned(title: string, metadata: object = {}): Promise<TestChannel> {
  const channel = await chain.channel({ title, ...metadata });
  await chain.provision(channel.id);
  return channel;
}

/** Starts an encoder, and waits until its event is packaged. */
async function onAir(channel: TestChannel, picture: Picture) {
  const encoder = chain.encoder(channel, picture);
  const event = await chain.event(channel);
  const packaged = await chain.untilPackaged(event, ({ state }) => state === 'running');
  return { encoder, event, packaged };
}

async function replayPlays({ open }: Viewer, event: string, halves: Parameters<typeof untilPlays>[1]) {
  const formats = ['dash', 'hls'];
  const pages = formats.map((format) => open(`/embed/media.html?mediaId=${event}&format=${format}`));
  await bothPlay(await Promise.all(pages), halves);
}

const partsOf = async (event: string) => {
  const { text } = await chain.get(`/live/events/${event}/dash/manifest.mpd`);
  return text.split('<Period').length - 1;
};

/** Verify finds nothing wrong with an event, in either format, and decrypts what it has. */
async function expectFaultless(event: string, { id }: TestChannel, kinds = ['audio', 'video']) {
  const verified = ['mpd', 'm3u8'].map(async (type) => {
    const url = `${chain.url('emulator')}/live/events/${event}.${type}`;
    const { exitCode, codes, report } = await chain.verify(url, chain.keyFilePath(id));
    const renditions = report.renditions.map(({ kind, judgement }) => `${kind} ${judgement?.state}`).sort();
    return { type, exitCode, codes, live: report.live, renditions };
  });
  const renditions = kinds.map((kind) => `${kind} decrypts`);
  const faultless = { exitCode: 0, codes: [], live: true, renditions };
  expect(await Promise.all(verified)).toEqual([
    { type: 'mpd', ...faultless },
    { type: 'm3u8', ...faultless },
  ]);
}

/** All files with media or manifests that the packager has of a stream. */
const filesOf = (event: string): string[] =>
  readdirSync(chain.mediaFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath.includes(event))
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => !path.endsWith('stream.json'));

const previewTokenOf = async (channelId: string): Promise<string> => {
  const { preview_url: urls } = await chain.platform('GET', `/channels/${channelId}/`);
  return /previews\/(\w+)\.m3u8/.exec(String(urls))?.[1] ?? '';
};

describe('keys', () => {
  testsTogether(browser, {
    'an auto channel shows and keeps nothing without a key file, plays by itself when it is provisioned, and ends in a replay':
      async (own) => {
        const viewer = playerPages(own, chain);
        const channel = await chain.channel({ title: 'Auto', reconnect_window: 0 });
        const pages = await bothPages(viewer, channel);
        await Promise.all(pages.map((page) => untilTold(page, /Waiting for the event/)));
        const encoder = chain.encoder(channel, { left: 'red', right: 'blue' });
        const event = await chain.event(channel);
        const { problem } = await chain.untilPackaged(event, ({ state }) => state === 'refused');
        expect(problem?.code).toBe('key_file_missing');
        await Promise.all(pages.map((page) => untilTold(page, /not available/)));
        expect(await Promise.all(pages.map(decoded))).toEqual(Array(2).fill({ frames: 0, audioBytes: 0 }));
        expect(filesOf(event)).toEqual([]);
        await chain.provision(channel.id);
        await bothPlay(pages, ['red', 'blue']);
        expect(await Promise.all(pages.map(stateOf))).toEqual(['active', 'active']);
        await expectFaultless(event, channel);
        await encoder.stop();
        await Promise.all(pages.map((page) => untilTold(page, /has ended/)));
        expect(await Promise.all(pages.map(stateOf))).toEqual(['waiting', 'waiting']);
        await replayPlays(viewer, event, ['red', 'blue']);
      },

    'a stream outlives its key file; another key is for the encoder that comes back in another size, and viewers go on with it in the same event':
      async (own) => {
        const viewer = playerPages(own, chain);
        const channel = await chain.channel({ title: 'Two keys', reconnect_window: 1800 });
        await chain.provision(channel.id);
        const pages = await bothPages(viewer, channel);
        const { encoder, event, packaged: before } = await onAir(channel, { left: 'red', right: 'lime' });
        rmSync(chain.keyFilePath(channel.id));
        await chain.untilPackaged(event, ({ seconds }) => seconds > before.seconds + 3);
        await bothPlay(pages, ['red', 'lime']);
        await chain.provision(channel.id, `${channel.id}-second`);

        encoder.send('SIGKILL');
        await chain.untilPackaged(event, ({ state }) => state === 'interrupted');
        expect(await Promise.all(pages.map(stateOf))).toEqual(['active', 'active']);
        chain.encoder(channel, { left: 'blue', right: 'magenta', size: '640x360' });
        const after = await chain.untilPackaged(event, ({ dash }) => dash?.keyIds.length === 2);
        expect(after.dash?.keyIds[0]).toBe(before.dash?.keyIds[0]);
        await bothPlay(pages, ['blue', 'magenta']);
        expect([await chain.event(channel), await partsOf(event)]).toEqual([event, 2]);

        await chain.platform('PUT', `/channels/${channel.id}/disable/`);
        await untilTold(pages[0] as Page, /has ended/);
        await replayPlays(viewer, event, ['red', 'lime']);
      },
  });
});

describe('publication and other streams', () => {
  testsTogether(browser, {
    'nobody sees a manual channel before it is published, but who has the address of its preview': async (
      own,
    ) => {
      const { open, channelPage } = playerPages(own, chain);
      const channel = await provisioned('Manual', { publishing_mode: 'manual' });
      const page = await channelPage(channel.id, 'dash');
      const { event } = await onAir(channel, { left: 'lime', right: 'magenta' });
      const token = await previewTokenOf(channel.id);
      const preview = await open(`/embed/media.html?preview=${token}`);
      await untilPlays(preview, ['lime', 'magenta']);
      await screenshot(preview, 'chain-pictures/preview');
      expect(await stateOf(page)).toBe('waiting');
      expect(await decoded(page)).toEqual({ frames: 0, audioBytes: 0 });
      await chain.platform('PUT', `/channels/${channel.id}/events/${event}/publish/`);
      await untilPlays(page, ['lime', 'magenta']);
    },

    'a wrong stream key and a second encoder are refused, and disabling the channel ends the playback':
      async (own) => {
        const { channelPage } = playerPages(own, chain);
        const channel = await provisioned('One encoder');
        const refused = chain.encoder({ streamKey: 'wrong-stream-key-0123456789' });
        const { encoder: first, event } = await onAir(channel, { left: 'yellow', right: 'cyan' });
        const page = await channelPage(channel.id, 'hls');
        await untilPlays(page, ['yellow', 'cyan']);
        const second = chain.encoder(channel, { left: 'red', right: 'red' });
        expect(await Promise.all([refused.exit, second.exit])).toEqual([1, 1]);
        expect(first.isRunning()).toBe(true);
        await chain.platform('PUT', `/channels/${channel.id}/disable/`);
        expect(await first.exit).not.toBe(0);
        await untilTold(page, /has ended/);
        expect(await page.locator('video').count()).toBe(0);
        expect(await chain.encoder(channel).exit).toBe(1);
        await chain.untilPackaged(event, ({ state }) => state === 'ended');
      },

    'a stream without a picture plays': async (own) => {
      const channel = await provisioned('Only sound');
      chain.encoder(channel, { only: 'audio' });
      const event = await chain.event(channel);
      const page = await playerPages(own, chain).channelPage(channel.id, 'dash');
      await chain.until('sound', async () => (await decoded(page)).audioBytes > 20_000);
      expect((await decoded(page)).frames).toBe(0);
      await screenshot(page, 'chain-pictures/only-sound');
      await expectFaultless(event, channel, ['audio']);
    },
  });
});

test('viewers go on when the packager was killed, and the replay has what was before and after', async () => {
  await chain.stopEncoders();
  const { open, channelPage } = playerPages(browser, chain);
  const channel = await provisioned('Killed packager');
  const { event } = await onAir(channel, { left: 'lime', right: 'yellow' });
  const page = await channelPage(channel.id, 'dash');
  await untilPlays(page, ['lime', 'yellow']);
  const before = (await chain.packaged(event))?.seconds ?? 0;
  await chain.kill('packager');
  // Neither ffmpeg nor shaka-packager outlives it.
  expect((await chain.settledLeftovers()).processes).toEqual([]);
  await chain.startPackager();
  await chain.until('the second part', async () => (await partsOf(event)) === 2);
  await untilPlays(page, ['lime', 'yellow'], 45_000);
  await expectFaultless(event, channel);
  await chain.stopEncoders();
  await chain.advance(1801);
  const { seconds } = await chain.untilPackaged(event, ({ state }) => state === 'ended');
  expect(seconds).toBeGreaterThan(before + 2);
  const replay = await open(`/embed/media.html?mediaId=${event}&format=hls`);
  await untilPlays(replay, ['lime', 'yellow']);
  const length = await replay.evaluate<number>("document.querySelector('video').duration");
  expect(Math.abs(length - seconds)).toBeLessThan(2.5);
});
