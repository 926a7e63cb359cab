import { onceForAll } from '../../../support/after-test';
import { invalidBody } from '../../../support/error-body';
import { answered, MEDIA_METADATA } from '../../../support/resource-bodies';
import { FILM, startNotifyingLibrary } from '../../../support/start-library';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const shared = onceForAll(() => startNotifyingLibrary());

/** A media that was made now, with nothing said of it. */
const CREATED = {
  ...answered('media'),
  status: 'created',
  media_type: 'video',
  hosting_type: 'hosted',
  mime_type: null,
  error_message: null,
  duration: 0,
  trim_in_point: null,
  trim_out_point: null,
  external_id: null,
  source_url: null,
  metadata: MEDIA_METADATA,
};

test('a media without a word about it waits for a file at a link, and has every field with its default', async () => {
  const { create, read, url } = await startNotifyingLibrary();
  const { upload_link, ...media } = await create({});
  expect(media).toEqual(CREATED);
  expect(upload_link.startsWith(`${url}/uploads/`)).toBe(true);
  expect(await read(`/media/${media.id}/`)).toEqual(media);
});

test('the metadata of a media are kept as they were sent, with moments in UTC', async () => {
  const { create } = await startNotifyingLibrary();
  const metadata = {
    title: 'Démo',
    description: 'About it',
    author: 'Ann',
    permalink: 'https://example.com/page',
    category: 'Sports',
    language: 'en',
    publish_start_date: '2029-12-31T12:00:00+02:00',
    publish_end_date: '2031-01-01T00:00:00Z',
    tags: ['one', 'two'],
    external_id: 'cms-17',
    protection_rule_key: 'rule',
    custom_params: { 'a key': 'a value', constructor: 'x' },
  };
  const { metadata: kept, external_id } = await create({ metadata });
  expect(external_id).toBe('cms-17');
  expect(kept).toEqual({
    ...metadata,
    publish_start_date: '2029-12-31T10:00:00.000000+00:00',
    publish_end_date: '2031-01-01T00:00:00.000000+00:00',
  });
});

describe('upload by fetch', () => {
  const notifiedWhenReady = (id: string) =>
    ['thumbnail_created', 'media_available', 'conversions_complete'].map((event) => `${event} ${id}`);

  test.each(['download_url', 'source_url'])('takes the file from %s', async (name) => {
    const { create, read, advance, notifications } = await startNotifyingLibrary();
    const source = await startWebhookReceiver();
    source.answer({ status: 200, headers: { 'content-type': 'video/mp4' }, body: FILM.toString('latin1') });
    const made = await create({ upload: { method: 'fetch', [name]: source.url } });
    expect(made).toMatchObject({ status: 'processing', hosting_type: 'hosted', source_url: null });
    expect(made.upload_link).toBeUndefined();
    while ((await read(`/media/${made.id}`)).mime_type === null) await source.until(1);
    await advance(3);
    expect(await read(`/media/${made.id}`)).toMatchObject({ status: 'ready', error_message: null });
    expect(await notifications()).toEqual([`media_created ${made.id}`, ...notifiedWhenReady(made.id)]);
  });

  test('fails with the reason when the address does not give the file, and can be made good by a reupload', async () => {
    const { create, read, admin, site, send, advance, notifications } = await startNotifyingLibrary();
    const source = await startWebhookReceiver();
    source.answer(503);
    const { id } = await create({ upload: { method: 'fetch', download_url: source.url } });
    while ((await read(`/media/${id}`)).status === 'processing') await source.until(1);
    const failed = { status: 'failed', error_message: 'The address answered 503.' };
    expect(await read(`/media/${id}`)).toMatchObject(failed);
    const { body } = await admin.put(`${site}/media/${id}/reupload/`).send({ upload: {} }).expect(200);
    await send(body.upload_link);
    await advance(3);
    expect(await read(`/media/${id}`)).toMatchObject({ status: 'ready', error_message: null, duration: 2 });
    const before = [`media_created ${id}`, `media_reuploaded ${id}`];
    expect(await notifications()).toEqual([...before, ...notifiedWhenReady(id)]);
  });
});

test('an external media is ready after a second, has no file, and no conversions', async () => {
  const { create, read, advance, notifications } = await startNotifyingLibrary();
  const source_url = 'https://cdn.example.com/live.m3u8?token=1';
  const { id, upload_link } = await create({ upload: { method: 'external', source_url } });
  expect(upload_link).toBeUndefined();
  await advance(10);
  const external = { hosting_type: 'external', source_url, mime_type: 'application/vnd.apple.mpegurl' };
  expect(await read(`/media/${id}`)).toMatchObject({ status: 'ready', ...external });
  expect(await notifications()).toEqual([
    `media_created ${id}`,
    `thumbnail_created ${id}`,
    `media_available ${id}`,
  ]);
});

test.each([
  [{ trim_in_point: '00:00:00.500' }, 1.5],
  [{ trim_out_point: '00:00:01.250' }, 1.25],
  [{ trim_in_point: '00:00:00.500', trim_out_point: '00:00:01.000' }, 0.5],
  [{ trim_in_point: '00:00:01', trim_out_point: '01:00:00' }, 1],
])('the trim points %j leave %d s, and are shown from the start', async (points, duration) => {
  const { create, read, send, advance } = await shared();
  const { id, upload_link, ...made } = await create({ upload: points });
  expect(made).toMatchObject(points);
  await send(upload_link);
  await advance(1);
  expect(await read(`/media/${id}`)).toMatchObject({ ...points, status: 'ready', duration });
});

test('a begin behind the end of the file fails the media, and says so', async () => {
  const { create, read, send, notifications } = await startNotifyingLibrary();
  const { id, upload_link } = await create({ upload: { trim_in_point: '00:00:02' } });
  await send(upload_link);
  const error_message = 'upload.trim_in_point is after the end of the file, which has 2 s. Reupload it.';
  expect(await read(`/media/${id}`)).toMatchObject({ status: 'failed', error_message });
  expect(await notifications()).toEqual([`media_created ${id}`]);
});

describe('an update', () => {
  const AFTER = { title: 'New', tags: ['c'], custom_params: { keep: '1' } };
  const BEFORE = { title: 'Old', author: 'Ann', tags: ['a', 'b'], custom_params: { keep: '1', drop: '2' } };

  test.each([
    ['replaces each field that it has as a whole, and leaves the others', AFTER, AFTER],
    [
      'clears with null what has no default, and leaves with null what has one',
      { title: null, author: null, tags: null, custom_params: null, publish_start_date: null },
      { author: null, publish_start_date: null },
    ],
  ])('%s', async (_does, metadata, changes) => {
    const { create, admin, site, notifications } = await startNotifyingLibrary();
    const { id } = await create({ metadata: BEFORE });
    await notifications();
    const { body } = await admin.patch(`${site}/media/${id}/`).send({ metadata }).expect(200);
    expect(body.metadata).toEqual({ ...MEDIA_METADATA, ...BEFORE, ...changes });
    expect(await notifications()).toEqual([`media_updated ${id}`]);
  });
});

test('a deleted media takes with it all that belongs to it, and every file on the disk', async () => {
  const { createReady, post, send, admin, site, sizesOnDisk, notifications, context } =
    await startNotifyingLibrary();
  const { id } = await createReady();
  const track = await post(`/media/${id}/text_tracks/`, { metadata: { label: 'English' } });
  await send(track.upload_link, Buffer.from('WEBVTT'));
  const original = await post(`/media/${id}/originals/`);
  await send(original.upload_link, Buffer.from('another file'));
  const picture = await post('/thumbnails/', { relationships: { media: [{ id }] } });
  await send(picture.upload_link, Buffer.from('a picture'));
  const half = await post(`/media/${id}/originals/`, { upload: { method: 'multipart' } });
  const list = await post('/playlists/manual_playlist/', {
    metadata: { media_filter: { include: { values: ['other000', id] } } },
  });
  await notifications();
  expect(sizesOnDisk()).toHaveLength(4);

  await admin.delete(`${site}/media/${id}/`).expect(204, '');
  expect(await notifications()).toEqual([`media_deleted ${id}`]);
  while (sizesOnDisk().length > 0) await new Promise(setImmediate);
  const { state } = context;
  const left = [state.media, state.originals, state.renditions, state.textTracks, state.thumbnails];
  expect(left.map((store) => store.all())).toEqual([[], [], [], [], []]);
  const { body } = await admin.get(`${site}/playlists/${list.id}/manual_playlist/`).expect(200);
  expect(body.metadata.media_filter).toEqual({ include: { values: ['other000'] } });
  for (const path of [`/media/${id}`, `/thumbnails/${picture.id}`, `/media/${id}/originals`]) {
    await admin.get(`${site}${path}`).expect(404);
  }
  const bearer = { authorization: `Bearer ${half.upload_token}` };
  await admin.put(`/v2/uploads/${half.upload_id}/complete`).set(bearer).expect(410);
});

test.each([
  ['2030-02-31T00:00:00Z', 'is no moment that exists'],
  ['2030-01-01T25:00:00Z', 'is no moment that exists'],
  ['0000-01-01T00:00:00Z', 'is no moment that exists'],
  ['0001-01-01T00:00:00+01:00', 'must be in the years 1 to 9999 in UTC'],
  ['9999-12-31T23:59:59-01:00', 'must be in the years 1 to 9999 in UTC'],
  ['2030-01-01', 'must be a time in ISO 8601 with its offset, such as 2030-01-31T12:00:00Z'],
])('the start date "%s" is refused', async (publish_start_date, fault) => {
  const { admin, site } = await shared();
  const refused = invalidBody(`metadata.publish_start_date: ${fault}`);
  await admin.post(`${site}/media`).send({ metadata: { publish_start_date } }).expect(400, refused);
});
