import { bounded } from '../../../src/sidecar/observe/bounded';

test('makes what belongs to a name once', () => {
  const made: string[] = [];
  const take = bounded(3, 'other', (name: string) => {
    made.push(name);
    return { name };
  });
  expect(take('a')).toBe(take('a'));
  expect([take('b').name, take('a').name, made]).toEqual(['b', 'a', ['a', 'b']]);
});

test('lets all names beyond the bound share one', () => {
  const made: string[] = [];
  const take = bounded(2, 'other', (name: string) => {
    made.push(name);
    return { name };
  });
  for (let count = 0; count < 10_000; count += 1) take(`name-${count}`);
  expect([take('name-1').name, take('name-2').name, made]).toEqual([
    'name-1',
    'other',
    ['name-0', 'name-1', 'other'],
  ]);
});
