import { createKeyIndex, type IndexedKeys, indexedKeys } from '../../src/sidecar/key-files/survey';

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

test('knows of each stream the keys that were set last, and of a removed one none', () => {
  const index = createKeyIndex();
  for (const streamId of ['a', 'b', 'c']) index.set(streamId, keys(1, 1));
  index.set('a', keys(1, 2));
  index.set('b', undefined);
  index.set('c', keys(1, 1));
  expect(index.conflicts('new', keys(1, 1)).otherKeys).toEqual({ count: 1, names: ['a'] });
  expect(index.conflicts('new', keys(1, 2)).otherKeys).toEqual({ count: 1, names: ['c'] });
  expect(index.size()).toBe(2);
});
