import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { HevcPictureCheck } from '../../src/codecs/hevc-picture-check';
import { judgeMedia } from '../../src/verify/media/judge-media';
import { KEY, KEY_ID, opened, packaged, vector } from '../support/judged-media';

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

describe.each(['cenc', 'cbcs'] as const)('under %s', (scheme) => {
  const media = async () => {
    const { init, segment } = await packaged(scheme, 'hevc-stream.mp4');
    return opened(init('v'), segment('v', 2));
  };

  test('the right key is told with what was counted', async () => {
    expect(judgeMedia(await media(), [{ keyId: KEY_ID, key: KEY }])).toMatchObject({
      state: 'decrypts',
      samples: 20,
      evidence: '20 of 20 pictures are valid H.265 to the last bit.',
    });
  });

  test('of thirty other keys each one is garbage', async () => {
    const segment = await media();
    for (let number = 0; number < 30; number += 1) {
      const key = createHash('sha256').update(`key ${number}`).digest().subarray(0, 16);
      const { state, evidence } = judgeMedia(segment, [{ key }]);
      expect({ number, state, evidence }).toEqual({
        number,
        state: 'garbage',
        evidence: expect.stringMatching(
          /^(\d+) of \1 pictures are noise: none are valid H\.265 to the last bit/,
        ),
      });
    }
  });
});

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

test('a picture that lacks a slice proves nothing', () => {
  const { pictures, check, format } = read('hevc-slices.mp4');
  const [picture = Buffer.alloc(0)] = pictures.slice(-1);
  const first = format.lengthSize + picture.readUInt32BE(0);
  expect(check(picture)).toBe('valid');
  expect(check(picture.subarray(0, first))).toBe('undecided');
  expect(check(picture.subarray(first))).toBe('undecided');
});

test('without parameter sets nothing is claimed', () => {
  const { pictures, format } = read('hevc-main10.mp4');
  const outcomes = pictures.map((picture) => new HevcPictureCheck(format.lengthSize, []).check(picture));
  expect(new Set(outcomes)).toEqual(new Set(['undecided']));
});

test.each([
  [33, 'sequence'],
  [34, 'picture'],
])('with a parameter set of type %i that cannot be read, of the %s, nothing is claimed', (type) => {
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
