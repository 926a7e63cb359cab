import { callV1, createV1, type Fields, okV1, readyVideo } from '../../../support/call-v1';
import { START } from '../../../support/sign-v1';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const V2 = '/v2/sites/demosite/playlists/';

test('a channel is dynamic unless something else is said, and v2 has it as a playlist', async () => {
  const emulator = await startEmulator();
  const channel_key = await createV1(emulator, 'channel', {
    title: 'C',
    description: 'D',
    tags: 'a,b',
    tags_mode: 'any',
    sort_order: 'title-desc',
    videos_max: '5',
    'custom.x': '1',
  });
  expect((await okV1(emulator, 'channels/show', { channel_key })).channel).toEqual({
    key: channel_key,
    type: 'dynamic',
    title: 'C',
    description: 'D',
    author: null,
    link: null,
    tags: 'a,b',
    tags_mode: 'any',
    sort_order: 'title-desc',
    videos_max: '5',
    updated: START,
    custom: { x: '1' },
  });
  const { body } = await emulator.admin.get(`${V2}${channel_key}/dynamic_playlist/`).expect(200);
  expect([body.playlist_type, body.metadata]).toEqual([
    'dynamic_playlist',
    expect.objectContaining({
      media_filter: { include: { tags: { match: 'any', values: ['a', 'b'] } } },
      sort: 'title:dsc',
      media_limit: 5,
    }),
  ]);
});

test('an update changes a part of the filter and single custom parameters', async () => {
  const emulator = await startEmulator();
  const filter = { tags: 'a', tags_mode: 'any' };
  const channel_key = await createV1(emulator, 'channel', { ...filter, 'custom.x': '1', 'custom.y': '1' });
  const changes = { tags: 'b,c', 'custom.-x': '', 'custom.z': '2' };
  await okV1(emulator, 'channels/update', { channel_key, ...changes });
  const { channel } = await okV1(emulator, 'channels/show', { channel_key });
  expect(channel).toMatchObject({ tags: 'b,c', tags_mode: 'any', custom: { y: '1', z: '2' } });
});

test('a channel can be of every type', async () => {
  const emulator = await startEmulator();
  for (const type of ['manual', 'dynamic', 'trending', 'search', 'recommendations', 'article_matching']) {
    const key = await createV1(emulator, 'channel', { type, title: 'C' });
    expect((await okV1(emulator, 'channels/list', { type })).channels).toMatchObject([{ key, type }]);
  }
});

/** A manual channel with four videos, and its members by the names that they were given. */
async function startMembers() {
  const emulator = await startEmulator();
  const channel_key = await createV1(emulator, 'channel', { type: 'manual' });
  const keys = new Map<string, string>();
  for (const title of ['A', 'B', 'C', 'D']) {
    const video_key = await createV1(emulator, 'video', { title });
    keys.set(title, video_key);
    if (title !== 'D') await okV1(emulator, 'channels/videos/create', { channel_key, video_key });
  }
  const members = async (parameters = {}) => {
    const { videos } = await okV1(emulator, 'channels/videos/list', { channel_key, ...parameters });
    return (videos as readonly { title: string }[]).map(({ title }) => title).join('');
  };
  return { emulator, channel_key, keyOf: (title: string) => keys.get(title) ?? '', members };
}

test('members are added at the end, or at a position', async () => {
  const { emulator, channel_key, keyOf, members } = await startMembers();
  expect(await members()).toBe('ABC');
  await okV1(emulator, 'channels/videos/create', { channel_key, video_key: keyOf('D'), position: '1' });
  expect(await members()).toBe('ADBC');
  const { body } = await emulator.admin.get(`${V2}${channel_key}/manual_playlist/`);
  expect(body.metadata.media_filter.include.values).toEqual(['A', 'D', 'B', 'C'].map(keyOf));
});

test('members are listed in a window, with the total of all', async () => {
  const { emulator, channel_key, members } = await startMembers();
  expect(await members({ result_limit: '1', result_offset: '1' })).toBe('B');
  const page = { channel_key, result_limit: '1', result_offset: '9' };
  const empty = { status: 'ok', limit: 1, offset: 9, total: 3, videos: [] };
  expect(await okV1(emulator, 'channels/videos/list', page)).toEqual(empty);
});

test('members are moved, shown and taken away by key or position', async () => {
  const { emulator, channel_key, keyOf, members } = await startMembers();
  const move = { channel_key, position_from: '0', position_to: '2' };
  expect(await okV1(emulator, 'channels/videos/update', move)).toEqual({ status: 'ok' });
  expect(await members()).toBe('BCA');
  const titleAt = async (parameters: object) =>
    ((await okV1(emulator, 'channels/videos/show', { channel_key, ...parameters })).video as Fields).title;
  expect([await titleAt({ position: '0' }), await titleAt({ video_key: keyOf('A') })]).toEqual(['B', 'A']);
  await okV1(emulator, 'channels/videos/delete', { channel_key, video_key: keyOf('C') });
  const removed = await okV1(emulator, 'channels/videos/delete', { channel_key, position: '0' });
  expect(removed).toEqual({ status: 'ok' });
  expect(await members()).toBe('A');
});

test('a dynamic channel lists the videos that its tags find, in its order', async () => {
  const emulator = await startEmulator();
  for (const title of ['B', 'A', 'C']) await readyVideo(emulator, { title, tags: title === 'C' ? 'y' : 'x' });
  const channel_key = await createV1(emulator, 'channel', { tags: 'x', sort_order: 'title-asc' });
  const listed = await okV1(emulator, 'channels/videos/list', { channel_key, result_limit: '1' });
  expect(listed).toMatchObject({ limit: 1, total: 2, videos: [{ title: 'A' }] });
  const second = await okV1(emulator, 'channels/videos/show', { channel_key, position: '1' });
  expect(second).toMatchObject({ video: { title: 'B' } });
});

test('channels are found and deleted, several with a call or none', async () => {
  const emulator = await startEmulator();
  const a = await createV1(emulator, 'channel', { title: 'Red' });
  const b = await createV1(emulator, 'channel', { title: 'Blue', type: 'manual' });
  expect((await okV1(emulator, 'channels/list', { search: 'red' })).channels).toMatchObject([{ key: a }]);
  expect((await callV1(emulator, 'channels/delete', { channel_key: `${a},none0000` })).status).toBe(404);
  expect((await okV1(emulator, 'channels/list')).channels).toHaveLength(2);
  await okV1(emulator, 'channels/delete', { channel_key: `${a},${b}` });
  expect((await okV1(emulator, 'channels/list')).channels).toEqual([]);
});

describe('players and the account', () => {
  test('a player has its options at the top, and v2 has them in setup_config', async () => {
    const emulator = await startEmulator();
    const sent = { name: 'P', playback_rate_controls: '0.5,1,2' };
    const player_key = await createV1(emulator, 'player', { ...sent, responsive: 'true', 'custom.x': '1' });
    const shown = {
      key: player_key,
      ...sent,
      release_channel: 'production',
      responsive: true,
      custom: { x: '1' },
    };
    expect((await okV1(emulator, 'players/show', { player_key })).player).toEqual(shown);
    const { body } = await emulator.admin.get(`/v2/sites/demosite/players/${player_key}/`);
    expect(body.metadata.setup_config).toEqual({ responsive: true, playbackRateControls: [0.5, 1, 2] });
  });

  test('an update keeps the options that it does not name', async () => {
    const emulator = await startEmulator();
    const player_key = await createV1(emulator, 'player', { name: 'P', repeat: 'true', preload: 'auto' });
    await okV1(emulator, 'players/update', { player_key, repeat: 'false', 'custom.a': 'b' });
    expect((await okV1(emulator, 'players/show', { player_key })).player).toEqual({
      key: player_key,
      name: 'P',
      release_channel: 'production',
      repeat: false,
      preload: 'auto',
      custom: { a: 'b' },
    });
  });

  test('players are listed, searched and deleted', async () => {
    const emulator = await startEmulator();
    const a = await createV1(emulator, 'player', { name: 'Red' });
    const b = await createV1(emulator, 'player', { name: 'Blue' });
    const { total, players } = await okV1(emulator, 'players/list', { order_by: 'name:asc' });
    expect([total, players]).toMatchObject([2, [{ key: b }, { key: a }]]);
    expect((await okV1(emulator, 'players/list', { search: 'ed' })).players).toMatchObject([{ key: a }]);
    await okV1(emulator, 'players/delete', { player_key: `${a},${b}` });
    expect((await okV1(emulator, 'players/list')).total).toBe(0);
  });

  async function tagsOf(emulator: TestEmulator, video_key: string): Promise<unknown> {
    return ((await okV1(emulator, 'videos/show', { video_key })).video as { tags: unknown }).tags;
  }

  test('a tag is renamed and taken off all videos of the site', async () => {
    const emulator = await startEmulator();
    const a = await createV1(emulator, 'video', { tags: 'old,x' });
    const b = await createV1(emulator, 'video', { tags: 'new,old' });
    const tags = async () => [await tagsOf(emulator, a), await tagsOf(emulator, b)];
    const renamed = await okV1(emulator, 'accounts/tags/update', { name: 'old', new_name: 'new' });
    expect(renamed).toEqual({ status: 'ok' });
    expect(await tags()).toEqual(['new,x', 'new']);
    expect(await okV1(emulator, 'accounts/tags/delete', { name: 'new' })).toEqual({ status: 'ok' });
    expect(await tags()).toEqual(['x', '']);
  });

  test('the usage of the site is returned for each day', async () => {
    const emulator = await startEmulator();
    await readyVideo(emulator);
    const day = { start_date: String(START), end_date: String(START + 60) };
    expect(await okV1(emulator, 'accounts/usage/show', day)).toEqual({
      status: 'ok',
      account: { key: 'demosite' },
      start_date: '2030-01-01',
      end_date: '2030-01-01',
      usage: [expect.objectContaining({ site_id: 'demosite', date: '2030-01-01', uploaded_bytes: 6 })],
    });
    const { usage } = await okV1(emulator, 'accounts/usage/show', { account_key: 'demosite' });
    expect(usage).toHaveLength(30);
  });
});
