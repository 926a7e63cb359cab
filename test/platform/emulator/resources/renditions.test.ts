import { FILM, startLibrary } from '../../../support/start-library';

const NOW = '2030-01-01T00:00:00.000000+00:00';

test('the primary original is the file of the media, as it was uploaded', async () => {
  const { createReady, read, advance } = await startLibrary();
  const { id } = await createReady({ upload: { trim_out_point: '00:00:01' } });
  await advance(60);
  const { originals } = await read(`/media/${id}/originals/`);
  expect(originals).toEqual([
    {
      id: expect.any(String),
      type: 'original',
      created: NOW,
      last_modified: NOW,
      status: 'ready',
      error_message: null,
      container_format: 'mp4',
      duration: 2,
      size: FILM.length,
      md5: expect.stringMatching(/^[0-9a-f]{32}$/),
      includes: {
        video_track: { [(originals as { id: string }[])[0]?.id ?? '']: { width: 64, height: 36 } },
      },
      metadata: { name: 'Original', language: null, language_code: null, type: 'primary' },
      relationships: {},
      schema: null,
    },
  ]);
});

test('another original is uploaded, described, changed and deleted; the primary one is not deleted', async () => {
  const { createReady, post, read, send, admin, site, sizesOnDisk } = await startLibrary();
  const { id } = await createReady();
  const path = `/media/${id}/originals/`;
  const made = await post(path, { metadata: { name: 'German', language: 'German', language_code: 'de' } });
  expect(made).toMatchObject({ status: 'created', size: 0, md5: null, metadata: { type: 'alternate' } });
  await send(made.upload_link);
  expect(await read(`${path}${made.id}`)).toMatchObject({ status: 'ready', duration: 2, size: FILM.length });
  const metadata = { name: 'Deutsch' };
  const { body } = await admin.patch(`${site}${path}${made.id}`).send({ metadata }).expect(200);
  expect(body.metadata).toEqual({
    name: 'Deutsch',
    language: 'German',
    language_code: 'de',
    type: 'alternate',
  });
  const { originals } = await read(`${path}?q=language_code: de`);
  expect(originals).toMatchObject([{ id: made.id }]);

  await admin.delete(`${site}${path}${made.id}`).expect(204);
  while (sizesOnDisk().length > 1) await new Promise(setImmediate);
  const [primary] = (await read(path)).originals as { id: string }[];
  const refused = await admin.delete(`${site}${path}${primary?.id}`).expect(409);
  expect(refused.body.errors[0].code).toBe('conflict');
});

test('a rendition is delivered under an address of its own when the conversions are complete', async () => {
  const { create, read, send, advance } = await startLibrary();
  const { id, upload_link } = await create();
  await send(upload_link);
  await advance(2.9);
  expect(await read(`/media/${id}/media_renditions`)).toMatchObject({ total: 0 });
  await advance(0.1);
  const { media_renditions } = await read(`/media/${id}/media_renditions`);
  expect(media_renditions).toEqual([
    {
      id: expect.any(String),
      type: 'media_rendition',
      created: '2030-01-01T00:00:03.000000+00:00',
      last_modified: '2030-01-01T00:00:03.000000+00:00',
      status: 'ready',
      error_message: null,
      media_type: 'video',
      unconverted_reason: 'The emulator has no packager that converts (EMULATOR_PACKAGERURL).',
      delivery_url: expect.stringMatching(new RegExp(`^http://127.0.0.1:\\d+/videos/${id}-\\w{8}\\.mp4$`)),
      filesize: FILM.length,
      width: 64,
      height: 36,
      metadata: {},
      relationships: { media_rendition_template: { id: '36p' } },
      schema: null,
    },
  ]);
});

const wanted = (id: string) => ({ relationships: { media_rendition_template: { id } } });

test('a rendition that is asked for is made after two seconds, once for each template, and can be deleted', async () => {
  const { createReady, post, read, admin, site, advance } = await startLibrary();
  const { id } = await createReady();
  const path = `/media/${id}/media_renditions/`;
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
  const { create, post, read, send, advance } = await startLibrary();
  const { id, upload_link } = await create();
  const made = await post(`/media/${id}/media_renditions/`, wanted('small'));
  await advance(10);
  expect((await read(`/media/${id}/media_renditions/${made.id}`)).status).toBe('processing');
  await send(upload_link);
  await advance(3);
  expect(await read(`/media/${id}/media_renditions?sort=created:asc`)).toMatchObject({
    media_renditions: [
      { id: made.id, status: 'ready' },
      { status: 'ready', relationships: { media_rendition_template: { id: '36p' } } },
    ],
  });
});

test('after a reupload the renditions have the sizes of the new file', async () => {
  const { createReady, read, send, admin, site, advance, context } = await startLibrary();
  const { id } = await createReady();
  // As if the file before had been larger.
  const media = context.state.media.find(id);
  Object.assign(media ?? {}, { height: 720, width: 1280 });
  const { body } = await admin.put(`${site}/media/${id}/reupload`).send({}).expect(200);
  await send(body.upload_link, Buffer.from('no film'));
  await advance(3);
  expect(await read(`/media/${id}/media_renditions`)).toMatchObject({
    media_renditions: [
      { filesize: 7, width: 0, relationships: { media_rendition_template: { id: 'video' } } },
    ],
  });
});

test('renditions of what the platform has no file of are refused', async () => {
  const { create, createChannel, connect, disconnect, admin, site, advance } = await startLibrary();
  const external = await create({ upload: { method: 'external', source_url: 'https://x.example/a.mp4' } });
  const channel = await createChannel();
  const replay = await connect(channel);
  await disconnect(channel);
  await advance(60);
  for (const id of [external.id, replay]) {
    const { body } = await admin.post(`${site}/media/${id}/media_renditions`).send(wanted('small'));
    expect(body.errors).toEqual([{ code: 'conflict', description: expect.stringContaining('media') }]);
  }
});

test.each(['originals', 'media_renditions', 'text_tracks'])(
  '%s of an unknown media are not found',
  async (name) => {
    const { admin, site } = await startLibrary();
    const path = `${site}/media/nothing0/${name}`;
    const body = wanted('small');
    for (const answer of [
      await admin.get(path),
      await admin.get(`${path}/nothing0`),
      await admin.delete(`${path}/x`),
    ])
      expect([answer.status, answer.body.errors[0].code]).toEqual([404, 'not_found']);
    expect((await admin.post(path).send(name === 'media_renditions' ? body : {})).status).toBe(404);
  },
);
