import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FILM, startLibrary, type TestLibrary } from '../../../support/start-library';

const at = (seconds: number) => new Date(Date.UTC(2030, 0, 1) + seconds * 1000).toISOString();

async function canWatch({ unauthenticated }: TestLibrary, id: string): Promise<boolean> {
  return (await unauthenticated.get(`/v2/media/${id}`)).status === 200;
}

async function patch({ admin, site }: TestLibrary, id: string, metadata: object): Promise<void> {
  await admin.patch(`${site}/media/${id}`).send({ metadata }).expect(200);
}

test('a media that has expired is never told available, until its end is moved or cleared', async () => {
  const library = await startLibrary();
  const { createReady, advance, told } = library;
  const { id } = await createReady({ metadata: { publish_end_date: at(-1) } });
  expect(await told()).not.toContain(`media_available ${id}`);
  await advance(1000);
  expect(await told()).toEqual([]);
  expect(await canWatch(library, id)).toBe(false);
  await patch(library, id, { publish_end_date: null });
  expect(await told()).toEqual([`media_updated ${id}`, `media_available ${id}`]);
  expect(await canWatch(library, id)).toBe(true);
  await patch(library, id, { title: 'Once is enough' });
  expect(await told()).toEqual([`media_updated ${id}`]);
});

test('a media is told available when its start date comes, and not at the one that was moved', async () => {
  const library = await startLibrary();
  const { createReady, advance, told } = library;
  const { id } = await createReady({ metadata: { publish_start_date: at(60) } });
  expect(await told()).not.toContain(`media_available ${id}`);
  expect(await canWatch(library, id)).toBe(false);
  await patch(library, id, { publish_start_date: at(120) });
  await advance(90);
  expect(await told()).toEqual([`media_updated ${id}`]);
  await advance(30);
  expect(await told()).toEqual([`media_available ${id}`]);
});

test('the replay of an event that was not published is never told available, whatever is done to it', async () => {
  const library = await startLibrary();
  const { createChannel, connect, disconnect, advance, told, read, send, admin, site } = library;
  const channel = await createChannel({ publishing_mode: 'manual' });
  const id = await connect(channel);
  await advance(10);
  await disconnect(channel);
  await advance(60);
  expect((await read(`/media/${id}`)).status).toBe('ready');
  await patch(library, id, { title: 'Now?', publish_start_date: null });
  const { body } = await admin.put(`${site}/media/${id}/reupload/`).send({}).expect(200);
  await send(body.upload_link);
  await advance(10);
  expect(await told()).toEqual([`media_updated ${id}`, `media_reuploaded ${id}`, `thumbnail_created ${id}`]);
  expect(await canWatch(library, id)).toBe(false);
});

describe('what is interrupted', () => {
  const servers: Server[] = [];

  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** A server that begins to answer with a file and stops halfway. */
  async function startSlowSource(): Promise<{ url: string; asked: Promise<unknown>; cut: Promise<unknown> }> {
    const server = createServer((_request, response) => {
      response.on('close', () => server.emit('cut'));
      response.writeHead(200, { 'content-length': FILM.length }).write(FILM.subarray(0, 1000));
    });
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/film.mp4`;
    return { url, asked: once(server, 'request'), cut: once(server, 'cut') };
  }

  /** Sends the head of a PUT and a part of its body; answers the status, once there is one. */
  async function sendHalf(link: string, length: number = FILM.length) {
    const put = request(link, { method: 'PUT', headers: { 'content-length': length } });
    put.on('error', () => undefined);
    const answered = once(put, 'response').then(([response]) => Number(response.statusCode));
    answered.catch(() => undefined);
    await new Promise((resolve) => put.write(FILM.subarray(0, 1000), resolve));
    return { put, answered };
  }

  async function untilEmpty({ sizesOnDisk }: TestLibrary): Promise<void> {
    while (sizesOnDisk().length > 0) await new Promise(setImmediate);
  }

  test('a media that is deleted while its file is fetched ends the fetch, and leaves no file', async () => {
    const library = await startLibrary();
    const { create, admin, site, told, advance } = library;
    const { url, asked, cut } = await startSlowSource();
    const { id } = await create({ upload: { method: 'fetch', download_url: url } });
    await asked;
    await admin.delete(`${site}/media/${id}`).expect(204);
    await cut;
    await untilEmpty(library);
    await advance(10);
    expect(await told()).toEqual([`media_created ${id}`, `media_deleted ${id}`]);
  });

  test('a media that is deleted while its file comes refuses the rest of it', async () => {
    const library = await startLibrary();
    const { create, admin, site } = library;
    const { id, upload_link } = await create();
    const { put, answered } = await sendHalf(upload_link);
    await admin.delete(`${site}/media/${id}`).expect(204);
    put.end(FILM.subarray(1000));
    expect(await answered).toBe(410);
    await untilEmpty(library);
  });

  test('a reset ends uploads, fetches and processing, and nothing of them comes back', async () => {
    const library = await startLibrary();
    const { create, send, control, admin, site, advance, context } = library;
    const { url, asked, cut } = await startSlowSource();
    await create({ upload: { method: 'fetch', download_url: url } });
    await asked;
    const processed = await create();
    await send(processed.upload_link);
    const { put, answered } = await sendHalf((await create()).upload_link);
    await create({ metadata: { publish_start_date: '2030-01-02T00:00:00Z' } });
    await control.post('/reset').expect(204);
    put.end(FILM.subarray(1000));
    expect([404, 410]).toContain(await answered);
    await cut;
    await untilEmpty(library);
    await advance(48 * 3600);
    expect((await admin.get(`${site}/media/`).expect(200)).body).toMatchObject({ total: 0, media: [] });
    expect(context.state.thumbnails.all()).toEqual([]);
  });

  test.each(['delete', 'reupload'])('the link of a file that has come is over after a %s', async (how) => {
    const { create, send, admin, site, context } = await startLibrary();
    const { id, upload_link } = await create();
    await send(upload_link);
    // Who lost the answer sends the file again.
    await send(upload_link);
    const one = `${site}/media/${id}/`;
    await (how === 'delete' ? admin.delete(one) : admin.put(`${one}reupload/`));
    const { pathname, search } = new URL(upload_link);
    const { body } = await admin.put(`${pathname}${search}`).send(FILM).expect(410);
    expect(body.errors).toMatchObject([{ code: 'upload_expired' }]);
    expect(context.uploads.list()).toHaveLength(how === 'delete' ? 0 : 1);
  });

  test('an upload that is cut in the middle leaves the media as it was, and the file can be sent again', async () => {
    const library = await startLibrary();
    const { create, read, send } = library;
    const { id, upload_link } = await create();
    const before = await read(`/media/${id}`);
    const { put } = await sendHalf(upload_link);
    put.destroy();
    await untilEmpty(library);
    expect(await read(`/media/${id}`)).toEqual(before);
    await send(upload_link);
    expect(await read(`/media/${id}`)).toMatchObject({ status: 'processing', duration: 2 });
  });
});
