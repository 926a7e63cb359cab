import { join } from 'node:path';
import fc from 'fast-check';
import fs from 'fs-extra';
import { ALL, place, startListing } from './start-listing';

const part = fc.constantFrom('a', 'b', 'ab', 'B', 'a.k', 'live', '-', '~', 'x@y');
const streamId = fc.array(part, { minLength: 1, maxLength: 8 }).map((parts) => parts.join('/'));
const prefix = fc.oneof(
  fc.constant(''),
  streamId.chain((id) => fc.integer({ min: 1, max: id.length }).map((length) => id.slice(0, length))),
);
const reach = fc.option(fc.array(prefix, { maxLength: 4 }), { nil: undefined });

it('finds in any tree what begins as asked and as the key may, once each, whatever the pages', async () => {
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
    { numRuns: 40 },
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
    { numRuns: 25 },
  );
}, 30_000);
