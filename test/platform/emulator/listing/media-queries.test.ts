import { setTimeout as wait } from 'node:timers/promises';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const MEDIA = '/v2/sites/demosite/media/';
const external = { method: 'external', source_url: 'https://cdn.example/video.mp4', mime_type: 'video/mp4' };

async function createMedia(
  { admin }: TestEmulator,
  metadata: object,
  upload: object = external,
): Promise<string> {
  const { body } = await admin.post(MEDIA).send({ upload, metadata }).expect(201);
  return body.id;
}

async function titles({ admin }: TestEmulator, query: object): Promise<string[]> {
  const { body } = await admin.get(MEDIA).query(query).expect(200);
  return body.media.map(({ metadata }: { metadata: { title: string } }) => metadata.title);
}

test('finds media by what callers send', async () => {
  const emulator = await startEmulator();
  await createMedia(emulator, { title: 'Über den Wolken', author: 'Ann Lee', external_id: 'ext-17' });
  await createMedia(emulator, { title: 'Late show', tags: ['news', 'late night'], external_id: 'EXT-18' });
  await createMedia(emulator, { title: 'Football', author: 'Anne', custom_params: { name: 'Blue room' } });
  const cases: [string, string[]][] = [
    ['', ['Football', 'Late show', 'Über den Wolken']],
    ['title:show', ['Late show']],
    ['title: fotball', []],
    ['metadata.title: uber', ['Über den Wolken']],
    ['title: "den wolken"', ['Über den Wolken']],
    ['NOT title: show', ['Football', 'Über den Wolken']],
    ['author:ann', ['Über den Wolken']],
    ['author: "Ann Lee"', ['Über den Wolken']],
    ['external_id: ext-18', ['Late show']],
    ['external_id: ext-19', []],
    ['tags:news', ['Late show']],
    ['tags: "late night" AND title: late', ['Late show']],
    ['custom_params.name:blue', ['Football']],
    ['metadata.custom_params.name: "blue room"', ['Football']],
    ['(title: football OR author: lee) AND NOT tags: *', ['Football', 'Über den Wolken']],
  ];
  for (const [q, expected] of cases) expect([q, await titles(emulator, { q })]).toEqual([q, expected]);
});

test('finds media and thumbnails as they are after each change, also while lists are kept in mind', async () => {
  const emulator = await startEmulator();
  const { admin } = emulator;
  const id = await createMedia(emulator, { title: 'First', tags: ['old'] });
  const found = async (q: string) => (await titles(emulator, { q })).length;
  const states = async () => [
    await found('status: processing'),
    await found('status: ready'),
    await found('status: updating'),
  ];
  const thumbnails = async () =>
    (
      await admin
        .get('/v2/sites/demosite/thumbnails/')
        .query({ q: `media_id:${id}` })
        .expect(200)
    ).body.total;
  expect([await states(), await thumbnails()]).toEqual([[1, 0, 0], 0]);
  await emulator.advance(3600);
  expect([await states(), await thumbnails()]).toEqual([[0, 1, 0], 1]);
  await admin.put(`${MEDIA}${id}/reupload/`).send({ upload: external }).expect(200);
  expect(await states()).toEqual([0, 0, 1]);
  await emulator.advance(3600);
  expect(await states()).toEqual([0, 1, 0]);

  expect([await found('title: first'), await found('tags: old')]).toEqual([1, 1]);
  await admin
    .patch(`${MEDIA}${id}/`)
    .send({ metadata: { title: 'Second' } })
    .expect(200);
  expect([await found('title: first'), await found('title: second')]).toEqual([0, 1]);
  await admin.put('/v2/sites/demosite/rename_tag/').send({ old_tag: 'old', new_tag: 'new' });
  expect([await found('tags: old'), await found('tags: new')]).toEqual([0, 1]);
  await createMedia(emulator, { title: 'Alpha' });
  expect(await titles(emulator, { sort: 'title:asc' })).toEqual(['Alpha', 'Second']);
  await admin.delete(`${MEDIA}${id}/`).expect(204);
  expect([await found('title: second'), await titles(emulator, { sort: 'title:asc' })]).toEqual([
    0,
    ['Alpha'],
  ]);
});

test('finds a media by its status from when its file begins to arrive', async () => {
  const emulator = await startEmulator();
  const found = async (q: string) => (await titles(emulator, { q })).length;
  const { body } = await emulator.admin
    .post(MEDIA)
    .send({ upload: {}, metadata: { title: 'Upload' } })
    .expect(201);
  expect([await found('status: created'), await found('status: processing')]).toEqual([1, 0]);
  await fetch(body.upload_link, {
    method: 'PUT',
    body: 'not a video',
    headers: { 'content-type': 'video/mp4' },
  });
  for (let turn = 0; turn < 100 && (await found('status: created')) === 1; turn += 1) await wait(10);
  const { body: shown } = await emulator.admin.get(`${MEDIA}${body.id}/`).expect(200);
  expect([shown.status, await found(`status: ${shown.status}`), await found('status: created')]).toEqual([
    'processing',
    1,
    0,
  ]);
});

test('refuses a query for media with the place of the mistake, and an unknown field with the nearest one', async () => {
  const { admin } = await startEmulator();
  const { body } = await admin.get(MEDIA).query({ q: 'titel: x OR title', sort: 'autor:asc' }).expect(400);
  const advice = 'Name the field to look in, as in title: news.';
  expect(body.errors).toEqual([
    {
      code: 'invalid_parameter',
      description: `q: at character 18, a colon after title is expected. ${advice}`,
    },
    { code: 'invalid_parameter', description: 'sort: autor is not a field to sort by. Did you mean author?' },
  ]);
  const wrong = await admin.get(MEDIA).query({ q: 'externalid: x' }).expect(400);
  expect(wrong.body.errors[0].description).toBe(
    'q: externalid is not a field to filter by. Did you mean external_id?',
  );
});
