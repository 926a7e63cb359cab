import { nearestName, unknownName } from '../../src/drm/nearest';

const KNOWN = ['as', 'key', 'content-key', 'license-url', 'content-key-of-vendor'];

test.each([
  ['contnt-kei', 'content-key'],
  ['CONTENT-KEY', 'content-key'],
  ['kyes', 'key'],
  ['keyset', undefined],
  ['zz', undefined],
  ['sa', 'as'],
  ['lizenz-ural', undefined],
])('of %s the name %s may have been meant', (name, near) => {
  expect(nearestName(name, KNOWN)).toBe(near);
});

test('a long name may be wrong in one of so many letters, and a short one in two', () => {
  expect(nearestName('lizenz-ural', KNOWN, 2)).toBe('license-url');
  expect(nearestName('key12', KNOWN, 100)).toBe('key');
});

test('the first of two names that are as near is meant', () => {
  expect(nearestName('kez', ['kex', 'key'])).toBe('kex');
});

test.each<[what: string, name: string, shown: boolean]>([
  ['a short name, whatever it is of', 'A1B2C3D4E5F6G7H', true],
  ['a name with a few digits', 'vendor-setting-123', true],
  ['one that is near', `${'content-key'}1234`, true],
  ['one that is near, in capitals', 'CONTENT-KEY-OF-VENDER', true],
  ['four digits among letters', 'vendor-setting-1aa2bb3cc4', false],
  ['base64 of a key', 'MT8jItzhV+ay+3QEtoyIxQ==', false],
  ['hex of a key', '313f2322dce157e6b2fb7404b68c88c5', false],
  ['letters and capitals like a key', 'abcdefghijklmnOp', false],
  ['a control character in front', '\u0007vendor', false],
  ['more than 100 characters', 'a'.repeat(101), false],
])('shows of an unknown name what can be no key: %s', (_what, name, shown) => {
  expect(unknownName(name, KNOWN).shown).toBe(shown ? name : undefined);
});
