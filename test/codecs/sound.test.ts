import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkAacFrame, hasRawDataBlocks, readAdtsHeader } from '../../src/codecs/aac-frame';
import { checkByteValues } from '../../src/codecs/byte-values';
import { openMedia } from '../../src/verify/media/open-media';

const BOTH = { start: true, end: true };
const hash = (number: number) => createHash('sha512').update(`noise ${number}`).digest();
const noise = Array.from({ length: 2000 }, (_, number) => hash(number));

/** Frames of AAC without a header. */
function framesOf(name: string): Buffer[] {
  const opened = openMedia(undefined, readFileSync(join(__dirname, '../vectors/media', name)));
  if (!opened.ok) throw new Error(opened.problem.description);
  const tracks = opened.value.tracks.filter(({ content }) => content.format.codec === 'aac');
  return tracks.flatMap(({ content }) =>
    content.samples.map(({ data }) => data.subarray(readAdtsHeader(data)?.headerLength ?? 0)),
  );
}

const share = (frames: readonly Buffer[], ends: typeof BOTH, outcome: string) =>
  frames.filter((frame) => checkAacFrame(frame, ends) === outcome).length / frames.length;

test.each(['stream.mp4', 'surround.mp4', 'live.mpegts', 'two-sounds.mp4', 'sound.m4a'])(
  'no frame of %s is broken, and nearly all are valid',
  (name) => {
    const frames = framesOf(name);
    expect(share(frames, BOTH, 'broken')).toBe(0);
    expect(share(frames, BOTH, 'valid')).toBeGreaterThan(0.9);
    expect(share(frames, { start: false, end: true }, 'valid')).toBe(1);
    expect(checkByteValues(Buffer.concat(frames))).toBe('valid');
  },
);

test('noise passes as often as its ends let expect', () => {
  expect(share(noise, { start: true, end: false }, 'valid')).toBeCloseTo(1 / 64, 1);
  expect(share(noise, { start: false, end: true }, 'valid')).toBeCloseTo(1 / 4, 1);
  expect(share(noise, BOTH, 'valid')).toBeLessThan(0.01);
  expect(checkAacFrame(noise[0] ?? Buffer.alloc(1), { start: false, end: false })).toBe('undecided');
});

test('a frame ends with ID_END, padded with zeros, also across two bytes', () => {
  const ends = (hex: string) => checkAacFrame(Buffer.from(hex, 'hex'), { start: false, end: true });
  expect(['aa0e', 'aae0', 'aa0780', 'aa03c0', 'aa0e0000'].map(ends)).toEqual(Array(5).fill('valid'));
  expect(['aa0c', 'aa04', '0000', '00'].map(ends)).toEqual(Array(4).fill('broken'));
});

test('byte values tell noise, where there are enough of them', () => {
  expect(checkByteValues(Buffer.concat(noise))).toBe('broken');
  expect(checkByteValues(Buffer.concat(noise.slice(0, 20)))).toBe('undecided');
  expect(checkByteValues(Buffer.alloc(0))).toBe('undecided');
});

test('object types without raw_data_blocks are not looked at', () => {
  const type = (objectType: number) => hasRawDataBlocks(Buffer.from([objectType << 3, 0]));
  expect([1, 2, 3, 4, 5, 29, 17, 23, 39, 42 & 31].map(type)).toEqual([
    ...Array(6).fill(true),
    ...Array(4).fill(false),
  ]);
});
