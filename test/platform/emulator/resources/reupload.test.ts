import { onceForAll } from '../../../support/after-test';
import { invalidBody } from '../../../support/error-body';
import { answered } from '../../../support/resource-bodies';
import { FILM, startNotifyingLibrary } from '../../../support/start-library';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

/** A library with a media that is ready, how it is now, and its reupload, which answers it. */
async function startReady(body?: object) {
  const library = await startNotifyingLibrary();
  const { createReady, notifications, read, admin, site } = library;
  const media = await createReady(body);
  await notifications();
  const path = `/media/${media.id}`;
  const now = () => read(path);
  const reupload = async (upload: object | null = {}, method: 'put' | 'post' = 'put') =>
    (await admin[method](`${site}${path}/reupload/`).send({ upload }).expect(200)).body;
  return { ...library, media, id: media.id, path, now, reupload };
}

test.each(['put', 'post'] as const)(
  'a reupload by %s replaces the file, and notifies that the media is available again, but not its conversions',
  async (method) => {
    const { media, id, path, now, reupload, read, send, advance, notifications, sizesOnDisk } =
      await startReady();
    const body = await reupload({ trim_out_point: '00:00:01' }, method);
    expect(body).toMatchObject({ id, status: 'ready', duration: 2, trim_out_point: null });
    expect(await notifications()).toEqual([`media_reuploaded ${id}`]);

    await send(body.upload_link, Buffer.concat([FILM, Buffer.alloc(100)]));
    expect(await now()).toMatchObject({ status: 'updating', trim_out_point: '00:00:01' });
    await advance(3);
    const { created, metadata } = media;
    expect(await now()).toMatchObject({ id, created, metadata, status: 'ready', duration: 1 });
    expect(await notifications()).toEqual([`media_available ${id}`]);
    expect(sizesOnDisk()).toEqual([FILM.length + 100]);
    expect((await read(`${path}/originals`)).originals).toMatchObject([{ size: FILM.length + 100 }]);
  },
);

test('viewers have the old content until the new one is there, and a reupload that is given up changes nothing', async () => {
  const { media, id, now, reupload, unauthenticated, advance, notifications } = await startReady();
  await reupload({ trim_in_point: '00:00:01' });
  await advance(25 * 3600);
  expect(await now()).toEqual(media);
  await unauthenticated.get(`/v2/media/${id}`).expect(200);
  expect(await notifications()).toEqual([`media_reuploaded ${id}`]);
});

test('a fetch that fails leaves viewers the content that they have, and says why', async () => {
  const { id, now, reupload, send, advance, unauthenticated, notifications } = await startReady();
  // Its renditions are still to be made.
  await send((await reupload()).upload_link);
  await advance(1);
  expect(await notifications()).toEqual([`media_reuploaded ${id}`, `media_available ${id}`]);
  const { last_modified: before } = await now();
  await advance(1);
  const source = await startWebhookReceiver();
  source.answer(404);
  const { status } = await reupload({ method: 'fetch', download_url: source.url });
  expect(status).toBe('updating');
  while ((await now()).status === 'updating') await source.until(1);
  const error_message = 'The address answered 404.';
  const failed = await now();
  expect(failed).toMatchObject({ status: 'ready', duration: 2, error_message });
  expect(failed.last_modified).not.toBe(before);
  await unauthenticated.get(`/v2/media/${id}`).expect(200);
  expect(await notifications()).toEqual([`media_reuploaded ${id}`]);
});

test('content that becomes external takes the file and its renditions away, and back again', async () => {
  const { id, path, now, reupload, read, send, advance, sizesOnDisk, notifications } = await startReady();
  const source_url = 'https://cdn.example.com/sound.mp3';
  await reupload({ method: 'external', source_url });
  await advance(3);
  const external = { hosting_type: 'external', media_type: 'audio', source_url, duration: 0 };
  expect(await now()).toMatchObject({ status: 'ready', ...external });
  for (const parts of ['originals', 'media_renditions'])
    expect(await read(`${path}/${parts}`)).toMatchObject({ total: 0 });
  while (sizesOnDisk().length > 0) await new Promise(setImmediate);
  expect(await notifications()).toEqual([`media_reuploaded ${id}`, `media_available ${id}`]);

  const { upload_link } = await reupload(null);
  expect(await now()).toMatchObject({ hosting_type: 'external', source_url });
  await send(upload_link);
  await advance(3);
  expect(await now()).toMatchObject({ hosting_type: 'hosted', source_url: null, duration: 2 });
  expect(await notifications()).toEqual([`media_reuploaded ${id}`, `media_available ${id}`]);
});

test('a reupload with faults is refused with each of them, and begins nothing', async () => {
  const { media, path, now, admin, site, notifications } = await startReady();
  const wrong = { metadata: { title: 'x' }, upload: { mime_type: 7, download_url: 'https://example.com/a' } };
  const refused = invalidBody(
    'upload.mime_type: must be a string',
    'metadata.title cannot be set by this call. Leave it out.',
    'upload.download_url: goes with the method fetch, not with direct',
  );
  await admin.put(`${site}${path}/reupload/`).send(wrong).expect(400, refused);
  expect(await now()).toEqual(media);
  expect(await notifications()).toEqual([]);
});

test('a new file that fails while the one before is processed leaves the media failed', async () => {
  const { id, now, reupload, send, advance, notifications } = await startReady();
  await send((await reupload()).upload_link);
  await send((await reupload({ trim_in_point: '00:01:00' })).upload_link);
  await advance(10);
  expect(await now()).toMatchObject({ status: 'failed', trim_in_point: '00:01:00' });
  expect(await notifications()).toEqual([`media_reuploaded ${id}`, `media_reuploaded ${id}`]);
});

describe('originals and renditions', () => {
  test('the primary original is the file of the media, as it was uploaded', async () => {
    const { path, read, advance } = await startReady({ upload: { trim_out_point: '00:00:01' } });
    await advance(60);
    const { originals } = await read(`${path}/originals/`);
    const [{ id = '' } = {}] = originals as { id?: string }[];
    expect(originals).toEqual([
      {
        ...answered('original', id),
        status: 'ready',
        error_message: null,
        container_format: 'mp4',
        duration: 2,
        size: FILM.length,
        md5: expect.stringMatching(/^[0-9a-f]{32}$/),
        includes: { video_track: { [id]: { width: 64, height: 36 } } },
        metadata: { name: 'Original', language: null, language_code: null, type: 'primary' },
      },
    ]);
  });

  test('another original is uploaded, described, changed and deleted; the primary one is not deleted', async () => {
    const { path: of, post, read, send, admin, site, sizesOnDisk } = await startReady();
    const path = `${of}/originals/`;
    const made = await post(path, { metadata: { name: 'German', language: 'German', language_code: 'de' } });
    expect(made).toMatchObject({ status: 'created', size: 0, md5: null, metadata: { type: 'alternate' } });
    await send(made.upload_link);
    const ready = { status: 'ready', duration: 2, size: FILM.length };
    expect(await read(`${path}${made.id}`)).toMatchObject(ready);
    const changed = await admin.patch(`${site}${path}${made.id}`).send({ metadata: { name: 'Deutsch' } });
    const others = { language: 'German', language_code: 'de', type: 'alternate' };
    expect(changed.body.metadata).toEqual({ name: 'Deutsch', ...others });

    await admin.delete(`${site}${path}${made.id}`).expect(204);
    while (sizesOnDisk().length > 1) await new Promise(setImmediate);
    const [primary] = (await read(path)).originals as { id: string }[];
    const refused = await admin.delete(`${site}${path}${primary?.id}`).expect(409);
    expect(refused.body.errors[0].code).toBe('conflict');
  });

  test('a rendition is delivered under an address of its own when the conversions are complete', async () => {
    const { create, read, send, advance } = await startNotifyingLibrary();
    const { id, upload_link } = await create();
    await send(upload_link);
    await advance(2.9);
    expect(await read(`/media/${id}/media_renditions`)).toMatchObject({ total: 0 });
    await advance(0.1);
    const later = '2030-01-01T00:00:03.000000+00:00';
    const { media_renditions } = await read(`/media/${id}/media_renditions`);
    expect(media_renditions).toEqual([
      {
        ...answered('media_rendition'),
        created: later,
        last_modified: later,
        status: 'ready',
        error_message: null,
        media_type: 'video',
        unconverted_reason: 'The emulator has no packager that converts (EMULATOR_PACKAGERURL).',
        delivery_url: expect.stringMatching(new RegExp(`^http://127.0.0.1:\\d+/videos/${id}-\\w{8}\\.mp4$`)),
        filesize: FILM.length,
        width: 64,
        height: 36,
        relationships: { media_rendition_template: { id: '36p' } },
      },
    ]);
  });

  const wanted = (id: string) => ({ relationships: { media_rendition_template: { id } } });

  test('a rendition that is asked for is made after two seconds, once for each template, and can be deleted', async () => {
    const { path: of, post, read, admin, site, advance } = await startReady();
    const path = `${of}/media_renditions/`;
    const made = await post(path, wanted('small'));
    expect(made).toMatchObject({ status: 'processing', delivery_url: null, filesize: 0 });
    await advance(2);
    expect(await read(`${path}${made.id}`)).toMatchObject({ status: 'ready', filesize: FILM.length });
    const again = await admin.post(`${site}${path}`).send(wanted('small')).expect(409);
    expect(again.body.errors[0].code).toBe('conflict');
    await admin.delete(`${site}${path}${made.id}`).expect(204);
    await post(path, wanted('small'));
  });

  test('a rendition that is asked for before the file came is made with the others', async () => {
    const { create, post, read, send, advance } = await startNotifyingLibrary();
    const { id, upload_link } = await create();
    const made = await post(`/media/${id}/media_renditions/`, wanted('small'));
    await advance(10);
    expect((await read(`/media/${id}/media_renditions/${made.id}`)).status).toBe('processing');
    await send(upload_link);
    await advance(3);
    const { media_renditions } = await read(`/media/${id}/media_renditions?sort=created:asc`);
    const others = { status: 'ready', ...wanted('36p') };
    expect(media_renditions).toMatchObject([{ id: made.id, status: 'ready' }, others]);
  });

  test('after a reupload the renditions have the sizes of the new file', async () => {
    const { id, path, reupload, read, send, advance, context } = await startReady();
    // As if the file before had been larger.
    const media = context.state.media.find(id);
    Object.assign(media ?? {}, { height: 720, width: 1280 });
    await send((await reupload()).upload_link, Buffer.from('no film'));
    await advance(3);
    const { media_renditions } = await read(`${path}/media_renditions`);
    expect(media_renditions).toMatchObject([{ filesize: 7, width: 0, ...wanted('video') }]);
  });

  test('renditions of what the platform has no file of are refused', async () => {
    const { create, onAir, disconnect, admin, site, advance } = await startNotifyingLibrary();
    const external = await create({ upload: { method: 'external', source_url: 'https://x.example/a.mp4' } });
    const { channel, id: replay } = await onAir();
    await disconnect(channel);
    await advance(60);
    for (const id of [external.id, replay]) {
      const { body } = await admin.post(`${site}/media/${id}/media_renditions`).send(wanted('small'));
      expect(body.errors).toEqual([{ code: 'conflict', description: expect.stringContaining('media') }]);
    }
  });

  const shared = onceForAll(() => startNotifyingLibrary());

  test.each(['originals', 'media_renditions', 'text_tracks'])(
    '%s of an unknown media are not found',
    async (name) => {
      const { admin, site } = await shared();
      const path = `${site}/media/nothing0/${name}`;
      const made = admin.post(path).send(name === 'media_renditions' ? wanted('small') : {});
      for (const answer of [await made, await admin.get(path), await admin.get(`${path}/nothing0`)])
        expect([answer.status, answer.body.errors[0].code]).toEqual([404, 'not_found']);
    },
  );
});
