import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../../support/after-test';
import {
  callV1,
  createV1,
  type Fields,
  okV1,
  processFile,
  readyVideo,
  refusedV1,
  uploadForm,
} from '../../../support/call-v1';
import { START } from '../../../support/sign-v1';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const MEDIA = '/v2/sites/demosite/media/';

async function conversionsOf(emulator: TestEmulator, parameters: Readonly<Record<string, string>>) {
  const { conversions } = await okV1(emulator, 'videos/conversions/list', parameters);
  return conversions as readonly Fields[];
}

async function startConversion() {
  const emulator = await startEmulator();
  const video_key = await readyVideo(emulator);
  const key = await createV1(emulator, 'conversion', { video_key, template_key: '240p' });
  return { emulator, video_key, key };
}

test('conversions are the originals and the renditions of a video, in one list', async () => {
  const { emulator, video_key, key } = await startConversion();
  const [original, own, rendition] = await conversionsOf(emulator, { video_key });
  expect(own).toMatchObject({ status: 'Ready', filesize: '6', template: { key: 'video' } });
  expect(original).toEqual({
    key: expect.any(String),
    status: 'Ready',
    error: null,
    mediatype: 'video',
    duration: '0.00',
    filesize: '6',
    width: 0,
    height: 0,
    template: {
      key: 'original',
      name: 'Original',
      required: true,
      format: { key: 'original', name: 'Original' },
    },
  });
  const template = { key: '240p', name: '240p' };
  expect(rendition).toMatchObject({ key, status: 'Processing', filesize: '0', link: null, template });
  await emulator.advance(10);
  const { conversion } = await okV1(emulator, 'videos/conversions/show', { conversion_key: key });
  const path = `/videos/${video_key}-${key}.mp4`;
  const link = { protocol: 'http', address: `127.0.0.1:${emulator.port}`, path };
  expect(conversion).toMatchObject({ status: 'Ready', filesize: '6', link });
  const { body } = await emulator.admin.get(`${MEDIA}${video_key}/media_renditions/${key}/`).expect(200);
  expect(body).toMatchObject({ status: 'ready', filesize: 6 });
});

test('conversions are listed in a window, and shown and deleted by their key alone', async () => {
  const { emulator, video_key, key } = await startConversion();
  const window = { video_key, result_limit: '1', result_offset: '2' };
  expect(await conversionsOf(emulator, window)).toMatchObject([{ key }]);
  const [original] = await conversionsOf(emulator, { video_key });
  const conversion_key = String(original?.key);
  expect((await okV1(emulator, 'videos/conversions/show', { conversion_key })).conversion).toEqual(original);
  const deleted = await okV1(emulator, 'videos/conversions/delete', { conversion_key: key });
  expect(deleted).toEqual({ status: 'ok' });
  expect(await conversionsOf(emulator, { video_key })).toHaveLength(2);
});

test('the content of a video cannot be deleted as a conversion, and then nothing else is', async () => {
  const { emulator, video_key, key } = await startConversion();
  const [original] = await conversionsOf(emulator, { video_key });
  const conversion_key = `${key},${original?.key}`;
  const [status, code] = await refusedV1(emulator, 'videos/conversions/delete', { conversion_key });
  expect([status, code]).toEqual([409, 'PreconditionFailed']);
  expect(await conversionsOf(emulator, { video_key })).toHaveLength(3);
});

test('a track is uploaded, shown to viewers, changed and deleted', async () => {
  const emulator = await startEmulator();
  const video_key = await createV1(emulator, 'video');
  const captions = { kind: 'captions', label: 'English', language: 'en' };
  const made = await okV1(emulator, 'videos/tracks/create', { video_key, ...captions });
  const { key } = made.track as { key: string };
  expect(made).toMatchObject({ media: { type: 'track', key }, link: { path: '/v1/videos/tracks/upload' } });
  expect(await uploadForm(emulator, made, 'WEBVTT\n', 'text/vtt')).toMatchObject({
    status: 200,
    body: { status: 'ok', track: { key }, file: { size: '7' } },
  });
  const track = {
    key,
    ...captions,
    position: '0',
    status: 'ready',
    error: null,
    updated: START,
    link: { protocol: 'http', address: `127.0.0.1:${emulator.port}`, path: `/tracks/${key}.vtt` },
  };
  const listed = { status: 'ok', limit: 50, offset: 0, total: 1, tracks: [track] };
  expect(await okV1(emulator, 'videos/tracks/list', { video_key })).toEqual(listed);
  const { body } = await emulator.admin.get(`${MEDIA}${video_key}/text_tracks/${key}/`);
  expect(body.published).toBe(true);
  await okV1(emulator, 'videos/tracks/update', { track_key: key, label: 'British' });
  const shown = await okV1(emulator, 'videos/tracks/show', { track_key: key });
  expect(shown.track).toEqual({ ...track, label: 'British' });
  await okV1(emulator, 'videos/tracks/delete', { track_key: key });
  expect((await okV1(emulator, 'videos/tracks/list', { video_key })).total).toBe(0);
});

async function thumbnailOf(emulator: TestEmulator, video_key: string): Promise<Fields> {
  return (await okV1(emulator, 'videos/thumbnails/show', { video_key })).thumbnail as Fields;
}

test('a video without a file has no thumbnail yet', async () => {
  const emulator = await startEmulator();
  const video_key = await createV1(emulator, 'video');
  expect(await thumbnailOf(emulator, video_key)).toEqual({ key: video_key, status: 'NotBuilt' });
});

test('an uploaded picture becomes the thumbnail when it is there, and not before', async () => {
  const emulator = await startEmulator();
  const video_key = await readyVideo(emulator);
  const before = await thumbnailOf(emulator, video_key);
  expect(before).toMatchObject({ status: 'Ready', link: { path: `/thumbnails/${before.key}` } });
  // A later picture that is not chosen.
  const other = { source_type: 'video_position', source_media_id: video_key, video_position: 1 };
  await emulator.admin.post('/v2/sites/demosite/thumbnails/').send({ upload: other }).expect(201);
  const wanted = await okV1(emulator, 'videos/thumbnails/update', { video_key });
  expect(wanted).toMatchObject({ video: { key: video_key }, link: { path: '/v1/videos/thumbnails/upload' } });
  expect(await thumbnailOf(emulator, video_key)).toEqual(before);
  expect((await uploadForm(emulator, wanted, 'a picture', 'image/jpeg')).status).toBe(200);
  const after = await thumbnailOf(emulator, video_key);
  expect([after.status, after.key === before.key]).toEqual(['Ready', false]);
  const { body } = await emulator.admin.get(`/v2/sites/demosite/thumbnails/?q=media_id:${video_key}`);
  expect(body.total).toBe(3);
});

test.each([{ position: '7.42' }, { thumbnail_index: '3' }])(
  'a thumbnail is taken out of the video at %j',
  async (where) => {
    const emulator = await startEmulator();
    const video_key = await readyVideo(emulator);
    const before = await thumbnailOf(emulator, video_key);
    expect(await okV1(emulator, 'videos/thumbnails/update', { video_key, ...where })).toEqual({
      status: 'ok',
      media: { type: 'video', key: video_key },
      video: { key: video_key },
    });
    const after = await thumbnailOf(emulator, video_key);
    expect([after.status, after.key === before.key]).toEqual(['Ready', false]);
  },
);

test('a part of another site is not found', async () => {
  const emulator = await startEmulator({ EMULATOR_SITE_ID: 'demosite,othrsite' });
  const video_key = await readyVideo(emulator);
  const track_key = await createV1(emulator, 'track', { video_key, kind: 'captions' });
  const [original] = await conversionsOf(emulator, { video_key });
  for (const [call, parameters] of [
    ['videos/show', { video_key }],
    ['videos/tracks/show', { track_key }],
    ['videos/tracks/delete', { track_key }],
    ['videos/conversions/show', { conversion_key: String(original?.key) }],
    ['videos/thumbnails/show', { video_key }],
  ] as const) {
    const { status } = await callV1(emulator, call, parameters, { api_key: 'othrsite' });
    expect([call, status]).toEqual([call, 404]);
  }
});

describe('released clients', () => {
  const SECRET = 'demo-api-secret-0123456789';
  /** Clients sign with the time of their machine; the emulator's clock is stopped at this one. */
  const NOW = Date.parse('2030-01-01T00:00:00Z');

  beforeEach(() => void jest.spyOn(Date, 'now').mockReturnValue(NOW));

  afterEach(() => {
    jest.restoreAllMocks();
    delete process.env.HTTP_PROXY;
    delete process.env.http_proxy;
  });

  /** A client that only knows the address of the platform reaches the emulator as its proxy. */
  async function startAsProxy() {
    const emulator = await startEmulator();
    process.env.HTTP_PROXY = emulator.url;
    process.env.http_proxy = emulator.url;
    return emulator;
  }

  /** The released clients have no types. */
  interface JwPlatform {
    readonly _client: { baseUrl: string };
    readonly videos: Readonly<
      Record<'delete' | 'list' | 'show' | 'update', (given: Fields) => Promise<Fields>>
    >;
    upload(options: Fields, path: string): Promise<Fields>;
  }

  test('jwplatform creates, uploads, lists, changes and deletes a video', async () => {
    const emulator = await startEmulator();
    const Api = jest.requireActual<new (keys: Fields) => JwPlatform>('jwplatform');
    const client = new Api({ apiKey: emulator.siteId, apiSecret: SECRET });
    client._client.baseUrl = `${emulator.url}/v1/`;
    const path = join(await temporaryFolder(), 'film.mp4');
    writeFileSync(path, 'a film');
    const title = "It's (a) *film*!";
    const uploaded = await client.upload({ title, 'custom.B': '1', 'custom.a': 'é' }, path);
    const { key } = uploaded.video as Fields;
    expect(uploaded.file).toEqual({ md5: '4bb9c7ebce490264f7903f3b8c1bdbf3', size: '6' });
    await processFile(emulator, String(key));
    const { videos } = await client.videos.list({ search: 'film', order_by: 'date:desc' });
    expect(videos).toMatchObject([{ key, title, status: 'ready', custom: { B: '1', a: 'é' } }]);
    await client.videos.update({ video_key: key, title: 'B', 'custom.-B': '' });
    const { video } = await client.videos.show({ video_key: key });
    expect(video).toMatchObject({ title: 'B', custom: { a: 'é' } });
    await client.videos.delete({ video_key: key });
    const refused = { statusCode: 404, error: { status: 'error', code: 'NotFound' } };
    await expect(client.videos.show({ video_key: key })).rejects.toMatchObject(refused);
  });

  interface JwPlayerNode {
    call_api(
      config: { path: string; method?: string },
      parameters: Fields,
    ): Promise<{ readonly data: Fields }>;
  }

  test('jwplayer-node calls by GET and POST, with the emulator as its proxy', async () => {
    const { siteId } = await startAsProxy();
    const connect = jest.requireActual<(options: Fields) => JwPlayerNode>('jwplayer-node');
    const client = connect({ api_key: siteId, api_secret: SECRET });
    const parameters = { title: "It's (a) *film*!", 'custom.é': 'ü' };
    const { data } = await client.call_api({ path: '/v1/videos/create', method: 'post' }, parameters);
    expect(data).toMatchObject({ status: 'ok', link: { protocol: 'http', address: 'api.jwplatform.com' } });
    const { key } = data.video as Fields;
    const listed = await client.call_api({ path: '/v1/videos/list' }, { 'search:title,custom.*': 'film' });
    expect(listed.data).toMatchObject({
      total: 1,
      videos: [{ key, title: "It's (a) *film*!", custom: { é: 'ü' } }],
    });
    const refused = client.call_api({ path: '/v1/videos/show' }, { video_key: 'none0000' });
    const response = { status: 404, data: { status: 'error', code: 'NotFound' } };
    await expect(refused).rejects.toMatchObject({ response });
  });

  type Done = (error: unknown, body: Fields) => void;

  interface JwPlatformApi {
    get(path: string, parameters: Fields, done: Done): void;
    post(path: string, parameters: Fields | null, body: Fields, done: Done): void;
    getUploadUrl(version: string, done: (error: unknown, urls: { readonly uploadUrl: string }) => void): void;
    getVideoData(version: string, key: string, done: Done): void;
  }

  const SILENT = { debug: () => undefined, error: () => undefined };

  test('jwplatform-api gets an upload address and follows the conversions, with the emulator as its proxy', async () => {
    const emulator = await startAsProxy();
    const Api = jest.requireActual<new (config: Fields, logger: object) => JwPlatformApi>('jwplatform-api');
    const client = new Api({ key: emulator.siteId, secret: SECRET }, SILENT);
    const promised = <Result>(start: (done: (error: unknown, result: Result) => void) => void) =>
      new Promise<Result>((resolve, reject) =>
        start((error, result) => (error ? reject(error) : resolve(result))),
      );
    const { uploadUrl } = await promised<{ uploadUrl: string }>((done) => client.getUploadUrl('v1', done));
    const { pathname, search } = new URL(uploadUrl);
    const { body } = await emulator.unauthenticated
      .post(pathname + search)
      .attach('file', Buffer.from('a film'), 'film.mp4')
      .expect(200);
    const { key } = body.video;
    await processFile(emulator, key);
    expect(await promised<Fields>((done) => client.getVideoData('v1', key, done))).toMatchObject({
      completed: 2,
      total: 2,
      ready: true,
      videos: [{ status: 'ready' }, { status: 'ready', size: 6 }],
    });
    const form = { video_key: key, title: "It's (a) *film*!" };
    await promised<Fields>((done) => client.post('v1/videos/update', null, form, done));
    const get = (path: string, parameters: Fields) =>
      promised<Fields>((done) => client.get(path, parameters, done));
    expect(await get('v1/videos/show', { video_key: key })).toMatchObject({ video: { title: form.title } });
    const refused = { status: 'error', code: 'NotFound' };
    await expect(get('v1/accounts/templates/list', {})).rejects.toMatchObject(refused);
  });
});
