import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  filesOf,
  MEDIA_VECTORS,
  startPackager,
  startProvisioned,
  type TestPackager,
  temporaryHome,
} from '../../support/start-packager';

const FILM = readFileSync(join(MEDIA_VECTORS, 'film.mp4'));
const NOT_FOUND = {
  errors: [{ code: 'stream_not_found', description: 'There is no stream with this id.' }],
};

const upload = ({ api }: TestPackager, id: string, query: string, body = FILM) =>
  api.put(`/streams/${id}/file?${query}`).set('content-type', 'application/octet-stream').send(body);

/** Begins to send a file, and sends no more than its first bytes. */
async function beginUpload({ url, home }: TestPackager, id: string, query: string) {
  const path = `${url}/streams/${id}/file?${query}`;
  const sending: ClientRequest = request(path, { method: 'PUT', headers: { 'content-length': FILM.length } });
  const answered = new Promise<number>((resolve) => {
    sending.on('error', () => resolve(0));
    sending.on('response', (answer: IncomingMessage) => resolve(answer.resume().statusCode ?? 0));
  });
  sending.write(FILM.subarray(0, 1000));
  const temporary = join(home, 'media/packager-media/temporary');
  while (!readdirSync(temporary).some((name) => name.startsWith(`${id}-part-`))) await sleep(10);
  return { breakOff: () => sending.destroy(), answered };
}

test('clear media is gone as soon as a protected file is to replace it, even one that never comes', async () => {
  const packager = await startProvisioned();
  await upload(packager, 'film', 'protection=none').expect(201);
  const { breakOff } = await beginUpload(packager, 'film', 'keyFile=news');
  expect(await packager.get('film')).toEqual({
    ...{ id: 'film', kind: 'file', keyFile: 'news', protection: 'key_file', state: 'starting' },
    ...{ problem: null, started: expect.any(String), seconds: 0, dash: null, hls: null },
  });
  await packager.api.get('/media/film/hls/master.m3u8').expect(404);
  breakOff();
  while ((await packager.api.get('/streams/film')).status !== 404) await sleep(10);
  expect(filesOf(packager).filter((name) => name.includes('film'))).toEqual([]);
});

test('a protected file that broke off leaves the protected one before it in place', async () => {
  const packager = await startProvisioned();
  packager.provision('other');
  const { body: before } = await upload(packager, 'film', 'keyFile=news').expect(201);
  const { breakOff } = await beginUpload(packager, 'film', 'keyFile=other');
  breakOff();
  while (filesOf(packager).some((name) => name.includes('temporary/film'))) await sleep(10);
  expect(await packager.get('film')).toEqual(before);
  expect((await packager.api.get('/media/film/hls/video.m3u8')).text).toContain('METHOD=SAMPLE-AES');
});

test('a stream is deleted at once while its file comes slowly, and the sender is told', async () => {
  const packager = await startProvisioned();
  const { answered } = await beginUpload(packager, 'film', 'keyFile=news');
  await packager.api.delete('/streams/film').expect(204);
  expect(await answered).toBe(409);
  const { body } = await packager.api.get('/streams/film').expect(404);
  expect(body).toEqual(NOT_FOUND);
  expect(filesOf(packager).filter((name) => name.includes('film'))).toEqual([]);
});

test('a file that waits behind one that breaks off is packaged', async () => {
  const packager = await startProvisioned();
  const { breakOff } = await beginUpload(packager, 'film', 'keyFile=news');
  const second = upload(packager, 'film', 'keyFile=news').then(({ body }) => body);
  await sleep(50);
  breakOff();
  expect(await second).toMatchObject({ state: 'ended', protection: 'key_file' });
  expect(await packager.get('film')).toEqual(await second);
});

test('files that come at the same time share the room that is left', async () => {
  const packager = await startProvisioned({ maxBytes: FILM.length * 3 });
  const statuses = await Promise.all(
    ['a', 'b', 'c', 'd'].map((id) => upload(packager, id, 'keyFile=news').then(({ status }) => status)),
  );
  expect(statuses.sort()).toEqual([201, 507, 507, 507]);
  await upload(packager, 'e', 'keyFile=news').expect(507);
});

test('a file that is announced holds its room until it has come or broken off', async () => {
  const packager = await startProvisioned({ maxBytes: FILM.length * 3 });
  const { breakOff } = await beginUpload(packager, 'slow', 'keyFile=news');
  await upload(packager, 'film', 'keyFile=news').expect(507);
  breakOff();
  while (filesOf(packager).some((name) => name.includes('temporary/slow'))) await sleep(10);
  await upload(packager, 'film', 'keyFile=news').expect(201);
});

test.each([
  ['a large box without a length', [1, 'free', 0]],
  ['a box that is shorter than its header', [4, 'free', 0]],
] as const)('%s is refused, and holds up nothing', async (_, [size, type, large]) => {
  const packager = await startProvisioned();
  const file = Buffer.alloc(32);
  file.writeUInt32BE(size, 0);
  file.write(type, 4);
  file.writeBigUInt64BE(BigInt(large), 8);
  const { body } = await upload(packager, 'film', 'keyFile=news', file).expect(201);
  expect(body.problem).toEqual({
    code: 'media_unreadable',
    description:
      'The file has a box that is shorter than its own header, or over a million boxes. Write the file anew.',
  });
});

test('what a packager that was killed left of a file that never came is removed by the next one', async () => {
  const home = temporaryHome();
  const left = join(home, 'media/packager-media/streams/film/part-1-x/dash');
  const first = await startPackager({ home });
  first.provision();
  await upload(first, 'kept', 'keyFile=news').expect(201);
  await first.stop();
  mkdirSync(left, { recursive: true });
  mkdirSync(join(home, 'media/packager-media/streams/kept/part-9-x'));
  const second = await startPackager({ home });
  expect(filesOf(second).filter((name) => /film|part-9-x/.test(name))).toEqual([]);
  expect(await second.get('kept')).toMatchObject({ id: 'kept', state: 'ended' });
  await second.api.get('/media/kept/hls/video.m3u8').expect(200);
});
