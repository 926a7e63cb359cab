import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StreamDocument } from '../../../../src/platform/emulator/packaging/packager-client';
import { startPackaged } from '../../../support/start-delivery';
import { type Answered, FILM, notificationsOf } from '../../../support/start-library';
import { MEDIA_VECTORS } from '../../../support/start-packager';
import { until } from '../../../support/until';

async function start() {
  const delivery = await startPackaged();
  const { packager } = delivery;
  /** The calls that change a stream. */
  const orders = (id: string) =>
    packager.said().filter((call) => /^(?:PUT|DELETE|POST)/.test(call) && call.includes(`/${id}`));
  return { ...delivery, orders };
}

test('sends the file of a media once, byte for byte, and again to a packager that has forgotten it', async () => {
  const { film, packager, orders } = await start();
  const { media } = await film();
  const { headers, body } = await packager.called(`PUT /streams/${media}/file`);
  expect(headers['content-length']).toBe(String(FILM.length));
  expect(body).toBe(FILM.toString());
  await packager.rounds(3);
  expect(orders(media)).toEqual([`PUT /streams/${media}/file?protection=none`]);
  packager.forget();
  await packager.called(`PUT /streams/${media}/file`, 2);
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
  // No call waited for an answer in vain.
  expect(await logOf(1)).not.toContain('the packager does not answer');
});

test('sends a file again once its key file is there', async () => {
  const { film, packager, context, orders, connect, createChannel } = await start();
  const problem = { code: 'key_file_missing', description: 'There is no key file news.key.' };
  packager.onPut = (document) => ({ ...document, state: 'refused', problem, dash: null, hls: null });
  const { media } = await film({ custom_params: { stream_id: 'news' } });
  await until(() => context.packaging.find(media)?.problem !== undefined);
  // A live stream is sent in each round, so that rounds can be counted.
  const id = await connect(await createChannel());
  await packager.called(`PUT /streams/${id}`, 12);
  expect(orders(media).length).toBeLessThanOrEqual(4);
  packager.onPut = (document) => document;
  await until(() => context.packaging.deliverable(media) !== undefined);
});

test('sends a file that cannot be packaged no second time, and keeps why', async () => {
  const { film, packager, context, orders, unauthenticated } = await start();
  const problem = { code: 'media_unsupported', description: 'The file has no H.264 video.' };
  packager.onPut = (document) => ({ ...document, state: 'refused', problem, dash: null, hls: null });
  const { media } = await film();
  await until(() => context.packaging.find(media)?.problem !== undefined);
  await packager.rounds(12);
  expect(orders(media)).toHaveLength(1);
  const { body } = await unauthenticated.get(`/v2/media/${media}`);
  const types = body.playlist[0].sources.map(({ type }: { type: string }) => type);
  expect(types).toEqual(['application/vnd.apple.mpegurl', 'video/mp4']);
});

test('asks until a file that the packager still works on is packaged', async () => {
  const { film, packager, context } = await start();
  packager.onPut = (document) => ({ ...document, state: 'starting', dash: null, hls: null });
  const { media } = await film();
  await packager.called(`PUT /streams/${media}/file`);
  await packager.rounds(2);
  expect(context.packaging.deliverable(media)).toBeUndefined();
  const present = packager.streams.get(media) as StreamDocument;
  const dash = { path: `/media/${media}/dash/manifest.mpd`, keyIds: [] };
  packager.streams.set(media, { ...present, state: 'ended', dash });
  await until(() => context.packaging.deliverable(media) !== undefined);
});

test('packages the file that replaces a replay, with the key file of its event', async () => {
  const { onAir, disconnect, advance, packager, admin, site, send, orders } = await start();
  const { channel, id } = await onAir({ reconnect_window: 0 });
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

test('removes its streams from the packager when the emulator stops, and does not wait for one that is away', async () => {
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
  expect(Number(process.hrtime.bigint() - began) / 1e6).toBeLessThan(10_000);
});

test('brings no stream back when the emulator stops while the packager lists its streams', async () => {
  const { film, packager, context } = await start();
  const [{ media }, { media: last }] = [await film(), await film()];
  await until(() => packager.streams.has(media) && packager.streams.has(last));
  const late: Record<string, number> = { 'GET /streams': 200, [`DELETE /streams/${last}`]: 600 };
  packager.trouble = ({ method, path }) => ({ lateMs: late[`${method} ${path}`] ?? 0 });
  await packager.rounds(1);
  await context.packaging.stop();
  expect(packager.streams.size).toBe(0);
});

describe('conversions', () => {
  /** Another film than the one that is uploaded, 160 x 90. */
  const CONVERTED = readFileSync(join(MEDIA_VECTORS, 'stream.mp4'));

  async function start() {
    const library = await startPackaged();
    const { context, post, read, createReady } = library;
    const renditionsOf = (id: string) => context.state.renditions.of(id);
    const untilSettled = (id: string) =>
      until(() => {
        const all = renditionsOf(id);
        return all.length > 0 && all.every(({ status }) => status === 'ready' || status === 'failed');
      });
    return {
      ...library,
      notifications: await notificationsOf(library),
      renditionsOf,
      untilSettled,
      /** Asks for a rendition of a ready media, and answers its path. */
      async wanted(template: string, media?: Answered) {
        const { id } = media ?? (await createReady());
        const relationships = { media_rendition_template: { id: template } };
        const path = `/media/${id}/media_renditions/`;
        const made = await post(path, { relationships });
        await library.advance(2);
        return `${path}${made.id}`;
      },
      untilReady: async (path: string) => {
        for (;;) {
          const rendition = await read(path);
          if (rendition.status !== 'processing') return rendition;
        }
      },
    };
  }

  const conversions = ({ said }: { said(): string[] }) =>
    said().filter((call) => call.includes('conversions'));

  test('a rendition is what the packager makes of the file, in the size and bit rate of its template', async () => {
    const { packager, wanted, untilReady, url, notifications, createReady, untilSettled, ...library } =
      await start();
    const { unauthenticated } = library;
    packager.conversion = CONVERTED;
    const media = await createReady();
    await untilSettled(media.id);
    expect(await notifications()).toContain(`conversions_complete ${media.id}`);
    const rendition = await untilReady(await wanted('270p', media));
    expect(rendition).toMatchObject({
      ...{ status: 'ready', error_message: null, unconverted_reason: null },
      ...{ filesize: CONVERTED.length, width: 160, height: 90 },
    });
    const call = packager.calls.findLast(({ method }) => method === 'POST');
    // Not more than the file has, which is small.
    const rate = Math.ceil((FILM.length * 8) / 2 / 1000);
    expect(call?.path).toBe(`/conversions?height=270&bitrate=${rate}`);
    expect(call?.body).toBe(FILM.toString());
    const link = String(rendition.delivery_url).slice(url.length);
    const file = await unauthenticated.get(link).buffer().expect(200);
    expect([file.headers['content-type'], file.body.equals(CONVERTED)]).toEqual(['video/mp4', true]);
  });

  test('without ffmpeg at the packager a rendition is the uploaded file, and says so', async () => {
    const { wanted, untilReady, read } = await start();
    const path = await wanted('270p');
    expect(await untilReady(path)).toMatchObject({
      ...{ status: 'ready', error_message: null, unconverted_reason: 'Not converted.' },
      filesize: FILM.length,
    });
    const { media_renditions } = await read(`${path.split('media_renditions')[0]}media_renditions/`);
    expect(media_renditions).toHaveLength(2);
  });

  test('a template that names no size is the uploaded file, and so is a rendition of a protected media', async () => {
    const { packager, wanted, untilReady, createReady } = await start();
    packager.conversion = CONVERTED;
    const unconverted_reason = expect.stringMatching(/180p.*audio/);
    const small = await untilReady(await wanted('small'));
    expect(small).toMatchObject({ filesize: FILM.length, unconverted_reason });
    const before = conversions(packager).length;
    const media = await createReady({ metadata: { custom_params: { stream_id: 'news' } } });
    const hidden = await untilReady(await wanted('270p', media));
    const encrypted = expect.stringContaining('encrypted');
    expect(hidden).toMatchObject({ unconverted_reason: encrypted, delivery_url: null });
    expect(conversions(packager)).toHaveLength(before);
  });

  test('a conversion that fails says why, and the conversions are complete when it was made again', async () => {
    const { packager, createReady, renditionsOf, untilSettled, notifications, read, ...library } =
      await start();
    const { admin, site, wanted, untilReady, unauthenticated } = library;
    packager.conversion = { status: 422, code: 'conversion_failed' };
    const media = await createReady();
    await untilSettled(media.id);
    const path = `/media/${media.id}/media_renditions/`;
    const failed = { status: 'failed', error_message: 'Not converted.' };
    const without = { delivery_url: null, unconverted_reason: null };
    expect((await read(path)).media_renditions).toMatchObject([{ ...failed, ...without }]);
    expect(conversions(packager)).toHaveLength(1);
    expect((await notifications()).filter((each) => each.startsWith('conversions'))).toEqual([]);
    const page = await unauthenticated.get(`/dashboard/media/${media.id}`).expect(200);
    expect(page.text).toContain('Not converted.');
    packager.conversion = CONVERTED;
    const [{ id = '' } = {}] = renditionsOf(media.id);
    await admin.delete(`${site}${path}${id}`).expect(204);
    const ready = { status: 'ready', error_message: null };
    expect(await untilReady(await wanted('36p', media))).toMatchObject(ready);
    expect(await notifications()).toContain(`conversions_complete ${media.id}`);
  });

  test('a packager that goes amid a conversion is asked again when it is back', async () => {
    const { packager, wanted, untilReady } = await start();
    packager.trouble = ({ path }) => (path.startsWith('/conversions') ? 'reset' : undefined);
    const path = await wanted('270p');
    await until(() => conversions(packager).length >= 2);
    packager.conversion = CONVERTED;
    packager.trouble = () => undefined;
    expect(await untilReady(path)).toMatchObject({ status: 'ready', filesize: CONVERTED.length });
  });

  test('one file is converted at a time, and a rendition that is deleted ends its conversion, or has none', async () => {
    const { packager, wanted, createReady, post, admin, site, sizesOnDisk, untilSettled } = await start();
    const media = await createReady();
    await untilSettled(media.id);
    packager.conversion = CONVERTED;
    packager.trouble = ({ path }) => (path.includes('height=270') ? 'hang' : undefined);
    const before = conversions(packager).length;
    const relationships = { media_rendition_template: { id: '406p' } };
    const { id: gone } = await post(`/media/${media.id}/media_renditions/`, { relationships });
    await admin.delete(`${site}/media/${media.id}/media_renditions/${gone}/`).expect(204);
    const paths = [await wanted('270p', media), await wanted('180p', media)];
    await packager.rounds(5);
    expect(conversions(packager)).toHaveLength(before + 1);
    await admin.delete(`${site}${paths[0]}`).expect(204);
    await until(() => conversions(packager).length === before + 2);
    await untilSettled(media.id);
    await until(() => sizesOnDisk().includes(CONVERTED.length));
    await admin.delete(`${site}/media/${media.id}`).expect(204);
    await until(() => sizesOnDisk().length === 0);
  });
});
