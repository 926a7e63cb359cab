import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startUploads, type TestUploads } from '../../../support/start-uploads';
import { until } from '../../../support/until';

const FILM = readFileSync(join(__dirname, '..', '..', '..', 'vectors', 'media', 'film.mp4'));

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** Serves on loopback until the test is over; answers the address. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/film.mp4`;
}

async function create({ admin, siteId }: TestUploads, upload: object) {
  const { body } = await admin.post(`/v2/sites/${siteId}/media/`).send({ upload, metadata: {} }).expect(201);
  return body;
}

async function mediaOf({ admin, siteId }: TestUploads, id: string) {
  return (await admin.get(`/v2/sites/${siteId}/media/${id}/`).expect(200)).body;
}

/** Lets the media be processed, on the emulator's clock, until it has this status. */
async function untilIs(emulator: TestUploads, id: string, status: string) {
  await until(async () => {
    await emulator.advance(60);
    return (await mediaOf(emulator, id)).status === status;
  });
  return mediaOf(emulator, id);
}

const FACTS = {
  status: 'ready',
  media_type: 'video',
  mime_type: 'video/mp4',
  duration: 2,
  error_message: null,
};

test('a media has the length and the type of the file that was uploaded to its link', async () => {
  const emulator = await startUploads();
  const { id, upload_link } = await create(emulator, { method: 'direct' });
  await emulator.unauthenticated.put(upload_link.slice(emulator.url.length)).send(FILM).expect(200);
  expect(await untilIs(emulator, id, 'ready')).toMatchObject(FACTS);
});

test('a media has the length and the type of the file that was fetched for it', async () => {
  const emulator = await startUploads();
  const download_url = await serve((_request, response) => response.end(FILM));
  const { id } = await create(emulator, { method: 'fetch', download_url });
  expect(await untilIs(emulator, id, 'ready')).toMatchObject(FACTS);
  expect(emulator.sizesOnDisk()).toEqual([FILM.length]);
});

test('a media whose file could not be fetched has failed, and says why', async () => {
  const emulator = await startUploads();
  const download_url = await serve((_request, response) => response.writeHead(404).end());
  const { id } = await create(emulator, { method: 'fetch', download_url });
  expect(await untilIs(emulator, id, 'failed')).toMatchObject({ error_message: 'The address answered 404.' });
});

test('a media that is deleted while its file is fetched ends the fetch', async () => {
  const emulator = await startUploads();
  const cut = new EventEmitter();
  const isCut = once(cut, 'close');
  const download_url = await serve((_request, response) => {
    response.on('close', () => cut.emit('close')).write('hello');
  });
  const { id } = await create(emulator, { method: 'fetch', download_url });
  await until(() => emulator.sizesOnDisk().includes(5));
  await emulator.admin.delete(`/v2/sites/${emulator.siteId}/media/${id}/`).expect(204);
  await isCut;
  await until(() => emulator.sizesOnDisk().length === 0 && emulator.context.uploads.usedBytes === 0);
});

test('with a media its file is deleted, and its link is over', async () => {
  const emulator = await startUploads();
  const { id, upload_link } = await create(emulator, { method: 'direct' });
  const other = await create(emulator, { method: 'direct' });
  const path = (link: string) => link.slice(emulator.url.length);
  await emulator.unauthenticated.put(path(upload_link)).send(FILM).expect(200);
  for (const deleted of [id, other.id])
    await emulator.admin.delete(`/v2/sites/${emulator.siteId}/media/${deleted}/`).expect(204);
  await until(() => emulator.sizesOnDisk().length === 0);
  await emulator.unauthenticated.put(path(other.upload_link)).send(FILM).expect(410);
});
