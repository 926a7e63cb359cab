import fc from 'fast-check';
import {
  type TransportStreamEvent,
  TransportStreamInspector,
} from '../../../src/platform/packager/transport-stream';
import {
  picture,
  programTables,
  sound,
  type Tables,
  transportStream,
  type Unit,
} from '../../support/transport-stream';

const VIDEO = 256;
const AUDIO = 257;
const TABLES: Tables = {
  mapPid: 4096,
  streams: [
    [0x1b, VIDEO],
    [0x0f, AUDIO],
  ],
};
const SECOND = 90_000;

/** Pictures with sound, two a second, each second one a key frame. */
function seconds(from: number, count: number, sps = 'sps'): Unit[] {
  return Array.from({ length: count * 2 }, (_, index) => {
    const time = from + (index * SECOND) / 2;
    return [picture(VIDEO, time, index % 2 === 0 ? sps : undefined), sound(AUDIO, time + 900)];
  }).flat();
}

/** What an inspector tells of an input in chunks of these lengths, with packets that follow each other in one. */
function inspect(input: Buffer, lengths: readonly number[] = [input.length]) {
  const inspector = new TransportStreamInspector();
  const events: TransportStreamEvent[] = [];
  let at = 0;
  for (let turn = 0; at < input.length; turn += 1) {
    const end = at + (lengths[turn % lengths.length] ?? input.length);
    events.push(...inspector.push(input.subarray(at, end)));
    at = end;
  }
  events.push(...inspector.end());
  return { inspector, events: merged(events) };
}

function merged(events: readonly TransportStreamEvent[]): TransportStreamEvent[] {
  const found: TransportStreamEvent[] = [];
  for (const event of events) {
    const last = found.at(-1);
    if (event.kind === 'packets' && last?.kind === 'packets') {
      found[found.length - 1] = { kind: 'packets', bytes: Buffer.concat([last.bytes, event.bytes]) };
    } else found.push(event);
  }
  return found;
}

const partsIn = (events: readonly TransportStreamEvent[]) => events.filter((event) => event.kind === 'part');
const packetsIn = (events: readonly TransportStreamEvent[]) =>
  Buffer.concat(events.flatMap((event) => (event.kind === 'packets' ? [event.bytes] : [])));

test('the streams and their times are told, and every byte is passed on', () => {
  const input = transportStream(TABLES, seconds(SECOND, 3));
  const { inspector, events } = inspect(input);
  expect(events.filter(({ kind }) => kind !== 'packets')).toEqual([
    {
      kind: 'program',
      offset: 188,
      streams: [
        { pid: VIDEO, kind: 'video', codec: 'H.264' },
        { pid: AUDIO, kind: 'audio', codec: 'AAC' },
      ],
    },
  ]);
  expect(packetsIn(events).equals(input)).toBe(true);
  const first = SECOND;
  const last = SECOND * 3.5;
  expect(inspector.timesOf(VIDEO)).toEqual({
    firstPts: first,
    firstDts: first,
    lastPts: last,
    lastDts: last,
  });
  expect(inspector.timesOf(AUDIO)).toMatchObject({ firstPts: first + 900, lastPts: last + 900 });
});

test.each([
  [0x24, 'video', 'H.265'],
  [0x02, 'video', 'MPEG-2 video'],
  [0x81, 'audio', 'AC-3'],
  [0x15, 'other', 'stream type 0x15'],
] as const)('a stream of type %i is told as %s in %s', (type, kind, codec) => {
  const { inspector } = inspect(programTables({ mapPid: 4096, streams: [[type, 300]] }));
  expect(inspector.streams).toEqual([{ pid: 300, kind, codec }]);
});

test.each([
  ['forward by more than 10 s', 11, 'jumped by 11.500 s'],
  ['backward by more than 1 s', -3, 'jumped by -2.500 s'],
])('a jump %s begins a new part, at the packet of the picture that jumped', (_, jump, told) => {
  const before = transportStream(TABLES, seconds(100 * SECOND, 2));
  const after = transportStream(undefined, seconds((102 + jump) * SECOND - SECOND / 2 + SECOND / 2, 2));
  const { events } = inspect(Buffer.concat([before, after]));
  const [part] = partsIn(events);
  expect(partsIn(events)).toHaveLength(1);
  expect(part).toEqual({
    kind: 'part',
    offset: before.length,
    reason: 'jump',
    description: `the time of H.264 ${told}`,
    tables: programTables(TABLES),
  });
  expect(events.at(-2)).toBe(part);
  expect(events.at(-1)).toEqual({ kind: 'packets', bytes: after });
});

test.each([
  ['a pause of 9 s', 9],
  ['half a second backward', -0.9],
])('%s is no jump', (_, jump) => {
  const input = transportStream(TABLES, [
    ...seconds(100 * SECOND, 2),
    ...seconds((101.5 + jump) * SECOND, 2),
  ]);
  expect(partsIn(inspect(input).events)).toEqual([]);
});

test('the wrap of the clock at 33 bits is no jump, and the times go on', () => {
  const from = 2 ** 33 - SECOND;
  const { inspector, events } = inspect(transportStream(TABLES, seconds(from, 3)));
  expect(partsIn(events)).toEqual([]);
  expect(inspector.timesOf(VIDEO)).toMatchObject({ firstDts: from, lastDts: from + 2.5 * SECOND });
});

test('sound that comes late of the time before a jump is left out, and begins no part of its own', () => {
  const before = seconds(100 * SECOND, 2);
  const late = [sound(AUDIO, 102 * SECOND), sound(AUDIO, 102.1 * SECOND)];
  const [firstPicture, ...others] = seconds(97 * SECOND, 2);
  if (!firstPicture) throw new Error('no picture');
  const input = transportStream(TABLES, [...before, firstPicture, ...late, ...others]);
  const { events } = inspect(input);
  expect(partsIn(events)).toHaveLength(1);
  const dropped = events.filter((event) => event.kind === 'dropped');
  expect(dropped).toHaveLength(late.length);
  expect(dropped.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(late.length * 188);
  const kept = transportStream(TABLES, [...before, firstPicture, ...others]);
  expect(packetsIn(events)).toHaveLength(kept.length);
});

test('a jump between key frames leaves out what comes before the next one, sound too', () => {
  const before = transportStream(TABLES, seconds(100 * SECOND, 2));
  const [, , ...fromSecondPicture] = seconds(300 * SECOND, 2);
  const [others, kept] = [fromSecondPicture.slice(0, 2), fromSecondPicture.slice(2)].map((units) =>
    transportStream(undefined, units),
  );
  const { inspector, events } = inspect(Buffer.concat([before, others ?? before, kept ?? before]));
  expect(partsIn(events)).toMatchObject([{ offset: before.length, reason: 'jump' }]);
  const dropped = events.flatMap((event) => (event.kind === 'dropped' ? [event] : []));
  expect(new Set(dropped.map(({ reason }) => reason))).toEqual(new Set(['no_key_frame']));
  expect(dropped.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(others?.length);
  expect(events.at(-1)).toEqual({ kind: 'packets', bytes: kept });
  expect(inspector.timesOf(AUDIO)?.firstDts).toBe(301 * SECOND + 900);
});

test('a part whose picture never comes has its sound after ten seconds', () => {
  const sounds = (from: number) =>
    Array.from({ length: 15 }, (_, index) => sound(AUDIO, (from + index) * SECOND));
  const { events } = inspect(transportStream(TABLES, [...sounds(100), ...sounds(300)]));
  const dropped = events.flatMap((event) => (event.kind === 'dropped' ? [event.bytes] : []));
  expect(dropped).toHaveLength(11);
  expect(partsIn(events)).toHaveLength(1);
});

test('other parameters of the picture begin a new part at its first packet, however far in they stand', () => {
  const before = transportStream(TABLES, seconds(SECOND, 2));
  const long = `${'x'.repeat(700)} other`;
  const after = transportStream(undefined, seconds(3 * SECOND, 2, long));
  const { events } = inspect(Buffer.concat([before, after]));
  expect(partsIn(events)).toEqual([
    {
      kind: 'part',
      offset: before.length,
      reason: 'parameters',
      description: 'the parameters of H.264 changed',
      tables: programTables(TABLES),
    },
  ]);
});

test('other parameters of the sound begin a new part', () => {
  const before = transportStream(TABLES, seconds(SECOND, 1));
  const after = transportStream(undefined, [sound(AUDIO, 2 * SECOND, 44_100)]);
  expect(partsIn(inspect(Buffer.concat([before, after])).events)).toMatchObject([
    { offset: before.length, reason: 'parameters', description: 'the parameters of AAC changed' },
  ]);
});

test('another table of streams begins a new part with it', () => {
  const before = transportStream(TABLES, seconds(SECOND, 1));
  const tables: Tables = { mapPid: 4096, streams: [[0x1b, VIDEO]] };
  const after = transportStream(tables, [picture(VIDEO, 2 * SECOND, 'sps')]);
  const { inspector, events } = inspect(Buffer.concat([before, after]));
  expect(partsIn(events)).toEqual([
    {
      kind: 'part',
      offset: before.length + 188,
      reason: 'streams',
      description: 'the streams are now H.264',
      tables: programTables(tables),
    },
  ]);
  expect(inspector.streams).toEqual([{ pid: VIDEO, kind: 'video', codec: 'H.264' }]);
});

test('what is no packet is left out, and the packets behind it are found again', () => {
  const one = transportStream(TABLES, seconds(SECOND, 1));
  const two = transportStream(undefined, seconds(2 * SECOND, 1));
  // `G` is the sync byte.
  const [before, between, behind] = ['G'.repeat(100), 'x'.repeat(100), 'G'.repeat(50)].map((text) =>
    Buffer.from(text),
  );
  const { events } = inspect(
    Buffer.concat([before, one, between, two, behind].map((each) => each ?? Buffer.alloc(0))),
  );
  expect(events.filter(({ kind }) => kind === 'dropped')).toEqual([
    { kind: 'dropped', offset: 0, bytes: 100, reason: 'no_sync' },
    { kind: 'dropped', offset: 100 + one.length, bytes: 100, reason: 'no_sync' },
    { kind: 'dropped', offset: 200 + one.length + two.length, bytes: 50, reason: 'no_sync' },
  ]);
  expect(packetsIn(events).equals(Buffer.concat([one, two]))).toBe(true);
});

test('a picture is passed on as soon as its first slice has come, so that nothing waits for the next one', () => {
  const inspector = new TransportStreamInspector();
  const input = transportStream(TABLES, [picture(VIDEO, SECOND, 'sps')]);
  expect(packetsIn(inspector.push(input)).equals(input)).toBe(true);
});

test('pictures of nothing but tiny NAL units are read in a time that grows with their length alone', () => {
  const inspector = new TransportStreamInspector();
  inspector.push(transportStream(TABLES, seconds(0, 1)));
  const packet = (isFirst: boolean) => {
    const head = Buffer.from([0x47, (isFirst ? 0x40 : 0) | (VIDEO >> 8), VIDEO & 0xff, 0x10]);
    const pes = Buffer.from(isFirst ? '000001e000008080052100010001' : '', 'hex');
    return Buffer.concat([head, pes, Buffer.from('00000109'.repeat(46), 'hex')]).subarray(0, 188);
  };
  // Read from its beginning with each packet, this takes a minute.
  const picturesOfMany = Buffer.concat(Array.from({ length: 1400 }, (_, index) => packet(index === 0)));
  const began = performance.now();
  for (let count = 0; count < 4; count += 1) inspector.push(picturesOfMany);
  expect(performance.now() - began).toBeLessThan(3000);
});

test('how the input is cut into chunks makes no difference', () => {
  const unit = fc.oneof(
    fc.record({
      kind: fc.constant('seconds'),
      from: fc.integer({ min: 0, max: 60 }),
      sps: fc.constantFrom('a', 'b', 'c'.repeat(400)),
    }),
    fc.record({ kind: fc.constant('junk'), bytes: fc.uint8Array({ maxLength: 300 }) }),
    fc.record({ kind: fc.constant('tables'), streams: fc.constantFrom([0x1b, 0x0f], [0x1b], [0x24, 0x0f]) }),
  );
  const build = (units: readonly (typeof unit extends fc.Arbitrary<infer Each> ? Each : never)[]) =>
    Buffer.concat([
      programTables(TABLES),
      ...units.map((each) => {
        if ('bytes' in each) return Buffer.from(each.bytes);
        if ('streams' in each) {
          const streams = each.streams.map((type, index) => [type, VIDEO + index] as const);
          return programTables({ mapPid: 4096, streams });
        }
        return transportStream(undefined, seconds(each.from * SECOND, 1, each.sps));
      }),
    ]);
  const lengths = fc.array(fc.integer({ min: 1, max: 600 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 8 }), lengths, (units, chunks) => {
      const input = build(units);
      const whole = inspect(input).events;
      expect(inspect(input, chunks).events).toEqual(whole);
      const left = whole.reduce((sum, event) => sum + (event.kind === 'dropped' ? event.bytes : 0), 0);
      expect(packetsIn(whole).length + left).toBe(input.length);
    }),
  );
});
