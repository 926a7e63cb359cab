import { join } from 'node:path';
import fs from 'fs-extra';
import { FLEET_FOLDER } from '../../../src/api/fleet';
import type { StreamId } from '../../../src/api/stream-id';
import { etagOf } from '../../../src/drm/bytes';
import { EngineError } from '../../../src/sidecar/fleet/engine/engine';
import { temporaryFolder } from '../../support/after-test';
import { FakeCluster } from '../../support/fake-engine';
import {
  FLEET_SECRET,
  type Member,
  startLevel,
  startMember,
  startOne,
  startTwo,
} from '../../support/start-member';
import { until } from '../../support/until';

const A = 'a: 1\n';
const B = 'b: 2\n';
const C = 'c: 3\n';
const KEY = (stream: string) => `packagerdrmapi/keys/${stream}`;
const OTHER_SECRET = 'another-secret-of-the-tests-0123456789-abc';

const by = { key: 'tests', address: '127.0.0.1', requestId: 'request-9' };

/** Resolves when a member has taken what came so far: a change of another stream comes after it. */
async function settled(from: Member, ...members: readonly Member[]): Promise<void> {
  const stamp = `stamp: ${Math.random()}\n`;
  await from.put('settled', stamp);
  await until(() => members.every((member) => member.file('settled') === stamp));
}

const stateOf = (member: Member) => member.fleet.figures().state;
const lacksOf = (member: Member) => member.fleet.figures().lacks;

test('files made by hand stay at the join, and are reported', async () => {
  const { cluster, one } = await startOne();
  await one.put('news', A);
  await one.put('sport', A);
  const folder = await temporaryFolder();
  fs.writeFileSync(join(folder, 'news.key'), 'hand: 1\n');
  fs.writeFileSync(join(folder, 'mine.key'), 'hand: 2\n');
  const joined = await startLevel(cluster.connect(), { name: 'two', folder });
  expect(['news', 'mine', 'sport'].map(joined.file)).toEqual(['hand: 1\n', 'hand: 2\n', A]);
  expect(lacksOf(joined)).toMatchObject({ kept: 1 });
  await one.remove('news');
  await settled(one, joined);
  expect(joined.file('news')).toBe('hand: 1\n');
  await one.put('news', B);
  await until(() => joined.file('news') === B);
  await until(() => lacksOf(joined).kept === 0);
});

test('a file edited by hand survives a restart and a deletion; a wiped one comes back', async () => {
  const { cluster, one, two } = await startTwo();
  for (const stream of ['edited', 'wiped', 'gone']) await one.put(stream, A);
  await settled(one, two);
  await two.stop();
  two.byHand('edited', 'hand: 1\n');
  two.byHand('gone', 'hand: 1\n');
  two.byHand('wiped', undefined);
  const again = await startLevel(cluster.connect(), { name: 'two', folder: two.folder });
  await one.remove('gone');
  await settled(one, again);
  expect(['edited', 'gone', 'wiped'].map(again.file)).toEqual(['hand: 1\n', 'hand: 1\n', A]);
  expect(lacksOf(again)).toMatchObject({ kept: 2 });
});

test('the former file put back by hand is a file edited by hand', async () => {
  const { cluster, one, two } = await startTwo();
  await one.put('news', A);
  await one.put('news', B);
  await settled(one, two);
  await two.stop();
  two.byHand('news', A);
  const again = await startLevel(cluster.connect(), { name: 'two', folder: two.folder });
  expect(again.file('news')).toBe(A);
});

test('a POST mends a file that was edited by hand, also one that changes nothing in the fleet', async () => {
  const { one, two } = await startTwo();
  await one.put('news', A);
  await settled(one, two);
  one.byHand('news', 'hand: 1\n');
  await one.fleet.store.write('news' as StreamId, Buffer.from(A), { skipUnchanged: true });
  expect(one.file('news')).toBe(A);
});

test('an entry that is replayed, swapped, damaged or removed in the engine changes no file, and a POST mends it', async () => {
  const { cluster, one, two } = await startTwo();
  await one.put('news', A);
  const former = cluster.get(KEY('news'))?.value;
  await one.put('news', B);
  await one.put('sport', C);
  await settled(one, two);
  const files = () => [one, two].flatMap((member) => ['news', 'sport'].map(member.file));
  const right = files();
  const sport = cluster.get(KEY('sport'))?.value;
  for (const value of [former, sport, Buffer.from('garbage'), Buffer.alloc(0), undefined]) {
    cluster.set(KEY('news'), value);
    await settled(one, two);
    expect(files()).toEqual(right);
  }
  expect((await one.fleet.status()).missing).toBe(1);
  await two.put('news', A);
  await until(() => one.file('news') === A && two.file('news') === A);
  cluster.set(KEY('sport'), former);
  await settled(one, two);
  expect(lacksOf(one)).toMatchObject({ unreadable: 1 });
  await one.put('sport', A);
  await until(() => two.file('sport') === A);
  await until(() => Object.values(lacksOf(two)).every((count) => count === 0));
});

test('a condition on an entry that cannot be opened is refused, and nothing is changed', async () => {
  const { cluster, one } = await startTwo();
  await one.put('news', A);
  cluster.set(KEY('news'), 'garbage');
  for (const condition of [{ ifMatch: '*' }, { ifNoneMatch: '*' }])
    await expect(one.fleet.store.write('news' as StreamId, Buffer.from(B), condition)).rejects.toMatchObject({
      problems: [{ code: 'fleet_entry_unreadable' }],
    });
  expect(cluster.get(KEY('news'))?.value.toString()).toBe('garbage');
});

test('of several sidecars that change one stream at a time, one decides after the other', async () => {
  const { one, two } = await startTwo();
  const create = (member: Member, text: string) =>
    member.fleet.store.write('news' as StreamId, Buffer.from(text), { ifNoneMatch: '*' });
  const results = await Promise.allSettled([create(one, A), create(two, B), create(one, C)]);
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  await settled(one, two);
  expect(one.file('news')).toBe(two.file('news'));
  expect(one.conflicts() + two.conflicts()).toBeGreaterThan(0);
});

test('a change whose answer was lost is recognised when it is tried again', async () => {
  const { cluster, engine, one } = await startOne();
  const { change } = engine;
  let lost = 0;
  // As the engine's client does: the first try was made, its answer lost, and the second finds what it made.
  engine.change = async (...asked) => {
    if (asked[0][0]?.key !== KEY('news')) return change.apply(engine, asked);
    lost += 1;
    await change.apply(engine, asked);
    return change.apply(engine, asked);
  };
  const { fleet } = await one.put('news', A);
  const { revision } = cluster.get(KEY('news')) ?? {};
  expect([lost, fleet?.revision, one.file('news'), one.conflicts()]).toEqual([1, revision, A, 0]);
});

test.each([
  ['unavailable', 503, 'fleet_unavailable'],
  ['unknown', 504, 'fleet_outcome_unknown'],
  ['denied', 503, 'fleet_denied'],
  ['full', 507, 'fleet_full'],
] as const)('an engine that fails a change as %s is %d %s', async (kind, status, code) => {
  const { engine, one } = await startOne();
  await one.put('news', A);
  engine.before = ({ method, keys }) => {
    if (method === 'change' && keys.includes(KEY('news'))) throw new EngineError(kind, 'as asked');
  };
  await expect(one.put('news', B)).rejects.toMatchObject({ status, problems: [{ code }] });
  expect(one.file('news')).toBe(A);
  engine.before = () => undefined;
  await one.put('news', B);
  expect(one.file('news')).toBe(B);
});

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

test('a secret is rotated without a file changing', async () => {
  const { cluster, one, two } = await startTwo();
  for (const stream of ['a', 'b', 'c']) await one.put(stream, A);
  await settled(one, two);
  for (const member of [one, two]) member.reseal(FLEET_SECRET, OTHER_SECRET);
  for (const member of [one, two]) member.reseal(OTHER_SECRET, FLEET_SECRET);
  await Promise.all([one.level(), two.level()]);
  const entries = async () => (await one.fleet.status()).former_secret?.entries;
  await until(async () => (await entries()) === 4);
  expect((await one.fleet.status()).former_secret?.streamids.sort()).toEqual(['a', 'b', 'c', 'settled']);
  const first = await one.fleet.resealStep({ after: undefined, limit: 2 });
  expect(first).toEqual({ resealed: 2, current: 0, unreadable: [], next: 'b', total: 4 });
  expect(await one.fleet.resealStep({ after: 'b', limit: 2 })).toEqual({ ...first, next: null });
  const again = await two.fleet.resealStep({ after: undefined, limit: 10 });
  expect(again).toMatchObject({ resealed: 0, current: 4 });
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

test('a POST mends an entry that cannot be opened also where its sidecar had a clock that was ahead', async () => {
  const cluster = new FakeCluster();
  const ahead = await startLevel(cluster.connect(), {
    name: 'ahead',
    clock: () => new Date(Date.now() + 60 * 60_000),
  });
  const other = await startLevel(cluster.connect(), { name: 'other', streams: ['other/'] });
  await ahead.put('news', A);
  cluster.set(KEY('news'), 'garbage');
  await other.put('news', B);
  await until(() => ahead.file('news') === B);
});

test('a packager that takes more streams while the engine is away is not ready, one that takes fewer is', async () => {
  const cluster = new FakeCluster();
  const first = await startLevel(cluster.connect(), { name: 'one', streams: ['paris/', 'rome/'] });
  await first.stop();
  const away = async (own: { readonly streams?: readonly string[] }) => {
    const engine = Object.assign(cluster.connect(), { isAway: true });
    const member = await startMember(engine, { name: 'one', folder: first.folder, ...own });
    await until(() => stateOf(member) === 'away');
    await member.stop();
    return () => member.fleet.checkReady();
  };
  expect(await away({ streams: ['paris/'] })).not.toThrow();
  for (const own of [{ streams: ['paris/', 'oslo/'] }, {}]) expect(await away(own)).toThrow('fleet_joining');
});

test('a packager that may not follow one of its prefixes any more is denied while it follows the others, and stays ready', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const { watch } = engine;
  let allow = () => {};
  engine.watch = (range, options) => {
    if (range.prefix !== KEY('rome/')) return watch.call(engine, range, options);
    options.onLost?.(new EngineError('denied', 'as asked'));
    allow = () => options.onHeartbeat?.(cluster.moment);
    return { close: () => undefined };
  };
  const one = await startMember(engine, { name: 'one', streams: ['milan/', 'rome/'] });
  await until(() => stateOf(one) === 'denied');
  await (await startLevel(cluster.connect(), { name: 'two' })).put('milan/news', A);
  await until(() => one.file('milan/news') === A);
  expect([stateOf(one), one.fleet.checkReady()]).toEqual(['denied', undefined]);
  allow();
  expect(stateOf(one)).toBe('level');
});

test('a packager that may not read its streams is denied until it may, and logs that once', async () => {
  const engine = new FakeCluster().connect();
  engine.before = ({ method }) => {
    if (method === 'list') throw new EngineError('denied', 'as asked');
  };
  const one = await startMember(engine);
  await until(() => engine.count('list') === 2);
  await until(() => stateOf(one) === 'denied');
  expect(one.lines.filter(([, message]) => message === 'fleet')).toHaveLength(1);
  engine.before = () => undefined;
  await one.level();
});

test('a packager that starts while the engine is full takes what it has', async () => {
  const { cluster, one } = await startOne();
  await one.put('news', A);
  const engine = cluster.connect();
  engine.before = ({ method }) => {
    if (method === 'grant') throw new EngineError('full', 'as asked');
  };
  const two = await startLevel(engine, { name: 'two' });
  expect([two.file('news'), two.fleet.checkReady()]).toEqual([A, undefined]);
});

test('a packager takes the streams of its prefixes alone, and gives all', async () => {
  const cluster = new FakeCluster();
  const paris = await startLevel(cluster.connect(), { name: 'paris', streams: ['paris/', 'both_'] });
  const all = await startLevel(cluster.connect(), { name: 'all' });
  expect((await paris.put('rome/news', A)).fleet).toMatchObject({ isHere: false });
  await all.put('paris/news', A);
  await all.put('both_1', B);
  await until(() => paris.file('both_1') === B && paris.file('paris/news') === A);
  expect([paris.file('rome/news'), all.file('rome/news')]).toEqual([undefined, A]);
});

test('a restored backup takes nothing back, and an import brings what it lacked', async () => {
  const { cluster, one, two } = await startTwo();
  await one.put('news', A);
  const backup = cluster.backup();
  await one.put('news', B);
  await one.put('later', C);
  await settled(one, two);
  cluster.restore(backup);
  await until(() => lacksOf(one).older === 1 && lacksOf(two).older === 1);
  expect([one, two].flatMap((member) => ['news', 'later'].map(member.file))).toEqual([B, C, B, C]);
  const imported = await two.fleet.importStep({ after: undefined, limit: 100 }, by);
  expect(imported).toMatchObject({ imported: 3, refused: [] });
  await until(() => lacksOf(one).older === 0 && lacksOf(two).older === 0);
  const three = await startLevel(cluster.connect(), { name: 'three' });
  expect(['news', 'later'].map(three.file)).toEqual([B, C]);
});

test('a deletion that the engine has lost makes no packager seem to be behind', async () => {
  const { cluster, engine, one, two } = await startTwo();
  const backup = cluster.backup();
  await one.put('gone', A);
  await one.remove('gone');
  await settled(one, two);
  const { revision } = cluster;
  cluster.restore(backup);
  await one.put('news', A);
  await until(() => two.file('news') === A);
  while (cluster.revision <= revision) cluster.set('unrelated', 'value');
  engine.isAway = true;
  engine.isAway = false;
  await until(async () => ((await two.fleet.status()).revision ?? 0) > revision);
  const { packagers } = await two.fleet.status();
  expect(packagers.flatMap(({ lacks }) => lacks.map(({ streamid }) => streamid))).not.toContain('gone');
});

test('after a compaction that a packager slept through, it is level again', async () => {
  const { cluster, engine, one, two } = await startTwo();
  for (const stream of ['gone', 'changed']) await one.put(stream, A);
  await settled(one, two);
  engine.isAway = true;
  await until(() => stateOf(two) === 'away');
  expect(() => two.fleet.checkReady()).not.toThrow();
  expect((await two.fleet.status()).packagers.map(({ name }) => name)).toEqual(['one', 'two']);
  await one.remove('gone');
  await one.put('changed', B);
  await one.put('news', A);
  cluster.compact();
  engine.isAway = false;
  await until(() => two.file('news') === A && two.file('gone') === undefined && two.file('changed') === B);
});

test('a clock that is wrong by an hour orders nothing wrongly', async () => {
  const cluster = new FakeCluster();
  const hour = 60 * 60_000;
  const ahead = await startLevel(cluster.connect(), {
    name: 'ahead',
    clock: () => new Date(Date.now() + hour),
  });
  const behind = await startLevel(cluster.connect(), {
    name: 'behind',
    clock: () => new Date(Date.now() - hour),
  });
  for (const [member, text] of [
    [ahead, A],
    [behind, B],
    [ahead, C],
    [behind, A],
  ] as const) {
    await member.put('news', text);
    await until(() => ahead.file('news') === text && behind.file('news') === text);
  }
  cluster.set(KEY('news'), undefined);
  await behind.put('news', B);
  await until(() => ahead.file('news') === B);
});

test('a file that cannot be written is reported to the client, too, and tried again', async () => {
  let isFull = false;
  const full = () => Object.assign(new Error('full'), { code: 'ENOSPC' });
  const { one, two } = await startTwo({
    around: (local) => ({
      ...local,
      write: (...asked) => (isFull ? Promise.reject(full()) : local.write(...asked)),
    }),
  });
  isFull = true;
  await one.put('news', A);
  await until(() => lacksOf(two).failed === 1);
  const { fleet } = await two.put('sport', A);
  expect(fleet?.notHere?.problems).toMatchObject([{ code: 'insufficient_storage' }]);
  await until(() => one.file('sport') === A);
  isFull = false;
  await until(() => two.file('news') === A && two.file('sport') === A && lacksOf(two).failed === 0);
});

test('the second sidecar of one name gets key files, is not ready, and takes over when the first is gone', async () => {
  const cluster = new FakeCluster();
  const first = await startLevel(cluster.connect(), { name: 'same' });
  const second = await startMember(cluster.connect(), { name: 'same' });
  await until(() => stateOf(second) === 'name_taken');
  expect(() => second.fleet.checkReady()).toThrow('fleet_name_taken');
  await first.put('news', A);
  await until(() => second.file('news') === A);
  expect((await first.fleet.status()).packagers.map(({ name }) => name)).toEqual(['same']);
});

test('a ledger that cannot be used has changes refused with the reason', async () => {
  const folder = await temporaryFolder();
  fs.writeFileSync(join(folder, FLEET_FOLDER), '');
  const one = await startMember(new FakeCluster().connect(), { folder });
  const description = expect.stringMatching(/^The ledger of the fleet cannot be used: .* is no plain file, /);
  const problems = [{ code: 'key_files_not_writable', description }];
  await expect(one.put('news', A)).rejects.toMatchObject({ problems });
  await until(() => stateOf(one) === 'no_folder');
  expect(() => one.fleet.checkReady()).toThrow('key_files_not_writable');
});

test('another fleet in the engine is reported, and nothing is taken from it', async () => {
  const { one } = await startOne();
  await one.put('news', A);
  await one.stop();
  const other = new FakeCluster();
  const founder = await startLevel(other.connect(), { name: 'two' });
  await founder.put('news', B);
  const moved = await startMember(other.connect(), { name: 'one', folder: one.folder });
  await until(() => stateOf(moved) === 'other_fleet');
  await expect(moved.put('news', C)).rejects.toMatchObject({ problems: [{ code: 'fleet_other' }] });
  expect([moved.file('news'), founder.file('news')]).toEqual([A, B]);
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

test('a packager that goes through the fleet again stays ready', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const one = await startMember(engine, { name: 'one' });
  expect(() => one.fleet.checkReady()).toThrow('fleet_joining');
  await one.level();
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  engine.before = ({ method }) => (method === 'list' ? held : undefined);
  one.reseal(FLEET_SECRET, OTHER_SECRET);
  await until(() => stateOf(one) === 'joining');
  expect(() => one.fleet.checkReady()).not.toThrow();
  goOn();
  await one.level();
});

test('a file that is removed by hand comes back, and one that is edited is reported, while the sidecar runs', async () => {
  const one = await startLevel(new FakeCluster().connect(), { folderMs: 20 });
  for (const stream of ['removed', 'edited', 'deleted']) await one.put(stream, A);
  await one.remove('deleted');
  one.byHand('removed', undefined);
  one.byHand('edited', 'hand: 1\n');
  one.byHand('deleted', 'hand: 2\n');
  await until(() => one.file('removed') === A && lacksOf(one).kept === 2);
  expect(['edited', 'deleted'].map(one.file)).toEqual(['hand: 1\n', 'hand: 2\n']);
  one.byHand('edited', undefined);
  one.byHand('deleted', undefined);
  await until(() => one.file('edited') === A && lacksOf(one).kept === 0);
  expect(one.file('deleted')).toBeUndefined();
});

test('an import replaces no file made by hand at packagers that joined before', async () => {
  const { one, two } = await startTwo();
  one.byHand('news', A);
  two.byHand('news', B);
  expect(await one.fleet.importStep({ after: undefined, limit: 10 }, by)).toMatchObject({ imported: 1 });
  await until(() => lacksOf(two).kept === 1);
  expect([one.file('news'), two.file('news')]).toEqual([A, B]);
  // Its ETag, which a GET shows, never fits.
  await expect(
    two.fleet.store.remove('news' as StreamId, { ifMatch: etagOf(Buffer.from(B)) }),
  ).rejects.toMatchObject({
    problems: [{ description: expect.stringContaining('GET /api/fleet/{streamid} has its ETag') }],
  });
  await one.put('news', C);
  await until(() => two.file('news') === C);
});

test('a sidecar that ends while it opens the ledger leaves the folder to the next', async () => {
  const cluster = new FakeCluster();
  const { folder, stop } = await startMember(cluster.connect());
  await stop();
  await startLevel(cluster.connect(), { folder });
});

test('a sidecar that ends while it takes key files reports none that could not be written', async () => {
  const { cluster, one } = await startOne();
  const streams = Array.from({ length: 300 }, (_, index) => `live-${index}`);
  await Promise.all(streams.map((stream) => one.put(stream, A)));
  const two = await startMember(cluster.connect(), { name: 'two' });
  await until(() => streams.some((stream) => two.file(stream) === A));
  await two.stop();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(two.lines.filter(([level]) => level === 'error')).toEqual([]);
});
