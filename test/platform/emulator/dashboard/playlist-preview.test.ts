import { rowsOf, textOf } from '../../../support/read-page';
import { startLibraryPages } from '../../../support/start-library-pages';

/** Three media, of which one is not published yet, and a playlist of this type with this metadata. */
async function startPreview(type: string, metadata: object = {}) {
  const emulator = await startLibraryPages();
  const { admin, siteId, page, createReady } = emulator;
  const news = await createReady({ title: 'Evening news', tags: ['news'] });
  const weather = await createReady({ title: 'Weather', tags: ['news', 'sun'] });
  await createReady({ title: 'Tomorrow', tags: ['news'], publish_start_date: '2031-01-01T00:00:00Z' });
  const { body } = await admin
    .post(`/v2/sites/${siteId}/playlists/${type}/`)
    .send({ metadata: { title: 'News', ...metadata } })
    .expect(201);
  const shown = async (query = '') =>
    rowsOf(await page(`playlists/${body.id}${query}`)).map(([name = '']) => name.replace(/ \S+$/, ''));
  return { ...emulator, news, weather, path: `playlists/${body.id}`, shown };
}

test('shows what a dynamic playlist delivers now, as viewers get it', async () => {
  const filter = { include: { tags: { match: 'any', values: ['news'] } } };
  const { shown, unauthenticated, path } = await startPreview('dynamic_playlist', {
    media_filter: filter,
    sort: 'title:asc',
  });
  expect(await shown()).toEqual(['Evening news', 'Weather']);
  const { body } = await unauthenticated.get(`/v2/${path}`).expect(200);
  expect(body.playlist.map(({ title }: { title: string }) => title)).toEqual(['Evening news', 'Weather']);
});

test('shows what a search playlist delivers for the words of a viewer', async () => {
  const { shown, page, path } = await startPreview('search_playlist');
  expect(await shown('?search=weather')).toEqual(['Weather']);
  expect(textOf(await page(`${path}?search=nothing`))).toContain(
    'Nothing now. It has what is published and fits its settings and the request.',
  );
});

test('shows what is recommended beside a media', async () => {
  const { shown, news } = await startPreview('recommendations_playlist');
  expect(await shown(`?related_media_id=${news.id}`)).toEqual(['Weather']);
});

test('counts nothing as delivered that was only shown here', async () => {
  const { shown, context, siteId } = await startPreview('trending_playlist');
  const [thumbnail] = context.state.thumbnails.all();
  await shown();
  expect(context.state.usage.on(siteId, '2030-01-01')).toMatchObject({ deliveries: 0, deliveredBytes: 0 });
  expect(thumbnail?.status).toBe('ready');
});

test('writes what was asked for as text', async () => {
  const { page, path } = await startPreview('search_playlist');
  const text = await page(`${path}?search=${encodeURIComponent('"><script>alert(1)</script>')}`);
  expect(text).not.toContain('<script>alert');
});

test('shows pictures of media that viewers do not have yet, and counts none as delivered', async () => {
  const { createReady, context, unauthenticated, siteId, page } = await startLibraryPages();
  const media = await createReady({ title: 'Tomorrow', publish_start_date: '2031-01-01T00:00:00Z' });
  const [thumbnail] = context.state.thumbnails.all();
  const path = `/dashboard/pictures/${thumbnail?.id}`;
  expect(await page(`media/${media.id}`)).toContain(`src="${path}"`);
  await unauthenticated
    .get(path)
    .expect(200)
    .expect('content-type', /^image\/svg\+xml/);
  await unauthenticated.get('/dashboard/pictures/nothing1').expect(404);
  expect(context.state.usage.on(siteId, '2030-01-01').deliveredBytes).toBe(0);
});
