import { type EtcdCluster, startEtcdCluster } from '../support/etcd-cluster';
import { CENC_ONLY, CENC_ONLY_FILE, PLAIN, PLAIN_FILE } from '../support/post-manual';
import { pathOf, post, remove, startFleet } from '../support/start-fleet';
import { until } from '../support/until';

const MILAN = { name: 'milan-1', password: 'milan-password' };
const OPERATOR = { name: 'operator', password: 'operator-password' };

/** Users and roles as docs/fleet.md has them. */
async function setUpUsers(etcd: EtcdCluster): Promise<void> {
  const grant = (role: string, right: string, key: string, ...rest: readonly string[]) =>
    etcd.control('role', 'grant-permission', role, right, `packagerdrmapi/${key}`, ...rest);
  await etcd.control('user', 'add', 'root:root-password');
  await etcd.control('user', 'grant-role', 'root', 'root');
  for (const role of ['fleet-member', 'streams-milan', 'packager-milan-1', 'fleet-operator'])
    await etcd.control('role', 'add', role);
  for (const kind of ['fleet', 'packagers/', 'live/', 'reports/'])
    await grant('fleet-member', 'read', kind, '--prefix');
  await grant('streams-milan', 'readwrite', 'keys/milan/', '--prefix');
  for (const kind of ['packagers', 'live', 'reports'])
    await grant('packager-milan-1', 'readwrite', `${kind}/milan-1`);
  await grant('fleet-operator', 'readwrite', '', '--prefix');
  for (const { name, password } of [MILAN, OPERATOR])
    await etcd.control('user', 'add', `${name}:${password}`);
  for (const role of ['fleet-member', 'streams-milan', 'packager-milan-1'])
    await etcd.control('user', 'grant-role', 'milan-1', role);
  await etcd.control('user', 'grant-role', 'operator', 'fleet-operator');
  await etcd.control('auth', 'enable');
}

test('a site whose user has the rights of its own streams gets those alone, gives no other, and is denied to follow more', async () => {
  const etcd = await startEtcdCluster({ servers: 3 });
  await setUpUsers(etcd);
  const founder = await startFleet({ urls: etcd.urls, name: 'central', user: OPERATOR });
  await founder.level();
  const streams = { 'milan-1': ['milan/'] };
  const site = await startFleet({ urls: etcd.urls, name: 'milan-1', streams, user: MILAN });
  await site.level();
  const [central, milan] = [founder.packager(0), site.packager(0)];
  for (const stream of ['milan/news', 'rome/news']) await post(central, stream, CENC_ONLY);
  await site.untilFile('milan/news', CENC_ONLY_FILE);
  expect((await milan.ask('POST', `${pathOf('milan/sport')}?wait=5`, PLAIN)).status).toBe(200);
  expect([await central.file('milan/sport'), await milan.file('rome/news')]).toEqual([PLAIN_FILE, undefined]);
  const refused = await milan.ask('POST', pathOf('rome/sport'), PLAIN);
  expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('fleet_denied')]);
  await remove(milan, 'milan/news');
  await founder.untilFile('milan/news', undefined);
  await until(async () => {
    const { packagers, state } = await milan.status();
    const all = packagers.map((each) => [each.name, each.live, each.state, each.lacking]);
    return (
      state === 'level' && JSON.stringify(all) === '[["central",true,"level",0],["milan-1",true,"level",0]]'
    );
  });
  // A new leader may or may not know the tokens of the former one: either way, everything continues.
  await etcd.restart(await etcd.kill());
  await until(async () => (await central.ask('POST', pathOf('milan/late'), CENC_ONLY)).status === 200);
  await site.untilFile('milan/late', CENC_ONLY_FILE);
  // The restored servers do not answer to the tokens of before.
  await etcd.restore(await etcd.snapshot('--user=root:root-password'));
  await until(async () => (await milan.ask('POST', pathOf('milan/late'), PLAIN)).status === 200);
  await milan.stop();
  const greedy = await startFleet({ urls: etcd.urls, name: 'milan-1', user: MILAN });
  const denied = greedy.packager(0);
  await until(async () => (await denied.figure('fleet_state{state="denied"}')) === 1);
  expect([await denied.isReady(), await denied.file('milan/late')]).toEqual([false, undefined]);
  await etcd.control(
    ...['--user=root:root-password', 'role', 'grant-permission', 'packager-milan-1'],
    ...['read', 'packagerdrmapi/keys/', '--prefix'],
  );
  await greedy.level();
  expect(await denied.file('rome/news')).toBe(CENC_ONLY_FILE);
});
