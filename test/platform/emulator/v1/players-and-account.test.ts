import { createV1, okV1, readyVideo } from '../../../support/call-v1';
import { START } from '../../../support/sign-v1';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const V2 = '/v2/sites/demosite/players/';

test('a player has its options at the top, and v2 has them in setup_config', async () => {
  const emulator = await startEmulator();
  const player_key = await createV1(emulator, 'player', {
    name: 'P',
    release_channel: 'beta',
    aspectratio: '16:9',
    responsive: 'true',
    playback_rate_controls: '0.5,1,2',
    skin: 'dark',
    'custom.x': '1',
  });
  expect((await okV1(emulator, 'players/show', { player_key })).player).toEqual({
    key: player_key,
    name: 'P',
    release_channel: 'beta',
    aspectratio: '16:9',
    responsive: true,
    playback_rate_controls: '0.5,1,2',
    skin: 'dark',
    custom: { x: '1' },
  });
  expect((await emulator.admin.get(`${V2}${player_key}/`)).body.metadata).toEqual({
    name: 'P',
    release_channel: 'beta',
    setup_config: { aspectratio: '16:9', responsive: true, playbackRateControls: [0.5, 1, 2], skin: 'dark' },
    custom_params: { x: '1' },
  });
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
  const [a, b] = [
    await createV1(emulator, 'player', { name: 'Red' }),
    await createV1(emulator, 'player', { name: 'Blue' }),
  ];
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
  const [a, b] = [
    await createV1(emulator, 'video', { tags: 'old,x' }),
    await createV1(emulator, 'video', { tags: 'new,old' }),
  ];
  expect(await okV1(emulator, 'accounts/tags/update', { name: 'old', new_name: 'new' })).toEqual({
    status: 'ok',
  });
  expect([await tagsOf(emulator, a), await tagsOf(emulator, b)]).toEqual(['new,x', 'new']);
  expect(await okV1(emulator, 'accounts/tags/delete', { name: 'new' })).toEqual({ status: 'ok' });
  expect([await tagsOf(emulator, a), await tagsOf(emulator, b)]).toEqual(['x', '']);
});

test('the usage of the site is told for each day', async () => {
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
