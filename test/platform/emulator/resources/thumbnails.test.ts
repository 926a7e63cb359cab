import { invalidBody } from '../../../support/error-body';
import { answered } from '../../../support/resource-bodies';
import { startNotifyingLibrary, type TestLibrary } from '../../../support/start-library';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const PICTURE = Buffer.from('a picture');

/** A library with a media that is ready. */
async function startReady() {
  const library = await startNotifyingLibrary();
  const { id } = await library.createReady();
  await library.notifications();
  return { library, id, ...library };
}

/** Uploads a picture for a media. */
async function upload(library: TestLibrary, media: object) {
  const made = await library.post('/thumbnails/', { relationships: { media: [media] } });
  await library.send(made.upload_link, PICTURE);
  return made;
}

/** The posters that a media has, as the API says. */
async function postersOf({ read }: TestLibrary, id: string): Promise<string[]> {
  const { thumbnails } = await read(`/thumbnails?q=media_id:${id}`);
  type Listed = { id: string; relationships: { media: { is_poster: boolean }[] } };
  const posters = (thumbnails as Listed[]).filter((each) => each.relationships.media[0]?.is_poster);
  return posters.map((each) => each.id);
}

test('a thumbnail waits for its picture, which makes it ready and is notified', async () => {
  const library = await startNotifyingLibrary();
  const { create, post, read, send, notifications, url } = library;
  const { id } = await create();
  const { upload_link, ...made } = await post('/thumbnails/', { relationships: { media: [{ id }] } });
  expect(made).toEqual({
    ...answered('thumbnail'),
    status: 'created',
    error_message: null,
    thumbnail_type: 'static',
    source_type: 'custom_upload',
    delivery_url: null,
    relationships: { media: [{ id, is_poster: false }] },
  });
  expect(await notifications()).toEqual([`media_created ${id}`]);
  await send(upload_link, PICTURE);
  const ready = { status: 'ready', delivery_url: `${url}/thumbnails/${made.id}` };
  expect(await read(`/thumbnails/${made.id}`)).toEqual({ ...made, ...ready });
  expect(await notifications()).toEqual([`thumbnail_created ${id}`]);
});

test('a media has one poster: the one that the platform took, until another one is chosen', async () => {
  const { library, id, admin, site } = await startReady();
  const [automatic = ''] = await postersOf(library, id);
  const first = await upload(library, { id, is_poster: false });
  expect(await postersOf(library, id)).toEqual([automatic]);
  const second = await upload(library, { id, is_poster: true });
  expect(await postersOf(library, id)).toEqual([second.id]);
  const choose = { relationships: { media: [{ id, is_poster: true }] } };
  const { body } = await admin.patch(`${site}/thumbnails/${first.id}`).send(choose).expect(200);
  expect(body.relationships).toEqual({ media: [{ id, is_poster: true }] });
  expect(await postersOf(library, id)).toEqual([first.id]);

  // Also one that still waits for its picture when the platform takes its own.
  const later = await library.create();
  const chosen = await library.post('/thumbnails/', {
    relationships: { media: [{ id: later.id, is_poster: true }] },
  });
  await library.send(later.upload_link);
  await library.advance(3);
  expect(await postersOf(library, later.id)).toEqual([chosen.id]);
});

test('earlier thumbnails are listed and filtered by their media', async () => {
  const { library, id, create, read } = await startReady();
  await upload(library, { id: (await create()).id });
  const made = await upload(library, { id });
  const found = await read(`/thumbnails/?q=media_id: ${id}&sort=created:asc`);
  expect(found).toMatchObject({ total: 2, thumbnails: [{ source_type: 'video_position' }, { id: made.id }] });
  // A released client reads the list by this name.
  expect(found.thumbnail).toEqual(found.thumbnails);
});

test.each([
  [{ video_position: 1.5 }, 'video_position'],
  [{}, 'video_position'],
  [{ thumbstrip_index: 3 }, 'thumbstrip_index'],
])('a picture of a media, with %j, is there at once', async (from, source_type) => {
  const { id, post, notifications } = await startReady();
  const made = await post('/thumbnails/', { upload: { source_media_id: id, ...from } });
  expect(made).toMatchObject({ status: 'ready', source_type, relationships: { media: [{ id }] } });
  expect(made.upload_link).toBeUndefined();
  expect(await notifications()).toEqual([`thumbnail_created ${id}`]);
});

test('a thumbnail moves to another media, and away from its own', async () => {
  const library = await startNotifyingLibrary();
  const { create, admin, site } = library;
  const [one, two] = [await create(), await create()];
  const made = await upload(library, { id: one.id, is_poster: true });
  const relationships = { media: [{ id: two.id }] };
  await admin.patch(`${site}/thumbnails/${made.id}/`).send({ relationships }).expect(200);
  expect([await postersOf(library, one.id), await postersOf(library, two.id)]).toEqual([[], [made.id]]);
});

test('media that the site does not have are refused, all of them at once, and nothing is kept', async () => {
  const { admin, site, read, create } = await startNotifyingLibrary({
    EMULATOR_SITE_ID: 'demosite,othersit',
  });
  const { body: foreign } = await admin.post('/v2/sites/othersit/media/').send({}).expect(201);
  const given = { relationships: { media: [{ id: foreign.id }] }, upload: { source_media_id: 'nothing0' } };
  const related = 'relationships.media.0.id: this site has no media with this id';
  const refused = invalidBody(related, 'upload.source_media_id: this site has no media with this id');
  await admin.post(`${site}/thumbnails/`).send(given).expect(400, refused);
  const taken = { ...given, upload: { video_position: 3 } };
  await admin.post(`${site}/thumbnails/`).send(taken).expect(400, invalidBody(related));
  expect(await read('/thumbnails/')).toMatchObject({ total: 0 });
  const { id } = await create();
  for (const upload of [{ video_position: 3 }, { source_media_id: id, method: 'multipart' }])
    expect((await admin.post(`${site}/thumbnails/`).send({ upload })).body.errors).toHaveLength(1);
});

test('a deleted thumbnail is notified, and another picture of the media replaces it', async () => {
  const { library, id, admin, site, notifications, sizesOnDisk, context } = await startReady();
  const made = await upload(library, { id, is_poster: true });
  await notifications();
  const before = sizesOnDisk().length;
  await admin.delete(`${site}/thumbnails/${made.id}`).expect(204);
  expect(await notifications()).toEqual([`thumbnail_deleted ${id}`]);
  while (sizesOnDisk().length === before) await new Promise(setImmediate);
  expect(context.state.thumbnails.all().map(({ mediaId }) => mediaId)).toEqual([id]);
});

test('a file that is no picture, by what it is declared as, is refused', async () => {
  const { create, post, unauthenticated, url } = await startNotifyingLibrary();
  const { id } = await create();
  const { upload_link } = await post('/thumbnails/', { relationships: { media: [{ id }] } });
  const path = upload_link.slice(url.length);
  await unauthenticated.put(path).type('application/pdf').send(PICTURE).expect(415);
});

describe('text tracks', () => {
  const CAPTIONS = Buffer.from('WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n');

  async function start() {
    const library = await startNotifyingLibrary();
    const { id } = await library.create();
    await library.notifications();
    return { ...library, media: id, path: `/media/${id}/text_tracks/` };
  }

  test('a text track waits for its file, and viewers get it when it is published', async () => {
    const { post, path, read, send, admin, site, notifications, media, url } = await start();
    const metadata = { label: 'English', srclang: 'en', position: 2, track_kind: 'subtitles' };
    const { upload_link, ...made } = await post(path, { metadata, upload: { file_format: 'srt' } });
    expect(made).toEqual({
      ...answered('text_track'),
      status: 'created',
      error_message: null,
      track_kind: 'subtitles',
      published: false,
      delivery_url: null,
      metadata: { label: 'English', srclang: 'en', position: 2 },
    });
    await send(upload_link, CAPTIONS);
    const one = `${path}${made.id}`;
    const ready = { status: 'ready', delivery_url: `${url}/tracks/${made.id}.srt` };
    expect(await read(one)).toEqual({ ...made, ...ready });
    expect(await read(`${path}?q=track_kind: subtitles`)).toMatchObject({ total: 1 });
    await admin.put(`${site}${one}/publish`).expect(204, '');
    expect((await read(one)).published).toBe(true);
    await admin.put(`${site}${one}/unpublish/`).type('json').expect(204, '');
    expect((await read(one)).published).toBe(false);
    expect(await notifications()).toEqual([`track_created ${media}`]);
  });

  test('a text track that is published before its file came is delivered when it is there', async () => {
    const { post, path, read, send, admin, site } = await start();
    const { id, upload_link } = await post(path);
    await admin.put(`${site}${path}${id}/publish/`).expect(204);
    const waiting = { status: 'created', published: true, delivery_url: null };
    expect(await read(`${path}${id}`)).toMatchObject(waiting);
    await send(upload_link, CAPTIONS);
    expect(await read(`${path}${id}`)).toMatchObject({ status: 'ready', published: true });
  });

  test.each([
    ['/captions.srt?v=1', undefined, 'srt'],
    ['/captions', 'webvtt', 'vtt'],
    ['/captions', undefined, 'vtt'],
  ])('a text track that is fetched from %s as %s ends in .%s', async (place, file_format, ending) => {
    const { post, path, read } = await start();
    const source = await startWebhookReceiver();
    source.answer({ status: 200, body: CAPTIONS.toString() });
    const download_url = new URL(place, source.url).href;
    const { id } = await post(path, { upload: { method: 'fetch', download_url, file_format } });
    let track = await read(`${path}${id}`);
    while (track.status === 'processing') track = await read(`${path}${id}`);
    const delivery_url = expect.stringMatching(`${id}\\.${ending}$`);
    expect(track).toMatchObject({ status: 'ready', delivery_url });
  });

  test('an update changes what is said of a text track, but not what it is', async () => {
    const { post, path, admin, site } = await start();
    const { id } = await post(path, { metadata: { label: 'English', position: 1 } });
    const metadata = { label: 'Deutsch', srclang: 'de' };
    const { body } = await admin.patch(`${site}${path}${id}`).send({ metadata }).expect(200);
    expect(body.metadata).toEqual({ ...metadata, position: 1 });
    const kind = { metadata: { track_kind: 'chapters' }, upload: { method: 'direct' } };
    const refused = invalidBody(
      'metadata.track_kind cannot be set by this call. Leave it out.',
      'upload.method cannot be set by this call. Leave it out.',
    );
    await admin.patch(`${site}${path}${id}`).send(kind).expect(400, refused);
  });

  test('a deleted text track is notified, and its file goes', async () => {
    const { post, path, send, admin, site, notifications, media, sizesOnDisk } = await start();
    const { id, upload_link } = await post(path);
    await send(upload_link, CAPTIONS);
    await admin.delete(`${site}${path}${id}`).expect(204);
    expect(await notifications()).toEqual([`track_created ${media}`, `track_deleted ${media}`]);
    while (sizesOnDisk().length > 0) await new Promise(setImmediate);
  });
});
