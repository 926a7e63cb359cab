import { hevcUnitsOf } from '../../src/codecs/nal-rules';
import { nalUnitsOf } from '../../src/codecs/nal-units';
import { opened, vector } from '../support/judged-media';

test('units are found by start codes and by their lengths', () => {
  const units = [Buffer.from('6501', 'hex'), Buffer.from('41', 'hex')];
  expect(nalUnitsOf(Buffer.from('0000000165010000000141', 'hex'), 0)).toEqual(units);
  expect(nalUnitsOf(Buffer.from('0000000265010000000141', 'hex'), 4)).toEqual(units);
});

test('more units than any picture has are no picture, and fill no memory', () => {
  expect(nalUnitsOf(Buffer.from('00000165'.repeat(1_000_000), 'hex'), 0)).toBeUndefined();
  expect(nalUnitsOf(Buffer.from('0165'.repeat(1_000_000), 'hex'), 1)).toBeUndefined();
});

test('pictures of H.265 keep the rules', () => {
  const [track] = opened(undefined, vector('live-hevc.mpegts')).tracks;
  const kept = track?.content.samples.filter(({ data }) => hevcUnitsOf(data, 0));
  expect(kept?.length).toBe(20);
});

test.each([
  ['a length beyond the sample', '00000009 0201aabb'],
  ['a forbidden bit', '00000004 8201aabb'],
  ['a temporal id that there is not', '00000004 0200aabb'],
  ['what looks like a start code', '00000006 0201aa000001'],
  ['an emulation prevention byte too many', '00000007 0201aa00000304'],
  ['a zero at the end', '00000005 0201aabb00'],
])('%s breaks them', (_, hex) => {
  expect(hevcUnitsOf(Buffer.from(hex.replaceAll(' ', ''), 'hex'), 4)).toBeUndefined();
});
