import { onceForAll } from '../../../support/after-test';
import { complaintsOf, rowsOf } from '../../../support/read-page';
import { fieldsOfForm, startLibraryPages, type TestLibraryPages } from '../../../support/start-library-pages';

const shared = onceForAll(() => startLibraryPages());

/** The id of a playlist to recommend. */
async function makePlaylist({ post, context, siteId }: TestLibraryPages): Promise<string> {
  await post('playlists', { site: siteId, title: 'Next', type: 'trending_playlist' });
  return context.state.playlists.all()[0]?.id ?? '';
}

test.each([
  ['{"a": 1', 'line 1, column 8'],
  ['{\n  "a": 1,\n  b: 2\n}', 'line 3, column 3'],
  ['{"a": 1}}', 'line 1, column 9'],
  ['{\n  "a": true,\n  "b": True,\n  "c": [1, 2]\n}', 'line 3, column 8'],
  ['[1, 2,]', 'line 1, column 7'],
  ["'", 'line 1, column 1'],
])('says where %j is not JSON, and keeps it in the form', async (setup_config, place) => {
  const { post, context, siteId } = await shared();
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

test('takes a relationship of a player away', async () => {
  const emulator = await startLibraryPages();
  const { post, page, admin, context, siteId } = emulator;
  const id = await makePlaylist(emulator);
  await post('players', { site: siteId, name: 'Main', recommendations_playlist: id });
  const path = `players/${context.state.players.all()[0]?.id}`;
  const relationships = async () =>
    (await admin.get(`/v2/sites/${siteId}/${path}/`).expect(200)).body.relationships;
  expect(await relationships()).toEqual({ recommendations_playlist: { id } });
  const form = fieldsOfForm(await page(path), `action="/dashboard/${path}"`);
  await post(path, { ...form, recommendations_playlist: '' });
  expect(await relationships()).toEqual({});
});

async function startTagged() {
  const emulator = await startLibraryPages();
  const first = await emulator.createMedia({ tags: ['news', 'late'] });
  const second = await emulator.createMedia({ tags: ['news', ' ..'] });
  return { ...emulator, first, second };
}

const tagged = onceForAll(startTagged);

test('lists all tags by their names, with how many media have each', async () => {
  const { page } = await tagged();
  const text = await page('tags');
  const counts = rowsOf(text).map(([tag, media]) => `${tag} ${media}`);
  expect(counts).toEqual(['.. 1 media', 'late 1 media', 'news 2 media']);
  expect(text).toContain('href="/dashboard/media?q=news"');
  expect(rowsOf(await page('tags?q=new'))).toHaveLength(1);
});

test('renames a tag on all media, or removes it, by the forms of its row', async () => {
  const { page, post, first, second } = await startTagged();
  const formOf = async (query: string, action: string) =>
    fieldsOfForm(
      (await page(`tags?q=${query}`)).split('<tbody')[1] ?? '',
      `action="/dashboard/tags/${action}"`,
    );
  const form = await formOf('news', 'rename_tag');
  expect(form).toEqual({ site: 'demosite', old_tag: 'news', new_tag: 'news' });
  const { headers } = await post('tags/rename_tag', { ...form, new_tag: ' current affairs ' });
  expect(headers.location).toBe('/dashboard/tags?done=tag-renamed');
  expect([first.metadata.tags, second.metadata.tags]).toEqual([
    ['current affairs', 'late'],
    ['current affairs', ' ..'],
  ]);
  // A tag of any name.
  const removal = await formOf('..', 'remove_tag');
  expect(removal).toEqual({ site: 'demosite', tag: ' ..' });
  await post('tags/remove_tag', removal);
  expect(second.metadata.tags).toEqual(['current affairs']);
});

test.each([
  [{ site: 'demosite', old_tag: 'news', new_tag: ' ' }, ['New tag is empty.']],
  [{ site: 'elsewher', old_tag: 'news', new_tag: 'x' }, ['The account has no such site.']],
])('refuses to rename by %j', async (sent, problems) => {
  const { post, first } = await tagged();
  const { status, text } = await post('tags/rename_tag', sent);
  expect([status, complaintsOf(text)]).toEqual([400, problems]);
  expect(first.metadata.tags).toEqual(['news', 'late']);
});

test('separates the tags of several sites', async () => {
  const { page, post, context } = await startLibraryPages({ EMULATOR_SITE_ID: 'siteAAAA,siteBBBB' });
  for (const site of ['siteAAAA', 'siteBBBB']) await post('media', { site, title: site, tags: 'news' });
  expect(rowsOf(await page('tags')).map(([tag]) => tag)).toEqual([
    'news site siteAAAA',
    'news site siteBBBB',
  ]);
  await post('tags/remove_tag', { site: 'siteAAAA', tag: 'news' });
  expect(context.state.media.all().map(({ metadata }) => metadata.tags)).toEqual([[], ['news']]);
});
