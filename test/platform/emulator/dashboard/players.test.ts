import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { fieldsOfForm, startLibraryPages, type TestLibraryPages } from '../../../support/start-library-pages';

const CONFIG = {
  autostart: false,
  aspectratio: '16:9',
  logo: { file: 'https://example.com/l.png', margin: 8 },
};

/** The id of a playlist to recommend. */
async function makePlaylist({ post, context, siteId }: TestLibraryPages): Promise<string> {
  await post('playlists', { site: siteId, title: 'Next', type: 'trending_playlist' });
  return context.state.playlists.all()[0]?.id ?? '';
}

test('makes a player with a setup configuration of any options, and lists it', async () => {
  const emulator = await startLibraryPages();
  const { post, page, context, siteId } = emulator;
  const id = await makePlaylist(emulator);
  const { headers } = await post('players', {
    site: siteId,
    name: 'Main',
    release_channel: 'beta',
    setup_config: JSON.stringify(CONFIG),
    recommendations_playlist: id,
  });
  const [player] = context.state.players.all();
  expect(headers.location).toBe(`/dashboard/players/${player?.id}?done=player-created`);
  expect([player?.metadata, player?.relationships]).toEqual([
    { name: 'Main', release_channel: 'beta', setup_config: CONFIG, custom_params: {} },
    { recommendations_playlist: { id } },
  ]);
  expect(rowsOf(await page('players'))).toEqual([
    [`Main ${player?.id}`, 'beta', 'autostart, aspectratio, logo', '2030-01-01 00:00:00 UTC'],
  ]);
});

test.each([
  ['{"a": 1', 'line 1, column 8'],
  ['{\n  "a": 1,\n  b: 2\n}', 'line 3, column 3'],
  ['{"a": 1}}', 'line 1, column 9'],
])('says where %j is not JSON, and keeps it in the form', async (setup_config, place) => {
  const { post, context, siteId } = await startLibraryPages();
  const { status, text } = await post('players', { site: siteId, name: 'Main', setup_config });
  expect([status, complaintsOf(text)]).toEqual([
    400,
    [`Setup configuration is not valid JSON: look at ${place}. Names and texts are in double quotes.`],
  ]);
  expect(fieldsOfForm(text, 'action="/dashboard/players"').setup_config).toBe(
    setup_config.replaceAll('\n', '\r\n'),
  );
  expect(context.state.players.all()).toEqual([]);
});

test.each([
  ['[1]', 'Setup configuration must be an object.'],
  ['"text"', 'Setup configuration must be an object.'],
  [`${'{"a":'.repeat(30)}1${'}'.repeat(30)}`, 'Setup configuration is nested more than 20 levels deep.'],
])('refuses the configuration %j', async (setup_config, sentence) => {
  const { post, siteId } = await startLibraryPages();
  const { text } = await post('players', { site: siteId, name: 'Main', setup_config });
  expect(complaintsOf(text)).toEqual([sentence]);
});

test('changes a player, keeps what was not edited, and takes a relationship away', async () => {
  const emulator = await startLibraryPages();
  const { post, page, admin, context, siteId } = emulator;
  const id = await makePlaylist(emulator);
  await admin
    .post(`/v2/sites/${siteId}/players/`)
    .send({
      metadata: { name: 'Main', setup_config: CONFIG },
      relationships: { recommendations_playlist: { id } },
    })
    .expect(201);
  const [player] = context.state.players.all();
  const path = `players/${player?.id}`;
  const form = fieldsOfForm(await page(path), `action="/dashboard/${path}"`);
  expect(JSON.parse(String(form.setup_config))).toEqual(CONFIG);
  await post(path, { ...form, name: 'Other', recommendations_playlist: '' });
  expect(player?.metadata).toMatchObject({ name: 'Other', setup_config: CONFIG });
  const shown = await admin.get(`/v2/sites/${siteId}/${path}/`).expect(200);
  expect(shown.body.relationships).toEqual({});
  await post(path, { ...form, setup_config: '' });
  expect(player?.metadata.setup_config).toEqual({});
});

test('refuses to recommend a playlist that the site does not have', async () => {
  const { post, siteId, context } = await startLibraryPages();
  const { status, text } = await post('players', {
    site: siteId,
    name: 'Main',
    recommendations_playlist: 'nothing1',
  });
  expect([status, complaintsOf(text)]).toEqual([400, [expect.stringMatching(/^Recommendations playlist/)]]);
  expect(context.state.players.all()).toEqual([]);
});

test('deletes a player', async () => {
  const { post, context, siteId, unauthenticated } = await startLibraryPages();
  await post('players', { site: siteId, name: '', release_channel: 'production' });
  const [player] = context.state.players.all();
  const { text } = await unauthenticated.get(`/dashboard/players/${player?.id}`);
  expect(textOf(text)).toContain('Unnamed player');
  const { headers } = await post(`players/${player?.id}/delete`);
  expect(headers.location).toBe('/dashboard/players?done=player-deleted');
  expect(context.state.players.all()).toEqual([]);
  const gone = await post(`players/${player?.id}/delete`);
  expect([gone.status, textOf(gone.text)]).toEqual([
    404,
    expect.stringContaining('There is no player with this id.'),
  ]);
});
