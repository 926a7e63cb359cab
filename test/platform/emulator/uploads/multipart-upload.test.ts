import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { KeptFile } from '../../../../src/platform/emulator/uploads/file-store';
import { partLink } from '../../../../src/platform/emulator/uploads/uploads';
import { errorBody } from '../../../support/error-body';
import { startUploads, type TestUploads } from '../../../support/start-uploads';

const md5Of = (bytes: Buffer | string) => createHash('md5').update(bytes).digest('hex');

/** A multipart upload, and the calls that clients make of it. */
async function start(wanted: Parameters<TestUploads['begin']>[0] = {}) {
  const emulator = await startUploads();
  const upload = emulator.begin({ method: 'multipart', ...wanted });
  const { unauthenticated } = emulator;
  const authorization = `Bearer ${upload.token}`;
  return {
    emulator,
    upload,
    put: (part: number, bytes: Buffer | string) =>
      unauthenticated.put(partLink(upload, part, '')).send(Buffer.from(bytes)),
    complete: () =>
      unauthenticated.put(`/v2/uploads/${upload.id}/complete`).set('authorization', authorization),
    list: (query = '') =>
      unauthenticated.get(`/v2/uploads/${upload.id}/parts${query}`).set('authorization', authorization),
  };
}

test('parts that come in any order and at the same time are put together byte for byte', async () => {
  const { emulator, put, complete } = await start();
  const parts = Array.from({ length: 12 }, (_, at) => randomBytes(at === 11 ? 7 : 300_000));
  const answers = await Promise.all(parts.map((bytes, at) => put(12 - at, parts[11 - at] ?? bytes)));
  expect(answers.map(({ status, headers }) => [status, headers.etag])).toEqual(
    parts.map((_, at) => [200, `"${md5Of(parts[11 - at] ?? '')}"`]),
  );
  await complete().expect(202, '');
  const whole = Buffer.concat(parts);
  const { taken, sizesOnDisk, context } = emulator;
  expect(taken).toEqual([
    { path: expect.any(String), size: whole.length, md5: md5Of(whole), declaredType: undefined },
  ]);
  expect(readFileSync(taken[0]?.path ?? '').equals(whole)).toBe(true);
  expect([sizesOnDisk(), context.uploads.files.usedBytes]).toEqual([[whole.length], whole.length]);
});

test('a client lists the links, sends each part that has no entity tag, completes, and may complete again', async () => {
  const { emulator, upload, put, complete, list } = await start();
  const { body } = await list('?page=1&page_length=2').expect(200);
  const link = (part: number) => `${emulator.url}${partLink(upload, part, '')}`;
  const [one, two] = [1, 2].map((id) => ({ id, upload_link: link(id) }));
  expect(body).toEqual({ page: 1, page_length: 2, total: 10_000, parts: [one, two] });
  await put(2, 'moon').expect(200);
  await put(2, 'world').expect(200);
  const again = await list('?page_length=2').expect(200);
  expect(again.body.parts).toEqual([one, { ...two, etag: md5Of('world') }]);
  await put(1, 'hello ').expect(200);
  await complete().type('application/json').expect(202, '');
  await complete().send({}).expect(202, '');
  expect(emulator.taken.map(({ path }) => readFileSync(path, 'utf8'))).toEqual(['hello world']);
});

test('links come a thousand a page, up to the ten thousandth', async () => {
  const { list } = await start();
  const idsOf = async (query: string) => {
    const { body } = await list(query).expect(200);
    return [body.page, body.page_length, body.parts.length, body.parts[0]?.id, body.parts.at(-1)?.id];
  };
  expect(await idsOf('')).toEqual([1, 1000, 1000, 1, 1000]);
  expect(await idsOf('?page=&page_length=')).toEqual([1, 1000, 1000, 1, 1000]);
  expect(await idsOf('?page=10')).toEqual([10, 1000, 1000, 9001, 10_000]);
  expect(await idsOf('?page=4&page_length=999')).toEqual([4, 999, 999, 2998, 3996]);
  expect(await idsOf('?page=11&page_length=999')).toEqual([11, 999, 10, 9991, 10_000]);
  expect(await idsOf('?page=1000000000')).toEqual([1_000_000_000, 1000, 0, undefined, undefined]);
});

test('all faults of the paging are reported at once', async () => {
  const { list } = await start();
  const { body } = await list('?page=0&page_length=1001').expect(400);
  expect(body.errors).toEqual([
    { code: 'invalid_parameter', description: 'page: must be at least 1.' },
    { code: 'invalid_parameter', description: 'page_length: must be at most 1000.' },
  ]);
});

test('to complete with parts missing names twenty of them, changes nothing, and the upload goes on', async () => {
  const { emulator, put, complete, list } = await start();
  const missing = (description: string) => complete().expect(409, errorBody('parts_missing', description));
  await missing('No part has been uploaded. PUT the parts to their upload_link first.');
  for (const part of [2, 4, 8, 10]) await put(part, 'x').expect(200);
  const before = (await list('?page_length=10')).body;
  await missing('Parts are missing: 1, 3, 5, 6, 7, 9. Upload them, then complete again.');
  expect((await list('?page_length=10')).body).toEqual(before);
  expect([emulator.taken, emulator.sizesOnDisk()]).toEqual([[], [1, 1, 1, 1]]);
  await put(28, 'x').expect(200);
  await missing(
    'Parts are missing: 1, 3, 5, 6, 7, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, and more. Upload them, then complete again.',
  );
});

test('parts whose files were deleted or changed by others are named until they come again', async () => {
  const { emulator, upload, put, complete, list } = await start();
  for (const [at, bytes] of ['he', 'll', 'o'].entries()) await put(at + 1, bytes).expect(200);
  const path = (part: number) => (upload.parts.get(part) as KeptFile).path;
  writeFileSync(path(1), 'h');
  rmSync(path(3));
  const lost = errorBody('parts_missing', 'Parts are missing: 1, 3. Upload them, then complete again.');
  await complete().expect(409, lost);
  await complete().expect(409, lost);
  const { body } = await list('?page_length=3').expect(200);
  expect(body.parts.map(({ etag }: { etag?: string }) => etag)).toEqual([undefined, md5Of('ll'), undefined]);
  expect([emulator.sizesOnDisk(), emulator.context.uploads.files.usedBytes]).toEqual([[2], 2]);
  await put(3, 'o').expect(200);
  await put(1, 'he').expect(200);
  await complete().expect(202);
  expect(emulator.taken.map((file) => readFileSync(file.path, 'utf8'))).toEqual(['hello']);
});

test('the link of one part takes no other, and there are parts 1 to 10000 only', async () => {
  const { emulator, upload, put } = await start();
  const [, query] = partLink(upload, 1, '').split('?');
  const at = (part: string) =>
    emulator.unauthenticated.put(`/uploads/${upload.id}/parts/${part}?${query}`).send('x');
  await at('2').expect(403);
  const none = errorBody('not_found', 'There is no such part: parts have the numbers 1 to 10000.');
  for (const part of ['0', '-1', '10001', '01', '1e3', '1.5', '99999999999999999999', 'a']) {
    await at(part).expect(404, none);
  }
  await put(10_000, 'x').expect(200);
});

test('once completed, the parts are listed as before, and take nothing but what they have', async () => {
  const { emulator, put, complete, list } = await start();
  await put(1, 'abc').expect(200);
  const before = (await list('?page_length=2')).body;
  await complete().expect(202);
  expect((await list('?page_length=2')).body).toEqual(before);
  const again = await put(1, 'abc').expect(200);
  expect(again.headers.etag).toBe(`"${md5Of('abc')}"`);
  for (const refused of [await put(1, 'abd'), await put(2, 'abc')])
    expect([refused.status, refused.body.errors[0].code]).toEqual([409, 'upload_finished']);
  expect([emulator.sizesOnDisk(), emulator.taken.length]).toEqual([[3], 1]);
});

const MISSING = errorBody(
  'credential_missing',
  'Send the upload_token in the header Authorization: Bearer <upload_token>.',
);
const REFUSED = errorBody(
  'credential_refused',
  'The header Authorization does not hold the upload_token of this upload.',
);

test('without the token, with a wrong one, or for an upload that is not there, nothing is shown', async () => {
  const { emulator, upload } = await start();
  const { unauthenticated, admin, begin } = emulator;
  const direct = begin();
  const calls = { parts: 'get', complete: 'put' } as const;
  for (const [path, method] of Object.entries(calls)) {
    const own = `/v2/uploads/${upload.id}/${path}`;
    await unauthenticated[method](own).expect(401, MISSING).expect('www-authenticate', 'Bearer');
    await admin[method](own).expect(401, REFUSED);
    for (const id of ['nonesuch', direct.id]) {
      const other = unauthenticated[method](`/v2/uploads/${id}/${path}`);
      await other.set('authorization', direct.token).expect(404);
    }
  }
});

test('a refusal of its owner leaves the parts, to complete again', async () => {
  let refusals = 1;
  const { emulator, put, complete } = await start({
    done() {
      if (refusals-- > 0) throw Object.assign(new Error(), { status: 422 });
    },
  });
  await put(1, 'abc').expect(200);
  await complete().expect(422);
  expect([emulator.sizesOnDisk(), emulator.context.uploads.files.usedBytes]).toEqual([[3], 3]);
  await complete().expect(202);
  // Its owner was asked again.
  expect([refusals, emulator.sizesOnDisk(), emulator.context.uploads.files.usedBytes]).toEqual([-1, [3], 3]);
});

test('completed twice at the same time, the file is taken once', async () => {
  const { emulator, put, complete } = await start();
  await put(1, 'abc').expect(200);
  const answers = await Promise.all([complete(), complete(), complete()]);
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
  expect(emulator.taken.length).toBe(1);
});
