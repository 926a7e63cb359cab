import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import fs from 'fs-extra';
import { listAnswer } from '../../../src/api/answers';
import type { ApiKey } from '../../../src/sidecar/api-key';
import { LIST_PATH } from '../../../src/sidecar/listing/list';
import { POST_MANUAL_CONTENT_ID, POST_MANUAL_FILE } from '../../support/post-manual';
import { ALL, place, startListing } from './start-listing';

const TREE = ['a', 'ab', 'b', 'live/new/s', 'live/news', 'live/sport', 'live/x/y/z', 'live2', 'vod/a/b'];

it('answers an empty page, and no cursor, for an empty folder', async () => {
  const { page } = await startListing();
  expect(await page({})).toEqual({ keyfiles: [], cursor: null });
});

it('answers for each key file its stream id, time and size, and what its text says', async () => {
  const { folder, client } = await startListing();
  const path = join(folder, 'live', 'demo.key');
  fs.outputFileSync(path, POST_MANUAL_FILE);
  fs.utimesSync(path, new Date(0), new Date('2026-03-04T05:06:07.089Z'));
  const answer = await client.get(LIST_PATH).set('x-test-key', JSON.stringify(ALL)).expect(200);
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  });
  expect(answer.body).toEqual({
    keyfiles: [
      {
        streamid: 'live/demo',
        modified: '2026-03-04T05:06:07.089Z',
        size: POST_MANUAL_FILE.length,
        parts: ['cenc', 'widevine', 'playready', 'fairplay'],
        key_id: '44da52ef-4523-098e-6854-777ee322681d',
        content_id: POST_MANUAL_CONTENT_ID,
        faults: [],
      },
    ],
    cursor: null,
  });
  expect(listAnswer.parse(answer.body)).toEqual(answer.body);
});

it('answers 100 key files when no limit is given', async () => {
  const { folder, pages } = await startListing();
  place(folder, ...Array.from({ length: 120 }, (_none, index) => `s${index}`));
  expect((await pages({})).map(({ keyfiles }) => keyfiles.length)).toEqual([100, 20]);
});

it('lists what a stream id can name and nothing else', async () => {
  const { folder, streamIds, warnings } = await startListing();
  const outside = fs.mkdtempSync(`${folder}-outside-`);
  place(outside, 'secret');
  const deep = 'b/c/d/e/f/g/h';
  const long = 'l'.repeat(198);
  const good = ['a', 'a.key', `1/${long}`, `${deep}/8`, 'x@y+z~0-_'];
  place(folder, ...good);
  place(
    folder,
    '.hidden',
    '.dotted/x',
    `12/${long}`,
    `${deep}/8/9`,
    'ümlaut',
    'new\nline',
    'a b/x',
    '..%2fx',
  );
  for (const name of ['none', 'a.KEY', 'a.key~', 'key', '.key', '..key'])
    fs.writeFileSync(join(folder, name), '');
  const bytes = (...parts: (string | number[])[]) =>
    Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  fs.writeFileSync(bytes(`${folder}/`, [0xff], '.key'), 'name: value\n');
  fs.mkdirSync(bytes(`${folder}/d`, [0xff]));
  fs.symlinkSync(join(outside, 'secret.key'), join(folder, 'link.key'));
  fs.symlinkSync(outside, join(folder, 'linked'));
  fs.symlinkSync('a.key', join(folder, 'inner.key'));
  execFileSync('mkfifo', [join(folder, 'pipe.key')]);
  fs.mkdirSync(join(folder, 'folder.key'));
  expect((await streamIds({ limit: 3 })).sort()).toEqual(good.sort());
  expect(await streamIds({ prefix: 'linked/' })).toEqual([]);
  expect(await streamIds({ prefix: 'linked/secret' })).toEqual([]);
  expect(warnings()).toEqual([]);
  fs.removeSync(outside);
});

it('follows no link that took the place of a folder after it was opened', async () => {
  const { folder, page, streamIds } = await startListing();
  const outside = fs.mkdtempSync(`${folder}-outside-`);
  const names = Array.from({ length: 9 }, (_none, index) => `s${index}`);
  place(outside, ...names);
  place(folder, ...names.map((name) => `live/${name}`));
  const { cursor } = await page({ limit: 1 });
  fs.removeSync(join(folder, 'live'));
  fs.symlinkSync(outside, join(folder, 'live'));
  expect((await page({ cursor: String(cursor) })).keyfiles).toEqual([]);
  expect(await streamIds()).toEqual([]);
  fs.removeSync(outside);
});

const EXPIRED = [410, { errors: [expect.objectContaining({ code: 'cursor_expired' })] }];
const LIVE: ApiKey = { name: 'live', scope: 'read', streams: ['live/'] };

it('a cursor can be sent again, and goes on in the folder as it is then', async () => {
  const { folder, page } = await startListing();
  place(folder, ...TREE);
  const { cursor: given } = await page({ limit: 2 });
  const cursor = String(given);
  const second = await page({ cursor, limit: 3 });
  expect(second.keyfiles.map(({ streamid }) => streamid)).toEqual(['b', 'live/new/s', 'live/news']);
  expect(await page({ cursor, limit: 3, prefix: '' })).toEqual(second);
  place(folder, 'b2');
  const { keyfiles } = await page({ cursor, limit: 2 });
  expect(keyfiles.map(({ streamid }) => streamid)).toEqual(['b', 'b2']);
});

it('a cursor shows a key no stream that it does not reach', async () => {
  const { folder, page } = await startListing();
  place(folder, ...TREE);
  const { cursor } = await page({ limit: 1 });
  const { keyfiles } = await page({ cursor: String(cursor) }, LIVE);
  expect(keyfiles.map(({ streamid }) => streamid)).toEqual(TREE.filter((id) => id.startsWith('live/')));
});

it('a cursor is refused with another prefix than its own', async () => {
  const { folder, page, refusal } = await startListing();
  place(folder, ...TREE);
  const { cursor } = await page({ prefix: 'live/', limit: 2 });
  const wrong = [400, { errors: [expect.objectContaining({ code: 'invalid_query' })] }];
  expect(await refusal({ cursor: String(cursor), prefix: 'vod/' })).toEqual(wrong);
  expect(await refusal({ cursor: String(cursor), prefix: '' })).toEqual(wrong);
  expect((await page({ cursor: String(cursor), prefix: 'live/' })).keyfiles).toHaveLength(2);
});

it.each(['', '.', 'x.2', '__proto__', '00000000-0000-4000-8000-000000000002.2', 'Li4v', '\n', 'IC4uL2E'])(
  'a cursor that no answer named is refused: %j',
  async (cursor) => {
    const { refusal } = await startListing();
    expect(await refusal({ cursor })).toEqual(EXPIRED);
  },
);

it('answers 405 with the methods that exist to any other', async () => {
  const { client } = await startListing();
  await client.delete(LIST_PATH).set('x-test-key', '{}').expect(405).expect('allow', 'GET, HEAD');
  const head = client.head(LIST_PATH).set('x-test-key', JSON.stringify(ALL)).expect(200);
  await head.expect('content-type', 'application/json; charset=utf-8');
});

const UNKNOWN = 'is not a parameter of this request.';
const ID_RULE =
  'A stream id may have letters, digits and . _ - ~ @ +, and a / between sub-folders (%2F in an address).';

it.each<[string, ...string[]]>([
  ['limit=0', 'limit: must be from 1 to 1000'],
  ['limit=1e3', 'limit: must be a whole number from 1 to 1000'],
  ['limit=1&limit=2', 'limit: is given twice'],
  ['prefix=.hidden', 'prefix: No part of a stream id may start with a dot.'],
  ['prefix=a%00', `prefix: ${ID_RULE}`],
  ['prefx=live', `prefx ${UNKNOWN} Did you mean prefix?`],
  ['__proto__=1', `__proto__ ${UNKNOWN} Parameters: prefix, limit, cursor.`],
  [
    'limit=x&prefix=.&page=2',
    'prefix: No part of a stream id may start with a dot.',
    'limit: must be a whole number from 1 to 1000',
    `page ${UNKNOWN} Parameters: prefix, limit, cursor.`,
  ],
])('answers 400 that says what is wrong to ?%s', async (query, ...descriptions) => {
  const { client } = await startListing();
  const answer = await client.get(`${LIST_PATH}?${query}`).set('x-test-key', JSON.stringify(ALL)).expect(400);
  expect(answer.body).toEqual({
    errors: descriptions.map((description) => ({ code: 'invalid_query', description })),
  });
});

const part = fc.constantFrom('a', 'b', 'ab', 'B', 'a.k', 'live', '-', '~', 'x@y');
const streamId = fc.array(part, { minLength: 1, maxLength: 8 }).map((parts) => parts.join('/'));
const prefix = fc.oneof(
  fc.constant(''),
  streamId.chain((id) => fc.integer({ min: 1, max: id.length }).map((length) => id.slice(0, length))),
);
const reach = fc.option(fc.array(prefix, { maxLength: 4 }), { nil: undefined });

it('finds in any tree the streams with the requested prefix and the prefixes of the key, once each, for any pages', async () => {
  const { folder, streamIds } = await startListing();
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(streamId, { maxLength: 40 }),
      fc.integer({ min: 1, max: 20 }),
      prefix,
      reach,
      async (tree, limit, asked, streams) => {
        fs.emptyDirSync(folder);
        // A key file can't lie where a folder does.
        const folders = new Set(
          tree.flatMap((id) => id.split('/').map((_part, end, parts) => parts.slice(0, end).join('/'))),
        );
        const files = tree.filter((id) => !folders.has(`${id}.key`));
        place(folder, ...files);
        const expected = files.filter(
          (id) => id.startsWith(asked) && (streams ?? ['']).some((beginning) => id.startsWith(beginning)),
        );
        const found = await streamIds({ limit, prefix: asked }, { ...ALL, streams });
        expect(found.sort()).toEqual(expected.sort());
      },
    ),
    { numRuns: 20 },
  );
}, 30_000);

it('finds in any tree what stays, once, when all else is created and removed between the pages', async () => {
  const { folder, streamIds } = await startListing();
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.tuple(fc.constantFrom('', 'live/', 'live/x/'), fc.nat(500)), {
        maxLength: 60,
        selector: String,
      }),
      fc.integer({ min: 1, max: 9 }),
      fc.array(fc.tuple(fc.boolean(), fc.constantFrom('', 'live/', 'live/x/'), fc.nat(60)), {
        maxLength: 60,
      }),
      async (tree, limit, changes) => {
        fs.emptyDirSync(folder);
        const stay = tree.map(([below, number]) => `${below}stay-${number}`);
        place(folder, ...stay, ...tree.map(([below, number]) => `${below}go-${number % 60}`));
        const left = [...changes];
        const found = await streamIds({ limit }, ALL, () => {
          for (const [isNew, below, number] of left.splice(0, 3)) {
            if (isNew) place(folder, `${below}go-${number}`);
            else fs.removeSync(join(folder, `${below}go-${number}.key`));
          }
        });
        expect(found.filter((id) => id.includes('stay')).sort()).toEqual(stay.sort());
      },
    ),
    { numRuns: 12 },
  );
}, 30_000);
