import type { PlaylistType } from '../../../../src/platform/emulator/resources/playlists';
import { PLAYLIST_TYPES } from '../../../../src/platform/migration/mapping/values';
import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { fieldsOfForm, startLibraryPages, type TestLibraryPages } from '../../../support/start-library-pages';

async function makePlaylist({ post, context, siteId }: TestLibraryPages, type: PlaylistType) {
  const { headers } = await post('playlists', { site: siteId, title: 'News', type });
  const playlist = context.state.playlists.all().at(-1);
  if (!playlist) throw new Error('There is no playlist.');
  expect(headers.location).toBe(`/dashboard/playlists/${playlist.id}?done=playlist-created`);
  return playlist;
}

/** A manual playlist of as many media, with their ids. */
async function startManual(count: number) {
  const emulator = await startLibraryPages();
  const media = [];
  for (let number = 1; number <= count; number += 1)
    media.push(await emulator.createReady({ title: `Part ${number}` }));
  const playlist = await makePlaylist(emulator, 'manual_playlist');
  const path = `playlists/${playlist.id}`;
  for (const { id } of media) await emulator.post(`${path}/add`, { media: id });
  const order = () =>
    (playlist.metadata as { media_filter: { include?: { values: readonly string[] } } }).media_filter.include
      ?.values;
  return { ...emulator, playlist, path, ids: media.map(({ id }) => id), order };
}

test('makes a playlist of each type, and shows it in the list', async () => {
  const emulator = await startLibraryPages();
  for (const type of PLAYLIST_TYPES) await makePlaylist(emulator, type);
  const rows = rowsOf(await emulator.page('playlists'));
  expect(rows.map(([, type, media]) => [type, media])).toEqual([
    ['recommendations', 'as it is asked for'],
    ['search', 'as it is asked for'],
    ['article matching', 'as it is asked for'],
    ['trending', 'as it is asked for'],
    ['dynamic', 'as it is asked for'],
    ['manual', '0 media'],
  ]);
  expect(rowsOf(await emulator.page('playlists?type=search_playlist'))).toHaveLength(1);
});

test('changes the filter, the order and the limit of a dynamic playlist, and empties the filter', async () => {
  const emulator = await startLibraryPages();
  const playlist = await makePlaylist(emulator, 'dynamic_playlist');
  const path = `playlists/${playlist.id}`;
  const form = async () => fieldsOfForm(await emulator.page(path), `action="/dashboard/${path}"`);
  await emulator.post(path, {
    ...(await form()),
    'media_filter.include.tags.match': 'all',
    'media_filter.include.tags.values': 'news\r\nlate, night',
    'media_filter.exclude.tags.match': 'any',
    'media_filter.exclude.custom_params.values.name': ['hidden', ''],
    'media_filter.exclude.custom_params.values.value': ['yes', ''],
    sort: 'title:asc',
    media_limit: '7',
  });
  const include = { tags: { match: 'all', values: ['news', 'late, night'] } };
  const exclude = { custom_params: { values: { hidden: 'yes' } } };
  const media_filter = { include, exclude };
  expect(playlist.metadata).toMatchObject({ sort: 'title:asc', media_limit: 7 });
  expect(playlist.metadata.media_filter).toEqual(media_filter);
  const before = structuredClone(playlist.metadata);
  await emulator.post(path, await form());
  expect(playlist.metadata).toEqual(before);
  await emulator.post(path, {
    ...(await form()),
    'media_filter.include.tags.values': '',
    'media_filter.exclude.custom_params.values.name': '',
    'media_filter.exclude.custom_params.values.value': '',
  });
  expect(playlist.metadata).toEqual({ ...before, media_filter: {} });
  const refused = await emulator.post(path, { ...(await form()), media_limit: '' });
  expect(complaintsOf(refused.text)).toEqual(['Media limit must be a whole number.']);
});

test('adds media that are found by a search, once each, and says when there is none', async () => {
  const { page, post, path, ids, order, createReady } = await startManual(2);
  const other = await createReady({ title: 'Weather', tags: ['sun'] });
  const found = async (query: string) =>
    rowsOf((await page(`${path}?${query}`)).split('id="found"')[1] ?? '').map(([name = '']) => name);
  expect(await found('q=sun')).toEqual([`Weather ${other.id}`]);
  const fields = fieldsOfForm(await page(`${path}?q=sun&page=2`), `action="/dashboard/${path}/add"`);
  expect(fields).toEqual({ media: other.id, back: 'q=sun&page=2' });
  const answer = await post(`${path}/add`, fields);
  expect(answer.headers.location).toBe(`/dashboard/${path}?q=sun&page=2&done=media-added`);
  await post(`${path}/add`, fields);
  expect(order()).toEqual([...ids, other.id]);
  expect((await post(`${path}/add`, { media: 'nothing1' })).status).toBe(404);
  expect(textOf(await page(`${path}?q=nothing`))).toContain('None of the 3 media matches.');
});

test('moves and removes media with buttons, and takes an order from the script', async () => {
  const { unauthenticated, post, path, ids, order } = await startManual(3);
  const [a = '', b = '', c = ''] = ids;
  const reorder = (...ids: readonly string[]) =>
    unauthenticated
      .post(`/dashboard/${path}/order`)
      .set('accept', 'application/json')
      .send(`order=${ids}`)
      .expect(204);
  for (const [media, by, after] of [
    [a, '1', [b, a, c]],
    [b, '-1', [b, a, c]],
    [b, '99', [a, c, b]],
    [b, '-2', [b, a, c]],
    ['gone', '1', [b, a, c]],
  ] as const) {
    await post(`${path}/move`, { media, by });
    expect(order()).toEqual(after);
  }
  await reorder(c, 'nothing1', a, b, c);
  expect(order()).toEqual([c, a, b]);
  // A media that was added meanwhile keeps its place.
  await reorder(b, c);
  expect(order()).toEqual([b, a, c]);
  await post(`${path}/remove`, { media: a });
  expect(order()).toEqual([b, c]);
});

test('shows what the library does not have any more, so that it can be removed', async () => {
  const { page, path, playlist, post, order } = await startManual(1);
  playlist.metadata = {
    ...playlist.metadata,
    media_filter: { include: { values: ['gone0000', 'gone0000'] } },
  } as typeof playlist.metadata;
  expect(textOf(await page(path))).toContain('gone0000 There is no such media in the library.');
  await post(`${path}/remove`, { media: 'gone0000' });
  expect(order()).toEqual([]);
});

test('shows a long order in pages, whose buttons lead over their ends', async () => {
  const emulator = await startManual(1);
  const { page, path, admin, siteId } = emulator;
  const values = Array.from({ length: 101 }, (_, number) => `part${String(number).padStart(4, '0')}`);
  const metadata = { media_filter: { include: { values } } };
  await admin.patch(`/v2/sites/${siteId}/${path}/manual_playlist/`).send({ metadata }).expect(200);
  const first = await page(path);
  expect(first.match(/<li data-id=/g)).toHaveLength(100);
  const second = await page(`${path}?places=2`);
  expect(second.match(/<li data-id=/g)).toHaveLength(1);
  const fields = fieldsOfForm(second, `action="/dashboard/${path}/move"`);
  expect(fields).toEqual({ media: 'part0100', back: 'places=2', by: '-1' });
  const { headers } = await emulator.post(`${path}/move`, fields);
  expect(headers.location).toBe(`/dashboard/${path}?places=2&done=media-moved`);
  expect(emulator.order()?.slice(-2)).toEqual(['part0100', 'part0099']);
});

test('saves settings of a manual playlist without touching its order', async () => {
  const { page, post, path, playlist, ids, order } = await startManual(2);
  const form = fieldsOfForm(await page(path), `action="/dashboard/${path}"`);
  await post(path, { ...form, title: 'Late news' });
  expect([playlist.metadata.title, order()]).toEqual(['Late news', ids]);
});

/** Three media, of which one is not published yet, and a playlist of this type with this metadata. */
async function startPreview(type: string, metadata: object = {}) {
  const emulator = await startLibraryPages();
  const { admin, siteId, page, createReady } = emulator;
  const news = await createReady({ title: 'Evening news', tags: ['news'] });
  const weather = await createReady({ title: 'Weather', tags: ['news', 'sun'] });
  await createReady({ title: 'Tomorrow', tags: ['news'], publish_start_date: '2031-01-01T00:00:00Z' });
  const { body } = await admin.post(`/v2/sites/${siteId}/playlists/${type}/`).send({ metadata }).expect(201);
  const shown = async (query = '') =>
    rowsOf(await page(`playlists/${body.id}${query}`)).map(([name = '']) => name.replace(/ \S+$/, ''));
  return { ...emulator, news, weather, path: `playlists/${body.id}`, shown };
}

test('shows what a dynamic playlist delivers now, as viewers get it', async () => {
  const filter = { include: { tags: { match: 'any', values: ['news'] } } };
  const metadata = { media_filter: filter, sort: 'title:asc' };
  const { shown, unauthenticated, path } = await startPreview('dynamic_playlist', metadata);
  expect(await shown()).toEqual(['Evening news', 'Weather']);
  const { body } = await unauthenticated.get(`/v2/${path}`).expect(200);
  expect(body.playlist.map(({ title }: { title: string }) => title)).toEqual(['Evening news', 'Weather']);
});

test('shows what a playlist delivers for the words of a viewer, or with a media, and never orders it', async () => {
  const { shown, page, path, post } = await startPreview('search_playlist');
  expect(await shown('?search=weather')).toEqual(['Weather']);
  expect(textOf(await page(`${path}?search=nothing`))).toContain(
    'Nothing now. It contains published media that fit its settings and the request.',
  );
  const { status, text } = await post(`${path}/order`, { order: 'a' });
  expect(textOf(text)).toContain('This playlist has no order of its own');
  expect(status).toBe(409);
  const recommended = await startPreview('recommendations_playlist');
  expect(await recommended.shown(`?related_media_id=${recommended.news.id}`)).toEqual(['Weather']);
});

test('shows pictures of media that viewers do not have yet, and counts none as delivered', async () => {
  const { createReady, context, unauthenticated, siteId, page } = await startLibraryPages();
  const media = await createReady({ title: 'Tomorrow', publish_start_date: '2031-01-01T00:00:00Z' });
  const [thumbnail] = context.state.thumbnails.all();
  const path = `/dashboard/pictures/${thumbnail?.id}`;
  expect(await page(`media/${media.id}`)).toContain(`src="${path}"`);
  const { status, type } = await unauthenticated.get(path);
  expect([status, type]).toEqual([200, 'image/svg+xml']);
  await unauthenticated.get('/dashboard/pictures/nothing1').expect(404);
  expect(context.state.usage.on(siteId, '2030-01-01').delivered_bytes).toBe(0);
});
