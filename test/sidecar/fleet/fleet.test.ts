import { FakeCluster } from '../../support/fake-engine';
import { startMember } from '../../support/start-member';
import { until } from '../../support/until';

const A = 'a: 1\n';
const B = 'b: 2\n';

async function startMembers(cluster: FakeCluster, count: number) {
  const names = Array.from({ length: count }, (_, index) => `origin-${index + 1}`);
  const members = await Promise.all(names.map((name) => startMember(cluster.connect(), { name })));
  await Promise.all(members.map((member) => member.level()));
  return members as [(typeof members)[number], ...typeof members];
}

test('a key file that one sidecar receives is written at every packager', async () => {
  const [one, two, three] = await startMembers(new FakeCluster(), 3);
  const { former, fleet } = await one.put('news', A);
  expect([former, fleet?.isHere, one.file('news')]).toEqual([undefined, true, A]);
  await until(() => two?.file('news') === A && three?.file('news') === A);
  await two?.put('news', B);
  await until(() => [one, two, three].every((member) => member?.file('news') === B));
  await three?.remove('news');
  await until(() => [one, two, three].every((member) => member?.file('news') === undefined));
  await until(() => one.audit.length === 2);
  expect(one.audit.map(({ action, result, key, from }) => [action, result, key, from])).toEqual([
    ['put', 'changed', 'tests', 'origin-2'],
    ['delete', 'deleted', 'tests', 'origin-3'],
  ]);
});

test('a packager that was away gets what was changed and removes what was deleted meanwhile', async () => {
  const cluster = new FakeCluster();
  const [one, two] = await startMembers(cluster, 2);
  await one.put('kept', A);
  await one.put('gone', A);
  await until(() => two?.file('gone') === A);
  await two?.stop();
  await one.put('kept', B);
  await one.remove('gone');
  await one.put('new', A);
  const again = await startMember(cluster.connect(), { name: 'origin-2', folder: two?.folder ?? '' });
  await again.level();
  expect([again.file('kept'), again.file('gone'), again.file('new')]).toEqual([B, undefined, A]);
});

test('an engine that was emptied removes no file, and is not written to', async () => {
  const cluster = new FakeCluster();
  const [one] = await startMembers(cluster, 1);
  await one.put('news', A);
  cluster.restore();
  await until(() => one.fleet.figures().state === 'lost_fleet');
  expect(one.file('news')).toBe(A);
  await expect(one.put('news', B)).rejects.toMatchObject({ status: 503, problems: [{ code: 'fleet_lost' }] });
  expect(one.file('news')).toBe(A);
  await one.fleet.found();
  await one.level();
  const by = { key: 'tests', address: '127.0.0.1', requestId: 'request-3' };
  expect(await one.fleet.importStep({ after: undefined, limit: 10 }, by)).toMatchObject({
    imported: 1,
    refused: [],
  });
  const two = await startMember(cluster.connect(), { name: 'origin-2' });
  await two.level();
  expect(two.file('news')).toBe(A);
});

test('an import that is repeated at once takes the files that were added meanwhile', async () => {
  const [one] = await startMembers(new FakeCluster(), 1);
  const by = { key: 'tests', address: '127.0.0.1', requestId: 'request-4' };
  const all = { after: undefined, limit: 10 };
  one.byHand('first', A);
  expect(await one.fleet.importStep(all, by)).toMatchObject({ imported: 1, total: 1 });
  one.byHand('second', B);
  expect(await one.fleet.importStep(all, by)).toMatchObject({ imported: 1, same: 1, total: 2 });
});
