import { startEtcdCluster } from '../support/etcd-cluster';
import { POST_MANUAL } from '../support/post-manual';
import { startBuiltFleet, startFleet } from '../support/start-fleet';

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
