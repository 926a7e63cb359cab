import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import type { StreamId } from '../../../../src/api/stream-id';
import { engineKeysUnder } from '../../../../src/sidecar/fleet/engine-keys';
import { type FileAction, reconcile } from '../../../../src/sidecar/fleet/entries/reconcile';
import { createReplication } from '../../../../src/sidecar/fleet/entries/replicate';
import { createSeal, type Entry } from '../../../../src/sidecar/fleet/entries/seal';
import { collectDeleted } from '../../../../src/sidecar/fleet/entries/steps';
import type { LedgerRecord } from '../../../../src/sidecar/fleet/ledger/ledger';
import { FakeCluster } from '../../../support/fake-engine';
import { FLEET_SECRET } from '../../../support/start-member';
import { gate, until } from '../../../support/until';

function record(version: number, tag: string | undefined, more?: Partial<LedgerRecord>): LedgerRecord {
  return { version, revision: version, tag, ...more };
}
const KEPT = { kept: true } as const;

const ROWS: readonly (readonly [
  effect: string,
  record: LedgerRecord | undefined,
  wanted: readonly [version: number, tag: string | undefined, isFound?: boolean],
  present: string | undefined,
  hasLevelled: boolean,
  action: FileAction,
])[] = [
  ['a missing file is written at the first join', undefined, [5, 'A'], undefined, false, 'write'],
  ['a file that is the same is taken over', undefined, [5, 'A'], 'A', false, 'note'],
  ['a file that differs stays at the first join', undefined, [5, 'A'], 'hand', false, 'keep'],
  ['a new entry replaces a file made by hand', undefined, [5, 'A'], 'hand', true, 'write'],
  ['a deletion leaves a file made by hand', undefined, [5, undefined], 'hand', true, 'keep'],
  ['a deletion without a file is noted', undefined, [5, undefined], undefined, true, 'note'],
  ['a newer entry replaces the file of the fleet', record(5, 'A'), [6, 'B'], 'A', true, 'write'],
  ['a newer entry replaces a file edited by hand', record(5, 'A'), [6, 'B'], 'hand', true, 'write'],
  ['a newer entry brings back a file', record(5, undefined), [6, 'B'], undefined, true, 'write'],
  ['a newer entry of the same bytes writes nothing', record(5, 'A'), [6, 'A'], 'A', true, 'note'],
  ['a deletion removes the file of the fleet', record(5, 'A'), [6, undefined], 'A', true, 'remove'],
  ['a deletion leaves a file edited by hand', record(5, 'A'), [6, undefined], 'hand', true, 'keep'],
  ['a deletion of a file that is gone is noted', record(5, 'A'), [6, undefined], undefined, true, 'note'],
  // Though its bytes are those of the fleet by now.
  ['a deletion leaves a file that was kept', record(5, 'A', KEPT), [6, undefined], 'A', true, 'keep'],
  ['the same entry again changes nothing', record(5, 'A'), [5, 'A'], 'A', true, 'nothing'],
  ['the same entry again brings back a wiped file', record(5, 'A'), [5, 'A'], undefined, true, 'write'],
  ['the same entry again leaves a file edited by hand', record(5, 'A'), [5, 'A'], 'hand', true, 'keep'],
  ['the same entry again finishes a write', record(5, 'B', { former: 'A' }), [5, 'B'], 'A', true, 'write'],
  [
    'the same one finishes a removal',
    record(5, undefined, { former: 'A' }),
    [5, undefined],
    'A',
    true,
    'remove',
  ],
  ['a file made by hand after a deletion stays', record(5, undefined), [5, undefined], 'hand', true, 'keep'],
  ['a kept file stays', record(5, 'A', KEPT), [5, 'A'], 'hand', true, 'keep'],
  ['a kept file that was wiped is written', record(5, 'A', KEPT), [5, 'A'], undefined, true, 'write'],
  ['a kept file that became the same is taken over', record(5, 'A', KEPT), [5, 'A'], 'A', true, 'note'],
  ['an older entry changes nothing', record(5, 'B'), [4, 'A'], 'B', true, 'older'],
  ['an older entry brings nothing back', record(5, undefined), [4, 'A'], undefined, true, 'older'],
  ['an import replaces no file made by hand', undefined, [6, 'B', true], 'hand', true, 'keep'],
  ['an import replaces no edited file', record(5, 'A'), [6, 'B', true], 'hand', true, 'keep'],
  ['an import replaces no kept file', record(5, 'A', KEPT), [6, 'B', true], 'hand', true, 'keep'],
  ['an import replaces the former file of the fleet', record(5, 'A'), [6, 'B', true], 'A', true, 'write'],
  ['an import fills a gap', undefined, [6, 'B', true], undefined, true, 'write'],
];

test.each(ROWS)('%s', (_effect, known, [version, tag, isFound = false], present, hasLevelled, action) => {
  expect(reconcile(known, { version, tag, isFound }, present, hasLevelled)).toBe(action);
});

const tag = fc.option(fc.constantFrom('A', 'B', 'C'), { nil: undefined });

test('no event removes a file that is not of the fleet', () => {
  fc.assert(
    fc.property(
      fc.option(fc.record({ version: fc.nat(5), tag, former: tag }), { nil: undefined }),
      fc.record({ version: fc.nat(5), tag, isFound: fc.boolean() }),
      fc.boolean(),
      fc.boolean(),
      (known, wanted, hasLevelled, kept) => {
        const held = known && { ...known, revision: 1, ...(kept && { kept: true as const }) };
        const action = reconcile(held, wanted, 'hand', hasLevelled);
        expect(action).not.toBe('remove');
        // Only a newer file replaces it, and it was not found at another packager.
        if (action !== 'write') return;
        expect(wanted.version).toBeGreaterThan(known?.version ?? -1);
        expect(wanted.isFound).toBe(false);
      },
    ),
  );
});

const entryOf = (name: string, version: number, bytes: Buffer | undefined): Entry => ({
  ...{ streamId: name as StreamId, id: name, version, bytes, at: 0, from: 'one' },
  ...{ by: { key: '', address: '', requestId: '' }, awaited: false, isFound: false },
});

const DAY = 24 * 60 * 60_000;
const NOW = Date.UTC(2030, 0);

test.each([
  ['right', 0],
  ['200 days ahead', 200 * DAY],
])(
  'a tombstone goes from the engine after 90 days and from the ledger after 180 by a clock that is %s, and nothing else does',
  async (_clock, ahead) => {
    const cluster = new FakeCluster();
    const keys = engineKeysUnder('fleet/');
    const seal = createSeal([FLEET_SECRET], randomBytes);
    const records = new Map<StreamId, LedgerRecord>();
    /** Puts an entry into the engine, and what the ledger has of the stream. */
    const add = (name: string, age: number, ledgerAge = age, bytes?: Buffer) => {
      const streamId = name as StreamId;
      const key = keys.entry(streamId);
      cluster.set(key, seal.seal(key, entryOf(name, NOW - age * DAY, bytes)));
      records.set(streamId, { version: NOW - ledgerAge * DAY, revision: 1, tag: bytes && '"tag"' });
    };
    add('old', 91);
    add('young', 89);
    add('file', 91, 91, Buffer.from('a: 1\n'));
    add('written again', 5, 91);
    const gone = (age: number): LedgerRecord => ({ version: NOW - age * DAY, revision: 1, tag: undefined });
    records.set('gone' as StreamId, gone(181));
    records.set('going' as StreamId, gone(179));
    const absent = new Set(['gone', 'going'] as StreamId[]);
    const revision = cluster.set(keys.fleet, 'fleet');
    const engine = Object.assign(cluster.connect(), { ahead });
    const collect = () =>
      collectDeleted({
        engine,
        keys,
        seal: () => seal,
        identity: { guard: async () => ({ key: keys.fleet, revision, cluster: cluster.id }) },
        ledger: {
          records: () => records.entries(),
          forget: (streamId) => records.delete(streamId),
        },
        replication: { absent },
        clock: () => new Date(NOW + ahead),
      });
    await collect();
    const inEngine = cluster.range((key) => key.startsWith('fleet/keys/')).map(({ key }) => key.slice(11));
    expect(inEngine).toEqual(['file', 'written again', 'young']);
    expect([...records.keys()]).toEqual(['old', 'young', 'file', 'written again', 'going']);
    expect([...absent]).toEqual(['going']);
    const before = cluster.revision;
    await collect();
    expect(cluster.revision).toBe(before);
  },
);

test('changes applied from an engine that was restored meanwhile do not count in the restored one', async () => {
  const cluster = new FakeCluster();
  const keys = engineKeysUnder('fleet/');
  const seal = createSeal([FLEET_SECRET], randomBytes);
  let isBegun = false;
  let isEnded = false;
  const { opened: slow, open: go } = gate();
  const ignore = () => undefined;
  const replication = createReplication({
    engine: cluster.connect(),
    keys,
    seal: () => seal,
    ranges: keys.entries(['a', 'b']),
    apply: {
      async entry() {
        isBegun = true;
        await slow;
        isEnded = true;
        return { result: 'written' };
      },
      withoutEntry: async () => undefined,
      hasUnseen: () => false,
      lacks: new Map(),
    },
    ledger: { get: ignore, records: () => [].values() },
    versions: { see: ignore },
    isTaken: () => true,
    onFleetChanged: ignore,
    onHeartbeat: ignore,
    onLost: ignore,
    onAwaited: ignore,
  });
  const backup = cluster.backup();
  await replication.level();
  const followed = replication.follow(new AbortController().signal);
  const key = keys.entry('a-1' as StreamId);
  cluster.set(key, seal.seal(key, entryOf('a-1', 1, Buffer.from('a: 1\n'))));
  await until(() => isBegun);
  cluster.restore(backup);
  await followed;
  expect(replication.applied).toEqual([]);
  await replication.level();
  const { applied } = replication;
  go();
  await until(() => isEnded);
  await new Promise((resolve) => setImmediate(resolve));
  expect(replication.applied).toEqual(applied);
});
