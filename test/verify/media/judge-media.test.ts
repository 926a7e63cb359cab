import { createCipheriv, createHash } from 'node:crypto';
import { swapKeyIdOrder } from '../../../src/drm/bytes';
import { decryptSample } from '../../../src/verify/media/decrypt';
import { judgeMedia } from '../../../src/verify/media/judge-media';
import type { MediaKey, OpenedMedia } from '../../../src/verify/media/judgement';
import { IV, KEY, KEY_ID, opened, type Packaged, packaged, vector } from '../../support/judged-media';

/** Keys that are always the same, so that a test that fails can be looked into. */
function otherKey(number: number): Buffer {
  return createHash('sha256').update(`key ${number}`).digest().subarray(0, 16);
}

function judged(media: OpenedMedia, ...keys: MediaKey[]) {
  const { state, cause } = judgeMedia(media, keys);
  return cause ? { state, cause } : { state };
}

const HLS = { method: 'SAMPLE-AES', iv: IV };
let cenc: Packaged;
let cbcs: Packaged;
let sampleAes: Packaged;
let clearTs: Packaged;

beforeAll(async () => {
  cenc = await packaged('cenc');
  cbcs = await packaged('cbcs');
  sampleAes = await packaged('sample-aes');
  clearTs = await packaged('clear-ts');
}, 30_000);

const of = (media: Packaged, track: 'v' | 'a', number = 2) =>
  opened(media.init(track), media.segment(track, number));
const ofTs = (media: Packaged, track: 'v' | 'a') => opened(undefined, media.segment(track, 2), HLS);

test('the right key is reported with the counts', () => {
  expect(judgeMedia(of(cenc, 'v'), [{ keyId: KEY_ID, key: KEY }])).toEqual({
    state: 'decrypts',
    kind: 'video',
    samples: 20,
    description: 'The key decrypts it.',
    evidence: '20 of 20 pictures are valid H.264 to the last bit.',
    tracks: [expect.objectContaining({ track: 1, keyId: KEY_ID, state: 'decrypts', kind: 'video' })],
  });
});

test('of many samples, the evidence says of how many some were taken', () => {
  const { tracks, ...media } = of(cenc, 'a');
  const many = tracks.map(({ content, ...track }) => {
    const samples = Array(6).fill(content.samples).flat();
    return { ...track, samples: samples.length, content: { ...content, samples } };
  });
  expect(judgeMedia({ ...media, tracks: many }, [{ key: KEY }]).evidence).toMatch(
    /^141 of 141 AAC frames, taken from 282, begin and end/,
  );
});

test.each([
  ['baseline.mp4', 'slices.mp4'],
  ['hevc-main10.mp4', 'hevc-slices.mp4'],
])(
  'of many pictures, as of %s and then of %s, one that is passed over may change the parameter sets',
  (...names) => {
    const [before, after] = names.map((name) => {
      const [track] = opened(undefined, vector(name)).tracks;
      const { format, samples = [] } = track?.content ?? {};
      const sets = format && 'parameterSets' in format ? format.parameterSets : [];
      const withLengths = sets.flatMap((nal) => [Buffer.from([0, 0, 0, nal.length]), nal]);
      const many = Array(150).fill(samples).flat();
      return { track, many, change: { data: Buffer.concat(withLengths), encryption: undefined } };
    });
    // Every other one is looked at.
    const samples = [
      ...(before?.many ?? []).slice(0, 151),
      after?.change,
      ...(after?.many ?? []).slice(0, 148),
    ];
    const tracks = before?.track ? [{ ...before.track, content: { ...before.track.content, samples } }] : [];
    const { evidence } = judgeMedia({ container: 'mp4', tracks, problems: [] }, []);
    expect(evidence).toMatch(/^150 of 150 pictures, taken from 300, are valid H/);
  },
);

test.each<[codec: 'ttml' | 'webvtt', text: string, state: string]>([
  ['ttml', '\ufeff<?xml version="1.0"?>\n<tt>\u00e9</tt>\n', 'clear'],
  ['ttml', '<tt>\ufffd</tt>', 'garbage'],
  ['ttml', 'WEBVTT', 'garbage'],
  ['webvtt', '\0\0\0\x08vtte\0\0\0\x08vttc', 'clear'],
  ['webvtt', '\0\0\0\x08vtte\0', 'garbage'],
  ['webvtt', '\0\0\0\x08free', 'garbage'],
])('subtitles are judged by their syntax: %s %j', (codec, text, state) => {
  const { tracks, ...media } = of(cenc, 'v');
  const samples = Array(2).fill({ data: Buffer.from(text), encryption: undefined });
  const texts = tracks.map((track) => {
    return { ...track, encryptedSamples: 0, content: { format: { codec }, samples } };
  });
  expect(judgeMedia({ ...media, tracks: texts }, []).state).toBe(state);
});

test('of one small picture, either key is reported to have too little data', () => {
  const { tracks, ...media } = of(cbcs, 'v');
  const one = tracks.map(({ content, ...track }) => {
    return { ...track, samples: 1, content: { ...content, samples: content.samples.slice(-1) } };
  });
  for (const key of [KEY, otherKey(1)]) {
    const { state, description } = judgeMedia({ ...media, tracks: one }, [{ key }]);
    expect([state, description]).toEqual(['unknown', expect.stringContaining('too little data')]);
  }
});

test('another content key under the right key id is garbage', () => {
  const judgement = judgeMedia(of(cenc, 'a'), [{ keyId: KEY_ID, key: otherKey(1) }]);
  expect(judgement).toMatchObject({ state: 'garbage', cause: 'wrong_key', kind: 'audio' });
  expect(judgement.evidence).toMatch(/^\d+ of 47 AAC frames are noise: none begin and end as valid AAC/);
});

test.each([
  ['cenc', 'v', 'first'],
  ['cbcs', 'a', 'last'],
  ['cbcs', 'a', 'odd'],
] as const)(
  'of %s, nothing is claimed of the key when the %s half of the samples of %s is noise',
  (scheme, track, half) => {
    const { tracks, ...media } = of(scheme === 'cenc' ? cenc : cbcs, track);
    const changed = tracks.map(({ content, ...rest }) => {
      const samples = content.samples.map((sample, index, all) => {
        const isFirst = index < all.length * 0.6;
        const isNoise = half === 'odd' ? index % 2 === 1 : isFirst === (half === 'first');
        return isNoise ? { ...sample, data: decryptSample(sample, content.format, otherKey(1)) } : sample;
      });
      return { ...rest, content: { ...content, samples } };
    });
    const state = { state: 'unknown', cause: 'partly_noise' };
    expect(judged({ ...media, tracks: changed }, { key: KEY })).toEqual(state);
  },
);

test('a key for another key id is no key', () => {
  expect(judged(of(cenc, 'v'), { keyId: otherKey(1), key: KEY })).toEqual({ state: 'no_key' });
  expect(judged(of(cenc, 'v'))).toEqual({ state: 'no_key' });
});

describe.each(['v', 'a'] as const)('of %s', (track) => {
  test('of three other keys not one decrypts, whatever the scheme', () => {
    for (const media of [of(cenc, track), of(cbcs, track), ofTs(sampleAes, track)]) {
      expect(judged(media, { key: KEY })).toEqual({ state: 'decrypts' });
      for (let number = 0; number < 3; number += 1) {
        expect(judgeMedia(media, [{ key: otherKey(number) }]).state).toBe('garbage');
      }
    }
  });

  test('the bytes of the key in another order are reported', () => {
    const reported = { state: 'garbage', cause: 'key_byte_order' };
    expect(judged(of(cenc, track), { key: swapKeyIdOrder(KEY) })).toEqual(reported);
    expect(judged(of(cbcs, track), { key: Buffer.from(KEY).reverse() })).toEqual(reported);
  });

  test('clear media that say that they are encrypted are reported', () => {
    expect(judged(ofTs(clearTs, track), { key: KEY })).toEqual({ state: 'clear', cause: 'not_encrypted' });
    expect(judged(opened(undefined, clearTs.segment(track, 2)))).toEqual({ state: 'clear' });
    const { tracks, ...media } = of(cenc, track);
    const decrypted = tracks.map(({ content, ...each }) => {
      const samples = content.samples.map((sample) => ({
        ...sample,
        data: decryptSample(sample, content.format, KEY),
      }));
      return { ...each, content: { ...content, samples } };
    });
    expect(judged({ ...media, tracks: decrypted }, { key: KEY })).toEqual({
      state: 'clear',
      cause: 'not_encrypted',
    });
  });

  test('another IV in the media than in the key file is reported', () => {
    const init = Buffer.from(cbcs.init(track));
    otherKey(9).copy(init, init.indexOf(IV));
    const media = opened(init, cbcs.segment(track, 2));
    expect(judged(media, { key: KEY, iv: IV })).toEqual({ state: 'garbage', cause: 'wrong_iv' });
  });

  test('the IV that FairPlay hands over is taken where the playlist names none', () => {
    const media = opened(undefined, sampleAes.segment(track, 2), { method: 'SAMPLE-AES', sequence: 5 });
    expect(judged(media, { key: KEY, iv: IV })).toEqual({ state: 'decrypts' });
  });
});

test('another IV is recognized by the sound alone, without a key file that has the right one', () => {
  const init = Buffer.from(cbcs.init('a'));
  otherKey(9).copy(init, init.indexOf(IV));
  const media = opened(init, cbcs.segment('a', 2));
  expect(judged(media, { key: KEY })).toEqual({ state: 'garbage', cause: 'wrong_iv' });
  expect(judged(media, { key: otherKey(1) })).toEqual({ state: 'garbage', cause: 'wrong_key' });
});

test('encryption that nothing signals is reported', () => {
  const init = Buffer.from(cenc.init('a'));
  // Hides that the sample entry has a protection scheme.
  init.write('free', init.indexOf('sinf'), 'latin1');
  init.write('mp4a', init.indexOf('enca'), 'latin1');
  const media = opened(init, cenc.segment('a', 2));
  expect(judged(media, { key: KEY })).toEqual({ state: 'garbage', cause: 'not_signalled' });
});

/** Another type of stream in the program map, the second packet. */
function withType(segment: Buffer, from: number, to: number): Buffer {
  const changed = Buffer.from(segment);
  changed.writeUInt8(to, changed.indexOf(from, 188 + 17));
  return changed;
}

describe('a segment under AES-128', () => {
  const encrypted = (content: Buffer) => {
    const cipher = createCipheriv('aes-128-cbc', KEY, IV);
    return Buffer.concat([cipher.update(content), cipher.final()]);
  };
  const media = (iv: Buffer, content = clearTs.segment('v', 2), init?: Buffer) =>
    opened(init, encrypted(content), { method: 'AES-128', iv });

  test('is judged by what is in it', () => {
    expect(judged(media(IV), { key: KEY })).toEqual({ state: 'decrypts' });
    expect(judged(media(IV), { key: otherKey(1) })).toEqual({ state: 'garbage', cause: 'wrong_key' });
    expect(judged(media(otherKey(1)), { key: KEY })).toEqual({ state: 'garbage', cause: 'wrong_iv' });
    expect(judged(media(IV))).toEqual({ state: 'no_key' });
  });

  test.each<[what: string, content: () => Buffer]>([
    ['pictures of MPEG-2', () => withType(clearTs.segment('v', 2), 27, 2)],
    ['MP3 in a transport stream', () => withType(clearTs.segment('a', 2), 15, 3)],
    ['MP3 alone', () => Buffer.from('49443304000000000000fffb9064'.padEnd(120, '0'), 'hex')],
    ['subtitles', () => Buffer.from('WEBVTT\n\n00:00.000 --> 00:02.000\nHello')],
  ])('decrypts where its codec cannot be judged: %s', (_, content) => {
    expect(judged(media(IV, content()), { key: KEY })).toEqual({ state: 'decrypts' });
    expect(judged(media(IV, content()), { key: otherKey(1) }).state).toBe('garbage');
  });

  test('is reported as clear', () => {
    const clear = opened(undefined, clearTs.segment('v', 2), { method: 'AES-128', iv: IV });
    expect(judged(clear, { key: KEY })).toEqual({ state: 'clear', cause: 'not_encrypted' });
  });

  test.each([
    ['clear', (init: Buffer) => init],
    ['encrypted, too', encrypted],
  ])('has an init segment that is %s', (_, change) => {
    expect(judged(media(IV, cenc.segment('v', 2), change(cenc.init('v'))), { key: KEY })).toEqual({
      state: 'decrypts',
    });
  });

  test('is not clear if its samples are encrypted', () => {
    const samples = opened(cbcs.init('v'), cbcs.segment('v', 2), { method: 'AES-128', iv: IV });
    expect(judged(samples, { key: KEY })).toEqual({ state: 'unknown' });
  });
});

test('media that ffmpeg encrypted decrypts, and is garbage under another key', () => {
  const media = opened(undefined, vector('ffmpeg-cenc.mp4'));
  expect(judged(media, { key: KEY })).toEqual({ state: 'decrypts' });
  expect(judged(media, { key: otherKey(1) })).toEqual({ state: 'garbage', cause: 'wrong_key' });
});

test('of what ffmpeg writes without IVs for DASH, no key is claimed to be wrong', () => {
  const media = opened(undefined, vector('ffmpeg-dash.mp4'));
  expect(media.problems.map(({ code }) => code)).toEqual(['iv_missing']);
  for (const key of [KEY, otherKey(1)]) expect(judged(media, { key })).toEqual({ state: 'unknown' });
});

test.each([
  [
    'stream.mp4',
    /^60 of 60 pictures are .* 141 of 142 AAC frames begin and end .*; for 1 there is too little data to decide/,
  ],
  ['slices.mp4', /^10 of 10 pictures are/],
  ['high-422.mp4', /^10 of 10 pictures are/],
  ['baseline.mp4', /^10 of 10 pictures are/],
  ['lossless.mp4', /^3 of 3 pictures are/],
  ['muxed.mp4', /^10 of 10 pictures are .* 17 of 17 AAC frames begin and end/],
  ['surround.mp4', /^47 of 48 AAC frames begin and end/],
  ['sound.ac3', /^(\d+) of \1 AC-3 frames have correct checksums/],
  ['enhanced.mp4', /^(\d+) of \1 AC-3 frames have correct checksums/],
  ['hevc-stream.mp4', /^40 of 40 pictures are valid H\.265/],
  ['hevc-main10.mp4', /^4 of 4 pictures are/],
  ['hevc-slices.mp4', /^10 of 10 pictures are/],
  ['hevc-lossless.mp4', /^1 of 1 pictures are/],
  ['hevc-intra.mp4', /^1 of 1 pictures are/],
  ['live-hevc.mpegts', /^20 of 20 pictures are/],
  ['live.mpegts', /^60 of 60 pictures are .* 130 of 131 AAC frames begin/],
])('all samples of %s keep the rules', (name, evidence) => {
  const judgement = judgeMedia(opened(undefined, vector(name)), []);
  expect({ state: judgement.state, evidence: judgement.evidence }).toEqual({
    state: 'clear',
    evidence: expect.stringMatching(evidence),
  });
});

test.each(['mbaff.mp4', 'hevc-444.mp4'])('of %s nothing is claimed', (name) => {
  const { evidence } = judgeMedia(opened(undefined, vector(name)), []);
  expect(evidence).toMatch(/^\d+ \w+ were checked: too little data to decide\.$/);
});
