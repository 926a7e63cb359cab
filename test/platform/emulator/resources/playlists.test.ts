import { startLibrary } from '../../../support/start-library';

const NOW = '2030-01-01T00:00:00.000000+00:00';
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

describe.each(TYPES)('a %s', (type, own) => {
  test('shows what every playlist has at the common path, and what it alone has at its own', async () => {
    const { post, read } = await startLibrary();
    const made = await post(`/playlists/${type}/`, { metadata: { ...COMMON, ...own } });
    const base = { id: made.id, created: NOW, last_modified: NOW, relationships: {}, schema: null };
    expect(made).toEqual({ ...base, type, playlist_type: type, metadata: { ...COMMON, ...own } });
    expect(await read(`/playlists/${made.id}/${type}/`)).toEqual(made);
    const common = { ...base, type: 'playlist', playlist_type: type, metadata: COMMON };
    expect(await read(`/playlists/${made.id}/`)).toEqual(common);
    expect(await read('/playlists/')).toEqual({ page: 1, page_length: 10, total: 1, playlists: [common] });
  });

  test('is changed at its own path alone, each field as a whole', async () => {
    const { post, admin, site } = await startLibrary();
    const { id } = await post(`/playlists/${type}/`, { metadata: { ...COMMON, ...own } });
    const metadata = { title: 'New', media_filter: {} };
    const { body } = await admin.patch(`${site}/playlists/${id}/${type}/`).send({ metadata }).expect(200);
    expect(body.metadata).toEqual({ ...COMMON, ...own, ...metadata });
    await admin.patch(`${site}/playlists/${id}/`).send({ metadata }).expect(405);
  });

  test('is not there at the paths of other types, and is deleted at either of its own', async () => {
    const { post, admin, site } = await startLibrary();
    const [one, two] = [
      await post(`/playlists/${type}/`, { metadata: {} }),
      await post(`/playlists/${type}`, { metadata: {} }),
    ];
    for (const [other] of TYPES) {
      if (other === type) continue;
      await admin.get(`${site}/playlists/${one.id}/${other}/`).expect(404);
      await admin.delete(`${site}/playlists/${one.id}/${other}`).expect(404);
    }
    await admin.delete(`${site}/playlists/${one.id}/`).expect(204);
    await admin.delete(`${site}/playlists/${two.id}/${type}/`).expect(204);
    expect((await admin.get(`${site}/playlists/`)).body.total).toBe(0);
  });
});

test('playlists are found by title, by type and by custom parameters', async () => {
  const { post, read } = await startLibrary();
  const list = await post('/playlists/manual_playlist', {
    metadata: { title: 'Evening news', custom_params: { team: 'web' } },
  });
  await post('/playlists/dynamic_playlist', { metadata: { title: 'Films' } });
  for (const q of ['title: news', 'playlist_type: manual_playlist', 'custom_params.team: web'])
    expect(await read(`/playlists/?q=${q}`)).toMatchObject({ total: 1, playlists: [{ id: list.id }] });
});

test.each([
  ['watchlist_playlist', 404],
  ['nothing', 404],
])('there is no playlist type %s', async (type, status) => {
  const { admin, site } = await startLibrary();
  const { id } = (await admin.post(`${site}/playlists/manual_playlist`).send({ metadata: {} })).body;
  await admin.get(`${site}/playlists/${id}/${type}/`).expect(status);
});
