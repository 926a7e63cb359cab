import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startBrowser } from '../support/dashboard-browser';
import { chainForAll } from '../support/real-chain';
import { decoded, playerPages, screenshot, told, untilPlays } from '../support/real-player';

jest.setTimeout(120_000);

const browser = startBrowser();
const chain = chainForAll();

const { open, channelPage } = playerPages(browser, chain);

const manifest = (event: string) => `${chain.url('emulator')}/live/events/${event}.mpd`;

/** All files with media or manifests that the packager has of a stream. */
const filesOf = (event: string): string[] =>
  readdirSync(chain.mediaFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath.includes(event))
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => !path.endsWith('stream.json'));

test('a channel without a key file shows and keeps nothing, and starts by itself when it is provisioned', async () => {
  const channel = await chain.channel({ title: 'Without a key file' });
  const page = await channelPage(channel.id, 'dash');
  chain.encoder(channel, { left: 'cyan', right: 'red' });
  const event = await chain.event(channel);
  const { problem } = await chain.untilPackaged(event, ({ state }) => state === 'refused');
  expect(problem).toEqual({
    code: 'key_file_missing',
    description: `The key file ${channel.id}.key does not exist; provision the stream, then it starts by itself.`,
  });
  await chain.until('the embed to say so', async () => /no picture yet/.test(await told(page)));
  expect(await decoded(page)).toEqual({ frames: 0, audioBytes: 0 });
  expect(filesOf(event)).toEqual([]);
  const paths = ['.mpd', '/dash/manifest.mpd', '/hls/master.m3u8', '/hls/video.m3u8'];
  const answers = await Promise.all(paths.map((path) => chain.get(`/live/events/${event}${path}`)));
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
  expect((await chain.get(`/live/events/${event}.m3u8`)).text).not.toContain('EXTINF');
  await chain.provision(channel.id);
  await untilPlays(page, ['cyan', 'red']);
  const { exitCode, codes } = await chain.verify(manifest(event), chain.keyFilePath(channel.id));
  expect({ exitCode, codes }).toEqual({ exitCode: 0, codes: [] });
});

test('a new key is for the next event, and meanwhile verify tells that the former one is in use', async () => {
  const channel = await chain.channel({ title: 'Two keys' });
  await chain.provision(channel.id, 'first-content');
  const first = chain.encoder(channel, { left: 'red', right: 'lime' });
  const event = await chain.event(channel);
  const before = await chain.untilPackaged(event, ({ state }) => state === 'running');
  const former = join(chain.home, 'former.key');
  writeFileSync(former, readFileSync(chain.keyFilePath(channel.id)));
  await chain.provision(channel.id, 'second-content');
  const page = await channelPage(channel.id, 'dash');
  await untilPlays(page, ['red', 'lime']);
  const meanwhile = await chain.verify(manifest(event), chain.keyFilePath(channel.id), '--former', former);
  expect({ exitCode: meanwhile.exitCode, codes: meanwhile.codes }).toMatchObject({
    exitCode: 1,
    codes: expect.arrayContaining(['former_key']),
  });
  await first.stop();
  await chain.advance(61);
  await chain.until('the embed to wait', async () => (await told(page)).includes('has ended'));
  chain.encoder(channel, { left: 'blue', right: 'yellow' });
  const next = await chain.event(channel);
  await untilPlays(page, ['blue', 'yellow']);
  const after = await chain.packaged(next);
  expect(after?.dash?.keyIds).toHaveLength(1);
  expect(after?.dash?.keyIds).not.toEqual(before.dash?.keyIds);
  const { exitCode, codes } = await chain.verify(manifest(next), chain.keyFilePath(channel.id));
  expect({ exitCode, codes }).toEqual({ exitCode: 0, codes: [] });
  const replay = await open(`/embed/media.html?mediaId=${event}&format=dash`);
  await untilPlays(replay, ['red', 'lime']);
});

test('a stream outlives its key file, and the next event is refused until there is a whole one', async () => {
  const channels = await Promise.all(['Deleted', 'Torn'].map((title) => chain.channel({ title })));
  const [deleted, torn] = channels as [(typeof channels)[0], (typeof channels)[0]];
  await Promise.all(channels.map(({ id }) => chain.provision(id)));
  const encoders = channels.map((channel) => chain.encoder(channel, { left: 'red', right: 'cyan' }));
  const events = await Promise.all(channels.map((channel) => chain.event(channel)));
  const seconds = async () => Promise.all(events.map(async (id) => (await chain.packaged(id))?.seconds ?? 0));
  for (const event of events) await chain.untilPackaged(event, ({ state }) => state === 'running');
  const whole = readFileSync(chain.keyFilePath(torn.id), 'utf8');
  rmSync(chain.keyFilePath(deleted.id));
  writeFileSync(chain.keyFilePath(torn.id), whole.slice(0, whole.length / 2));
  const reached = await seconds();
  await chain.until('both to go on', async () =>
    (await seconds()).every((now, index) => now > (reached[index] ?? 0) + 3),
  );
  const page = await channelPage(deleted.id, 'dash');
  await untilPlays(page, ['red', 'cyan']);
  await screenshot(page, 'outlives-key-file');
  await Promise.all(encoders.map((encoder) => encoder.stop()));
  await chain.advance(61);
  for (const event of events) await chain.untilPackaged(event, ({ state }) => state === 'ended');
  for (const channel of channels) chain.encoder(channel);
  const next = await Promise.all(channels.map((channel) => chain.event(channel)));
  const refused = await Promise.all(
    next.map((id) => chain.untilPackaged(id, ({ state }) => state === 'refused')),
  );
  expect(refused.map(({ problem }) => problem?.code)).toEqual(['key_file_missing', 'key_file_torn']);
  expect(next.flatMap(filesOf)).toEqual([]);
  writeFileSync(chain.keyFilePath(torn.id), whole);
  await chain.untilPackaged(next[1] ?? '', ({ state }) => state === 'running');
});
