import { complaintsOf, rowsOf } from '../../../support/read-page';
import { startLibraryPages } from '../../../support/start-library-pages';

test('lists media with their status, the newest first', async () => {
  const { page, createMedia, createReady } = await startLibraryPages();
  const ready = await createReady({ title: 'Evening news' });
  const empty = await createMedia();
  expect(rowsOf(await page('media'))).toEqual([
    [`Untitled ${empty.id}`, 'no content yet', 'video', '–', 'when it is ready', '2030-01-01 00:00:05 UTC'],
    [`Evening news ${ready.id}`, 'ready', 'video', '–', 'published', '2030-01-01 00:00:00 UTC'],
  ]);
});

test('finds media by title, tag, author and external id, and by status and type', async () => {
  const { page, createMedia, createReady } = await startLibraryPages();
  const news = await createReady({ title: 'Evening news', tags: ['studio'] });
  const sports = await createMedia({ title: 'Sports', author: 'Kim', external_id: 'ext-77' });
  sports.mediaType = 'audio';
  const found = async (query: string) => rowsOf(await page(`media?${query}`)).map(([name = '']) => name);
  const [newsRow, sportsRow] = [`Evening news ${news.id}`, `Sports ${sports.id}`];
  expect(await found('q=EVENING')).toEqual([newsRow]);
  expect(await found('q=studio')).toEqual([newsRow]);
  expect(await found('q=kim')).toEqual([sportsRow]);
  expect(await found('q=ext-77')).toEqual([sportsRow]);
  expect(await found('status=ready')).toEqual([newsRow]);
  expect(await found('status=created')).toEqual([sportsRow]);
  expect(await found('type=audio')).toEqual([sportsRow]);
});

test('creates a media whose content stays where it is', async () => {
  const { post, context, siteId } = await startLibraryPages();
  const source_url = 'https://cdn.example.com/clip.mp4';
  await post('media', { site: siteId, title: 'Elsewhere', source_url });
  const [media] = context.state.media.all();
  expect([media?.hostingType, media?.sourceUrl, media?.mimeType]).toEqual([
    'external',
    source_url,
    'video/mp4',
  ]);
});

test('names the fields of the form when those of the content do not fit together', async () => {
  const { post, siteId } = await startLibraryPages();
  const { text } = await post('media', {
    site: siteId,
    source_url: 'https://cdn.example.com/clip.mp4',
    trim_in_point: '00:00:01',
  });
  expect(complaintsOf(text)).toEqual([
    'Trim in point and Trim out point cannot be set for the method external.',
  ]);
});

test('answers the script where a file goes, in one piece or in parts', async () => {
  const { unauthenticated, context, siteId, url } = await startLibraryPages();
  const begin = (fields: object) =>
    unauthenticated
      .post('/dashboard/media')
      .set('accept', 'application/json')
      .type('form')
      .send({ site: siteId, title: 'clip', ...fields })
      .expect(201);
  const direct = await begin({});
  const parts = await begin({ method: 'multipart' });
  const [first, second] = context.state.media.all();
  const pageOf = (id = '') => ({ page: `/dashboard/media/${id}`, undo: `/dashboard/media/${id}/delete` });
  expect(direct.body).toEqual({
    upload_link: `${url}/uploads/${first?.upload?.id}?token=${first?.upload?.token}`,
    ...pageOf(first?.id),
  });
  expect(parts.body).toEqual({
    upload_id: second?.upload?.id,
    upload_token: second?.upload?.token,
    ...pageOf(second?.id),
  });
  await unauthenticated.post(direct.body.undo).set('accept', 'application/json').expect(204);
  expect(context.state.media.all()).toEqual([second]);
});

test('answers the script in JSON what is wrong', async () => {
  const { unauthenticated } = await startLibraryPages();
  const ask = (path: string) =>
    unauthenticated.post(`/dashboard/${path}`).set('accept', 'application/json').type('form');
  const refused = await ask('media').send({ site: 'elsewher' }).expect(400);
  expect(refused.body).toEqual({
    errors: [{ code: 'invalid_body', description: 'The account has no such site.' }],
  });
  const absent = await ask('media/nothing1/upload').expect(404);
  expect(absent.body).toEqual({
    errors: [{ code: 'not_found', description: 'There is no media with this id. It may have been deleted.' }],
  });
});
