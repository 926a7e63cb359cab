import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { checkAacFrame, checkByteValues, hasRawDataBlocks, readAdtsHeader } from '../../src/codecs/aac-frame';
import { HevcPictureCheck, hevcUnitsOf } from '../../src/codecs/hevc-picture-check';
import { nalUnitsOf } from '../../src/codecs/nal-units';
import { judgeMedia } from '../../src/verify/media/judge-media';
import { openMedia } from '../../src/verify/media/open-media';
import { KEY, KEY_ID, opened, packaged, vector } from '../support/judged-media';
import { right } from '../support/right';

const START = Buffer.from([0, 0, 0, 1]);

/** The pictures of a vector, and one that reads them. */
function read(name: string) {
  const [track] = opened(undefined, vector(name)).tracks;
  const { format, samples = [] } = track?.content ?? {};
  if (format?.codec !== 'h265') throw new Error(`${name} is not of H.265`);
  const check = (sample: Buffer) =>
    new HevcPictureCheck(format.lengthSize, format.parameterSets).check(sample);
  return { pictures: samples.map(({ data }) => data), format, check };
}

test.each(['cenc', 'cbcs'] as const)(
  'under %s the right key decrypts each picture, and of three others none',
  async (scheme) => {
    const { init, segment } = await packaged(scheme, 'hevc-stream.mp4');
    const media = opened(init('v'), segment('v', 2));
    expect(judgeMedia(media, [{ keyId: KEY_ID, key: KEY }])).toMatchObject({
      state: 'decrypts',
      samples: 20,
      evidence: '20 of 20 pictures are valid H.265 to the last bit.',
    });
    const noise = /^(\d+) of \1 pictures are noise: none are valid H\.265 to the last bit/;
    for (let number = 0; number < 3; number += 1) {
      const key = createHash('sha256').update(`key ${number}`).digest().subarray(0, 16);
      const { state, evidence } = judgeMedia(media, [{ key }]);
      expect([number, state, evidence]).toEqual([number, 'garbage', expect.stringMatching(noise)]);
    }
  },
);

test.each(['hevc-main10.mp4', 'hevc-slices.mp4', 'hevc-lossless.mp4'])(
  'each picture of %s breaks the rules with its last bytes gone, or others instead',
  (name) => {
    const { pictures, check, format } = read(name);
    for (const picture of pictures) {
      const length = picture.length - 3;
      const short = Buffer.from(picture.subarray(0, length));
      // The last NAL unit is that much shorter.
      let at = 0;
      while (at + format.lengthSize + picture.readUInt32BE(at) < picture.length) {
        at += format.lengthSize + picture.readUInt32BE(at);
      }
      short.writeUInt32BE(short.readUInt32BE(at) - 3, at);
      if (short[length - 1] === 0) short[length - 1] = 1;
      expect(check(short)).toBe('broken');
      const noisy = Buffer.from(picture);
      noisy[picture.length - 4] = (noisy[picture.length - 4] ?? 0) ^ 0x5a;
      noisy[picture.length - 5] = (noisy[picture.length - 5] ?? 0) ^ 0xa5;
      expect(check(noisy)).toBe('broken');
    }
  },
);

test.each(['hevc-tiles.h265', 'hevc-rows.h265'])(
  'tiles, rows, dependent segments and PCM of %s are read to the last bit of each segment',
  (name) => {
    const picture = vector(name);
    const check = (bytes: Buffer) => new HevcPictureCheck(0, []).check(bytes);
    expect(check(picture)).toBe('valid');
    const starts: number[] = [];
    for (let at = picture.indexOf(START); at >= 0; at = picture.indexOf(START, at + 1)) starts.push(at);
    const ends = [...starts.slice(1), picture.length];
    // Behind the three parameter sets.
    const broken = ends.slice(3).map((end) => {
      const bytes = Buffer.from(picture);
      bytes[end - 2] = (bytes[end - 2] ?? 0) ^ 0xff;
      return check(bytes);
    });
    expect(broken).toEqual(broken.map(() => 'broken'));
    const [third = 0, fourth = 0] = starts.slice(4);
    const gap = Buffer.concat([picture.subarray(0, third), picture.subarray(fourth)]);
    expect(check(gap)).not.toBe('valid');
  },
);

test('a picture with a missing slice proves nothing', () => {
  const { pictures, check, format } = read('hevc-slices.mp4');
  const [picture = Buffer.alloc(0)] = pictures.slice(-1);
  const first = format.lengthSize + picture.readUInt32BE(0);
  expect(check(picture)).toBe('valid');
  expect(check(picture.subarray(0, first))).toBe('undecided');
  expect(check(picture.subarray(first))).toBe('undecided');
});

test('the end of a sequence, which is two bytes, belongs to a picture', () => {
  const { pictures, check } = read('hevc-main10.mp4');
  expect(check(Buffer.concat([...pictures.slice(0, 1), Buffer.from('000000024801', 'hex')]))).toBe('valid');
});

test('without parameter sets nothing is claimed', () => {
  const { pictures, format } = read('hevc-main10.mp4');
  const outcomes = pictures.map((picture) => new HevcPictureCheck(format.lengthSize, []).check(picture));
  expect(new Set(outcomes)).toEqual(new Set(['undecided']));
});

test.each([33, 34])('with a parameter set of type %i that cannot be read, nothing is claimed', (type) => {
  const { pictures, format } = read('hevc-main10.mp4');
  const sets = format.parameterSets.map((nal) => ((nal[0] ?? 0) >> 1 === type ? nal.subarray(0, 4) : nal));
  const outcomes = pictures.map((picture) => new HevcPictureCheck(format.lengthSize, sets).check(picture));
  expect(new Set(outcomes)).toEqual(new Set(['undecided']));
});

test('damaged parameter sets and pictures are judged, whatever is in them', () => {
  const { pictures, format } = read('hevc-slices.mp4');
  const sets = format.parameterSets;
  const damage = fc.array(fc.tuple(fc.nat(80), fc.nat(255)), { maxLength: 6 });
  const damaged = (bytes: Buffer, changes: readonly [number, number][]) => {
    const copy = Buffer.from(bytes);
    // Headers of NAL units, and their lengths, stay as they are.
    for (const [at, value] of changes) if (at + 6 < copy.length) copy[at + 6] = value;
    return copy;
  };
  fc.assert(
    fc.property(damage, damage, fc.nat(pictures.length - 1), (inSets, inPicture, index) => {
      const check = new HevcPictureCheck(
        format.lengthSize,
        sets.map((nal) => damaged(nal, inSets)),
      );
      const outcome = check.check(damaged(pictures[index] ?? Buffer.alloc(0), inPicture));
      expect(['valid', 'broken', 'undecided']).toContain(outcome);
    }),
    { numRuns: 300 },
  );
});

test('units are found by start codes and by their lengths, without the zeros behind them', () => {
  const units = [Buffer.from('6501', 'hex'), Buffer.from('41', 'hex')];
  expect(nalUnitsOf(Buffer.from('0000000165010000000141', 'hex'), 0)).toEqual(units);
  expect(nalUnitsOf(Buffer.from('00000004650100000000000141', 'hex'), 4)).toEqual(units);
});

test('more units than any picture has are no picture, and fill no memory', () => {
  expect(nalUnitsOf(Buffer.from('00000165'.repeat(1_000_000), 'hex'), 0)).toBeUndefined();
  expect(nalUnitsOf(Buffer.from('0165'.repeat(1_000_000), 'hex'), 1)).toBeUndefined();
});

test.each([
  ['a length beyond the sample', '00000009 0201aabb'],
  ['a forbidden bit', '00000004 8201aabb'],
  ['a temporal id that there is not', '00000004 0200aabb'],
  ['what looks like a start code', '00000006 0201aa000001'],
  ['an emulation prevention byte too many', '00000007 0201aa00000304'],
])('%s breaks the rules of NAL units', (_, hex) => {
  expect(hevcUnitsOf(Buffer.from(hex.replaceAll(' ', ''), 'hex'), 4)).toBeUndefined();
});

const BOTH = { start: true, end: true };
const hash = (number: number) => createHash('sha512').update(`noise ${number}`).digest();
const noise = Array.from({ length: 2000 }, (_, number) => hash(number));

/** Frames of AAC without a header. */
function framesOf(name: string): Buffer[] {
  const bytes = readFileSync(join(__dirname, '../vectors/media', name));
  const tracks = right(openMedia(undefined, bytes)).value.tracks.filter(
    ({ content }) => content.format.codec === 'aac',
  );
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
  // Behind a right start, other bits than zeros are no proof: Microsoft's encoder writes them.
  const begun = (hex: string) => checkAacFrame(Buffer.from(hex, 'hex'), BOTH);
  expect(['21aae0', '21aae4', 'c1aae4', '3faae4'].map(begun)).toEqual([
    'valid',
    'undecided',
    'broken',
    'broken',
  ]);
});

test('byte values identify noise, where there are enough of them', () => {
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
