import { nalUnitsOf } from '../../src/codecs/nal-units';

test('units are found by start codes and by their lengths', () => {
  const units = [Buffer.from('6501', 'hex'), Buffer.from('41', 'hex')];
  expect(nalUnitsOf(Buffer.from('0000000165010000000141', 'hex'), 0)).toEqual(units);
  expect(nalUnitsOf(Buffer.from('0000000265010000000141', 'hex'), 4)).toEqual(units);
});

test('more units than any picture has are no picture, and fill no memory', () => {
  expect(nalUnitsOf(Buffer.from('00000165'.repeat(1_000_000), 'hex'), 0)).toBeUndefined();
  expect(nalUnitsOf(Buffer.from('0165'.repeat(1_000_000), 'hex'), 1)).toBeUndefined();
});
