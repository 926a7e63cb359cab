import { type FakePackager, startFakePackager } from '../../../support/fake-packager';
import { startDelivery, type TestDelivery } from '../../../support/start-delivery';
import { FILM } from '../../../support/start-library';
import { until } from '../../../support/until';

interface Started extends TestDelivery {
  readonly packager: FakePackager;
  /** The calls that change a stream. */
  orders(id: string): string[];
}

async function start(): Promise<Started> {
  const packager = await startFakePackager();
  const delivery = await startDelivery({ EMULATOR_PACKAGERURL: packager.url });
  const orders = (id: string) =>
    packager.said().filter((call) => /^(?:PUT|DELETE|POST)/.test(call) && call.includes(`/${id}`));
  return { ...delivery, packager, orders };
}

const rounds = ({ packager }: Started, count: number) => {
  const lists = () => packager.said().filter((call) => call === 'GET /streams').length;
  const wanted = lists() + count;
  return until(() => lists() >= wanted);
};

test('sends the file of a media once, byte for byte', async () => {
  const started = await start();
  const { film, packager, orders } = started;
  const { media } = await film();
  const { headers, body } = await packager.called(`PUT /streams/${media}/file`);
  expect(headers['content-length']).toBe(String(FILM.length));
  expect(body).toBe(FILM.toString());
  await rounds(started, 3);
  expect(orders(media)).toEqual([`PUT /streams/${media}/file?protection=none`]);
});

test('sends the new file after a reupload, and deletes what was packaged with the media', async () => {
  const { film, packager, admin, site, send, orders, context } = await start();
  const { media } = await film();
  await packager.called(`PUT /streams/${media}/file`);
  const { body } = await admin.put(`${site}/media/${media}/reupload/`).send({ upload: {} }).expect(200);
  expect(context.packaging.deliverable(media)).toBeDefined();
  await send(body.upload_link, Buffer.concat([FILM, Buffer.from('free')]));
  const second = await packager.called(`PUT /streams/${media}/file`, 2);
  expect(second.headers['content-length']).toBe(String(FILM.length + 4));
  await admin.delete(`${site}/media/${media}/`).expect(204);
  await packager.called(`DELETE /streams/${media}`);
  await until(() => context.packaging.find(media) === undefined);
  expect(orders(media).at(-1)).toBe(`DELETE /streams/${media}`);
});

test('takes away what was packaged of a media whose content is elsewhere from now on', async () => {
  const { film, packager, admin, site, get } = await start();
  const { media } = await film();
  await packager.called(`PUT /streams/${media}/file`);
  const upload = { method: 'external', source_url: 'https://cdn.example/film.mp4' };
  await admin.put(`${site}/media/${media}/reupload/`).send({ upload }).expect(200);
  await packager.called(`DELETE /streams/${media}`);
  expect((await get(`/manifests/${media}/hls/master.m3u8`)).status).toBe(404);
});

test('breaks off a file on its way when its media is deleted, and leaves nothing at the packager', async () => {
  const { film, packager, admin, site, context, logOf } = await start();
  packager.trouble = ({ method }) => (method === 'PUT' ? 'hang' : undefined);
  const { media } = await film();
  await packager.called(`PUT /streams/${media}/file`);
  await admin.delete(`${site}/media/${media}/`).expect(204);
  await packager.called(`DELETE /streams/${media}`);
  await until(() => context.packaging.find(media) === undefined);
  // Nobody waited for an answer in vain.
  expect(await logOf(1)).not.toContain('the packager does not answer');
});

test('sends a file again once its key file is there', async () => {
  const { film, packager, context, orders, connect, createChannel } = await start();
  const problem = { code: 'key_file_missing', description: 'There is no key file news.key.' };
  packager.onPut = (document) => ({ ...document, state: 'refused', problem, dash: null, hls: null });
  const { media } = await film({ custom_params: { stream_id: 'news' } });
  await until(() => context.packaging.find(media)?.problem !== undefined);
  // A live stream is told in each round, so that rounds can be counted.
  const id = await connect(await createChannel());
  await packager.called(`PUT /streams/${id}`, 12);
  expect(orders(media).length).toBeLessThanOrEqual(4);
  packager.onPut = (document) => document;
  await until(() => context.packaging.deliverable(media) !== undefined);
});

test('sends a file that cannot be packaged no second time, and keeps why', async () => {
  const started = await start();
  const { film, packager, context, orders, unauthenticated } = started;
  const problem = { code: 'media_unsupported', description: 'The file has no H.264 video.' };
  packager.onPut = (document) => ({ ...document, state: 'refused', problem, dash: null, hls: null });
  const { media } = await film();
  await until(() => context.packaging.find(media)?.problem !== undefined);
  await rounds(started, 12);
  expect(orders(media)).toHaveLength(1);
  const { body } = await unauthenticated.get(`/v2/media/${media}`);
  expect(body.playlist[0].sources.map(({ type }: { type: string }) => type)).toEqual([
    'application/vnd.apple.mpegurl',
    'video/mp4',
  ]);
});

test('asks until a file that the packager still works on is packaged', async () => {
  const started = await start();
  const { film, packager, context } = started;
  packager.onPut = (document) => ({ ...document, state: 'starting', dash: null, hls: null });
  const { media } = await film();
  await packager.called(`PUT /streams/${media}/file`);
  await rounds(started, 2);
  expect(context.packaging.deliverable(media)).toBeUndefined();
  const present = packager.streams.get(media);
  if (present) packager.streams.set(media, { ...present, ...playable(media) });
  await until(() => context.packaging.deliverable(media) !== undefined);
});

const playable = (id: string) => ({
  state: 'ended' as const,
  dash: { path: `/media/${id}/dash/manifest.mpd`, keyIds: [] },
});

test('sends again what a packager has forgotten', async () => {
  const { film, packager } = await start();
  const { media } = await film();
  await packager.called(`PUT /streams/${media}/file`);
  await until(() => packager.streams.has(media));
  packager.forget();
  await packager.called(`PUT /streams/${media}/file`, 2);
});

test('packages what takes the place of a replay anew, with the key file of its event', async () => {
  const { createChannel, connect, disconnect, advance, packager, admin, site, send, orders } = await start();
  const channel = await createChannel({ reconnect_window: 0 });
  const id = await connect(channel);
  await packager.called(`PUT /streams/${id}`);
  await disconnect(channel);
  await advance(1);
  await until(() => packager.streams.get(id)?.state === 'ended');
  const { body } = await admin.put(`${site}/media/${id}/reupload/`).send({ upload: {} }).expect(200);
  await send(body.upload_link, FILM);
  await packager.called(`PUT /streams/${id}/file`);
  await until(() => packager.streams.get(id)?.kind === 'file');
  expect(orders(id).slice(-2)).toEqual([
    `DELETE /streams/${id}`,
    `PUT /streams/${id}/file?keyFile=${channel.id}`,
  ]);
});

test('takes from the packager what it was told when the emulator stops, and does not wait for one that is away', async () => {
  const { film, packager, context } = await start();
  const { media } = await film();
  await until(() => packager.streams.has(media));
  await context.packaging.stop();
  expect(packager.streams.size).toBe(0);
  const other = await start();
  const { media: second } = await other.film();
  await until(() => other.packager.streams.has(second));
  other.packager.trouble = () => 'hang';
  const began = process.hrtime.bigint();
  await other.context.packaging.stop();
  expect(Number(process.hrtime.bigint() - began) / 1e6).toBeLessThan(2000);
});
