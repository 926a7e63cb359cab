import { randomBytes } from 'node:crypto';
import type { StreamId } from '../../../../src/api/stream-id';
import { createFollow } from '../../../../src/sidecar/fleet/entries/follow';
import { createSeal } from '../../../../src/sidecar/fleet/entries/seal';
import { placesUnder } from '../../../../src/sidecar/fleet/places';
import { FakeCluster } from '../../../support/fake-engine';
import { FLEET_SECRET } from '../../../support/start-member';
import { until } from '../../../support/until';

test('what was applied of an engine that was restored meanwhile does not count in the restored one', async () => {
  const cluster = new FakeCluster();
  const places = placesUnder('fleet/');
  const seal = createSeal([FLEET_SECRET], randomBytes);
  let isBegun = false;
  let isEnded = false;
  let go = () => {};
  const slow = new Promise<void>((resolve) => {
    go = resolve;
  });
  const ignore = () => undefined;
  const follow = createFollow({
    engine: cluster.connect(),
    places,
    seal: () => seal,
    ranges: places.entries(['a', 'b']),
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
    isOwn: () => false,
    onApplied: ignore,
    onResult: ignore,
    onVersion: ignore,
    onPresence: ignore,
    onFleetChanged: ignore,
    onPulse: ignore,
    onLost: ignore,
    onProgress: ignore,
  });
  const backup = cluster.backup();
  await follow.level();
  const followed = follow.changes(new AbortController().signal);
  const key = places.entry('a-1' as StreamId);
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
  };
  cluster.set(key, seal.seal(key, entry));
  await until(() => isBegun);
  cluster.restore(backup);
  await followed;
  expect(follow.applied).toEqual([]);
  await follow.level();
  const { applied } = follow;
  go();
  await until(() => isEnded);
  await new Promise((resolve) => setImmediate(resolve));
  expect(follow.applied).toEqual(applied);
});
