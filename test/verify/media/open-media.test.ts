import fc from 'fast-check';
import { judgeMedia } from '../../../src/verify/media/judge-media';
import { openMedia } from '../../../src/verify/media/open-media';
import { readSampleEntries } from '../../../src/verify/media/sample-entry';
import { IV, KEY, KEY_ID, opened, type Packaged, packaged, vector } from '../../support/judged-media';

let cenc: Packaged;
let cbcs: Packaged;
let sampleAes: Packaged;

beforeAll(async () => {
  cenc = await packaged('cenc');
  cbcs = await packaged('cbcs');
  sampleAes = await packaged('sample-aes');
}, 30_000);

test('a track is reported with its encryption', () => {
  const { container, problems, tracks } = opened(cbcs.init('v'), cbcs.segment('v', 1));
  const [{ content, ...track } = { content: undefined }] = tracks;
  expect({ container, problems, track, samples: content?.samples.length }).toEqual({
    container: 'fmp4',
    problems: [],
    track: {
      id: 1,
      kind: 'video',
      codec: expect.stringMatching(/^avc1\.[0-9a-f]{6}$/),
      scheme: 'cbcs',
      keyIds: [KEY_ID],
      constantIv: IV,
      samples: 20,
      encryptedSamples: 20,
      seconds: 2,
    },
    samples: 20,
  });
});

test('a transport stream names neither key id nor scheme, and has the IV of its playlist', () => {
  const { container, tracks } = opened(undefined, sampleAes.segment('a', 1), {
    method: 'SAMPLE-AES',
    iv: IV,
  });
  expect({
    container,
    tracks: tracks.map(({ content, id, samples, encryptedSamples, ...track }) => track),
  }).toEqual({
    container: 'mpegts',
    tracks: [
      {
        kind: 'audio',
        codec: 'mp4a.40.2',
        scheme: 'sample-aes',
        keyIds: [],
        constantIv: IV,
        seconds: 0,
      },
    ],
  });
});

/** The frames of sound of a transport stream, one behind the other. */
const framesOfSound = (name: string) =>
  Buffer.concat(
    opened(undefined, vector(name)).tracks.flatMap(({ content }) => content.samples.map(({ data }) => data)),
  );
const ID3 = Buffer.from('49443304000000000002abcd', 'hex');

test.each<[what: string, bytes: () => Buffer, codec: string]>([
  ['AC-3', () => vector('sound.ac3'), 'ac-3'],
  ['AAC behind an ID3 tag', () => Buffer.concat([ID3, framesOfSound('live-sound.mpegts')]), 'mp4a.40.2'],
])('packed audio is read frame by frame: %s', (_, bytes, codec) => {
  const media = opened(undefined, bytes());
  expect(media).toMatchObject({
    container: 'packed',
    tracks: [{ kind: 'audio', codec, scheme: undefined }],
  });
  expect(judgeMedia(media, [])).toMatchObject({ state: 'clear', kind: 'audio' });
  expect(media.tracks[0]?.samples).toBeGreaterThan(10);
});

/** The second packet of a transport stream has the program map. */
function withShortMap(segment: Buffer): Buffer {
  const changed = Buffer.from(segment.subarray(0, 2 * 188));
  changed.writeUInt16BE(0xb000, changed.indexOf('0002b0', 188, 'hex') + 2);
  return changed;
}

test.each([
  ['no bytes', Buffer.alloc(0), 'no_samples'],
  ['an error page', Buffer.from('<!doctype html><title>404</title>'), 'not_media'],
  ['an init segment alone', () => cenc.init('v'), 'no_samples'],
  ['a media segment alone', () => cenc.segment('v', 1), 'no_init_segment'],
  ['noise', KEY, 'not_media'],
  ['a program map of three bytes', () => withShortMap(sampleAes.segment('v', 1)), 'no_samples'],
])('%s is a fault as data', (_, bytes, code) => {
  const result = openMedia(undefined, typeof bytes === 'function' ? bytes() : bytes);
  expect(result).toEqual({ ok: false, problem: { code, description: expect.stringMatching(/\.$/) } });
});

test('zeros after the last box, as some writers leave them, are no fault', () => {
  const media = opened(cenc.init('v'), Buffer.concat([cenc.segment('v', 1), Buffer.alloc(5)]));
  expect(media.problems).toEqual([]);
});

test('the protection of subtitles is found behind the texts of their sample entry', () => {
  const sinf = plainBox('sinf', plainBox('frma', Buffer.from('stpp')), box('schm', 0, Buffer.from('cenc')));
  const entry = plainBox('enct', Buffer.alloc(8), Buffer.from('http://www.w3.org/ns/ttml\0\0\0'), sinf);
  expect(readSampleEntries(Buffer.concat([numbers(0, 1), entry]), 'text')).toEqual([
    { codec: 'stpp', format: { codec: 'ttml' }, protection: { scheme: 'cenc', track: undefined } },
  ]);
});

test.each([
  ['1210', 'mp4a.40.2'],
  ['f946', 'mp4a.40.42'],
])(
  'the codec of sound is found behind an address in its descriptor, and the stream that it depends on: %s',
  (type, codec) => {
    const config = Buffer.from(`0502${type}`, 'hex');
    const decoder = Buffer.concat([Buffer.from('041140', 'hex'), Buffer.alloc(12), config]);
    // Flags of ISO/IEC 14496-1 § 7.2.6.5: streamDependenceFlag, URL_Flag and OCRstreamFlag.
    const stream = Buffer.concat([
      Buffer.from('0001e0000203', 'hex'),
      Buffer.from('a:b'),
      numbers(0).subarray(2),
    ]);
    const esds = box('esds', 0, Buffer.from([3, stream.length + decoder.length]), stream, decoder);
    const body = Buffer.concat([numbers(0, 1), plainBox('mp4a', Buffer.alloc(28), esds)]);
    expect(readSampleEntries(body, 'audio')).toMatchObject([{ codec }]);
  },
);

test('a segment that is cut short is read as far as it goes, and reported', () => {
  const segment = cenc.segment('v', 1);
  const media = opened(cenc.init('v'), segment.subarray(0, segment.length - 500));
  expect(media.problems.map(({ code }) => code)).toEqual(['media_cut_short']);
  expect(judgeMedia(media, [{ key: KEY }]).state).toBe('decrypts');
});

/** Writes a number of 32 bits behind a name of a box. */
function withNumber(bytes: Buffer, box: string, offset: number, value: number): Buffer {
  const changed = Buffer.from(bytes);
  changed.writeUInt32BE(value, changed.indexOf(box) + 4 + offset);
  return changed;
}

const TOO_MANY = 'The media say that they have more than 200000 samples.';

test.each<[what: string, box: string, offset: number, value: number, code: string, description?: string]>([
  ['a run of 4 billion samples', 'trun', 4, 0xffffffff, 'media_too_large', TOO_MANY],
  ['a run of more samples than any segment has', 'trun', 4, 200_001, 'media_too_large', TOO_MANY],
  ['sizes of more IVs than any segment has', 'saiz', 5, 200_001, 'media_too_large', TOO_MANY],
  ['a run of more samples than it has room for', 'trun', 4, 900, 'media_malformed'],
  ['a run that is longer than its fragment', 'trun', -8, 0x7fffffff, 'media_malformed'],
  ['a fragment of no length', 'traf', -8, 0, 'media_malformed'],
  ['a track that there is not', 'tfhd', 4, 7, 'media_malformed'],
])('%s is refused at once', (_, box, offset, value, code, description = expect.any(String)) => {
  const result = openMedia(cenc.init('v'), withNumber(cenc.segment('v', 1), box, offset, value));
  expect(result).toEqual({ ok: false, problem: { code, description } });
});

test('the sizes of IVs are not counted as further samples', () => {
  const segment = withNumber(cenc.segment('a', 1), 'saiz', 5, 199_999);
  expect(opened(cenc.init('a'), segment).problems).toEqual([]);
});

test('a change of any bytes throws nothing, and takes little work', () => {
  const print = jest.spyOn(console, 'error').mockImplementation();
  const inputs = [
    { init: cenc.init('v'), segment: cenc.segment('v', 3) },
    { init: cbcs.init('a'), segment: cbcs.segment('a', 3) },
    { init: undefined, segment: vector('ffmpeg-cenc.mp4') },
    { init: undefined, segment: sampleAes.segment('v', 3) },
  ];
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    byte: fc.integer({ min: 0, max: 255 }),
  });
  fc.assert(
    fc.property(
      fc.constantFrom(...inputs),
      fc.boolean(),
      fc.array(change, { minLength: 1, maxLength: 6 }),
      (input, ofInit, changes) => {
        const { init, segment } = input;
        const [changedInit, changed] = [init && Buffer.from(init), Buffer.from(segment)];
        for (const { at, byte } of changes) {
          // The boxes are at the start, followed by the samples.
          const target = ofInit && changedInit ? changedInit : changed;
          target.writeUInt8(byte, Math.floor(at * (Math.min(target.length, 1500) - 1)));
        }
        const result = openMedia(changedInit, changed, { method: 'SAMPLE-AES', iv: IV });
        if (result.ok) judgeMedia(result.value, [{ key: KEY }]);
      },
    ),
    { numRuns: 1000, seed: 1 },
  );
  print.mockRestore();
});

/** Adds bytes to the header of a fragment: behind a place in its box tfhd, or at the end. */
function withMore(segment: Buffer, more: Buffer, inHeader?: number): Buffer {
  const [moof, traf, tfhd, trun, saio] = ['moof', 'traf', 'tfhd', 'trun', 'saio'].map((name) =>
    segment.indexOf(name),
  ) as [number, number, number, number, number];
  const changed = Buffer.from(segment);
  const sizes = [moof - 4, traf - 4, trun + 12, ...(inHeader === undefined ? [] : [tfhd - 4])];
  for (const at of sizes) changed.writeInt32BE(changed.readInt32BE(at) + more.length, at);
  if (saio > traf) changed.write('free', saio, 'latin1');
  const end = inHeader === undefined ? traf - 4 + segment.readUInt32BE(traf - 4) : tfhd + inHeader;
  return Buffer.concat([changed.subarray(0, end), more, changed.subarray(end)]);
}

/** Makes the samples of a fragment, from one on, those of a group with a key of its own (`seig`, ISO/IEC 23001-7 § 6). */
function withGroup(segment: Buffer, from: number, keyId: Buffer): Buffer {
  const count = segment.readUInt32BE(segment.indexOf('trun') + 8);
  const entry = Buffer.concat([Buffer.from([0, 0, 1, 8]), keyId]);
  const groups = box('sgpd', 1, Buffer.from('seig'), numbers(20, 1), entry);
  const mapping = box('sbgp', 0, Buffer.from('seig'), numbers(2, from, 0, count - from, 0x10001));
  return withMore(segment, Buffer.concat([groups, mapping]));
}

/** Offsets count from the moof box, in a file that has so many bytes before the segment (ISO/IEC 14496-12 § 8.8.7). */
const withBase = (before: number) => (segment: Buffer) => {
  // Behind the flags and the track.
  const changed = withMore(segment, numbers(0, before + segment.indexOf('moof') - 4), 12);
  changed.writeUInt32BE(1, changed.indexOf('tfhd') + 4);
  return changed;
};

/** Two runs in place of one, and other data between theirs, as those of another track. */
function withRuns(segment: Buffer): Buffer {
  const run = segment.subarray(segment.indexOf('trun') + 4);
  const flags = run.readUInt32BE(0);
  const [count, offset] = [run.readUInt32BE(4) / 2, run.readUInt32BE(8)];
  const perSample = 4 * [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  const entries = run.subarray(flags & 4 ? 16 : 12);
  const sizes = Array.from({ length: count }, (_, index) =>
    entries.readUInt32BE(index * perSample + (flags & 0x100 ? 4 : 0)),
  );
  const first = sizes.reduce((sum, size) => sum + size, 0);
  const gap = Buffer.alloc(99, 7);
  const runs = (more: number) =>
    [0, 1].map((half) => {
      const place = offset + more + (half === 0 ? 0 : first + gap.length);
      const own = entries.subarray(half * count * perSample, (half + 1) * count * perSample);
      return plainBox('trun', numbers(flags & ~4, count, place), own);
    });
  const { length } = Buffer.concat(runs(0));
  const changed = withMore(segment, Buffer.concat(runs(length)));
  changed.write('free', changed.indexOf('trun'), 'latin1');
  const data = changed.indexOf('mdat') + 4;
  changed.writeUInt32BE(changed.readUInt32BE(data - 8) + gap.length, data - 8);
  return Buffer.concat([changed.subarray(0, data + first), gap, changed.subarray(data + first)]);
}

/** IVs in the box of PIFF alone, which became `senc`; it may name the algorithm, the length of the IVs and the key itself. */
const asPiff = (own: Buffer) => (segment: Buffer) => {
  const at = segment.indexOf('senc');
  const flags = numbers(segment.readUInt32BE(at + 4) | (own.length > 0 ? 1 : 0));
  const body = segment.subarray(at + 8, at - 4 + segment.readUInt32BE(at - 4));
  const id = Buffer.from('a2394f525a9b4f14a2446c427c648df4', 'hex');
  const uuid = plainBox('uuid', Buffer.concat([id, flags, own]), body);
  const changed = withMore(segment, uuid);
  for (const name of ['senc', 'saiz']) changed.write('free', changed.indexOf(name), 'latin1');
  return changed;
};

test.each<[what: string, change: (segment: Buffer) => Buffer]>([
  ['two runs', withRuns],
  ['IVs in the box of PIFF', asPiff(Buffer.alloc(0))],
  ['IVs and parameters in the box of PIFF', asPiff(Buffer.concat([Buffer.from([0, 0, 1, 8]), KEY_ID]))],
  ['offsets in the segment', withBase(0)],
  ['offsets in one file with the init segment', (segment) => withBase(cenc.init('v').length)(segment)],
  ['offsets in one file with all segments', withBase(900_000)],
  [
    'a group of another kind',
    (segment) => withMore(segment, box('sgpd', 0, Buffer.from('roll'), numbers(1), Buffer.alloc(2))),
  ],
])('samples are found: %s', (_, change) => {
  const media = opened(cenc.init('v'), change(cenc.segment('v', 1)));
  expect(judgeMedia(media, [{ key: KEY }])).toMatchObject({ state: 'decrypts', samples: 20 });
});

/** A transport stream whose packets of the picture begin after each `length` bytes, wherever that is. */
function repacked(segment: Buffer, length: number): Buffer {
  const pid = segment.subarray(2 * 188 + 1, 2 * 188 + 3).readUInt16BE() & 0x1fff;
  const picture = Buffer.concat(
    opened(undefined, segment).tracks.flatMap(({ content }) => content.samples.map(({ data }) => data)),
  );
  const packets = [segment.subarray(0, 2 * 188)];
  for (let at = 0; at < picture.length; at += length) {
    const whole = Buffer.concat([
      Buffer.from('000001e00000800000', 'hex'),
      picture.subarray(at, at + length),
    ]);
    for (let from = 0; from < whole.length; from += 184) {
      const part = whole.subarray(from, from + 184);
      const room = 184 - part.length;
      const header = Buffer.alloc(4 + room, 0xff);
      header.writeUInt32BE((0x47 << 24) + ((from === 0 ? 0x4000 : 0) + pid) * 256 + (room > 0 ? 0x30 : 0x10));
      if (room > 0) header.writeUInt8(room - 1, 4);
      if (room > 1) header.writeUInt8(0, 5);
      packets.push(header, part);
    }
  }
  return Buffer.concat(packets);
}

test.each([700, 997, 4001])('pictures are found that begin within packets of %d bytes', (length) => {
  const segment = repacked(sampleAes.segment('v', 1), length);
  const media = opened(undefined, segment, { method: 'SAMPLE-AES', iv: IV });
  expect(judgeMedia(media, [{ key: KEY }])).toMatchObject({ state: 'decrypts', kind: 'video' });
});

function box(type: string, version: number, ...content: Buffer[]): Buffer {
  return plainBox(type, Buffer.from([version, 0, 0, 0]), ...content);
}

function plainBox(type: string, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([numbers(body.length + 8), Buffer.from(type), body]);
}

function numbers(...values: number[]): Buffer {
  return Buffer.concat(values.map((value) => Buffer.from(value.toString(16).padStart(8, '0'), 'hex')));
}

test('samples of a group have the key id of their group, and are judged by its key', () => {
  const media = opened(cenc.init('a'), withGroup(cenc.segment('a', 1), 20, IV));
  const { tracks, state } = judgeMedia(media, [{ keyId: KEY_ID, key: KEY }]);
  expect(media.tracks.map(({ keyIds }) => keyIds)).toEqual([[KEY_ID, IV]]);
  expect({ state, tracks: tracks.map((track) => [track.keyId, track.state]) }).toEqual({
    state: 'no_key',
    tracks: [
      [KEY_ID, 'decrypts'],
      [IV, 'no_key'],
    ],
  });
});
