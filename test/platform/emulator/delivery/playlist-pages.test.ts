import { onceForAll } from '../../../support/after-test';
import { startDelivery, type TestDelivery } from '../../../support/start-delivery';

let delivery: TestDelivery;
let manual: string;

const filled = onceForAll(async () => {
  const delivery = await startDelivery();
  const values: string[] = [];
  for (const [title, tags] of [
    ['1', ['a']],
    ['2', ['a', 'b']],
    ['3', ['b']],
    ['4', []],
    ['5', ['a', 'b']],
  ] as const)
    values.push(await delivery.external({ title, tags }));
  const filter = { media_filter: { include: { values } } };
  return { delivery, manual: await delivery.playlist('manual_playlist', filter) };
});

beforeEach(async () => {
  ({ delivery, manual } = await filled());
});

async function pageOf(query: string) {
  const { body } = await delivery.unauthenticated.get(`/v2/playlists/${manual}${query}`).expect(200);
  const links = Object.entries<string>(body.links).map(([name, link]) => {
    expect(link.startsWith(`${delivery.url}/v2/playlists/${manual}?`)).toBe(true);
    return [name, link.slice(link.indexOf('?') + 1)];
  });
  const titles = body.playlist.map(({ title }: { readonly title: string }) => title).join('');
  return { titles, links: Object.fromEntries(links) };
}

test('answers a page from the item that is asked for, and links to the others', async () => {
  const at = (offset: number, limit = 2) => `page_limit=${limit}&page_offset=${offset}`;
  const ends = { first: at(1), last: at(5) };
  expect(await pageOf('?page_limit=2')).toEqual({ titles: '12', links: { ...ends, next: at(3) } });
  expect(await pageOf('?page_offset=5&page_limit=2')).toEqual({
    titles: '5',
    links: { ...ends, previous: at(3) },
  });
  expect(await pageOf('?page_limit=2&page_offset=2')).toEqual({
    titles: '23',
    links: { ...ends, next: at(4), previous: at(1) },
  });
  expect(await pageOf('?page_limit=2&page_offset=900')).toEqual({
    titles: '',
    links: { ...ends, previous: at(5) },
  });
  const whole = { first: at(1, 500), last: at(1, 500) };
  expect(await pageOf('')).toEqual({ titles: '12345', links: whole });
  // A page has at most 500 items, and the links say so.
  expect(await pageOf('?page_limit=1000')).toEqual({ titles: '12345', links: whole });
});

test('who follows the links gets every item once', async () => {
  let titles = '';
  let next: string | undefined = '?page_limit=2&tags=a';
  while (next !== undefined) {
    const page = await pageOf(next);
    titles += page.titles;
    next = page.links.next && `?${page.links.next}`;
  }
  expect(titles).toBe('125');
});

test('keeps the other parameters of a request in the links', async () => {
  const { links } = await pageOf('?tags=a%2Cb&tags_mode=any&page_offset=1&page_limit=1&player=x%26y');
  expect(links.next).toBe('tags=a%2Cb&tags_mode=any&page_limit=1&player=x%26y&page_offset=2');
});

test.each([
  ['?tags=a', '125'],
  ['?tags=a,b', '25'],
  ['?tags=a,b&tags_mode=all', '25'],
  ['?tags=a,b&tags_mode=any', '1235'],
  ['?tags=', '12345'],
  ['?tags=c', ''],
])('leaves what has the tags of %s', async (query, titles) => {
  expect((await pageOf(query)).titles).toBe(titles);
  const dynamic = await delivery.playlist('dynamic_playlist', { sort: 'created:asc' });
  expect((await delivery.titlesOf(dynamic, query)).join('')).toBe(titles);
});

test.each([
  ['page_limit=0', 'page_limit: must be a whole number of at least 1.'],
  ['page_offset=1.5', 'page_offset: must be a whole number of at least 1.'],
  ['page_offset=1&page_offset=2', 'page_offset: is given twice.'],
  ['tags_mode=some', 'tags_mode: must be any or all.'],
  ['backfill=yes', 'backfill: must be true or false.'],
  [
    'page_limit=x&page_offset=x&format=x',
    'format: must be json or mrss. page_limit: must be a whole number of at least 1. page_offset: must be a whole number of at least 1.',
  ],
])('answers 400 to ?%s with what is wrong', async (query, message) => {
  expect(await delivery.get(`/v2/playlists/${manual}?${query}`)).toEqual({ status: 400, body: { message } });
});

test('answers 400 to an unknown order, and names those that there are', async () => {
  const message = expect.stringMatching(/^sort: must be created:asc, .* or views:dsc\.$/);
  const answer = await delivery.get(`/v2/playlists/${manual}?sort=newest`);
  expect(answer).toEqual({ status: 400, body: { message } });
});

test('takes no notice of parameters that players add', async () => {
  expect((await pageOf('?poster_width=720&token=x&__proto__=1')).titles).toBe('12345');
});
