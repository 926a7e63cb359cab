import { EventEmitter, once } from 'node:events';
import { serve } from '../../../support/serve';
import { FILM, startNotifyingLibrary, type TestLibrary } from '../../../support/start-library';
import { sendPart } from '../../../support/start-uploads';

const at = (seconds: number) => new Date(Date.UTC(2030, 0, 1) + seconds * 1000).toISOString();

async function patch({ admin, site }: TestLibrary, id: string, metadata: object): Promise<void> {
  await admin.patch(`${site}/media/${id}`).send({ metadata }).expect(200);
}

test('a media that has expired is never notified as available, until its end is moved or cleared', async () => {
  const library = await startNotifyingLibrary();
  const { createReady, advance, notifications } = library;
  const { id } = await createReady({ metadata: { publish_end_date: at(-1) } });
  expect(await notifications()).not.toContain(`media_available ${id}`);
  await advance(1000);
  expect(await notifications()).toEqual([]);
  await patch(library, id, { publish_end_date: null });
  expect(await notifications()).toEqual([`media_updated ${id}`, `media_available ${id}`]);
  await patch(library, id, { title: 'Once is enough' });
  expect(await notifications()).toEqual([`media_updated ${id}`]);
});

test('a media is notified as available when its start date comes, and not at the one that was moved', async () => {
  const library = await startNotifyingLibrary();
  const { create, createReady, send, admin, site, advance, notifications } = library;
  const { id } = await createReady({ metadata: { publish_start_date: at(60) } });
  expect(await notifications()).not.toContain(`media_available ${id}`);
  await patch(library, id, { publish_start_date: at(120) });
  await advance(90);
  expect(await notifications()).toEqual([`media_updated ${id}`]);
  await advance(30);
  expect(await notifications()).toEqual([`media_available ${id}`]);

  // Of media that are deleted before, nothing comes.
  const waiting = await createReady({ metadata: { publish_start_date: at(600) } });
  const unready = await create();
  await send(unready.upload_link);
  await notifications();
  for (const each of [waiting, unready]) await admin.delete(`${site}/media/${each.id}`).expect(204);
  await advance(1000);
  expect(await notifications()).toEqual([`media_deleted ${waiting.id}`, `media_deleted ${unready.id}`]);
});

test('the replay of an event that was not published is never notified as available after any change', async () => {
  const library = await startNotifyingLibrary();
  const { onAir, disconnect, advance, notifications, read, send, admin, site } = library;
  const { channel, id } = await onAir({ publishing_mode: 'manual' });
  await advance(10);
  await disconnect(channel);
  await advance(60);
  expect((await read(`/media/${id}`)).status).toBe('ready');
  await patch(library, id, { title: 'Now?', publish_start_date: null });
  const { body } = await admin.put(`${site}/media/${id}/reupload/`).send({}).expect(200);
  await send(body.upload_link);
  await advance(10);
  expect(await notifications()).toEqual([
    `media_updated ${id}`,
    `media_reuploaded ${id}`,
    `thumbnail_created ${id}`,
  ]);
  await library.unauthenticated.get(`/v2/media/${id}`).expect(404);
});

describe('interrupted changes', () => {
  /** A server that begins to answer with a file and stops halfway. */
  async function startSlowSource() {
    const calls = new EventEmitter();
    const { url } = await serve((_request, response) => {
      calls.emit('asked');
      response.on('close', () => calls.emit('cut'));
      response.writeHead(200, { 'content-length': FILM.length }).write(FILM.subarray(0, 1000));
    });
    return { url: `${url}/film.mp4`, asked: once(calls, 'asked'), cut: once(calls, 'cut') };
  }

  /** Begins to send a file, of which a part has come. */
  async function sendHalf(library: TestLibrary, link: string) {
    const before = library.sizesOnDisk().length;
    const sender = sendPart(library, link, FILM.length, FILM.subarray(0, 1000));
    while (library.sizesOnDisk().length === before) await new Promise(setImmediate);
    return sender;
  }

  async function untilEmpty({ sizesOnDisk }: TestLibrary): Promise<void> {
    while (sizesOnDisk().length > 0) await new Promise(setImmediate);
  }

  test('a media that is deleted while its file is fetched ends the fetch, and leaves no file', async () => {
    const library = await startNotifyingLibrary();
    const { create, admin, site, notifications, advance } = library;
    const { url, asked, cut } = await startSlowSource();
    const { id } = await create({ upload: { method: 'fetch', download_url: url } });
    await asked;
    await admin.delete(`${site}/media/${id}`).expect(204);
    await cut;
    await untilEmpty(library);
    await advance(10);
    expect(await notifications()).toEqual([`media_created ${id}`, `media_deleted ${id}`]);
  });

  test('a media that is deleted while its file comes refuses the rest of it', async () => {
    const library = await startNotifyingLibrary();
    const { create, admin, site } = library;
    const { id, upload_link } = await create();
    const { socket, answer } = await sendHalf(library, upload_link);
    await admin.delete(`${site}/media/${id}`).expect(204);
    expect(await answer).toMatch(/^HTTP\/1.1 410 /);
    socket.destroy();
    await untilEmpty(library);
  });

  test('a reset ends uploads, fetches and processing, and nothing of them comes back', async () => {
    const library = await startNotifyingLibrary();
    const { create, send, control, admin, site, advance, context } = library;
    const { url, asked, cut } = await startSlowSource();
    await create({ upload: { method: 'fetch', download_url: url } });
    await asked;
    const processed = await create();
    await send(processed.upload_link);
    const { socket, answer } = await sendHalf(library, (await create()).upload_link);
    await create({ metadata: { publish_start_date: '2030-01-02T00:00:00Z' } });
    await control.post('/reset').expect(204);
    expect(await answer).toMatch(/^HTTP\/1.1 4(04|10) /);
    socket.destroy();
    await cut;
    await untilEmpty(library);
    await advance(48 * 3600);
    expect((await admin.get(`${site}/media/`).expect(200)).body).toMatchObject({ total: 0, media: [] });
    expect(context.state.thumbnails.all()).toEqual([]);
  });

  test.each(['delete', 'reupload'])('the link of a file that has come is over after a %s', async (how) => {
    const { create, send, admin, site, context, url } = await startNotifyingLibrary();
    const { id, upload_link } = await create();
    await send(upload_link);
    // A sender that lost the answer sends the file again.
    await send(upload_link);
    const one = `${site}/media/${id}/`;
    await (how === 'delete' ? admin.delete(one) : admin.put(`${one}reupload/`));
    const { body } = await admin.put(upload_link.slice(url.length)).send(FILM).expect(410);
    expect(body.errors).toMatchObject([{ code: 'upload_expired' }]);
    expect(context.uploads.list()).toHaveLength(how === 'delete' ? 0 : 1);
  });
});
