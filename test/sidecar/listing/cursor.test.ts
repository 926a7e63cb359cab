import { join } from 'node:path';
import fs from 'fs-extra';
import type { ApiKey } from '../../../src/sidecar/access/api-key';
import { ALL, EXPIRED, place, startListing } from './start-listing';

const MINUTE = 60_000;
const MANY = Array.from({ length: 12 }, (_none, index) => `live/s${index}`);

/** A listing of 12 key files in pages of 2, and its first page. */
async function startMany() {
  const listing = await startListing();
  place(listing.folder, ...MANY);
  const first = await listing.page({ limit: 2 });
  return { ...listing, first, cursor: String(first.cursor) };
}

it('answers the same page again to a client that lost the answer, whatever happened meanwhile', async () => {
  const { folder, page, cursor } = await startMany();
  const second = await page({ cursor, limit: 3 });
  for (const { streamid } of second.keyfiles) fs.removeSync(join(folder, `${streamid}.key`));
  expect(await page({ cursor, limit: 3 })).toEqual(second);
  expect(await page({ cursor, limit: 5, prefix: '' })).toEqual(second);
  const third = await page({ cursor: String(second.cursor) });
  expect(third.keyfiles).toHaveLength(7);
});

it('answers the last page of all again, and holds no folder open for it', async () => {
  const { page, cursor, openFolders } = await startMany();
  const last = await page({ cursor });
  expect([last.keyfiles.length, last.cursor, openFolders()]).toEqual([10, null, 0]);
  expect(await page({ cursor })).toEqual(last);
});

it('makes one page for two requests that ask for it at the same time', async () => {
  const { page, cursor } = await startMany();
  const [one, other] = await Promise.all([page({ cursor, limit: 2 }), page({ cursor, limit: 2 })]);
  expect(other).toEqual(one);
});

it('answers 410 to a page before the last one, and to one that no answer named', async () => {
  const { page, refusal, cursor } = await startMany();
  const { cursor: third } = await page({ cursor, limit: 2 });
  await page({ cursor: String(third), limit: 2 });
  expect(await refusal({ cursor })).toEqual(EXPIRED);
  expect(await refusal({ cursor: cursor.replace('.2', '.5') })).toEqual(EXPIRED);
  const { cursor: fourth } = await page({ cursor: cursor.replace('.2', '.4') });
  expect(fourth).toBeNull();
  expect(await refusal({ cursor: cursor.replace('.2', '.5') })).toEqual(EXPIRED);
  expect((await page({ cursor: cursor.replace('.2', '.4') })).keyfiles).toHaveLength(6);
});

it.each(['', '.', '.2', 'x', 'x.2', '..', '__proto__.1', '00000000-0000-4000-8000-000000000002', '\n.2'])(
  'answers 410 to the cursor %j, which no answer named',
  async (cursor) => {
    const { refusal } = await startMany();
    expect(await refusal({ cursor })).toEqual(EXPIRED);
  },
);

it('answers 410 to a cursor of before a restart', async () => {
  const { folder, list, cursor, openFolders } = await startMany();
  list.close();
  expect(openFolders()).toBe(0);
  const { refusal } = await startListing({ folder });
  expect(await refusal({ cursor })).toEqual(EXPIRED);
});

it('answers 410 to a cursor that lay idle for 5 minutes, and closes its folders', async () => {
  const { page, refusal, advance, cursor, openFolders } = await startMany();
  advance(5 * MINUTE - 1);
  const { cursor: third } = await page({ cursor, limit: 2 });
  advance(5 * MINUTE - 1);
  const { cursor: fourth } = await page({ cursor: String(third), limit: 2 });
  expect(openFolders()).toBe(2);
  advance(5 * MINUTE);
  expect(await refusal({ cursor: String(fourth) })).toEqual(EXPIRED);
  expect(openFolders()).toBe(0);
});

it('closes the folders of idle listings without a request, by a timer that keeps no process alive', async () => {
  const set = jest.spyOn(globalThis, 'setInterval');
  const clear = jest.spyOn(globalThis, 'clearInterval');
  const { advance, openFolders } = await startMany();
  const [look] = set.mock.calls[0] ?? [];
  const timer = set.mock.results[0]?.value;
  expect([set.mock.calls.length, timer.hasRef()]).toEqual([1, false]);
  advance(5 * MINUTE - 1);
  look?.();
  expect([openFolders(), clear.mock.calls]).toEqual([2, []]);
  advance(1);
  look?.();
  expect([openFolders(), clear.mock.calls]).toEqual([0, [[timer]]]);
  jest.restoreAllMocks();
});

it('leaves no timer behind after a list of one page', async () => {
  const set = jest.spyOn(globalThis, 'setInterval');
  const clear = jest.spyOn(globalThis, 'clearInterval');
  const { folder, page } = await startListing();
  place(folder, ...MANY);
  await page({});
  expect(clear.mock.calls).toEqual([[set.mock.results[0]?.value]]);
  jest.restoreAllMocks();
});

/** Keys of other clients. */
const another = (index: number): ApiKey => ({ ...ALL, name: `another-${index}` });

it('closes the listing that was idle longest when a 33rd is opened', async () => {
  const { page, refusal, cursor, openFolders } = await startMany();
  const { cursor: other } = await page({ limit: 2 });
  const { cursor: third } = await page({ cursor, limit: 2 });
  for (let index = 0; index < 31; index += 1) await page({ limit: 1 }, another(index));
  expect(openFolders()).toBe(32 * 2);
  expect(await refusal({ cursor: String(other) })).toEqual(EXPIRED);
  expect((await page({ cursor: String(third) })).keyfiles).toHaveLength(8);
});

it('closes one that has ended before one that has not', async () => {
  const { page, refusal, cursor } = await startMany();
  const { cursor: other } = await page({ limit: 2 });
  await page({ cursor: String(other) });
  for (let index = 0; index < 31; index += 1) await page({ limit: 1 }, another(index));
  expect(await refusal({ cursor: String(other) })).toEqual(EXPIRED);
  expect((await page({ cursor })).keyfiles).toHaveLength(10);
});

it('closes the own oldest listing of a key that opens a ninth, and no other', async () => {
  const { page, refusal, cursor, openFolders } = await startMany();
  const { cursor: first } = await page({ limit: 1 }, another(1));
  for (let index = 0; index < 8; index += 1) await page({ limit: 1 }, another(1));
  expect(openFolders()).toBe(9 * 2);
  expect(await refusal({ cursor: String(first) }, another(1))).toEqual(EXPIRED);
  expect((await page({ cursor })).keyfiles).toHaveLength(10);
});

it('answers 410 to a request whose page was under way when its listing was closed', async () => {
  let stop = () => undefined as unknown;
  const now = () => {
    stop();
    return 0;
  };
  const { folder, list, refusal, openFolders } = await startListing({ now });
  place(folder, ...MANY);
  let calls = 0;
  stop = () => {
    calls += 1;
    if (calls === 8) list.close();
  };
  expect(await refusal({})).toEqual(EXPIRED);
  expect(openFolders()).toBe(0);
});

it.each<[string, ApiKey]>([
  ['another API key', { name: 'other', scope: 'write', streams: undefined }],
  ['an API key whose reach has changed', { ...ALL, streams: ['live/'] }],
])('answers 410 to %s', async (_what, key) => {
  const { page, refusal, cursor } = await startMany();
  expect(await refusal({ cursor }, key)).toEqual(EXPIRED);
  expect((await page({ cursor })).keyfiles).toHaveLength(10);
});

it('goes on for an API key that was replaced by one of the same name and reach', async () => {
  const { folder, page } = await startListing();
  place(folder, ...MANY);
  const { cursor } = await page({ limit: 2 }, { name: 'live', scope: 'read', streams: ['live/'] });
  const rotated: ApiKey = { name: 'live', scope: 'write', streams: ['live/'] };
  expect((await page({ cursor: String(cursor) }, rotated)).keyfiles).toHaveLength(10);
});

it('answers 400 to a cursor with another prefix than its own, and goes on with its own or none', async () => {
  const { folder, page, refusal } = await startListing();
  place(folder, ...MANY, 'vod/a');
  const { cursor: given } = await page({ prefix: 'live/', limit: 2 });
  const cursor = String(given);
  const description =
    'prefix: is not the one that this cursor began with; leave it out, or start again without cursor.';
  const wrong = [400, { errors: [{ code: 'invalid_query', description }] }];
  expect(await refusal({ cursor, prefix: 'vod/' })).toEqual(wrong);
  expect(await refusal({ cursor, prefix: '' })).toEqual(wrong);
  const { cursor: third } = await page({ cursor, prefix: 'live/', limit: 2 });
  expect((await page({ cursor: String(third) })).keyfiles).toHaveLength(8);
});

it('leaves no descriptor open after lists that are read, broken off and expired', async () => {
  const { folder, page, streamIds, advance, refusal, openFolders } = await startListing();
  place(folder, 'a/b/c/d/e/f/g/1', 'a/b/c/d/e/f/g/2', 'a/b/c/d/e/f/g/3', ...MANY);
  for (let index = 0; index < 50; index += 1) {
    await streamIds({ limit: 4 });
    await page({ limit: 1, prefix: index % 2 ? 'a/' : '' });
  }
  expect(openFolders()).toBeLessThanOrEqual(32 * 8);
  advance(5 * MINUTE);
  expect(await refusal({ cursor: 'x.1' })).toEqual(EXPIRED);
  expect(openFolders()).toBe(0);
});
