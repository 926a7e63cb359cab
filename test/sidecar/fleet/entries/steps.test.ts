import { randomBytes } from 'node:crypto';
import type { StreamId } from '../../../../src/api/stream-id';
import { engineKeysUnder } from '../../../../src/sidecar/fleet/engine-keys';
import { createSeal } from '../../../../src/sidecar/fleet/entries/seal';
import { collectDeleted } from '../../../../src/sidecar/fleet/entries/steps';
import type { LedgerRecord } from '../../../../src/sidecar/fleet/ledger/ledger-lines';
import { FakeCluster } from '../../../support/fake-engine';
import { FLEET_SECRET } from '../../../support/start-member';

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
      const by = { key: '', address: '', requestId: '' };
      const entry = { streamId, id: name, bytes, at: 0, by, from: 'one', awaited: false, isFound: false };
      const key = keys.entry(streamId);
      cluster.set(key, seal.seal(key, { ...entry, version: NOW - age * DAY }));
      records.set(streamId, { version: NOW - ledgerAge * DAY, revision: 1, tag: bytes && '"tag"' });
    };
    add('old', 91);
    add('young', 89);
    add('file', 91, 91, Buffer.from('a: 1\n'));
    add('written again', 5, 91);
    const gone = (age: number): LedgerRecord => ({ version: NOW - age * DAY, revision: 1, tag: undefined });
    records.set('gone' as StreamId, gone(181));
    records.set('going' as StreamId, gone(179));
    const revision = cluster.set(keys.fleet, 'fleet');
    const engine = Object.assign(cluster.connect(), { ahead });
    const collect = () =>
      collectDeleted({
        engine,
        keys,
        seal: () => seal,
        identity: {
          guard: async () => ({ key: keys.fleet, revision, cluster: cluster.id }),
          doubt: () => undefined,
          found: async () => undefined,
        },
        ledger: {
          head: { id: 'one', highest: 0 },
          get: (streamId) => records.get(streamId),
          records: () => records.entries(),
          forget: (streamId) => records.delete(streamId),
          note: async () => undefined,
          noteHead: async () => undefined,
          close: async () => undefined,
        },
        clock: () => new Date(NOW + ahead),
      });
    await collect();
    const inEngine = cluster.range((key) => key.startsWith('fleet/keys/')).map(({ key }) => key.slice(11));
    expect(inEngine).toEqual(['file', 'written again', 'young']);
    expect([...records.keys()]).toEqual(['old', 'young', 'file', 'written again', 'going']);
    const before = cluster.revision;
    await collect();
    expect(cluster.revision).toBe(before);
  },
);
