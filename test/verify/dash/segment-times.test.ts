import fc from 'fast-check';
import type { XmlElement } from '../../../src/drm/xml';
import { evenSegments, fillTemplate, timelineSegments } from '../../../src/verify/dash/segment-times';

function entry(attributes: Record<string, string>): XmlElement {
  return { name: 'S', attributes, children: [], text: '' };
}

const SPAN = { timescale: 1000, presentationTimeOffset: 0, end: undefined, elapsed: undefined };

test('the newest segments of a timeline are those that writing out every repeat ends with', () => {
  const run = fc.record({
    t: fc.option(fc.integer({ min: 0, max: 1_000_000 }), { nil: undefined }),
    d: fc.integer({ min: 1, max: 5000 }),
    r: fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(run, { minLength: 1, maxLength: 8 }), (runs) => {
      const all: { index: number; time: bigint; duration: bigint }[] = [];
      let time = 0n;
      for (const { t, d, r = 0 } of runs) {
        time = t === undefined ? time : BigInt(t);
        for (let count = 0; count <= r; count += 1, time += BigInt(d))
          all.push({ index: all.length, time, duration: BigInt(d) });
      }
      const texts = runs.map(({ t, d, r }) =>
        entry({
          ...(t !== undefined && { t: String(t) }),
          d: String(d),
          ...(r !== undefined && { r: String(r) }),
        }),
      );
      expect(timelineSegments(texts, SPAN)).toEqual({ first: all[0], newest: all.slice(-3).reverse() });
    }),
  );
});

test('a repeat count of a billion takes no longer than one of two', () => {
  const { newest } = timelineSegments([entry({ t: '0', d: '2000', r: '1000000000' })], SPAN);
  expect(newest[0]).toEqual({ index: 1_000_000_000, time: 2_000_000_000_000n, duration: 2000n });
});

test.each(['1e999', '9007199254740992', 'Infinity'])(
  'an entry with the repeat count %s is passed over',
  (r) => {
    const entries = [entry({ t: '0', d: '2' }), entry({ d: '2', r })];
    expect(timelineSegments(entries, SPAN).newest.map(({ index }) => index)).toEqual([0]);
  },
);

test('times beyond 2^53, as of streams that count tenths of microseconds since 1970, stay exact', () => {
  const { newest } = timelineSegments([entry({ t: '17637912345678901', d: '20000003', r: '1' })], SPAN);
  expect(newest.map(({ time }) => time)).toEqual([17637912365678904n, 17637912345678901n]);
});

test.each([
  [
    'up to the next entry',
    [
      { t: '0', d: '2000', r: '-1' },
      { t: '10000', d: '1000' },
    ],
    {},
    5,
  ],
  [
    'up to the end of the period, whose last segment may be shorter',
    [{ t: '0', d: '2000', r: '-1' }],
    { end: 9 },
    4,
  ],
  ['up to the last one that is over', [{ t: '0', d: '2000', r: '-1' }], { elapsed: 9 }, 3],
])('a negative repeat count goes %s', (_name, entries, span, last) => {
  expect(timelineSegments(entries.map(entry), { ...SPAN, ...span }).newest[0]?.index).toBe(last);
});

test.each([
  ['of a period, the last one may be shorter', { end: 9 }, 4],
  ['of a live stream, one that is not over is not there', { elapsed: 9 }, 3],
  ['of a live period that has ended, none is after its end', { elapsed: 900, end: 10 }, 4],
  ['with an end number, none is after it', { end: 100 }, 2, 2],
])('%s', (_name, span, last, lastIndex = Number.POSITIVE_INFINITY) => {
  expect(evenSegments(2000, { ...SPAN, ...span }, lastIndex).newest[0]?.index).toBe(last);
});

test('without an end, only the first segment is known', () => {
  expect(evenSegments(2000, SPAN).newest.map(({ index }) => index)).toEqual([0]);
});

test('a template takes widths, and keeps what is no name', () => {
  const values = { RepresentationID: 'v1', Number: '7', Time: '90000', Bandwidth: '1000' };
  expect(fillTemplate('$RepresentationID$/$Bandwidth$-$Number%05d$-$Time$.m4s?a=$$&b=$Other$', values)).toBe(
    'v1/1000-00007-90000.m4s?a=$&b=$Other$',
  );
});
