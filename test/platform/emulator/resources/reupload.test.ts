import { FILM, startLibrary, type TestLibrary } from '../../../support/start-library';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

/** Begins a reupload; answers the media. */
async function reupload({ admin, site }: TestLibrary, id: string, upload: object = {}) {
  return (await admin.put(`${site}/media/${id}/reupload/`).send({ upload }).expect(200)).body;
}

test.each(['put', 'post'] as const)(
  'a reupload by %s replaces the file, and tells the media available again, but not its conversions',
  async (method) => {
    const { createReady, read, send, admin, site, advance, told, sizesOnDisk } = await startLibrary();
    const { id, created, metadata } = await createReady({ metadata: { title: 'Film' } });
    await told();
    const { body } = await admin[method](`${site}/media/${id}/reupload`)
      .send({ upload: { trim_out_point: '00:00:01' } })
      .expect(200);
    expect(body).toMatchObject({ id, status: 'ready', duration: 2, trim_out_point: null });
    expect(await told()).toEqual([`media_reuploaded ${id}`]);

    await send(body.upload_link, Buffer.concat([FILM, Buffer.alloc(100)]));
    expect(await read(`/media/${id}`)).toMatchObject({ status: 'updating', trim_out_point: '00:00:01' });
    await advance(3);
    expect(await read(`/media/${id}`)).toMatchObject({ id, created, metadata, status: 'ready', duration: 1 });
    expect(await told()).toEqual([`media_available ${id}`]);
    expect(sizesOnDisk()).toEqual([FILM.length + 100]);
    expect((await read(`/media/${id}/originals`)).originals).toMatchObject([{ size: FILM.length + 100 }]);
  },
);

test.each([{}, undefined, { upload: null }])(
  'a reupload with the body %j waits for a file at a link',
  async (body) => {
    const { create, admin, site } = await startLibrary();
    const { id, upload_link } = await create();
    const { body: answered } = await admin.put(`${site}/media/${id}/reupload/`).send(body).expect(200);
    expect(answered.upload_link).toMatch(/^http/);
    expect(answered.upload_link).not.toBe(upload_link);
  },
);

test('viewers have the old content until the new one is there, and a reupload that is given up changes nothing', async () => {
  const library = await startLibrary();
  const { createReady, read, unauthenticated, advance, told } = library;
  const media = await createReady();
  await told();
  await reupload(library, media.id, { trim_in_point: '00:00:01' });
  await advance(25 * 3600);
  expect(await read(`/media/${media.id}`)).toEqual(media);
  await unauthenticated.get(`/v2/media/${media.id}`).expect(200);
  expect(await told()).toEqual([`media_reuploaded ${media.id}`]);
});

test('a file that comes while the one before is processed takes its place, and is told once', async () => {
  const library = await startLibrary();
  const { create, read, send, advance, told } = library;
  const { id, upload_link } = await create();
  await send(upload_link);
  const { upload_link: next } = await reupload(library, id);
  await advance(0.5);
  await send(next, Buffer.from('no film'));
  await advance(0.5);
  expect((await read(`/media/${id}`)).status).toBe('processing');
  await advance(3);
  expect(await read(`/media/${id}`)).toMatchObject({ status: 'ready', duration: 0 });
  const events = (await told()).map((each) => each.split(' ')[0]);
  expect(events.filter((event) => event === 'media_available')).toHaveLength(1);
});

test('of two reuploads the later one holds: the link of the other is over', async () => {
  const library = await startLibrary();
  const { createReady, unauthenticated, send } = library;
  const { id } = await createReady();
  const [first, second] = [await reupload(library, id), await reupload(library, id)];
  const { pathname, search } = new URL(first.upload_link);
  const { body } = await unauthenticated.put(`${pathname}${search}`).send(FILM).expect(410);
  expect(body.errors[0].code).toBe('upload_expired');
  await send(second.upload_link);
});

test('a fetch that fails leaves viewers the content that they have, and says why', async () => {
  const library = await startLibrary();
  const { createReady, read, unauthenticated, told } = library;
  const { id } = await createReady();
  await told();
  const source = await startWebhookReceiver();
  source.answer(404);
  expect(await reupload(library, id, { method: 'fetch', download_url: source.url })).toMatchObject({
    status: 'updating',
  });
  while ((await read(`/media/${id}`)).status === 'updating') await source.until(1);
  expect(await read(`/media/${id}`)).toMatchObject({
    status: 'ready',
    duration: 2,
    error_message: 'The address answered 404.',
  });
  await unauthenticated.get(`/v2/media/${id}`).expect(200);
  expect(await told()).toEqual([`media_reuploaded ${id}`]);
});

test('content that becomes external takes the file and its renditions away, and back again', async () => {
  const library = await startLibrary();
  const { createReady, read, send, advance, sizesOnDisk, told } = library;
  const { id } = await createReady();
  await told();
  const source_url = 'https://cdn.example.com/sound.mp3';
  await reupload(library, id, { method: 'external', source_url });
  await advance(3);
  expect(await read(`/media/${id}`)).toMatchObject({
    status: 'ready',
    hosting_type: 'external',
    media_type: 'audio',
    source_url,
    duration: 0,
  });
  expect(await read(`/media/${id}/originals`)).toMatchObject({ total: 0 });
  expect(await read(`/media/${id}/media_renditions`)).toMatchObject({ total: 0 });
  while (sizesOnDisk().length > 0) await new Promise(setImmediate);

  const { upload_link } = await reupload(library, id);
  expect(await read(`/media/${id}`)).toMatchObject({ hosting_type: 'external', source_url });
  await send(upload_link);
  await advance(3);
  expect(await read(`/media/${id}`)).toMatchObject({ hosting_type: 'hosted', source_url: null, duration: 2 });
  expect(await told()).toEqual([
    `media_reuploaded ${id}`,
    `media_available ${id}`,
    `media_reuploaded ${id}`,
    `media_available ${id}`,
  ]);
});

test('a reupload with faults is refused with each of them, and begins nothing', async () => {
  const { createReady, read, admin, site, told } = await startLibrary();
  const media = await createReady();
  await told();
  const { body } = await admin
    .put(`${site}/media/${media.id}/reupload/`)
    .send({
      metadata: { title: 'x' },
      upload: {
        method: 'external',
        mime_type: 7,
        trim_in_point: '1',
        download_url: 'https://example.com/a.mp4',
      },
    })
    .expect(400);
  expect(body.errors.map(({ description }: { description: string }) => description)).toEqual([
    'upload.mime_type: must be a string',
    'upload.trim_in_point: must be a time as HH:MM:SS.mmm',
    'metadata.title: this call takes no metadata. Leave it out.',
    'upload.download_url: goes with the method fetch, not with external',
    'upload.source_url: is missing; the method external needs it',
    'upload.trim_in_point and trim_out_point: cannot be set for the method external',
  ]);
  expect(await read(`/media/${media.id}`)).toEqual(media);
  expect(await told()).toEqual([]);
});

test('a new file that fails while the one before is processed leaves the media failed', async () => {
  const library = await startLibrary();
  const { create, read, send, advance, told } = library;
  const { id, upload_link } = await create();
  await send(upload_link);
  const { upload_link: next } = await reupload(library, id, { trim_in_point: '00:01:00' });
  await send(next);
  await advance(10);
  expect(await read(`/media/${id}`)).toMatchObject({ status: 'failed', trim_in_point: '00:01:00' });
  expect(await told()).toEqual([`media_created ${id}`, `media_reuploaded ${id}`]);
});
