import { groupCalls } from '../../../../src/sidecar/fleet/engine/grouped';
import { FakeCluster } from '../../../support/fake-engine';

test('two changes of one key at a time are decided one after the other, and hold up no others', async () => {
  const cluster = new FakeCluster();
  const guard = { key: 'fleet', revision: cluster.set('fleet', 'it') };
  const grouped = groupCalls(cluster.connect());
  const change = (key: string, text: string) =>
    grouped.change({ key, expected: 0, value: Buffer.from(text) }, guard);
  const answers = await Promise.all([change('a', '1'), change('a', '2'), change('b', '3')]);
  expect(answers.map((answer) => answer?.made)).toEqual([true, false, true]);
  expect(['a', 'b'].map((key) => cluster.get(key)?.value.toString())).toEqual(['1', '3']);
});
