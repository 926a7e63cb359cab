import { rawExchange } from '../../../support/raw-http';
import { startLibrary } from '../../../support/start-library';

/** An upload and its faults, one a line. */
const WRONG_UPLOADS = `
{"method":"fetch"} → upload.download_url: is missing; the method fetch needs it
{"method":"external"} → upload.source_url: is missing; the method external needs it
{"download_url":"https://a.example"} → upload.download_url: goes with the method fetch, not with direct
{"method":"multipart","source_url":"https://a.example"} → upload.source_url: goes with the method external or fetch, not with multipart
{"method":"fetch","source_url":"https://a.example","download_url":"https://a.example"} → upload.source_url: goes with the method external, not with fetch
{"method":"external","source_url":"https://a.example","trim_in_point":"00:00:01"} → upload.trim_in_point and trim_out_point: cannot be set for the method external
{"trim_in_point":"00:00:02","trim_out_point":"00:00:02.000"} → upload.trim_out_point: must be after trim_in_point
{"method":"external","download_url":"file:///etc/passwd","trim_out_point":3} → upload.download_url: must be an absolute address with https or http → upload.trim_out_point: must be a string → upload.download_url: goes with the method fetch, not with external → upload.source_url: is missing; the method external needs it → upload.trim_in_point and trim_out_point: cannot be set for the method external
{"method":"carrier pigeon"} → upload.method: must be direct, multipart, fetch or external
`;

test.each(
  WRONG_UPLOADS.trim()
    .split('\n')
    .map((row) => row.split(' → ')),
)(
  'an upload of %s is refused with each of its faults, next to those of other fields',
  async (upload = '', ...faults) => {
    const { admin, site, read, told } = await startLibrary();
    const { body } = await admin
      .post(`${site}/media/`)
      .send({ metadata: { title: 7 }, upload: JSON.parse(upload) })
      .expect(400);
    const descriptions = body.errors.map(({ description }: { description: string }) => description);
    expect(descriptions).toEqual(['metadata.title: must be a string', ...faults]);
    expect(await read('/media/')).toMatchObject({ total: 0 });
    expect(await told()).toEqual([]);
  },
);

test('fields that stand at the wrong place are shown to the right one, and misspelled ones to the nearest', async () => {
  const { admin, site } = await startLibrary();
  const { body } = await admin
    .post(`${site}/media/`)
    .send({ title: 'x', status: 'ready', metadata: { titel: 'x' }, upload: { methd: 'direct' }, uplod: {} })
    .expect(400);
  expect(body.errors.map(({ description }: { description: string }) => description)).toEqual([
    'metadata.titel is not a field of this request. Did you mean metadata.title?',
    'upload.methd is not a field of this request. Did you mean upload.method?',
    'title belongs into metadata: send it as metadata.title.',
    'status is set by the platform, and a request cannot change it. Leave it out.',
    'uplod is not a field of this request. Did you mean upload?',
  ]);
});

test('a body of nonsense gets fifty faults at most', async () => {
  const { admin, site } = await startLibrary();
  const metadata = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`field${n}`, n]));
  const { body } = await admin.post(`${site}/media/`).send({ metadata }).expect(400);
  expect(body.errors).toHaveLength(50);
});

// Without a length, a request has no body at all, and not an empty one.
test('a request that announces no body is one with nothing in it', async () => {
  const { port, context, site } = await startLibrary();
  const ask = (method: string, path: string) =>
    rawExchange(
      port,
      `${method} ${site}${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${context.seeds.apiSecret}\r\ncontent-type: application/json\r\n\r\n`,
      /\r\n\r\n.*/,
    );
  expect(await ask('POST', '/media/')).toMatch(/^HTTP\/1\.1 201 /);
  const [media] = context.state.media.all();
  expect(await ask('PUT', `/media/${media?.id}/reupload`)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ask('PATCH', `/media/${media?.id}`)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ask('POST', '/imports/')).toMatch(/^HTTP\/1\.1 400 /);
  expect(await ask('DELETE', `/media/${media?.id}/`)).toMatch(/^HTTP\/1\.1 204 /);
});
