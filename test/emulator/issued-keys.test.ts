import { IssuedKeys } from '../../src/emulator/upstreams/clearkey-license';

function keyOf(number: number) {
  return { keyId: Buffer.alloc(16, number), key: Buffer.alloc(16, number + 100) };
}

function remembered(keys: IssuedKeys, numbers: readonly number[]): number[] {
  return numbers.filter((number) => keys.find(Buffer.alloc(16, number)) !== undefined);
}

test('finds a key by the bytes of its id', () => {
  const keys = new IssuedKeys(2);
  keys.remember(keyOf(1));
  expect(keys.find(Buffer.alloc(16, 1))).toEqual(keyOf(1));
  expect(keys.find(Buffer.alloc(16, 2))).toBeUndefined();
});

test('drops the oldest key over its limit', () => {
  const keys = new IssuedKeys(2);
  for (const number of [1, 2, 3]) keys.remember(keyOf(number));
  expect(remembered(keys, [1, 2, 3])).toEqual([2, 3]);
});

test('counts a key that is given out again once, and as new', () => {
  const keys = new IssuedKeys(2);
  for (const number of [1, 2, 1, 3]) keys.remember(keyOf(number));
  expect(remembered(keys, [1, 2, 3])).toEqual([1, 3]);
});
