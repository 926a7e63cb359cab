import { startKeptEtcdCluster } from '../support/etcd-cluster';
import { startEtcdGateway } from '../support/etcd-gateway';
import { answersOf, GATEWAY_CALLS } from '../support/gateway-contract';

test('the stand-in answers each call as etcd itself does', async () => {
  const etcd = await startKeptEtcdCluster({ servers: 1 });
  const standIn = await startEtcdGateway();
  for (const calls of Object.values(GATEWAY_CALLS)) {
    const [expected, answers] = await Promise.all([
      answersOf(etcd.urls[0] ?? '', calls),
      answersOf(standIn.url, calls),
    ]);
    const named = (list: typeof answers) =>
      list.map((answer, index) => ({ call: JSON.stringify(calls[index]).slice(0, 300), ...answer }));
    expect(named(answers)).toEqual(named(expected));
  }
});
