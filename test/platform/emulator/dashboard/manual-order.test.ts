import fc from 'fast-check';
import { moved, reordered, without } from '../../../../src/platform/emulator/dashboard/manual-playlist';

const ids = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 12 });

test.each([
  [['a', 'b', 'c'], 'a', 0, 1, ['b', 'a', 'c']],
  [['a', 'b', 'c'], 'c', 2, -1, ['a', 'c', 'b']],
  [['a', 'b', 'c'], 'a', 0, -1, ['a', 'b', 'c']],
  [['a', 'b', 'c'], 'a', 0, 99, ['b', 'c', 'a']],
  [['x', 'a', 'b'], 'a', 0, 1, ['x', 'b', 'a']],
  [['a', 'b', 'a'], 'a', 2, -1, ['a', 'a', 'b']],
  [['a', 'b'], 'gone', 0, 1, ['a', 'b']],
])('of %j, moves %s from place %d by %d: %j', (before, id, place, by, after) => {
  expect(moved(before, id, place, by)).toEqual(after);
});

test('takes out the one at the place that is said, or the first of its id', () => {
  expect(without(['a', 'b', 'a'], 'a', 2)).toEqual(['a', 'b']);
  expect(without(['x', 'a', 'a'], 'a', 0)).toEqual(['x', 'a']);
  expect(without(['a'], 'gone', 0)).toEqual(['a']);
});

test('reorders a part on its own places, and leaves what came or went meanwhile', () => {
  expect(reordered(['a', 'b', 'c'], ['c', 'b', 'a'])).toEqual(['c', 'b', 'a']);
  expect(reordered(['a', 'b', 'new', 'c'], ['c', 'a', 'b'])).toEqual(['c', 'a', 'new', 'b']);
  expect(reordered(['a', 'c'], ['c', 'gone', 'a'])).toEqual(['c', 'a']);
});

test('loses and doubles nothing, whatever is asked for', () => {
  fc.assert(
    fc.property(ids, ids, (before, wanted) => {
      expect(reordered(before, wanted).toSorted()).toEqual(before.toSorted());
    }),
  );
});

test('puts all of them into any order', () => {
  fc.assert(
    fc.property(
      ids.chain((before) =>
        fc.tuple(
          fc.constant(before),
          fc.shuffledSubarray(before, { minLength: before.length, maxLength: before.length }),
        ),
      ),
      ([before, wanted]) => {
        expect(reordered(before, wanted)).toEqual(wanted);
      },
    ),
  );
});
