import { hevcUnitsOf } from '../../src/codecs/nal-rules';
import { opened, vector } from '../support/judged-media';

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
