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
