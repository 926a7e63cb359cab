import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { fieldsOfForm, startLibraryPages } from '../../../support/start-library-pages';

async function startTagged() {
  const emulator = await startLibraryPages();
  const first = await emulator.createMedia({ tags: ['news', 'late'] });
  const second = await emulator.createMedia({ tags: ['news', '..'] });
  return { ...emulator, first, second };
}

test('lists all tags by their names, with how many media have each', async () => {
  const { page } = await startTagged();
  const text = await page('tags');
  expect(rowsOf(text).map(([tag, media]) => [tag, media])).toEqual([
    ['..', '1 media'],
    ['late', '1 media'],
    ['news', '2 media'],
  ]);
  expect(text).toContain('href="/dashboard/media?q=news"');
  expect(rowsOf(await page('tags?q=new'))).toHaveLength(1);
});

test('says what to do while no media has a tag', async () => {
  const { page } = await startLibraryPages();
  expect(textOf(await page('tags'))).toContain('No media has a tag yet.');
});

test('renames a tag on all media by the form of its row', async () => {
  const { page, post, first, second } = await startTagged();
  const form = fieldsOfForm(
    (await page('tags?q=news')).split('<tbody')[1] ?? '',
    'action="/dashboard/tags/rename_tag"',
  );
  expect(form).toEqual({ site: 'demosite', old_tag: 'news', new_tag: 'news' });
  const { headers } = await post('tags/rename_tag', { ...form, new_tag: ' current affairs ' });
  expect(headers.location).toBe('/dashboard/tags?done=tag-renamed');
  expect([first.metadata.tags, second.metadata.tags]).toEqual([
    ['current affairs', 'late'],
    ['current affairs', '..'],
  ]);
});

test('removes a tag from all media, whatever it is called', async () => {
  const { page, post, second } = await startTagged();
  const form = fieldsOfForm(
    (await page('tags')).split('<tbody')[1] ?? '',
    'action="/dashboard/tags/remove_tag"',
  );
  expect(form).toEqual({ site: 'demosite', tag: '..' });
  await post('tags/remove_tag', form);
  expect(second.metadata.tags).toEqual(['news']);
});

test.each([
  [{ site: 'demosite', old_tag: 'news', new_tag: ' ' }, ['New tag is empty.']],
  [
    { site: 'demosite', old_tag: 'news', new_tag: 'x'.repeat(201) },
    ['New tag is longer than 200 characters.'],
  ],
  [{ site: 'elsewher', old_tag: 'news', new_tag: 'x' }, ['The account has no such site.']],
])('refuses to rename by %j', async (sent, problems) => {
  const { post, first } = await startTagged();
  const { status, text } = await post('tags/rename_tag', sent);
  expect([status, complaintsOf(text)]).toEqual([400, problems]);
  expect(first.metadata.tags).toEqual(['news', 'late']);
});

test('tells the tags of several sites apart', async () => {
  const { page, post, context } = await startLibraryPages({ EMULATOR_SITE_ID: 'siteAAAA,siteBBBB' });
  for (const site of ['siteAAAA', 'siteBBBB']) await post('media', { site, title: site, tags: 'news' });
  expect(rowsOf(await page('tags')).map(([tag]) => tag)).toEqual([
    'news site siteAAAA',
    'news site siteBBBB',
  ]);
  await post('tags/remove_tag', { site: 'siteAAAA', tag: 'news' });
  expect(context.state.media.all().map(({ metadata }) => metadata.tags)).toEqual([[], ['news']]);
});
