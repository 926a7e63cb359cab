import { startLibrary, type TestLibrary } from '../../../support/start-library';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const NOW = '2030-01-01T00:00:00.000000+00:00';
const CAPTIONS = Buffer.from('WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n');

async function start(): Promise<TestLibrary & { path: string; media: string }> {
  const library = await startLibrary();
  const { id } = await library.create();
  await library.told();
  return { ...library, media: id, path: `/media/${id}/text_tracks/` };
}

test('a text track waits for its file, and viewers get it when it is published', async () => {
  const { post, path, read, send, admin, site, told, media, url } = await start();
  const metadata = { label: 'English', srclang: 'en', position: 2, track_kind: 'subtitles' };
  const { upload_link, ...made } = await post(path, { metadata, upload: { file_format: 'srt' } });
  const shown = { label: 'English', srclang: 'en', position: 2 };
  expect(made).toEqual({
    id: made.id,
    type: 'text_track',
    created: NOW,
    last_modified: NOW,
    status: 'created',
    error_message: null,
    track_kind: 'subtitles',
    published: false,
    delivery_url: null,
    metadata: shown,
    relationships: {},
    schema: null,
  });
  await send(upload_link, CAPTIONS);
  const delivery_url = `${url}/tracks/${made.id}.srt`;
  expect(await read(`${path}${made.id}`)).toMatchObject({ status: 'ready', published: false, delivery_url });
  await admin.put(`${site}${path}${made.id}/publish`).expect(204, '');
  expect((await read(`${path}${made.id}`)).published).toBe(true);
  await admin.put(`${site}${path}${made.id}/unpublish/`).type('json').expect(204, '');
  expect((await read(`${path}${made.id}`)).published).toBe(false);
  expect(await told()).toEqual([`track_created ${media}`]);
});

test('a text track that is published before its file came is delivered when it is there', async () => {
  const { post, path, read, send, admin, site } = await start();
  const { id, upload_link } = await post(path);
  await admin.put(`${site}${path}${id}/publish/`).expect(204);
  expect(await read(`${path}${id}`)).toMatchObject({
    status: 'created',
    published: true,
    delivery_url: null,
  });
  await send(upload_link, CAPTIONS);
  expect(await read(`${path}${id}`)).toMatchObject({ status: 'ready', published: true });
});

test('a text track with auto_publish is published when its file is there', async () => {
  const { post, path, read, send } = await start();
  const { id, upload_link } = await post(path, { upload: { auto_publish: true } });
  expect((await read(`${path}${id}`)).published).toBe(false);
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
  expect(track).toMatchObject({ status: 'ready', delivery_url: expect.stringMatching(`${id}\\.${ending}$`) });
});

test('an update changes what is said of a text track, but not what it is', async () => {
  const { post, path, admin, site } = await start();
  const { id } = await post(path, { metadata: { label: 'English', position: 1 } });
  const metadata = { label: 'Deutsch', srclang: 'de' };
  const { body } = await admin.patch(`${site}${path}${id}`).send({ metadata }).expect(200);
  expect(body.metadata).toEqual({ ...metadata, position: 1 });
  const refused = await admin.patch(`${site}${path}${id}`).send({ metadata: { track_kind: 'chapters' } });
  expect([refused.status, refused.body.errors]).toEqual([
    400,
    [
      {
        code: 'invalid_body',
        description:
          'metadata.track_kind is set when the text track is made, and cannot be changed. Leave it out.',
      },
    ],
  ]);
});

test('a deleted text track is told, and its file goes', async () => {
  const { post, path, send, admin, site, told, media, sizesOnDisk } = await start();
  const { id, upload_link } = await post(path);
  await send(upload_link, CAPTIONS);
  await admin.delete(`${site}${path}${id}`).expect(204);
  expect(await told()).toEqual([`track_created ${media}`, `track_deleted ${media}`]);
  while (sizesOnDisk().length > 0) await new Promise(setImmediate);
});

test('text tracks are found by language, kind and status', async () => {
  const { post, path, read } = await start();
  const english = await post(path, { metadata: { srclang: 'en', track_kind: 'chapters' } });
  await post(path, { metadata: { srclang: 'de' } });
  for (const q of ['srclang: en', 'track_kind: chapters AND status: created'])
    expect(await read(`${path}?q=${q}`)).toMatchObject({ total: 1, text_tracks: [{ id: english.id }] });
});
