import { onceForAll } from '../../../support/after-test';
import { startDelivery, type TestDelivery } from '../../../support/start-delivery';

let delivery: TestDelivery;

const start = () => startDelivery({ EMULATOR_SITE_ID: 'demosite,othersit' });

/** Media of these titles, each published a while after the one before; their ids by title. */
async function made(
  media: Readonly<Record<string, object>>,
  at = delivery,
): Promise<Readonly<Record<string, string>>> {
  const ids: [string, string][] = [];
  for (const [title, metadata] of Object.entries(media))
    ids.push([title, await at.external({ title, ...metadata })]);
  return Object.fromEntries(ids);
}

/** An emulator with these media for tests that only read them. */
const onceWith = (media: Readonly<Record<string, object>>) =>
  onceForAll(async () => {
    const started = await start();
    await made(media, started);
    return started;
  });

const view = async (id: string | undefined, times: number) => {
  for (let time = 0; time < times; time += 1)
    await delivery.unauthenticated.get(`/v2/media/${id}`).expect(200);
};

const SEARCHED = {
  'Cooking with fire': { description: 'A show b c d e f g h i j k l m n o p q r' },
  'The harbour show': { tags: ['sea'], description: 'Boats and fire' },
  'Über den Bergen': { description: 'Berge' },
  Snow: { tags: ['Fire', 'cold nights'] },
  Bonfires: {},
};

const empty = onceWith({});

test.each([
  ['dynamic_playlist', 'DYNAMIC'],
  ['article_matching_playlist', 'ARTICLE_MATCHING'],
  ['recommendations_playlist', 'FEED'],
])('a %s without media is an empty list of the kind %s', async (type, kind) => {
  const { playlist, unauthenticated } = await empty();
  const { body } = await unauthenticated.get(`/v2/playlists/${await playlist(type)}`).expect(200);
  expect(body).toMatchObject({ title: '', description: '', kind, playlist: [] });
});

describe('a dynamic playlist', () => {
  const MEDIA = {
    Harbour: { tags: ['sea', 'boats'], custom_params: { rating: 'U', region: 'north' } },
    Beach: { tags: ['sea'], custom_params: { rating: 'PG' } },
    Mountain: { tags: ['snow'], custom_params: { rating: 'U' } },
    Lake: { tags: ['boats', 'snow'] },
  };
  const filled = onceWith(MEDIA);

  test.each([
    [{}, ['Lake', 'Mountain', 'Beach', 'Harbour']],
    [{ include: { tags: { values: ['boats'] } } }, ['Lake', 'Harbour']],
    [{ include: { tags: { match: 'all', values: ['sea', 'boats'] } } }, ['Harbour']],
    [{ include: { tags: { match: 'all', values: [] } } }, ['Lake', 'Mountain', 'Beach', 'Harbour']],
    [{ include: { tags: { values: ['Sea'] } } }, []],
    [{ exclude: { tags: { values: ['sea'] } } }, ['Lake', 'Mountain']],
    [{ exclude: { tags: { match: 'all', values: ['boats', 'snow'] } } }, ['Mountain', 'Beach', 'Harbour']],
    [{ include: { custom_params: { match: 'all', values: { rating: 'U', region: 'north' } } } }, ['Harbour']],
    [{ include: { custom_params: { values: { rating: 'PG', region: 'north' } } } }, ['Beach', 'Harbour']],
    [{ include: { custom_params: { values: { toString: 'x', constructor: '' } } } }, []],
    [{ include: { tags: { values: ['sea'] }, custom_params: { values: { rating: 'U' } } } }, ['Harbour']],
    [
      {
        include: { tags: { values: ['sea', 'snow'] } },
        exclude: { custom_params: { values: { rating: 'U' } } },
      },
      ['Lake', 'Beach'],
    ],
  ])('with the filter %j has %j', async (media_filter, titles) => {
    const { playlist, titlesOf } = await filled();
    expect(await titlesOf(await playlist('dynamic_playlist', { media_filter }))).toEqual(titles);
  });
});

describe('a search playlist', () => {
  const filled = onceWith(SEARCHED);

  test.each([
    ['FIRE!', ['Cooking with fire', 'Snow', 'The harbour show']],
    ['fire show', ['The harbour show', 'Cooking with fire']],
    ['harbor', []],
    ['shows', []],
    ['uber', ['Über den Bergen']],
    ['fire title:snow', []],
    ['" OR AND ( *', []],
    ['', []],
    ['fire a show b c d e f g h i j k l m n o p q r snow', ['Cooking with fire']],
    [`fire ${'x'.repeat(300)}`, ['Cooking with fire', 'Snow', 'The harbour show']],
  ])('finds "%s" in %j', async (search, titles) => {
    const { playlist, titlesOf } = await filled();
    const feed = await playlist('search_playlist');
    expect(await titlesOf(feed, `?search=${encodeURIComponent(search)}`)).toEqual(titles);
  });
});

describe('a playlist of media', () => {
  beforeEach(async () => {
    delivery = await start();
  });

  test('describes a playlist and its page of items, each as the document of its media has it', async () => {
    const { playlist, unauthenticated, url } = delivery;
    const ids = await made({ Harbour: { tags: ['boats'], custom_params: { rating: 'U' } }, Mountain: {} });
    const feed = await playlist('manual_playlist', {
      title: 'Views',
      description: 'Far and wide',
      custom_params: { theme: 'dark', title: 'Forged', links: 'none' },
      media_filter: { include: { values: [ids.Mountain, ids.Harbour] } },
    });
    const items = await Promise.all(
      [ids.Mountain, ids.Harbour].map(async (id) => {
        const { body } = await unauthenticated.get(`/v2/media/${id}`).expect(200);
        return { ...body.playlist[0], feedid: feed };
      }),
    );
    const page = `${url}/v2/playlists/${feed}?page_limit=500&page_offset=1`;
    const { body, headers } = await unauthenticated.get(`/v2/playlists/${feed}`).expect(200);
    expect(body).toEqual({
      title: 'Views',
      description: 'Far and wide',
      kind: 'MANUAL',
      feedid: feed,
      links: { first: page, last: page },
      playlist: items,
      feed_instance_id: expect.stringMatching(/./),
      theme: 'dark',
    });
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
    });
  });

  test('answers 404 with a message for a playlist that is unknown, or deleted', async () => {
    const { playlist, admin, siteId, get } = delivery;
    const absent = { status: 404, body: { message: 'There is no playlist with this id.' } };
    expect(await get('/v2/playlists/nowhere0')).toEqual(absent);
    const id = await playlist('dynamic_playlist');
    await admin.delete(`/v2/sites/${siteId}/playlists/${id}/`).expect(204);
    expect(await get(`/v2/playlists/${id}`)).toEqual(absent);
  });

  test('a manual playlist keeps its own order, without doubles and what its site does not have', async () => {
    const { playlist, titlesOf, admin } = delivery;
    const ids = await made({ A: {}, B: {}, C: {} });
    const upload = { method: 'external', source_url: 'https://a.example/f' };
    const sent = { metadata: { title: 'Foreign' }, upload };
    const { body: foreign } = await admin.post('/v2/sites/othersit/media/').send(sent).expect(201);
    await delivery.advance(5);
    const values = [ids.C, 'nowhere0', ids.A, ids.C, foreign.id, '__proto__', ids.B];
    const feed = await playlist('manual_playlist', { media_filter: { include: { values } } });
    expect(await titlesOf(feed)).toEqual(['C', 'A', 'B']);
    for (const type of ['dynamic_playlist', 'trending_playlist', 'recommendations_playlist'])
      expect(await titlesOf(await playlist(type))).toEqual(['C', 'B', 'A']);
  });

  test('a manual playlist can have a live event, from when viewers may watch it', async () => {
    const { playlist, titlesOf, createChannel, connect } = delivery;
    const event = await connect(await createChannel({ title: 'Live show' }));
    const feed = await playlist('manual_playlist', { media_filter: { include: { values: [event] } } });
    expect(await titlesOf(feed)).toEqual(['Live show']);
  });

  test('a dynamic playlist is sorted as it says, or as the request says', async () => {
    const ids = await made({
      b: { publish_start_date: '2029-03-01T00:00:00Z' },
      C: { publish_start_date: '2029-01-01T00:00:00Z' },
      a: { publish_start_date: '2029-02-01T00:00:00Z' },
    });
    await view(ids.C, 2);
    await view(ids.a, 1);
    const orders = {
      'created:asc': ['b', 'C', 'a'],
      'created:dsc': ['a', 'C', 'b'],
      'title:asc': ['a', 'b', 'C'],
      'title:dsc': ['C', 'b', 'a'],
      'publish_start_date:asc': ['C', 'a', 'b'],
      'publish_start_date:dsc': ['b', 'a', 'C'],
      'views:dsc': ['C', 'a', 'b'],
      'duration:asc': ['b', 'a', 'C'],
    };
    const plain = await delivery.playlist('dynamic_playlist');
    expect(await delivery.titlesOf(plain)).toEqual(orders['publish_start_date:dsc']);
    for (const [sort, titles] of Object.entries(orders)) {
      const sorted = await delivery.playlist('dynamic_playlist', { sort });
      expect({ sort, titles: await delivery.titlesOf(sorted) }).toEqual({ sort, titles });
      expect({ sort, titles: await delivery.titlesOf(plain, `?sort=${sort}`) }).toEqual({ sort, titles });
      const short = await delivery.playlist('dynamic_playlist', { sort, media_limit: 2 });
      expect({ sort, titles: await delivery.titlesOf(short) }).toEqual({ sort, titles: titles.slice(0, 2) });
    }
  });

  test('a trending playlist has what viewers asked for most often, of equals the newest first', async () => {
    const { playlist, titlesOf } = delivery;
    const ids = await made({ A: { tags: ['x'] }, B: { tags: ['x'] }, C: {}, D: { tags: ['x'] } });
    const feed = await playlist('trending_playlist', { media_limit: 3 });
    expect(await titlesOf(feed)).toEqual(['D', 'C', 'B']);
    await view(ids.A, 3);
    await view(ids.C, 2);
    expect(await titlesOf(feed)).toEqual(['A', 'C', 'D']);
    const media_filter = { include: { tags: { values: ['x'] } } };
    const filtered = await playlist('trending_playlist', { media_filter });
    expect(await titlesOf(filtered)).toEqual(['A', 'D', 'B']);
  });

  describe('a search playlist', () => {
    test('searches for its own words when the request has none, and follows changes', async () => {
      const ids = await made(SEARCHED);
      const { admin, siteId, playlist, titlesOf } = delivery;
      const feed = await playlist('search_playlist', { query: 'sea', media_limit: 1 });
      expect(await titlesOf(feed)).toEqual(['The harbour show']);
      expect(await titlesOf(feed, '?search=cold')).toEqual(['Snow']);
      const metadata = { title: 'Sea', tags: [] };
      await admin.patch(`/v2/sites/${siteId}/media/${ids.Snow}/`).send({ metadata }).expect(200);
      expect(await titlesOf(feed)).toEqual(['Sea']);
      expect(await titlesOf(feed, '?search=cold')).toEqual([]);
    });

    test('shows what is trending when it finds nothing and the request asks for that', async () => {
      const ids = await made({ A: {}, B: {} });
      await view(ids.A, 1);
      const feed = await delivery.playlist('search_playlist');
      expect(await delivery.titlesOf(feed, '?search=nothing')).toEqual([]);
      expect(await delivery.titlesOf(feed, '?search=nothing&backfill=true')).toEqual(['A', 'B']);
    });
  });

  test('an article playlist ranks by how many words of the page are in title and tags', async () => {
    const { playlist, titlesOf } = delivery;
    await made({
      'The old harbour': { tags: ['boats', 'sea'] },
      'Mountain boats': {},
      'Sea sea sea': {},
      'About the town': { description: 'harbour boats sea' },
      'CAFÉ am See': {},
    });
    const feed = await playlist('article_matching_playlist');
    const page = 'page_title=Boats+in+the+harbour&page_description=All+about+the+sea.&page_keywords=sea';
    expect(await titlesOf(feed, `?${page}`)).toEqual(['The old harbour', 'Sea sea sea', 'Mountain boats']);
    expect(await titlesOf(feed, '?search=Caf%C3%A9')).toEqual(['CAFÉ am See']);
    expect(await titlesOf(feed, '?search=harbours&backfill=false')).toEqual([]);
    // Trending media.
    expect(await titlesOf(feed, '?search=nothing')).toHaveLength(5);
    expect(await titlesOf(feed)).toHaveLength(5);
  });

  test('a recommendations playlist has what shares most tags with the related media, then the newest', async () => {
    const { playlist, titlesOf } = delivery;
    const ids = await made({
      A: { tags: ['sea', 'boats'] },
      B: { tags: ['sea'] },
      C: { tags: ['snow'] },
      D: { tags: ['boats', 'sea', 'snow'] },
      E: {},
    });
    const feed = await playlist('recommendations_playlist', { media_limit: 4 });
    expect(await titlesOf(feed, `?related_media_id=${ids.A}`)).toEqual(['D', 'B', 'E', 'C']);
    expect(await titlesOf(feed, `?related_media_id=${ids.C}`)).toEqual(['D', 'E', 'B', 'A']);
    expect(await titlesOf(feed, '?related_media_id=nowhere0')).toEqual(['E', 'D', 'C', 'B']);
    expect(await titlesOf(feed)).toEqual(['E', 'D', 'C', 'B']);
  });
});

describe('a page of a playlist', () => {
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

  test('a client that follows the links gets every item once', async () => {
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
    ['sort=newest', expect.stringMatching(/^sort: must be created:asc, .* or views:dsc\.$/)],
    [
      'page_limit=x&page_offset=x&format=x',
      'format: must be json or mrss. page_limit: must be a whole number of at least 1. page_offset: must be a whole number of at least 1.',
    ],
  ])('answers 400 to ?%s with what is wrong', async (query, message) => {
    expect(await delivery.get(`/v2/playlists/${manual}?${query}`)).toEqual({
      status: 400,
      body: { message },
    });
  });

  test('takes no notice of parameters that players add', async () => {
    expect((await pageOf('?poster_width=720&token=x&__proto__=1')).titles).toBe('12345');
  });
});
