import { FILM, startLibrary, type TestLibrary } from '../../../support/start-library';
import { startWebhookReceiver, type WebhookReceiver } from '../../../support/webhook-receiver';

interface Entry {
  readonly guid: string;
  readonly more?: string;
  readonly content?: string;
}

function itemOf({ guid, more = '', content = `https://cdn.example.com/${guid}.mp4` }: Entry): string {
  const media = `<media:content url="${content}" type="video/mp4"/>`;
  return `<item><guid>${guid}</guid><title>Title ${guid}</title>${more}${media}</item>`;
}

function feed(...entries: readonly Entry[]): string {
  const items = entries.map(itemOf).join('');
  return `<rss xmlns:media="http://search.yahoo.com/mrss/"><channel>${items}</channel></rss>`;
}

const answerWith = (body: string) => ({ status: 200, headers: { 'content-type': 'text/xml' }, body });

/** A server whose next answers are these feeds. */
async function startFeed(...bodies: readonly string[]): Promise<WebhookReceiver> {
  const source = await startWebhookReceiver();
  source.answer(...bodies.map(answerWith));
  return source;
}

/** The import, once it has taken as many items or said why not. */
async function settled({ read }: TestLibrary, id: string, items: number) {
  for (;;) {
    const found = await read(`/imports/${id}`);
    if (found.error_message !== null || found.total_items_ingested === items) return found;
  }
}

test('an active import makes an external media of each item, with what the feed says of it', async () => {
  const library = await startLibrary();
  const { post, read, advance } = library;
  const source = await startFeed(
    feed(
      {
        guid: 'a',
        more: `<description>About a</description><link>https://example.com/a</link><category>News</category>
          <pubDate>Mon, 31 Dec 2029 10:00:00 GMT</pubDate><media:keywords>red,blue</media:keywords>
          <media:credit>Ann</media:credit>`,
      },
      { guid: 'b' },
    ),
  );
  const made = await post('/imports/', {
    metadata: {
      url: source.url,
      title: 'Mine',
      username: 'me',
      password: 'pass',
      ingest_tags: ['fed', 'red'],
    },
  });
  expect(made).toMatchObject({ total_items_ingested: 0, last_import: null, error_message: null });
  expect(await settled(library, made.id, 2)).toEqual({
    ...made,
    total_items_ingested: 2,
    last_import: '2030-01-01T00:00:00.000000+00:00',
  });
  expect(JSON.stringify(made)).not.toContain('pass');
  expect(source.received[0]).toMatchObject({
    method: 'GET',
    headers: { authorization: `Basic ${Buffer.from('me:pass').toString('base64')}` },
  });
  await advance(1);
  const { media } = await read('/media/?sort=created:asc');
  expect(media).toMatchObject([
    {
      status: 'ready',
      hosting_type: 'external',
      source_url: 'https://cdn.example.com/a.mp4',
      mime_type: 'video/mp4',
      metadata: {
        title: 'Title a',
        description: 'About a',
        permalink: 'https://example.com/a',
        category: 'News',
        author: 'Ann',
        external_id: 'a',
        publish_start_date: '2029-12-31T10:00:00.000000+00:00',
        tags: ['fed', 'red', 'blue'],
      },
    },
    { metadata: { title: 'Title b', description: null, tags: ['fed', 'red'] } },
  ]);
});

test('what ingest_metadata says false of is not taken', async () => {
  const library = await startLibrary();
  const more = `<description>About</description><category>News</category><pubDate>Mon, 31 Dec 2029 10:00:00 GMT</pubDate>
    <media:keywords>red</media:keywords><media:credit>Ann</media:credit><media:thumbnail url="https://x.example/a.jpg"/>
    <media:community><media:tags>blue</media:tags></media:community><media:subTitle href="https://x.example/a.vtt"/>`;
  const source = await startFeed(feed({ guid: 'a', more }));
  const names = [
    'captions',
    'categories',
    'credits',
    'description',
    'keywords',
    'publish_date',
    'tags',
    'thumbnails',
  ];
  const ingest_metadata = Object.fromEntries(names.map((name) => [name, false]));
  const { id } = await library.post('/imports/', { metadata: { url: source.url, ingest_metadata } });
  await settled(library, id, 1);
  const { media } = await library.read('/media/');
  expect(media).toMatchObject([
    {
      metadata: {
        title: 'Title a',
        description: null,
        category: null,
        author: null,
        tags: [],
        publish_start_date: '2030-01-01T00:00:00.000000+00:00',
      },
    },
  ]);
  expect(await library.read('/thumbnails/')).toMatchObject({ total: 0 });
});

test('a feed is read again every 15 minutes, and an item makes a media once, also when that was deleted', async () => {
  const library = await startLibrary();
  const { admin, site, post, read, advance } = library;
  const source = await startFeed(feed({ guid: 'a' }), feed({ guid: 'a' }, { guid: 'b' }));
  const { id } = await post('/imports/', { metadata: { url: source.url } });
  await settled(library, id, 1);
  const [first] = (await read('/media/')).media as { id: string }[];
  await admin.delete(`${site}/media/${first?.id}`).expect(204);
  await advance(15 * 60 - 1);
  expect(source.received).toHaveLength(1);
  await advance(1);
  expect(await settled(library, id, 2)).toMatchObject({ last_import: '2030-01-01T00:15:00.000000+00:00' });
  expect(await read('/media/')).toMatchObject({ total: 1, media: [{ metadata: { title: 'Title b' } }] });
});

test('a paused import is not read, until it is made active', async () => {
  const library = await startLibrary();
  const { admin, site, post, advance } = library;
  const source = await startFeed(feed({ guid: 'a' }), feed({ guid: 'a' }, { guid: 'b' }));
  const { id } = await post('/imports/', { metadata: { url: source.url, state: 'Paused' } });
  await advance(3600);
  expect(source.received).toHaveLength(0);
  const change = (metadata: object) => admin.patch(`${site}/imports/${id}`).send({ metadata }).expect(200);
  await change({ state: 'Active' });
  await settled(library, id, 1);
  await change({ state: 'paused' });
  await advance(3600);
  expect(source.received).toHaveLength(1);
  await change({ state: 'active', title: 'Again' });
  await settled(library, id, 2);
  await admin.delete(`${site}/imports/${id}`).expect(204);
  await advance(3600);
  expect(source.received).toHaveLength(2);
});

test('content is fetched when it is to be hosted, with the picture and the captions', async () => {
  const library = await startLibrary();
  const { post, read, advance } = library;
  const files = await startWebhookReceiver();
  files.answer(
    ...['video/mp4', 'image/png', 'text/vtt'].map((type) => ({
      status: 200,
      headers: { 'content-type': type },
      body: FILM.toString('latin1'),
    })),
  );
  const more = `<media:thumbnail url="${files.url}"/><media:subTitle lang="en" href="${files.url}.vtt"/>`;
  const source = await startFeed(feed({ guid: 'a', more, content: files.url }));
  const { id } = await post('/imports/', { metadata: { url: source.url, host_on_import: true } });
  await settled(library, id, 1);
  await files.until(3);
  const [found] = (await read('/media/')).media as { id: string }[];
  const all = async () => [
    await read(`/media/${found?.id}`),
    ...((await read('/thumbnails/')).thumbnails as object[]),
    ...((await read(`/media/${found?.id}/text_tracks`)).text_tracks as object[]),
  ];
  const wanted = [
    { status: 'ready', hosting_type: 'hosted' },
    { status: 'ready', relationships: { media: [{ id: found?.id, is_poster: true }] } },
    { status: 'ready', published: true, metadata: { label: 'en', srclang: 'en' } },
  ];
  for (;;) {
    await advance(1);
    if (!JSON.stringify(await all()).includes('"processing"')) break;
  }
  expect(await all()).toMatchObject(wanted);
});

test.each([
  ['no XML', 'The feed is not well-formed XML: Non-whitespace before first tag. in line 1.'],
  [
    feed({ guid: 'a' }, { guid: 'b', content: 'relative.mp4' }, { guid: 'c' }),
    'Item b: upload.source_url: must be an absolute address with https or http.',
  ],
  ['<rss><channel><item><guid>a</guid></item></channel></rss>', 'Item a: media:content is missing.'],
])('what is wrong with a feed is told, and its good items are taken: %.20s', async (body, error_message) => {
  const library = await startLibrary();
  const source = await startFeed(body, feed({ guid: 'd' }));
  const { id } = await library.post('/imports/', { metadata: { url: source.url } });
  const { total_items_ingested } = await settled(library, id, 99);
  expect(total_items_ingested).toBe(error_message.startsWith('Item b') ? 2 : 0);
  expect(await library.read(`/imports/${id}`)).toMatchObject({ error_message });
  await library.advance(15 * 60);
  while ((await library.read(`/imports/${id}`)).error_message !== null) await source.until(2);
});

test('an import whose feed cannot be had says why', async () => {
  const library = await startLibrary();
  const source = await startWebhookReceiver();
  source.answer(401);
  const { id } = await library.post('/imports/', { metadata: { url: source.url } });
  expect(await settled(library, id, 1)).toMatchObject({
    error_message: 'The address answered 401.',
    last_import: null,
  });
  const far = await library.post('/imports/', { metadata: { url: 'http://10.1.2.3/feed' } });
  expect((await settled(library, far.id, 1)).error_message).toMatch(/https/);
});

test('an import without an address is refused', async () => {
  const { admin, site } = await startLibrary();
  for (const [metadata, description] of [
    [{}, 'metadata.url: is missing'],
    [{ url: '' }, 'metadata.url: must be an absolute address with https or http'],
    [{ url: 'ftp://example.com/feed' }, 'metadata.url: must be an absolute address with https or http'],
  ] as const) {
    const { body } = await admin.post(`${site}/imports/`).send({ metadata }).expect(400);
    expect(body.errors).toEqual([{ code: 'invalid_body', description }]);
  }
});

test('an import that is deleted while its feed is read makes nothing of it', async () => {
  const { post, admin, site, read, sizesOnDisk } = await startLibrary();
  const source = await startWebhookReceiver();
  source.answer('stall');
  const { id } = await post('/imports/', { metadata: { url: source.url } });
  await source.until(1);
  await admin.delete(`${site}/imports/${id}`).expect(204);
  await source.untilCut(1);
  while (sizesOnDisk().length > 0) await new Promise(setImmediate);
  expect(await read('/media/')).toMatchObject({ total: 0 });
});

test('a feed that is redirected is followed without its password', async () => {
  const library = await startLibrary();
  const [first, second] = [await startWebhookReceiver(), await startFeed(feed({ guid: 'a' }))];
  first.answer({ status: 302, headers: { location: second.url } });
  const { id } = await library.post('/imports/', {
    metadata: { url: first.url, username: 'me', password: 'pass' },
  });
  await settled(library, id, 1);
  expect(first.received[0]?.headers.authorization).toBeDefined();
  expect(second.received[0]?.headers.authorization).toBeUndefined();
});

test('of a long feed whose files are to be fetched, fifty are fetched at each reading', async () => {
  const library = await startLibrary();
  const content = 'http://127.0.0.1:9/film.mp4';
  const long = feed(...Array.from({ length: 52 }, (_, n) => ({ guid: `g${n}`, content })));
  const source = await startFeed(long, long);
  const { id } = await library.post('/imports/', { metadata: { url: source.url, host_on_import: true } });
  await settled(library, id, 50);
  while ((await library.read(`/imports/${id}`)).last_import === null) await source.until(1);
  expect((await library.read(`/imports/${id}`)).total_items_ingested).toBe(50);
  await library.advance(15 * 60);
  expect(await settled(library, id, 52)).toMatchObject({ error_message: null });
});

test('a feed of more than 5 MB is refused', async () => {
  const library = await startLibrary();
  const source = await startFeed(`<rss>${' '.repeat(5 * 1024 ** 2)}</rss>`);
  const { id } = await library.post('/imports/', { metadata: { url: source.url } });
  expect(await settled(library, id, 1)).toMatchObject({
    error_message: 'The file is larger than this upload may be: 5 MB.',
  });
});
