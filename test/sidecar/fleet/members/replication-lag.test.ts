import { MAX_LACKS } from '../../../../src/api/fleet';
import type { StreamId } from '../../../../src/api/stream-id';
import {
  type Packager,
  type Report,
  replicationLag,
  streamLag,
} from '../../../../src/sidecar/fleet/members/packagers';
import { NO_REPORT } from '../../../support/fleet-member';

const NOW = Date.parse('2026-11-22T12:00:00Z');

function packager(name: string, report?: Partial<Report>, streams?: readonly string[]): Packager {
  return {
    name,
    id: `id-of-${name}`,
    streams,
    since: NOW - 60_000,
    version: '1.0.0',
    live: true,
    report: report && { ...NO_REPORT, ...report, id: `id-of-${name}`, at: NOW - 5000 },
  };
}

const record = (streamId: string, revision: number, age = 0) =>
  [streamId as StreamId, { revision, version: NOW - age }] as const;

test('a packager is behind by the changes of its streams that it has not received, and misses those and what it reports', () => {
  const records = [
    record('news/1', 10, 90_000),
    record('news/2', 12, 2500),
    record('sports/1', 14, 1000),
    record('sports/2', 8),
  ];
  const late = packager(
    'late',
    {
      applied: [10],
      lacks: { 'news/2': 'kept', 'news/3': 'failed' },
      lacking: 2,
      clockAhead: 13,
      propagation: [3, 4.5],
    },
    ['news/'],
  );
  const behind = records.map(([streamid]) => ({ streamid, why: 'behind' }));
  const others = [packager('new'), packager('joining', {}), packager('level', { applied: [14] })];
  expect(replicationLag([late, ...others], records, NOW)).toEqual([
    {
      name: 'late',
      live: true,
      streams: ['news/'],
      since: '2026-11-22T11:59:00.000Z',
      version: '1.0.0',
      state: 'level',
      applied: 10,
      reported: '2026-11-22T11:59:55.000Z',
      behind: 1,
      behind_seconds: 2.5,
      lacks: [
        { streamid: 'news/2', why: 'kept' },
        { streamid: 'news/3', why: 'failed' },
      ],
      lacking: 2,
      clock_ahead_ms: 13,
      propagation_ms: [3, 4.5],
    },
    expect.objectContaining({
      ...{ name: 'new', streams: null, state: 'joining', applied: null, reported: null, behind: 4 },
      ...{ behind_seconds: 90, lacks: behind, lacking: 4, clock_ahead_ms: null, propagation_ms: [] },
    }),
    expect.objectContaining({ name: 'joining', applied: null, behind: 4, lacks: behind }),
    expect.objectContaining({ name: 'level', behind: 0, behind_seconds: 0, lacks: [], lacking: 0 }),
  ]);
});

test('of very many missing streams as many are named as fit, the reported ones first', () => {
  const records = Array.from({ length: 300 }, (_, index) => record(`s${index}`, index + 1));
  const lacks = Object.fromEntries(
    records.slice(0, 40).map((_, index) => [`s${index * 3}`, 'kept' as const]),
  );
  const origin = packager('origin', { applied: [30], lacks, lacking: 45 });
  const [found] = replicationLag([origin], records, NOW);
  const named = found?.lacks ?? [];
  expect(named).toHaveLength(MAX_LACKS);
  expect(named.slice(0, 40).every(({ why }) => why === 'kept')).toBe(true);
  expect(new Set(named.map(({ streamid }) => streamid)).size).toBe(MAX_LACKS);
  expect(named.slice(40).every(({ why }) => why === 'behind')).toBe(true);
  // 270 of 300 are new to it, and 30 of the 40 named ones among them.
  expect(found).toMatchObject({ behind: 270, lacking: 285 });
});

test('a clock that is behind makes no negative age', () => {
  expect(replicationLag([packager('new')], [record('a', 3, -5000)], NOW)).toMatchObject([
    { behind: 1, behind_seconds: 0 },
  ]);
});

test('a packager has a stream when it has received the change and does not report it as missing', () => {
  const list = [
    packager('behind', { applied: [9], lacks: { news: 'kept' }, lacking: 1 }),
    packager('cut', { applied: [10], lacks: { else: 'kept' }, lacking: 2 }),
    { ...packager('gone', { applied: [10], lacks: { else: 'kept' }, lacking: 1 }), live: false },
    packager('kept', { applied: [12], lacks: { news: 'kept' }, lacking: 1 }),
    packager('new'),
    packager('other', { applied: [12] }, ['sports']),
    packager('two ranges', { applied: [9, 12] }, ['a/', 'news']),
    packager('two ranges, one late', { applied: [9, 12] }, ['news', 'sports']),
  ];
  expect(streamLag(list, 'news' as StreamId, 10)).toEqual([
    { name: 'behind', live: true, has: false, why: 'behind' },
    { name: 'cut', live: true, has: false },
    { name: 'gone', live: false, has: true },
    { name: 'kept', live: true, has: false, why: 'kept' },
    { name: 'new', live: true, has: false, why: 'behind' },
    { name: 'two ranges', live: true, has: true },
    { name: 'two ranges, one late', live: true, has: false, why: 'behind' },
  ]);
});

test('streams may be called like what every object has', () => {
  const [found] = streamLag([packager('level', { applied: [10] })], 'constructor' as StreamId, 10);
  expect(found).toEqual({ name: 'level', live: true, has: true });
});
