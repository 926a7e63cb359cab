import type { Environment } from '../../../../src/http/config';
import { startPackaged } from '../../../support/start-delivery';
import { FILM, notificationsOf } from '../../../support/start-library';
import { until } from '../../../support/until';

const RECORDED = FILM.toString('latin1');

async function start(env: Environment = {}) {
  const library = await startPackaged(env);
  const { context, disconnect, advance, admin, site } = library;
  /** An event of a channel without a reconnect window, that the packager has. */
  const onAir = async (metadata: object = {}) => {
    const { channel, id } = await library.onAir({ reconnect_window: 0, ...metadata });
    const path = `${site}/channels/${channel.id}/events/${id}`;
    const end = async () => {
      await disconnect(channel);
      await advance(1);
    };
    return { channel, id, path, end };
  };
  const master = async (path: string) => {
    const { status, body } = await admin.get(`${path}/master/`);
    return { status, body };
  };
  /** Makes a clip of an event, and answers the id of its media. */
  const clip = async (path: string, from: string, to: string): Promise<string> => {
    const query = `trim_in_point=00:00:${from}&trim_out_point=00:00:${to}`;
    return (await admin.put(`${path}/clip/?${query}`).expect(200)).body.media_id;
  };
  const notifications = await notificationsOf(library);
  return {
    ...library,
    notifications,
    onAir,
    master,
    clip,
    event: (id: string) => context.state.events.find(id),
  };
}

/** The answer of the fake, which is text. */
const body = Buffer.from(RECORDED, 'utf8');

test('gives the master of an event its file until it expires', async () => {
  const { packager, onAir, master, event, admin, unauthenticated, url, advance, sizesOnDisk } = await start();
  const { id, path, end } = await onAir();
  packager.recordings.set(id, RECORDED);
  await end();
  await admin.put(`${path}/request_master/`).expect(204);
  await until(() => event(id)?.master?.file !== undefined);
  const link = `${url}/live/masters/${event(id)?.master?.token}.mp4`;
  const expiration = '2030-01-02T00:00:01.000000+00:00';
  const shown = { id, type: 'master', status: 'available', expiration, delivery_url: link };
  expect(await master(path)).toEqual({ status: 200, body: shown });
  const file = await unauthenticated.get(link.slice(url.length)).buffer();
  const sent = [file.status, file.headers['content-type'], file.body.equals(body)];
  expect(sent).toEqual([200, 'video/mp4', true]);
  const range = await unauthenticated.get(link.slice(url.length)).set('range', 'bytes=4-7').buffer();
  expect([range.status, range.body.toString()]).toEqual([206, 'ftyp']);
  expect((await unauthenticated.get('/live/masters/another.mp4')).status).toBe(404);
  await advance(24 * 3600);
  expect((await unauthenticated.get(link.slice(url.length))).status).toBe(404);
  expect((await master(path)).status).toBe(404);
  await until(() => sizesOnDisk().length === 0);
});

test('waits for the packager with a master, for days as well, asks for it no second time, and deletes its file with the channel', async () => {
  const { packager, onAir, master, event, admin, site, sizesOnDisk, advance } = await start();
  const { id, path, end, channel } = await onAir();
  packager.recordings.set(id, RECORDED);
  await end();
  packager.trouble = ({ path: asked }) => (asked.includes('recording') ? 500 : undefined);
  await admin.put(`${path}/request_master/`).expect(204);
  await advance(25 * 3600);
  await packager.called(`GET /streams/${id}/recording`, 2);
  expect((await master(path)).status).toBe(404);
  await admin.put(`${path}/request_master/`).expect(204);
  packager.trouble = () => undefined;
  await until(() => event(id)?.master?.file !== undefined);
  expect((await master(path)).status).toBe(200);
  await admin.delete(`${site}/channels/${channel.id}/`).expect(204);
  await until(() => sizesOnDisk().length === 0);
});

test('makes the master of an event without media available without a file', async () => {
  const { onAir, master, admin } = await start();
  const { path, end } = await onAir();
  await end();
  await admin.put(`${path}/request_master/`).expect(204);
  await until(async () => (await master(path)).status === 200);
  expect((await master(path)).body.delivery_url).toBeUndefined();
});

test('makes a media of a clip, with the file of its piece, encrypted as the event was', async () => {
  const { packager, onAir, advance, read, notifications, unauthenticated, context, clip } = await start();
  const { id, path } = await onAir({ custom_params: { stream_id: 'news' }, title: 'News' });
  packager.recordings.set(id, RECORDED);
  await advance(20);
  const media = await clip(path, '02', '10.500');
  expect((await read(`/media/${media}/`)).status).toBe('processing');
  await packager.called(`GET /streams/${id}/recording`);
  expect(packager.said()).toContain(`GET /streams/${id}/recording?from=2&to=10.5`);
  await packager.called(`PUT /streams/${media}/file`);
  expect(packager.said()).toContain(`PUT /streams/${media}/file?keyFile=news`);
  // The file is looked at first, in its own time.
  await until(async () => {
    await advance(5);
    return context.state.renditions.of(media).some(({ status }) => status === 'ready');
  });
  const ready = { status: 'ready', duration: 8.5, error_message: null };
  expect(await read(`/media/${media}/`)).toMatchObject(ready);
  // Its poster is made as that of an upload.
  expect((await notifications()).slice(1)).toEqual([
    `media_available ${media}`,
    `conversions_complete ${media}`,
  ]);
  const { body: document } = await unauthenticated.get(`/v2/media/${media}`);
  const types = document.playlist[0].sources.map(({ type }: { type: string }) => type);
  expect(types).toEqual(['application/dash+xml', 'application/vnd.apple.mpegurl']);
});

test('waits until the recording has the whole piece, which it encrypts with the key file of the channel', async () => {
  const { packager, onAir, advance, clip } = await start();
  const { id, path, channel } = await onAir();
  packager.recordings.set(id, RECORDED);
  await advance(60);
  const made = await clip(path, '02', '30');
  await packager.called(`PUT /streams/${id}`, 6);
  expect(packager.said().some((call) => call.includes('recording'))).toBe(false);
  packager.onPut = (document) => ({ ...document, seconds: 31 });
  await packager.called(`GET /streams/${id}/recording`);
  await packager.called(`PUT /streams/${made}/file`);
  expect(packager.said()).toContain(`PUT /streams/${made}/file?keyFile=${channel.id}`);
});

test('reports why a clip has no file yet, and makes it without one when nothing was recorded', async () => {
  const { packager, onAir, advance, read, notifications, clip } = await start();
  const { id, path } = await onAir();
  await advance(20);
  packager.trouble = ({ path: asked }) => (asked.includes('recording') ? 500 : undefined);
  const made = await clip(path, '02', '05');
  await packager.called(`GET /streams/${id}/recording`);
  await until(async () => (await read(`/media/${made}/`)).error_message !== null);
  const waiting = { status: 'processing', error_message: 'The packager says 500.' };
  expect(await read(`/media/${made}/`)).toMatchObject(waiting);
  packager.trouble = () => undefined;
  await until(async () => (await read(`/media/${made}/`)).status === 'ready');
  expect(await notifications()).toEqual([`media_available ${made}`]);
});

test('fails a clip for which there is no room', async () => {
  const { packager, onAir, advance, read, clip } = await start({ EMULATOR_UPLOADSMAXMB: '1' });
  const { id, path } = await onAir();
  packager.recordings.set(id, 'x'.repeat(1024 * 1024 + 1));
  await advance(20);
  const made = await clip(path, '02', '05');
  await until(async () => (await read(`/media/${made}/`)).status === 'failed');
  expect((await read(`/media/${made}/`)).error_message).toContain('EMULATOR_UPLOADSMAXMB');
});

test('forgets at a reset what it waits for, keeps no file of it, and fetches others', async () => {
  const { packager, onAir, control, advance, sizesOnDisk, clip } = await start();
  const { id, path } = await onAir();
  packager.recordings.set(id, RECORDED);
  packager.trouble = ({ path: asked }) => (asked.includes('recording') ? { lateMs: 60 } : undefined);
  await advance(20);
  await clip(path, '02', '05');
  await packager.called(`GET /streams/${id}/recording`);
  await control.post('/reset').expect(204);
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(sizesOnDisk()).toEqual([]);
  expect(packager.streams.size).toBe(0);
  packager.trouble = () => undefined;
  const next = await onAir();
  packager.recordings.set(next.id, RECORDED);
  await advance(20);
  await clip(next.path, '02', '05');
  await until(() => sizesOnDisk().length > 0);
});
