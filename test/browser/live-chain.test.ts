import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { screenshot } from '../support/chromium';
import { startBrowser } from '../support/dashboard-browser';
import { chainForAll, type TestChannel } from '../support/real-chain';
import { type Picture, pictureArguments } from '../support/real-encoder';
import { decoded, playerPages, shownBy, stateOf, told, untilPlays } from '../support/real-player';
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
  chain.until(`the embed to say ${words}`, async () => words.test(await told(page)));

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

describe('keys and silence', () => {
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
        const paths = ['.mpd', '/dash/manifest.mpd', '/hls/master.m3u8', '/hls/video.m3u8'];
        const answers = await Promise.all(paths.map((path) => chain.get(`/live/events/${event}${path}`)));
        expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
        expect((await chain.get(`/live/events/${event}.m3u8`)).text).not.toContain('EXTINF');
        await chain.provision(channel.id);
        await bothPlay(pages, ['red', 'blue']);
        expect(await Promise.all(pages.map(stateOf))).toEqual(['active', 'active']);
        await expectFaultless(event, channel);
        await encoder.stop();
        await Promise.all(pages.map((page) => untilTold(page, /has ended/)));
        expect(await Promise.all(pages.map(stateOf))).toEqual(['waiting', 'waiting']);
        await replayPlays(viewer, event, ['red', 'blue']);
      },

    'an encoder that sends FLV1 and MP3 is refused: viewers hear that it is not available, its owner why; H.264 and AAC play in the same event':
      async (own) => {
        const viewer = playerPages(own, chain);
        const channel = await provisioned('Old codecs', { reconnect_window: 600 });
        const encoder = chain.encoder(channel, { isOld: true });
        const event = await chain.event(channel);
        const { problem } = await chain.untilPackaged(event, ({ state }) => state === 'refused');
        expect(problem?.code).toBe('codec_unsupported');
        const page = await viewer.channelPage(channel.id, 'dash');
        await untilTold(page, /The stream is not available/);
        const preview = await viewer.open(`/embed/media.html?preview=${await previewTokenOf(channel.id)}`);
        await untilTold(preview, /The encoder sends audio as MPEG-1 audio. Set it to H.264 video and AAC/);
        await encoder.stop();
        chain.encoder(channel, { left: 'red', right: 'blue' });
        await untilPlays(page, ['red', 'blue'], 45_000);
        expect(await stateOf(page)).toBe('active');
      },

    'a stream outlives its key file; another key is for the encoder that comes back, and viewers go on with it in the same event':
      async (own) => {
        const viewer = playerPages(own, chain);
        const channel = await chain.channel({ title: 'Two keys', reconnect_window: 1800 });
        await chain.provision(channel.id);
        const keyFile = chain.keyFilePath(channel.id);
        const former = join(chain.home, 'former.key');
        writeFileSync(former, readFileSync(keyFile));
        const pages = await bothPages(viewer, channel);
        const { encoder, event, packaged: before } = await onAir(channel, { left: 'red', right: 'lime' });
        rmSync(keyFile);
        await chain.untilPackaged(event, ({ seconds }) => seconds > before.seconds + 3);
        await bothPlay(pages, ['red', 'lime']);
        await chain.provision(channel.id, `${channel.id}-second`);
        const url = `${chain.url('emulator')}/live/events/${event}.mpd`;
        const meanwhile = await chain.verify(url, keyFile, '--former', former);
        expect(meanwhile).toMatchObject({ exitCode: 1, codes: expect.arrayContaining(['former_key']) });

        encoder.send('SIGKILL');
        await chain.untilPackaged(event, ({ state }) => state === 'interrupted');
        expect(await Promise.all(pages.map(stateOf))).toEqual(['active', 'active']);
        chain.encoder(channel, { left: 'blue', right: 'magenta' });
        const after = await chain.untilPackaged(event, ({ dash }) => dash?.keyIds.length === 2);
        expect(after.dash?.keyIds[0]).toBe(before.dash?.keyIds[0]);
        await bothPlay(pages, ['blue', 'magenta']);
        expect([await chain.event(channel), await partsOf(event)]).toEqual([event, 2]);

        await chain.platform('PUT', `/channels/${channel.id}/disable/`);
        await untilTold(pages[0] as Page, /has ended/);
        await replayPlays(viewer, event, ['red', 'lime']);
        const whole = readFileSync(keyFile, 'utf8');
        writeFileSync(keyFile, whole.slice(0, whole.length / 2));
        await chain.platform('PUT', `/channels/${channel.id}/enable/`);
        chain.encoder(channel);
        const next = await chain.event(channel);
        const { problem } = await chain.untilPackaged(next, ({ state }) => state === 'refused');
        expect([problem?.code, filesOf(next)]).toEqual(['key_file_torn', []]);
        writeFileSync(keyFile, whole);
        const { dash } = await chain.untilPackaged(next, ({ state }) => state === 'running');
        expect(dash?.keyIds).toEqual(after.dash?.keyIds.slice(1));
      },

    'an encoder that falls silent until the picture stops goes on in the same event, and its viewers with it':
      async (own) => {
        const { channelPage } = playerPages(own, chain);
        const channel = await provisioned('Silent');
        const { encoder, event } = await onAir(channel, { left: 'magenta', right: 'cyan' });
        const page = await channelPage(channel.id, 'dash');
        await untilPlays(page, ['magenta', 'cyan']);
        encoder.send('SIGSTOP');
        await chain.untilPackaged(event, ({ problem }) => problem?.code === 'encoder_silent');
        await untilTold(page, /picture has stopped/);
        expect(await stateOf(page)).toBe('active');
        encoder.send('SIGCONT');
        await untilPlays(page, ['magenta', 'cyan'], 45_000);
        expect([await chain.event(channel), await partsOf(event)]).toEqual([event, 1]);
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
      const segment = await segmentPathOf(`/live/previews/${token}`);
      expect((await chain.get(segment)).status).toBe(200);
      const hidden = segment.replace(`/live/previews/${token}`, `/live/events/${event}`);
      expect(new Set([...(await statusesOf(event)), (await chain.get(hidden)).status])).toEqual(
        new Set([404]),
      );
      expect(await stateOf(page)).toBe('waiting');
      expect(await decoded(page)).toEqual({ frames: 0, audioBytes: 0 });
      await chain.platform('PUT', `/channels/${channel.id}/events/${event}/publish/`);
      await untilPlays(page, ['lime', 'magenta']);
      expect((await chain.get(hidden)).status).toBe(200);
      expect(new Set(await statusesOf(event))).toEqual(new Set([200]));
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
        const { frames } = await decoded(page);
        await chain.until(
          'more pictures of the first',
          async () => (await decoded(page)).frames > frames + 30,
        );
        expect((await shownBy(page)).halves).toEqual(['yellow', 'cyan']);
        expect(first.isRunning()).toBe(true);
        await chain.platform('PUT', `/channels/${channel.id}/disable/`);
        expect(await first.exit).not.toBe(0);
        await untilTold(page, /has ended/);
        expect(await page.locator('video').count()).toBe(0);
        expect(await chain.encoder(channel).exit).toBe(1);
        await chain.untilPackaged(event, ({ state }) => state === 'ended');
      },

    'a channel with low latency plays in segments of a second, half as far behind as another one': async (
      own,
    ) => {
      const viewer = playerPages(own, chain);
      const found: Record<string, { readonly mean: number; readonly delay: string }> = {};
      for (const latency of ['low', 'normal']) {
        const channel = await provisioned(latency, { latency });
        const { encoder, event } = await onAir(channel, { left: 'red', right: 'cyan' });
        if (latency === 'low') {
          await bothPlay(await bothPages(viewer, channel), ['red', 'cyan']);
          await expectFaultless(event, channel);
        } else await chain.untilPackaged(event, ({ seconds }) => seconds > 6);
        const { text } = await chain.get(`/live/events/${event}/hls/video.m3u8`);
        const all = [...text.matchAll(/#EXTINF:([\d.]+)/g)].map(([, seconds]) => Number(seconds));
        const { text: manifest } = await chain.get(`/live/events/${event}/dash/manifest.mpd`);
        const [, delay = ''] = /suggestedPresentationDelay="(\w+)"/.exec(manifest) ?? [];
        found[latency] = { mean: all.reduce((sum, each) => sum + each) / all.length, delay };
        await encoder.stop();
      }
      expect(found).toMatchObject({ low: { delay: 'PT3S' }, normal: { delay: 'PT6S' } });
      // The encoder has key frames amid a second, too, and a segment ends at the first one behind its length.
      expect(found.low?.mean).toBeLessThan(1.5);
      expect(found.normal?.mean).toBeGreaterThan(1.5);
    },

    'a change of resolution, a jump of time and a stream without a picture play': async (own) => {
      const { channelPage } = playerPages(own, chain);
      const titles = ['Resolution', 'Jump', 'Only sound'];
      const channels = await Promise.all(titles.map((title) => provisioned(title)));
      const [resolution, jump, sound] = channels as [TestChannel, TestChannel, TestChannel];
      const [list, small, large, whole] = ['list', 'small.flv', 'large.flv', 'whole.flv'].map((name) =>
        join(chain.home, name),
      ) as [string, string, string, string];
      await Promise.all([
        chain.makeFile(small, pictureArguments({ left: 'red', right: 'lime', seconds: 10 })),
        chain.makeFile(
          large,
          pictureArguments({ left: 'blue', right: 'yellow', size: '640x360', seconds: 60 }),
        ),
        chain.makeFile(whole, pictureArguments({ left: 'cyan', right: 'magenta', seconds: 60 })),
      ]);
      writeFileSync(list, `ffconcat version 1.0\nfile ${small}\nfile ${large}\n`);
      chain.ffmpeg(['-re', '-f', 'concat', '-safe', '0', '-i', list, '-c', 'copy'], resolution);
      const skip = 'setts=pts=PTS+if(gt(DTS\\,10000)\\,60000):dts=DTS+if(gt(DTS\\,10000)\\,60000)';
      chain.ffmpeg(['-re', '-i', whole, '-c', 'copy', '-bsf:v', skip, '-bsf:a', skip], jump);
      chain.encoder(sound, { only: 'audio' });
      const [resized = '', jumped = '', heard = ''] = await Promise.all(
        channels.map((each) => chain.event(each)),
      );
      const pages = await Promise.all([
        channelPage(resolution.id, 'dash'),
        channelPage(jump.id, 'hls'),
        channelPage(sound.id, 'dash'),
      ]);
      await Promise.all([
        untilPlays(pages[0], ['blue', 'yellow'], 45_000),
        untilPlays(pages[1], ['cyan', 'magenta'], 45_000),
        chain.until('sound', async () => (await decoded(pages[2])).audioBytes > 20_000),
      ]);
      expect((await decoded(pages[2])).frames).toBe(0);
      await screenshot(pages[2], 'chain-pictures/only-sound');
      await chain.until(
        'both parts',
        async () => (await Promise.all([resized, jumped].map(partsOf))).join() === '2,2',
      );
      expect(await partsOf(heard)).toBe(1);
      await expectFaultless(resized, resolution);
      await expectFaultless(jumped, jump);
      await expectFaultless(heard, sound, ['audio']);
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

test('channels have keys of their own, and leave no process behind when their events have ended', async () => {
  const { channels } = await chain.platform('GET', '/channels/?page_length=100');
  const isOver = ({ state }: { readonly state: string }) => state === 'ended';
  const ofChannels = (channels as { recent_events: { media_id: string }[] }[]).map(async (each) => {
    const ids = each.recent_events.map(({ media_id }) => media_id);
    const streams = await Promise.all(ids.map((event) => chain.untilPackaged(event, isOver)));
    // A stream that was refused to its end has no key; two events of a channel may have one.
    return [...new Set(streams.flatMap(({ dash }) => dash?.keyIds[0] ?? []))];
  });
  const keyIds = (await Promise.all(ofChannels)).flat();
  expect(new Set(keyIds).size).toBe(keyIds.length);
  expect(await chain.settledLeftovers()).toEqual({ processes: [], fifos: [] });
});
