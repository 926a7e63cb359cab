import { join } from 'node:path';
import fs from 'fs-extra';
import { FLEET_FOLDER } from '../../../src/api/fleet';
import { temporaryFolder } from '../../support/after-test';
import { FakeCluster } from '../../support/fake-engine';
import {
  FLEET_SECRET,
  KEY,
  lacksOf,
  OTHER_SECRET,
  settled,
  startLevel,
  startMember,
  startOne,
  startTwo,
  stateOf,
} from '../../support/start-member';
import { until } from '../../support/until';

const A = 'a: 1\n';
const B = 'b: 2\n';
const C = 'c: 3\n';

test('with another secret a packager reports it, and neither takes nor gives anything', async () => {
  const { cluster, one } = await startOne();
  await one.put('news', A);
  const outsider = await startMember(cluster.connect(), { name: 'two', secrets: [OTHER_SECRET] });
  await until(() => stateOf(outsider) === 'wrong_secret');
  expect(() => outsider.fleet.checkReady()).toThrow('fleet_wrong_secret');
  await expect(outsider.put('news', B)).rejects.toMatchObject({ problems: [{ code: 'fleet_wrong_secret' }] });
  expect([outsider.file('news'), one.file('news')]).toEqual([undefined, A]);
  outsider.reseal(FLEET_SECRET);
  await outsider.level();
  expect(outsider.file('news')).toBe(A);
});

test('a secret that comes while temporaries are still swept counts', async () => {
  const { cluster, one } = await startOne();
  await one.put('news', A);
  const secrets = { secrets: [OTHER_SECRET], laterSecrets: [FLEET_SECRET] };
  const two = await startLevel(cluster.connect(), { name: 'two', ...secrets });
  expect(two.file('news')).toBe(A);
});

test('a secret is rotated without a file changing', async () => {
  const { cluster, one, two } = await startTwo();
  for (const stream of ['a', 'b', 'c']) await one.put(stream, A);
  await settled(one, two);
  // Longer than `after` may be.
  cluster.set(KEY(`b${'!'.repeat(300)}`), 'of another tool');
  for (const member of [one, two]) member.reseal(FLEET_SECRET, OTHER_SECRET);
  for (const member of [one, two]) member.reseal(OTHER_SECRET, FLEET_SECRET);
  await Promise.all([one.level(), two.level()]);
  const entries = async () => (await one.fleet.status()).former_secret?.entries;
  await until(async () => (await entries()) === 4);
  expect((await one.fleet.status()).former_secret?.streamids.sort()).toEqual(['a', 'b', 'c', 'settled']);
  // As in `?after=`.
  const first = await one.fleet.resealStep({ after: '', limit: 2 });
  expect(first).toEqual({ resealed: 2, current: 0, unreadable: [], next: 'b', total: 5 });
  for (const [after, next] of [
    ['b', 'c'],
    ['c', null],
  ] as const)
    expect(await one.fleet.resealStep({ after, limit: 1 })).toEqual({ ...first, resealed: 1, next });
  const again = await two.fleet.resealStep({ after: 'a', limit: 10 });
  expect(again).toMatchObject({ resealed: 0, current: 3 });
  await until(async () => (await entries()) === 0);
  for (const member of [one, two]) member.reseal(OTHER_SECRET);
  await Promise.all([one.level(), two.level()]);
  await two.put('a', B);
  await until(() => one.file('a') === B);
  const three = await startLevel(cluster.connect(), { name: 'three', secrets: [OTHER_SECRET] });
  expect(['a', 'b', 'c'].map(three.file)).toEqual([B, A, A]);
});

test('a packager is not ready while entries are sealed with a secret that it does not have', async () => {
  const { cluster, one } = await startOne();
  for (const stream of ['a', 'b', 'c']) await one.put(stream, A);
  one.reseal(OTHER_SECRET, FLEET_SECRET);
  await one.level();
  // The description of the fleet and the first entries.
  await one.fleet.resealStep({ after: undefined, limit: 2 });
  const two = await startLevel(cluster.connect(), { name: 'two', secrets: [OTHER_SECRET] });
  const description = expect.stringMatching(
    /^1 entry of the fleet is sealed with secrets that this sidecar does not have \(ids [0-9a-f]{8}\)\./,
  );
  expect(() => two.fleet.checkReady()).toThrow(
    expect.objectContaining({ problems: [{ code: 'fleet_missing_secret', description }] }),
  );
  cluster.set('packagerdrmapi/packagers/a b', 'no name of a packager');
  const { missing_secret: missing, ignored } = await two.fleet.status();
  expect([missing?.streamids.length, ignored]).toEqual([missing?.entries, 1]);
  await one.fleet.resealStep({ after: undefined, limit: 10 });
  await until(() => ['a', 'b', 'c'].every((stream) => two.file(stream) === A));
  two.fleet.checkReady();
});

test.each([false, true])(
  'entries that the engine has lost lack no secret any more, also if the packager was away: %s',
  async (isAway) => {
    const { cluster, engine, one, two } = await startTwo();
    await one.put('old', A);
    one.reseal(OTHER_SECRET, FLEET_SECRET);
    two.reseal('a-third-secret-of-the-tests-0123456789-abcd', FLEET_SECRET);
    await one.level();
    await one.put('news', B);
    const former = async () => (await two.fleet.status()).former_secret?.entries;
    await until(async () => (await former()) === 1 && lacksOf(two).unreadable === 1);
    expect(() => two.fleet.checkReady()).toThrow('fleet_missing_secret');
    engine.isAway = isAway;
    for (const stream of ['old', 'news']) cluster.set(KEY(stream), undefined);
    if (isAway) cluster.compact();
    engine.isAway = false;
    await until(async () => (await former()) === 0);
    two.fleet.checkReady();
  },
);

test('a packager that joins without the newest secret has joined once it has all, and keeps files made by hand until then', async () => {
  const { cluster, one } = await startOne();
  await one.put('old', A);
  one.reseal(OTHER_SECRET, FLEET_SECRET);
  await one.level();
  await one.put('news', B);
  const newcomer = async (name: string) => {
    const folder = await temporaryFolder();
    fs.writeFileSync(join(folder, 'news.key'), 'hand: 1\n');
    const member = await startMember(cluster.connect(), { name, folder });
    await until(() => stateOf(member) === 'level');
    expect([member.file('old'), lacksOf(member).unreadable]).toEqual([A, 1]);
    expect(() => member.fleet.checkReady()).toThrow('fleet_missing_secret');
    return member;
  };
  const [appended, resealed] = [await newcomer('two'), await newcomer('three')];
  appended.reseal(FLEET_SECRET, OTHER_SECRET);
  await until(() => lacksOf(appended).kept === 1);
  expect(appended.file('news')).toBe('hand: 1\n');
  one.reseal(FLEET_SECRET, OTHER_SECRET);
  await one.level();
  await one.fleet.resealStep({ after: undefined, limit: 10 });
  await until(() => lacksOf(resealed).kept === 1);
  expect(resealed.file('news')).toBe('hand: 1\n');
  // Now they have joined, and a client's change replaces such a file. The third notices within two seconds.
  const ledger = join(resealed.folder, FLEET_FOLDER, 'ledger');
  await until(() => fs.readFileSync(ledger, 'utf8').includes(',""]'));
  await one.put('news', C);
  await until(() => appended.file('news') === C && resealed.file('news') === C);
});

test('a fleet that is resealed is not read again by its packagers', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const one = await startLevel(cluster.connect(), { name: 'one', secrets: [FLEET_SECRET, OTHER_SECRET] });
  const two = await startLevel(engine, { name: 'two', secrets: [FLEET_SECRET, OTHER_SECRET] });
  await one.put('news', A);
  await settled(one, two);
  one.reseal(OTHER_SECRET, FLEET_SECRET);
  await one.level();
  const lists = () =>
    engine.calls.filter(({ method, keys }) => method === 'list' && keys[0] === KEY('')).length;
  const before = lists();
  await one.fleet.resealStep({ after: undefined, limit: 10 });
  await settled(one, two);
  expect([before, lists(), stateOf(two)]).toEqual([1, 1, 'level']);
  // By this, a status of packagers that are behind tells their changes.
  const noted = fs.readFileSync(join(two.folder, FLEET_FOLDER, 'ledger'), 'utf8');
  expect(noted).toMatch(new RegExp(`\\["news",\\d+,${cluster.get(KEY('news'))?.revision},`));
});
