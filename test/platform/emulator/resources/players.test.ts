import { startLibrary } from '../../../support/start-library';

const NOW = '2030-01-01T00:00:00.000000+00:00';

test('a player keeps its settings as they are, whatever they are', async () => {
  const { post, read } = await startLibrary();
  const setup_config = {
    autostart: 'viewable',
    playbackRateControls: [0.5, 1, 2],
    advertising: { client: 'vast', schedule: { a: { offset: 'pre', tag: null } } },
    responsive: true,
    '': 'an empty name',
  };
  const metadata = { name: 'Main', release_channel: 'beta', setup_config, custom_params: { team: 'web' } };
  const made = await post('/players/', { metadata });
  expect(made).toEqual({
    id: made.id,
    type: 'player',
    created: NOW,
    last_modified: NOW,
    metadata,
    relationships: {},
    schema: null,
  });
  expect(await read(`/players/${made.id}`)).toEqual(made);
});

test('a player without a word has every field with its default', async () => {
  const { post } = await startLibrary();
  expect((await post('/players/')).metadata).toEqual({
    name: '',
    release_channel: 'production',
    setup_config: {},
    custom_params: {},
  });
});

test('settings are replaced as a whole, and stay when an update has none', async () => {
  const { post, admin, site } = await startLibrary();
  const { id } = await post('/players/', { metadata: { name: 'A', setup_config: { mute: true, a: 1 } } });
  const change = async (metadata: object) =>
    (await admin.patch(`${site}/players/${id}/`).send({ metadata }).expect(200)).body.metadata;
  expect(await change({ name: 'B' })).toMatchObject({ name: 'B', setup_config: { mute: true, a: 1 } });
  expect(await change({ setup_config: { a: 2 } })).toMatchObject({ name: 'B', setup_config: { a: 2 } });
  expect(await change({ setup_config: {} })).toMatchObject({ setup_config: {} });
});

test('a player goes on with a playlist of its site, until that is taken from it', async () => {
  const { post, admin, site } = await startLibrary();
  const list = await post('/playlists/recommendations_playlist/', { metadata: {} });
  const relationships = { recommendations_playlist: { id: list.id }, adschedule: { id: 'schedule' } };
  const { id, relationships: kept } = await post('/players/', { relationships });
  expect(kept).toEqual(relationships);
  const change = (given: object) => admin.patch(`${site}/players/${id}`).send({ relationships: given });
  const { status, body } = await change({ recommendations_playlist: { id: 'nothing0' }, adschedule: null });
  expect([status, body.errors]).toEqual([
    400,
    [
      {
        code: 'invalid_body',
        description: 'relationships.recommendations_playlist.id: this site has no playlist with this id',
      },
    ],
  ]);
  expect((await change({})).body.relationships).toEqual(relationships);
  expect((await change({ recommendations_playlist: null })).body.relationships).toEqual({
    adschedule: { id: 'schedule' },
  });
});
