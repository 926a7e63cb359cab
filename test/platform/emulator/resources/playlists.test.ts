import { onceForAll } from '../../../support/after-test';
import { answered } from '../../../support/resource-bodies';
import { startLibrary } from '../../../support/start-library';

const COMMON = {
  title: 'List',
  description: 'About',
  author: 'Ann',
  link: 'https://x.example/',
  custom_params: { a: 'b' },
};
const FILTER = {
  include: { tags: { match: 'all', values: ['news'] } },
  exclude: { custom_params: { values: { a: 'b' } } },
};

const TYPES = [
  ['manual_playlist', { media_filter: { include: { match: 'any', values: ['id000001', 'id000002'] } } }],
  ['dynamic_playlist', { media_filter: FILTER, sort: 'title:asc', media_limit: 20 }],
  ['trending_playlist', { media_filter: FILTER, media_limit: 5 }],
  ['article_matching_playlist', { media_filter: FILTER, media_limit: 5 }],
  ['search_playlist', { media_filter: FILTER, query: 'words', media_limit: 5 }],
  ['recommendations_playlist', { media_filter: FILTER, media_limit: 5 }],
] as const;

const shared = onceForAll(() => startLibrary());

describe.each(TYPES)('a %s', (type, own) => {
  test('shows what every playlist has at the common path, and what it alone has at its own', async () => {
    const { post, read } = await startLibrary();
    const made = await post(`/playlists/${type}/`, { metadata: { ...COMMON, ...own } });
    expect(made).toEqual({ ...answered(type), playlist_type: type, metadata: { ...COMMON, ...own } });
    expect(await read(`/playlists/${made.id}/${type}/`)).toEqual(made);
    const common = { ...answered('playlist', made.id), playlist_type: type, metadata: COMMON };
    expect(await read(`/playlists/${made.id}/`)).toEqual(common);
    expect(await read('/playlists/')).toEqual({ page: 1, page_length: 10, total: 1, playlists: [common] });
  });

  test('is changed at its own path alone, each field as a whole', async () => {
    const { post, admin, site } = await shared();
    const { id } = await post(`/playlists/${type}/`, { metadata: { ...COMMON, ...own } });
    const metadata = { title: 'New', media_filter: {} };
    const { body } = await admin.patch(`${site}/playlists/${id}/${type}/`).send({ metadata }).expect(200);
    expect(body.metadata).toEqual({ ...COMMON, ...own, ...metadata });
    await admin.patch(`${site}/playlists/${id}/`).send({ metadata }).expect(405);
  });

  test('is not there at the paths of other types, and is deleted at either of its own', async () => {
    const { post, admin, site } = await shared();
    const [one, two] = [
      await post(`/playlists/${type}/`, { metadata: {} }),
      await post(`/playlists/${type}`, { metadata: {} }),
    ];
    for (const other of [...TYPES.map(([each]) => each).filter((each) => each !== type), 'nothing']) {
      await admin.get(`${site}/playlists/${one.id}/${other}/`).expect(404);
      await admin.delete(`${site}/playlists/${one.id}/${other}`).expect(404);
    }
    await admin.delete(`${site}/playlists/${one.id}/`).expect(204);
    await admin.delete(`${site}/playlists/${two.id}/${type}/`).expect(204);
    for (const { id } of [one, two]) await admin.get(`${site}/playlists/${id}/`).expect(404);
  });
});

describe('players', () => {
  test('a player without a word has every field with its default', async () => {
    const { post, read } = await startLibrary();
    const made = await post('/players/');
    expect(made).toEqual({
      ...answered('player'),
      metadata: { name: '', release_channel: 'production', setup_config: {}, custom_params: {} },
    });
    expect(await read(`/players/${made.id}`)).toEqual(made);
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
    const description = 'relationships.recommendations_playlist.id: this site has no playlist with this id';
    expect([status, body.errors]).toEqual([400, [{ code: 'invalid_body', description }]]);
    expect((await change({})).body.relationships).toEqual(relationships);
    expect((await change({ recommendations_playlist: null })).body.relationships).toEqual({
      adschedule: { id: 'schedule' },
    });
  });
});

test('an import keeps what its feed is, without the password, and reads nothing', async () => {
  const { admin, site, post, read, advance } = await startLibrary();
  const url = 'http://127.0.0.1:1/feed.xml';
  const made = await post('/imports/', { metadata: { url, title: 'News', password: 'secret', tags: ['a'] } });
  expect(made).toEqual({
    ...answered('import'),
    ...{ total_items_ingested: 0, error_message: null, last_import: null },
    metadata: {
      ...{ url, title: 'News', state: 'active', type: 'mrss', tags: ['a'], username: null },
      ...{ host_on_import: false, ingest_metadata: {}, ingest_tags: [] },
    },
  });
  await advance(3600);
  expect((await read('/media/')).total).toBe(0);
  const paused = { metadata: { state: 'paused' } };
  const { body } = await admin.patch(`${site}/imports/${made.id}/`).send(paused).expect(200);
  expect(body.metadata).toEqual({ ...made.metadata, state: 'paused' });
  expect(await read(`/imports/${made.id}/`)).toEqual(body);
  await admin.delete(`${site}/imports/${made.id}/`).expect(204);
  expect((await read('/imports/')).total).toBe(0);
});
