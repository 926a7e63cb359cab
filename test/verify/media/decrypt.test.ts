import { createCipheriv } from 'node:crypto';
import { nalUnitsOf } from '../../../src/codecs/nal-units';
import { decryptSample, decryptSegment, ivOfSequence } from '../../../src/verify/media/decrypt';
import type { MediaTrack, SampleEncryption } from '../../../src/verify/media/judgement';
import { IV, KEY, KEY_ID, opened, packaged, vector } from '../../support/judged-media';

const NUMBERS = [1, 2, 3];
const SOURCE = opened(undefined, vector('stream.mp4')).tracks;

function decrypted({ content }: MediaTrack): Buffer[] {
  return content.samples.map((sample) => decryptSample(sample, content.format, KEY));
}

/** The samples of the source; of sound as many as are packaged, as shaka-packager drops what no picture goes with. */
function source(track: 'v' | 'a', count: number): Buffer[] {
  const kind = track === 'v' ? 'video' : 'audio';
  const samples = SOURCE.find((each) => each.kind === kind)?.content.samples ?? [];
  return samples.slice(0, count).map(({ data }) => data);
}

describe.each(['cenc', 'cens', 'cbc1', 'cbcs'] as const)('under %s', (scheme) => {
  test.each(['v', 'a'] as const)('every sample of %s is that of the source', async (track) => {
    const media = await packaged(scheme);
    const tracks = NUMBERS.flatMap(
      (number) => opened(media.init(track), media.segment(track, number)).tracks,
    );
    expect(tracks.map((each) => [each.scheme, each.keyIds, each.encryptedSamples === each.samples])).toEqual(
      NUMBERS.map(() => [scheme, [KEY_ID], true]),
    );
    const samples = tracks.flatMap(decrypted);
    expect(samples.length).toBeGreaterThan(50);
    expect(samples).toEqual(source(track, samples.length));
  });
});

test.each<[what: string, track: 'v' | 'a', unitsOf: (sample: Buffer) => unknown]>([
  ['frame of sound', 'a', (sample) => sample],
  ['NAL unit', 'v', (sample) => nalUnitsOf(sample, 0)],
])('under SAMPLE-AES every %s is that of the clear stream', async (_what, track, unitsOf) => {
  const [encrypted, clear] = [await packaged('sample-aes'), await packaged('clear-ts')];
  const hls = { method: 'SAMPLE-AES', iv: IV };
  for (const number of NUMBERS) {
    const samples = opened(undefined, encrypted.segment(track, number), hls).tracks.flatMap(decrypted);
    const expected = opened(undefined, clear.segment(track, number)).tracks.flatMap(decrypted);
    expect(samples.map(unitsOf)).toEqual(expected.map(unitsOf));
  }
});

test('every sample that ffmpeg encrypted is that of the source', () => {
  const { tracks } = opened(undefined, vector('ffmpeg-cenc.mp4'));
  for (const track of tracks) {
    const samples = decrypted(track);
    expect(samples).toEqual(source(track.kind === 'video' ? 'v' : 'a', samples.length));
  }
});

const FORMAT = { codec: 'unknown' } as const;
const PLAIN = Buffer.from(Array.from({ length: 100 }, (_, index) => index));

function sample(data: Buffer, encryption: Partial<SampleEncryption>) {
  const base = { scheme: 'cenc', keyId: KEY_ID, iv: IV, subsamples: undefined, pattern: undefined } as const;
  return { data, encryption: { ...base, ...encryption } };
}

test('the counter goes on from one subsample to the next, in the middle of a block', () => {
  const cipher = createCipheriv('aes-128-ctr', KEY, IV);
  const data = Buffer.from(PLAIN);
  cipher.update(PLAIN.subarray(5, 25)).copy(data, 5);
  cipher.update(PLAIN.subarray(30, 70)).copy(data, 30);
  const subsamples = [
    { clear: 5, protected: 20 },
    { clear: 5, protected: 40 },
  ];
  expect(decryptSample(sample(data, { subsamples }), FORMAT, KEY)).toEqual(PLAIN);
});

// ISO/IEC 23001-7 § 9.2: the lower 64 bits alone are the block counter.
test('a counter at its end starts again without a carry into the IV', () => {
  const iv = Buffer.concat([IV.subarray(0, 8), Buffer.alloc(8, 0xff)]);
  const wrapped = Buffer.concat([IV.subarray(0, 8), Buffer.alloc(8)]);
  const data = Buffer.concat([
    createCipheriv('aes-128-ctr', KEY, iv).update(PLAIN.subarray(0, 16)),
    createCipheriv('aes-128-ctr', KEY, wrapped).update(PLAIN.subarray(16)),
  ]);
  expect(decryptSample(sample(data, { iv }), FORMAT, KEY)).toEqual(PLAIN);
});

test('subsamples that reach beyond their sample leave it as it is', () => {
  const subsamples = [{ clear: 5, protected: 200 }];
  expect(decryptSample(sample(PLAIN, { subsamples }), FORMAT, KEY)).toEqual(PLAIN);
});

test('a segment under AES-128 has the number of the playlist as its IV', () => {
  const cipher = createCipheriv('aes-128-cbc', KEY, Buffer.from(`${'00'.repeat(15)}07`, 'hex'));
  const segment = Buffer.concat([cipher.update(PLAIN), cipher.final()]);
  expect(decryptSegment(segment, KEY, ivOfSequence(7))).toEqual(PLAIN);
  expect(decryptSegment(segment.subarray(0, 50), KEY, ivOfSequence(7))).toBeUndefined();
  expect(decryptSegment(segment, IV, ivOfSequence(7))).toBeUndefined();
});
