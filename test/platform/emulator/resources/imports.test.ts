import { startLibrary } from '../../../support/start-library';

test('an import keeps what its feed is, without the password, and reads nothing', async () => {
  const { admin, site, post, read, advance } = await startLibrary();
  const url = 'http://127.0.0.1:1/feed.xml';
  const made = await post('/imports/', { metadata: { url, title: 'News', password: 'secret', tags: ['a'] } });
  expect(made).toMatchObject({
    type: 'import',
    total_items_ingested: 0,
    error_message: null,
    last_import: null,
  });
  expect(made.metadata).toMatchObject({ url, title: 'News', state: 'active', type: 'mrss', tags: ['a'] });
  expect(JSON.stringify(made)).not.toContain('secret');
  await advance(3600);
  expect((await read('/media/')).total).toBe(0);
  await admin
    .patch(`${site}/imports/${made.id}/`)
    .send({ metadata: { state: 'paused' } })
    .expect(200);
  expect((await read(`/imports/${made.id}/`)).metadata).toMatchObject({
    url,
    title: 'News',
    state: 'paused',
  });
  expect(await read('/imports/?q=title: news')).toMatchObject({ total: 1, imports: [{ id: made.id }] });
  await admin.delete(`${site}/imports/${made.id}/`).expect(204);
  expect((await read('/imports/')).total).toBe(0);
});

test('an import without an address is refused', async () => {
  const { admin, site } = await startLibrary();
  const { body } = await admin.post(`${site}/imports/`).send({ metadata: {} }).expect(400);
  expect(body.errors).toEqual([{ code: 'invalid_body', description: 'metadata.url: is missing' }]);
});
