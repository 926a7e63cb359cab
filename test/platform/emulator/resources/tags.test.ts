import { startLibrary } from '../../../support/start-library';

async function start() {
  const library = await startLibrary({ EMULATOR_SITE_ID: 'demosite,othersit' });
  const make = async (...tags: string[]) => (await library.create({ metadata: { tags } })).id;
  const [both, old, none] = [await make('old', 'x', 'new'), await make('old'), await make('x')];
  await library.told();
  const tagsOf = async (id: string) => (await library.read(`/media/${id}`)).metadata.tags;
  return {
    ...library,
    both,
    old,
    none,
    tags: async () => [await tagsOf(both), await tagsOf(old), await tagsOf(none)],
  };
}

test.each([[{ old_tag: 'old', new_tag: 'new' }], [{ old_name: 'old', new_name: 'new' }]])(
  'a tag is renamed on all media by %j, and told for each of them; who has both keeps one',
  async (body) => {
    const { admin, site, tags, told, both, old } = await start();
    await admin.put(`${site}/rename_tag/`).send(body).expect(202, '');
    expect(await tags()).toEqual([['new', 'x'], ['new'], ['x']]);
    expect(await told()).toEqual([`media_updated ${both}`, `media_updated ${old}`]);
  },
);

test.each([[{ tag: 'x' }], [{ name: 'x' }]])('a tag is taken off all media by %j', async (body) => {
  const { admin, site, tags } = await start();
  await admin.put(`${site}/remove_tag`).send(body).expect(202);
  expect(await tags()).toEqual([['old', 'new'], ['old'], []]);
});

test('playlists ask for a tag by its new name, and go on to ask for one that was removed', async () => {
  const { post, read, admin, site } = await start();
  const media_filter = {
    include: { tags: { match: 'any', values: ['old', 'x'] }, custom_params: { values: { a: 'old' } } },
    exclude: { tags: { values: ['old'] } },
  };
  const dynamic = await post('/playlists/dynamic_playlist/', { metadata: { media_filter } });
  const manual = await post('/playlists/manual_playlist/', {
    metadata: { media_filter: { include: { values: ['old'] } } },
  });
  const filterOf = async (id: string, type: string) =>
    (await read(`/playlists/${id}/${type}`)).metadata.media_filter;
  await admin.put(`${site}/rename_tag`).send({ old_tag: 'old', new_tag: 'new' }).expect(202);
  await admin.put(`${site}/remove_tag`).send({ tag: 'x' }).expect(202);
  expect(await filterOf(dynamic.id, 'dynamic_playlist')).toEqual({
    include: { tags: { match: 'any', values: ['new', 'x'] }, custom_params: { values: { a: 'old' } } },
    exclude: { tags: { values: ['new'] } },
  });
  expect(await filterOf(manual.id, 'manual_playlist')).toEqual({ include: { values: ['old'] } });
});

test('a playlist whose only tag is removed has no media, and not all of them', async () => {
  const { post, createReady, admin, site, unauthenticated } = await start();
  const { id } = await createReady({ metadata: { tags: ['only'] } });
  const media_filter = { include: { tags: { values: ['only'] } } };
  const playlist = await post('/playlists/dynamic_playlist/', { metadata: { media_filter } });
  const members = async () => {
    const { body } = await unauthenticated.get(`/v2/playlists/${playlist.id}`).expect(200);
    return body.playlist.map(({ mediaid }: { mediaid: string }) => mediaid);
  };
  expect(await members()).toEqual([id]);
  await admin.put(`${site}/remove_tag`).send({ tag: 'only' }).expect(202);
  expect(await members()).toEqual([]);
});

test('media of another site keep the tag', async () => {
  const { admin } = await start();
  const path = '/v2/sites/othersit/media';
  const { body } = await admin.post(path).send({ metadata: { tags: ['old'] } });
  await admin.put('/v2/sites/demosite/remove_tag').send({ tag: 'old' }).expect(202);
  expect((await admin.get(`${path}/${body.id}`)).body.metadata.tags).toEqual(['old']);
});

test('a tag that nobody has, and a new name that is the old one, change nothing', async () => {
  const { admin, site, tags, told } = await start();
  const before = await tags();
  await admin.put(`${site}/remove_tag`).send({ tag: 'nobody' }).expect(202);
  await admin.put(`${site}/rename_tag`).send({ old_tag: 'old', new_tag: 'old' }).expect(202);
  expect(await tags()).toEqual(before);
  expect(await told()).toEqual([]);
});

test.each([
  ['rename_tag', {}, ['old_tag: is missing', 'new_tag: is missing']],
  ['rename_tag', undefined, ['old_tag: is missing', 'new_tag: is missing']],
  ['rename_tag', { old_tag: 'old', new_tag: '' }, ['new_tag: is empty']],
  [
    'rename_tag',
    { old_tag: 7, new_tag: 'x'.repeat(201) },
    ['old_tag: must be a string', 'new_tag: is longer than 200 characters'],
  ],
  ['remove_tag', { tags: ['x'] }, ['tags is not a field of this request. Did you mean tag?']],
  ['remove_tag', { tag: null }, ['tag: is missing']],
])('%s with %j is refused', async (action, body, faults) => {
  const { admin, site, tags } = await start();
  const before = await tags();
  const answer = await admin.put(`${site}/${action}/`).send(body).expect(400);
  expect(answer.body.errors.map(({ description }: { description: string }) => description)).toEqual(faults);
  expect(await tags()).toEqual(before);
});
