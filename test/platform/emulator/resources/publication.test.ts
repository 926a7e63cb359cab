import { startLibrary, type TestLibrary } from '../../../support/start-library';

const at = (seconds: number) => new Date(Date.UTC(2030, 0, 1) + seconds * 1000).toISOString();

async function canWatch({ unauthenticated }: TestLibrary, id: string): Promise<boolean> {
  return (await unauthenticated.get(`/v2/media/${id}`)).status === 200;
}

async function patch({ admin, site }: TestLibrary, id: string, metadata: object): Promise<void> {
  await admin.patch(`${site}/media/${id}`).send({ metadata }).expect(200);
}

test('a media with a start date is told available when that moment has come, and not before', async () => {
  const library = await startLibrary();
  const { createReady, advance, told } = library;
  const { id } = await createReady({ metadata: { publish_start_date: at(3600) } });
  expect(await told()).toEqual([
    `media_created ${id}`,
    `thumbnail_created ${id}`,
    `conversions_complete ${id}`,
  ]);
  await advance(3596.999);
  expect(await told()).toEqual([]);
  expect(await canWatch(library, id)).toBe(false);
  await advance(0.001);
  expect(await told()).toEqual([`media_available ${id}`]);
  expect(await canWatch(library, id)).toBe(true);
});

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
});

test('viewers lose a media when its end has come, without a word', async () => {
  const library = await startLibrary();
  const { createReady, advance, told } = library;
  const { id } = await createReady({ metadata: { publish_end_date: at(100) } });
  await told();
  await advance(96.999);
  expect(await canWatch(library, id)).toBe(true);
  await advance(0.001);
  expect(await canWatch(library, id)).toBe(false);
  expect(await told()).toEqual([]);
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
