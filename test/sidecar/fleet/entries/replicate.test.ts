import { randomBytes } from 'node:crypto';
import type { StreamId } from '../../../../src/api/stream-id';
import { engineKeysUnder } from '../../../../src/sidecar/fleet/engine-keys';
import { createReplication } from '../../../../src/sidecar/fleet/entries/replicate';
import { createSeal } from '../../../../src/sidecar/fleet/entries/seal';
import { FakeCluster } from '../../../support/fake-engine';
import { FLEET_SECRET } from '../../../support/start-member';
import { until } from '../../../support/until';

test('what was applied of an engine that was restored meanwhile does not count in the restored one', async () => {
  const cluster = new FakeCluster();
  const keys = engineKeysUnder('fleet/');
  const seal = createSeal([FLEET_SECRET], randomBytes);
  let isBegun = false;
  let isEnded = false;
  let go = () => {};
  const slow = new Promise<void>((resolve) => {
    go = resolve;
  });
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
      without: async () => undefined,
      hasUnseen: () => false,
      lacks: new Map(),
    },
    ledger: { get: ignore, records: () => [].values() },
    versions: { see: ignore },
    isTaken: () => true,
    onApplied: ignore,
    onResult: ignore,
    onFleetChanged: ignore,
    onHeartbeat: ignore,
    onLost: ignore,
    onAwaited: ignore,
  });
  const backup = cluster.backup();
  await replication.level();
  const followed = replication.follow(new AbortController().signal);
  const key = keys.entry('a-1' as StreamId);
  const by = { key: '', address: '', requestId: '' };
  const bytes = Buffer.from('a: 1\n');
  const entry = {
    streamId: 'a-1' as StreamId,
    id: 'id',
    version: 1,
    bytes,
    at: 1,
    by,
    from: 'one',
    awaited: false,
    isFound: false,
  };
  cluster.set(key, seal.seal(key, entry));
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
