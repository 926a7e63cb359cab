import { join } from 'node:path';
import fs from 'fs-extra';
import { FLEET_FOLDER } from '../../../src/api/fleet';
import type { StreamId } from '../../../src/api/stream-id';
import { EngineError } from '../../../src/sidecar/fleet/engine/engine';
import { temporaryFolder } from '../../support/after-test';
import { FakeCluster } from '../../support/fake-engine';
import {
  FLEET_SECRET,
  KEY,
  lacksOf,
  type Member,
  OTHER_SECRET,
  settled,
  startLevel,
  startMember,
  startOne,
  startTwo,
  stateOf,
} from '../../support/start-member';
import { gate, until } from '../../support/until';

const A = 'a: 1\n';
const B = 'b: 2\n';
const C = 'c: 3\n';
const by = { key: 'tests', address: '127.0.0.1', requestId: 'request-9' };

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

test('a stop waits for the files that are being written, which have their audit lines then', async () => {
  const { opened, open } = gate();
  const { one, two } = await startTwo({
    around: (local) => ({
      ...local,
      async write(...asked) {
        const change = await local.write(...asked);
        await opened;
        return change;
      },
    }),
  });
  await one.put('news', A);
  await until(() => two.file('news') === A);
  const audited = two.stop().then(() => two.audit.map(({ streamId }) => streamId));
  setTimeout(open, 200);
  expect(await audited).toEqual(['news']);
});

test('a change whose answer was lost is recognised when another one has followed it', async () => {
  const { cluster, engine, one, two } = await startTwo();
  const { change } = engine;
  let made: number | undefined;
  engine.change = async (...asked) => {
    if (asked[0][0]?.key !== KEY('news')) return change.apply(engine, asked);
    await change.apply(engine, asked);
    made = cluster.get(KEY('news'))?.revision;
    await one.put('news', B);
    return change.apply(engine, asked);
  };
  const create = two.fleet.store.write('news' as StreamId, Buffer.from(A), { ifNoneMatch: '*' });
  expect((await create).fleet?.revision).toBe(made);
  await until(() => two.file('news') === B);
  expect(one.file('news')).toBe(B);
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

test('a packager reports what it has as soon as it is level', async () => {
  const engine = new FakeCluster().connect();
  const hasReported = () =>
    engine.calls.some(({ method, keys }) => method === 'change' && keys[0]?.endsWith('reports/one'));
  engine.before = async ({ method }) => {
    if (method === 'list') await until(hasReported);
  };
  const one = await startLevel(engine, { name: 'one' });
  expect(await one.fleet.waitFor([{ streamId: 'news' as StreamId, revision: 1 }], 1)).toEqual([]);
});

test('a packager takes the streams of its prefixes alone, and gives all', async () => {
  const cluster = new FakeCluster();
  const paris = await startLevel(cluster.connect(), { name: 'paris', streams: ['paris/', 'both_'] });
  const all = await startLevel(cluster.connect(), { name: 'all' });
  expect((await paris.put('rome/news', A)).fleet).toMatchObject({ isTaken: false });
  await all.put('paris/news', A);
  await all.put('both_1', B);
  await until(() => paris.file('both_1') === B && paris.file('paris/news') === A);
  expect([paris.file('rome/news'), all.file('rome/news')]).toEqual([undefined, A]);
  await paris.stop();
  const { folder } = paris;
  const both = await startLevel(cluster.connect(), { name: 'paris', streams: ['both_'], folder });
  expect([both.file('paris/news'), (await both.fleet.status()).streams]).toEqual([A, 1]);
});

test('a restored backup takes nothing back, and an import brings what it lacked', async () => {
  const { cluster, one, two } = await startTwo();
  const earliest = cluster.backup();
  await one.put('news', A);
  const backup = cluster.backup();
  await one.put('news', B);
  await one.put('later', C);
  await settled(one, two);
  // Of the earliest backup nothing is older, since it has nothing of the streams.
  for (const [restored, older] of [
    [backup, 1],
    [earliest, 0],
    [backup, 1],
  ] as const) {
    cluster.restore(restored);
    await until(() => lacksOf(one).older === older && lacksOf(two).older === older);
  }
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
  expect((await two.fleet.status()).packagers.map(({ name, behind }) => [name, behind])).toEqual([
    ['one', 0],
    ['two', 0],
  ]);
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

test('a packager that goes through the fleet again stays ready', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const one = await startMember(engine, { name: 'one' });
  expect(() => one.fleet.checkReady()).toThrow('fleet_joining');
  await one.level();
  const { opened: held, open: goOn } = gate();
  engine.before = ({ method }) => (method === 'list' ? held : undefined);
  one.reseal(FLEET_SECRET, OTHER_SECRET);
  await until(() => stateOf(one) === 'joining');
  expect(() => one.fleet.checkReady()).not.toThrow();
  goOn();
  await one.level();
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
