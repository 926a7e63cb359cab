import { createV1, okV1, refusedV1 } from '../../../support/call-v1';
import { startEmulator } from '../../../support/start-emulator';

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

test.each([
  ['players/create', {}, 400, 'ParameterMissing', 'name is missing.'],
  ['players/create', { name: '' }, 400, 'ParameterEmpty', 'name is empty.'],
  [
    'players/create',
    { name: 'x'.repeat(201) },
    400,
    'ParameterInvalid',
    'name is longer than 200 characters.',
  ],
  [
    'players/create',
    { name: 'P', responsive: 'maybe' },
    400,
    'ParameterInvalid',
    'responsive must be true or false.',
  ],
  ['players/show', {}, 400, 'ParameterMissing', 'player_key is missing.'],
  ['players/show', { player_key: 'none0000' }, 404, 'NotFound', 'This site has no player with this id.'],
  ['players/update', { player_key: 'none0000' }, 404, 'NotFound', 'This site has no player with this id.'],
] as const)('%s with %j is refused', async (call, parameters, ...refusal) => {
  const emulator = await startEmulator();
  expect(await refusedV1(emulator, call, parameters)).toEqual(refusal);
  expect(emulator.context.state.players.all()).toEqual([]);
});
