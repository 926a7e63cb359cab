import { startEtcdCluster } from '../support/etcd-cluster';
import { POST_MANUAL } from '../support/post-manual';
import { startBuiltFleet, startFleet } from '../support/start-fleet';
import { until } from '../support/until';

const path = (stream: string) => `/api/keyfile/${stream}`;

test('a key file that one sidecar is given lies beside every packager that takes the stream, and goes from there', async () => {
  const { urls } = await startEtcdCluster();
  const fleet = await startFleet({ urls, streams: { 'packager-3': ['sports/'] } });
  await fleet.level();
  const [one, two, three] = [fleet.packager(0), fleet.packager(1), fleet.packager(2)];
  expect((await one.ask('POST', path('news'), POST_MANUAL)).status).toBe(200);
  const text = await one.file('news');
  expect(text).toContain('mpegdashstreaming');
  await fleet.untilFile('news', text, [one, two]);
  expect(await three.file('news')).toBeUndefined();
  expect((await two.ask('DELETE', path('news'))).status).toBe(200);
  await fleet.untilFile('news', undefined);
});

test('nothing is lost when the leading server is killed, and the killed one comes back', async () => {
  const etcd = await startEtcdCluster();
  const fleet = await startFleet({ urls: etcd.urls });
  await fleet.level();
  const killed = await etcd.kill();
  await until(async () => (await fleet.packager(1).ask('POST', path('news'), POST_MANUAL)).status === 200);
  const text = await fleet.packager(1).file('news');
  await fleet.untilFile('news', text);
  await etcd.restart(killed);
  expect((await fleet.packager(2).ask('DELETE', path('news'))).status).toBe(200);
  await fleet.untilFile('news', undefined);
});

test('a packager that was cut off without a word gets what it missed when the network is back', async () => {
  const { urls } = await startEtcdCluster({ servers: 1 });
  const fleet = await startFleet({ urls, packagers: 2, timeoutMs: 1000 });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  two.partition();
  expect((await one.ask('POST', path('news'), POST_MANUAL)).status).toBe(200);
  expect([503, 504]).toContain((await two.ask('POST', path('other'), POST_MANUAL)).status);
  expect(await two.file('news')).toBeUndefined();
  two.heal();
  await fleet.untilFile('news', await one.file('news'));
});

test('a built sidecar that is killed has what it missed when it starts again', async () => {
  const { urls } = await startEtcdCluster({ servers: 1 });
  const fleet = await startBuiltFleet({ urls, packagers: 2 });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  await two.stop();
  expect((await one.ask('POST', path('news'), POST_MANUAL)).status).toBe(200);
  await two.start();
  await fleet.level();
  expect(await two.file('news')).toBe(await one.file('news'));
});
