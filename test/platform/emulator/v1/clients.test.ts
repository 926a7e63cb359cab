import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Fields, processFile } from '../../../support/call-v1';
import { startEmulator } from '../../../support/start-emulator';

/** The released clients have no types. */
type Call = (parameters?: Fields) => Promise<Fields>;

interface Resource {
  readonly create: Call;
  readonly delete: Call;
  readonly list: Call;
  readonly show: Call;
  readonly update: Call;
}

interface JwPlatform {
  readonly _client: { baseUrl: string };
  readonly accounts: { readonly tags: Resource };
  readonly channels: Resource & { readonly videos: Resource };
  readonly players: Resource;
  readonly videos: Resource & { readonly conversions: Resource; readonly tracks: Resource };
  upload(options: Fields, path: string): Promise<Fields>;
}

type JwPlatformClass = new (options: { apiKey: string; apiSecret: string }) => JwPlatform;

const SECRET = 'demo-api-secret-0123456789';
/** Clients sign with the time of their machine; the emulator's clock stands at this one. */
const NOW = Date.parse('2030-01-01T00:00:00Z');

let folder = '';
beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW);
  folder = mkdtempSync(join(tmpdir(), 'v1-clients-'));
});

afterEach(() => {
  jest.restoreAllMocks();
  delete process.env.HTTP_PROXY;
  delete process.env.http_proxy;
  rmSync(folder, { recursive: true });
});

async function startJwPlatform() {
  const emulator = await startEmulator();
  const JwPlatformApi = jest.requireActual<JwPlatformClass>('jwplatform');
  const client = new JwPlatformApi({ apiKey: emulator.siteId, apiSecret: SECRET });
  client._client.baseUrl = `${emulator.url}/v1/`;
  return { client, emulator };
}

test('jwplatform creates, uploads, lists, changes and deletes a video', async () => {
  const { client, emulator } = await startJwPlatform();
  const path = join(folder, 'film.mp4');
  writeFileSync(path, 'a film');
  const uploaded = await client.upload({ title: "It's (a) *film*!", 'custom.B': '1', 'custom.a': 'é' }, path);
  const key = (uploaded.video as Fields).key;
  expect(uploaded).toEqual({
    status: 'ok',
    media: { type: 'video', key },
    video: { key },
    file: { md5: '4bb9c7ebce490264f7903f3b8c1bdbf3', size: '6' },
  });
  await processFile(emulator, String(key));
  expect(await client.videos.list({ search: 'film', order_by: 'date:desc' })).toMatchObject({
    status: 'ok',
    total: 1,
    videos: [{ key, title: "It's (a) *film*!", status: 'ready', custom: { B: '1', a: 'é' } }],
  });
  await client.videos.update({ video_key: key, title: 'B', 'custom.-B': '' });
  expect((await client.videos.show({ video_key: key })).video).toMatchObject({
    title: 'B',
    custom: { a: 'é' },
  });
  expect(await client.videos.conversions.list({ video_key: key })).toMatchObject({ status: 'ok', total: 2 });
  expect(await client.videos.delete({ video_key: key })).toMatchObject({ status: 'ok' });
  await expect(client.videos.show({ video_key: key })).rejects.toMatchObject({
    statusCode: 404,
    error: { status: 'error', code: 'NotFound' },
  });
});

test('jwplatform works with channels, players and tags, and tells what is not supported', async () => {
  const { client } = await startJwPlatform();
  const { key } = (await client.videos.create({ title: 'A', tags: 'old,new' })).video as Fields;
  const channel_key = ((await client.channels.create({ type: 'manual', title: 'C' })).channel as Fields).key;
  await client.channels.videos.create({ channel_key, video_key: key });
  expect(await client.channels.videos.list({ channel_key })).toMatchObject({ total: 1, videos: [{ key }] });
  const player_key = ((await client.players.create({ name: 'P', autostart: true })).player as Fields).key;
  expect((await client.players.show({ player_key })).player).toEqual({
    key: player_key,
    name: 'P',
    release_channel: 'production',
    autostart: true,
    custom: {},
  });
  await client.accounts.tags.update({ name: 'old', new_name: 'newer' });
  expect((await client.videos.show({ video_key: key })).video).toMatchObject({ tags: 'newer,new' });
  await expect(client.accounts.tags.list()).rejects.toMatchObject({
    statusCode: 405,
    error: { code: 'NotSupported', title: 'Method or parameter not supported' },
  });
});

/** A client that only knows the address of the platform reaches the emulator as its proxy. */
async function startAsProxy() {
  const emulator = await startEmulator();
  process.env.HTTP_PROXY = emulator.url;
  process.env.http_proxy = emulator.url;
  return emulator;
}

interface JwPlayerNode {
  call_api(
    config: { path: string; method?: string },
    parameters?: Fields,
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
  await expect(client.call_api({ path: '/v1/videos/show' }, { video_key: 'none0000' })).rejects.toMatchObject(
    {
      response: { status: 404, data: { status: 'error', code: 'NotFound' } },
    },
  );
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
  expect(
    await promised<Fields>((done) => client.get('v1/videos/show', { video_key: key }, done)),
  ).toMatchObject({
    video: { title: "It's (a) *film*!" },
  });
  await expect(
    promised<Fields>((done) => client.get('v1/accounts/templates/list', {}, done)),
  ).rejects.toMatchObject({ status: 'error', code: 'NotFound' });
});
