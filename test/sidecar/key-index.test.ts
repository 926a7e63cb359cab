import fc from 'fast-check';
import { createKeyIndex, type IndexedKeys, indexedKeys } from '../../src/sidecar/key-files/key-index';

const block = (number: number) => Buffer.alloc(16, number);
const keys = (keyId: number, contentKey: number): IndexedKeys =>
  indexedKeys(block(keyId), block(100 + contentKey));

const NOBODY = { count: 0, names: [] };

test('finds the streams with the same key id and another content key, and the other way round', () => {
  const index = createKeyIndex();
  index.set('a', keys(1, 1));
  index.set('b', keys(1, 1));
  index.set('c', keys(2, 2));
  expect(index.conflicts('new', keys(1, 1))).toEqual({ otherKeys: NOBODY, otherIds: NOBODY });
  expect(index.conflicts('new', keys(1, 3))).toEqual({
    otherKeys: { count: 2, names: ['b', 'a'] },
    otherIds: NOBODY,
  });
  expect(index.conflicts('new', keys(3, 2))).toEqual({
    otherKeys: NOBODY,
    otherIds: { count: 1, names: ['c'] },
  });
  expect(index.conflicts('c', keys(2, 4))).toEqual({ otherKeys: NOBODY, otherIds: NOBODY });
  expect(index.conflicts('c', keys(1, 2))).toMatchObject({ otherKeys: { count: 2 } });
});

test('names three of many', () => {
  const index = createKeyIndex();
  for (let each = 0; each < 5000; each += 1) index.set(`live/${each}`, keys(1, 1));
  const { otherKeys } = index.conflicts('new', keys(1, 2));
  expect(otherKeys).toEqual({ count: 5000, names: ['live/4999', 'live/4998', 'live/4997'] });
});

test('agrees with a plain map, whatever is set, changed and removed', () => {
  const name = fc.constantFrom(...Array.from({ length: 12 }, (_none, index) => `stream-${index}`));
  const change = fc.record({
    name,
    keys: fc.option(fc.tuple(fc.nat(3), fc.nat(3)), { nil: undefined }),
    times: fc.nat(3),
  });
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 60 }),
      name,
      fc.nat(3),
      fc.nat(3),
      (changes, asked, id, key) => {
        const index = createKeyIndex();
        const model = new Map<string, [number, number]>();
        for (const { name: each, keys: given } of changes) {
          index.set(each, given && keys(...given));
          if (given) model.set(each, given);
          else model.delete(each);
        }
        const others = (test: (one: [number, number]) => boolean) =>
          [...model].filter(([each, one]) => each !== asked && test(one)).map(([each]) => each);
        const otherKeys = others(([one, other]) => one === id && other !== key);
        const otherIds = others(([one, other]) => one !== id && other === key);
        const found = index.conflicts(asked, keys(id, key));
        expect([found.otherKeys.count, found.otherIds.count]).toEqual([otherKeys.length, otherIds.length]);
        expect(otherKeys).toEqual(expect.arrayContaining([...found.otherKeys.names]));
        expect(otherIds).toEqual(expect.arrayContaining([...found.otherIds.names]));
        expect(index.size()).toBe(model.size);
      },
    ),
    { numRuns: 300 },
  );
});
