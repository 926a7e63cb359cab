import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import fs from 'fs-extra';
import { FLEET_STATES } from '../../../src/api/fleet';
import type { StreamId } from '../../../src/api/stream-id';
import { keysIn } from '../../../src/drm/key-file';
import { createConnections } from '../../../src/http/connections';
import { ENTRY_RESULTS, type FleetFigures } from '../../../src/sidecar/fleet/fleet';
import { createKeyIndex, createSurvey, indexedKeys } from '../../../src/sidecar/key-files/changes';
import { createMetrics, type MetricsOptions } from '../../../src/sidecar/observe/metrics';
import { createDurableWriter } from '../../../src/sidecar/storage/durable-file';
import { type Conditions, createKeyFileStore } from '../../../src/sidecar/storage/key-file-store';
import { temporaryFolder } from '../../support/after-test';
import { POST_MANUAL_FILE } from '../../support/post-manual';
import { recordedLog } from '../../support/recorded-log';
import { seriesOf } from '../../support/start-observed';
import { until } from '../../support/until';

const SOUND = POST_MANUAL_FILE;
/** The packager writes its own vector into the playlist: it may be meant so. */
const ODD = SOUND.replace('iv-include-in-chunklist: false', 'iv-include-in-chunklist: true');
const BROKEN = 'name: value\n';

async function startCount(files: Readonly<Record<string, string>> = {}) {
  const folder = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) await fs.outputFile(join(folder, name), text);
  const { log, lines } = recordedLog();
  const index = createKeyIndex();
  const faults = createSurvey(folder, log, index);
  const store = faults.follow(createKeyFileStore(folder, 0o640, createDurableWriter(randomUUID)));
  const write = (name: string, text: string, conditions?: Conditions) =>
    store.write(name as StreamId, Buffer.from(text), conditions);
  const remove = (name: string) => store.remove(name as StreamId);
  return { folder, faults, write, remove, lines, index };
}

test('reports nothing before the files are counted, and then each by its worst fault', async () => {
  const { faults } = await startCount({
    'sound.key': SOUND,
    'site/odd.key': ODD,
    'site/deep/broken.key': BROKEN,
    'both.key': ODD.replace('AESCTR', 'AESCBC'),
    'empty.key': '',
    'notes.txt': BROKEN,
    '.hidden.key': BROKEN,
  });
  expect(faults.counts()).toBeUndefined();
  await faults.run();
  expect(faults.counts()).toEqual({ error: 3, warning: 1 });
});

test('follows what is written and removed, and what is corrected', async () => {
  const { faults, write, remove, folder } = await startCount({ 'old.key': BROKEN });
  await faults.run();
  const after = async (change: Promise<unknown>, expected: object) => {
    await change;
    await until(() => isDeepStrictEqual(faults.counts(), expected));
  };
  await after(write('new', ODD), { error: 1, warning: 1 });
  await after(write('new', BROKEN), { error: 2, warning: 0 });
  await after(write('old', SOUND), { error: 1, warning: 0 });
  await after(remove('new'), { error: 0, warning: 0 });
  await after(remove('absent'), { error: 0, warning: 0 });
  await after(write('new', BROKEN), { error: 1, warning: 0 });
  // Another program removes it right after it is written again.
  await after(
    write('new', SOUND).then(() => fs.remove(join(folder, 'new.key'))),
    { error: 0, warning: 0 },
  );
});

test('adds the keys of the files to the index, and forgets those that are removed', async () => {
  const { faults, index, remove } = await startCount({
    'one.key': SOUND,
    'site/two.key': SOUND,
    'odd.key': BROKEN,
  });
  await faults.run();
  expect(index.size()).toBe(2);
  const { keyId = '' } = keysIn(SOUND);
  const asked = indexedKeys(Buffer.from(keyId, 'base64'), Buffer.alloc(16));
  expect(index.conflicts('new', asked).otherKeys).toHaveLength(2);
  await remove('one');
  expect(index.conflicts('new', asked).otherKeys).toEqual(['site/two']);
});

test('counts right what changes while it counts', async () => {
  const names = Array.from({ length: 300 }, (_, index) => `stream-${index}`);
  const files = Object.fromEntries(
    names.map((name, index) => [`${name}.key`, index % 2 === 0 ? BROKEN : SOUND]),
  );
  const { faults, write, remove } = await startCount(files);
  const counting = faults.run();
  await Promise.all(
    names.map((name, index) => {
      if (index % 3 === 0) return write(name, index % 2 === 0 ? SOUND : BROKEN);
      return index % 3 === 1 ? remove(name) : undefined;
    }),
  );
  await counting;
  const expected = names.filter((_, index) =>
    index % 3 === 0 ? index % 2 === 1 : index % 3 === 2 && index % 2 === 0,
  );
  await until(() => isDeepStrictEqual(faults.counts(), { error: expected.length, warning: 0 }));
});

test('lets others have their turn while it counts, also when files are written, and ends when it is closed', async () => {
  const files = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`s-${index}.key`, SOUND]));
  const { faults, write, index } = await startCount(files);
  const looks: number[] = [];
  jest.spyOn(index, 'set').mockImplementation((name) => {
    if (name !== 'new') looks.push(performance.now());
  });
  const run = faults.run();
  await write('new', SOUND);
  await run;
  const rests = looks.map((at, look) => at - (looks[look - 1] ?? 0)).filter((_, look) => look % 20 === 0);
  expect([rests.length, rests.filter((ms) => ms < 9)]).toEqual([10, []]);
  const closed = await startCount(files);
  const counting = closed.faults.run();
  closed.faults.close();
  await counting;
  expect(closed.faults.counts()).toBeUndefined();
});

test('logs a folder that cannot be read, and continues without it', async () => {
  const { folder, faults, lines } = await startCount();
  await fs.remove(folder);
  await faults.run();
  expect(faults.counts()).toBeUndefined();
  expect(lines.map(([level, message]) => [level, message])).toEqual([
    ['warn', 'key files cannot be surveyed'],
  ]);
});

test('logs once that written files cannot be read', async () => {
  const folder = await temporaryFolder();
  const { log, lines } = recordedLog();
  const store = createKeyFileStore(folder, 0o640, createDurableWriter(randomUUID));
  const survey = createSurvey(folder, log, createKeyIndex());
  const change = { former: undefined, notSynced: undefined };
  const { write } = survey.follow({ ...store, write: () => Promise.resolve(change) });
  // The system takes no such long name.
  const names = Array.from({ length: 30 }, (_, index) => `${'x'.repeat(300)}${index}` as StreamId);
  await Promise.all(names.map((name) => write(name, Buffer.from(SOUND))));
  await until(() => lines.length > 0);
  await pause(60);
  expect(lines.map(([level, message]) => [level, message])).toEqual([
    ['warn', 'key files cannot be surveyed'],
  ]);
});

const LEVEL: FleetFigures = {
  state: 'level',
  behindSeconds: 0,
  lacks: { kept: 0, unreadable: 0, failed: 0, older: 0 },
  engineSize: 20_480,
  engineQuota: 2_147_483_648,
};

const OPTIONS: MetricsOptions = {
  version: '1',
  audit: { lost: () => 0, waiting: () => 0 },
  connections: createConnections(),
};

function observed(figures: () => FleetFigures | undefined) {
  const metrics = createMetrics(OPTIONS);
  const fleet = metrics.fleet(figures);
  /** The series of the fleet without their common prefix. */
  const reported = async () =>
    Object.fromEntries(
      Object.entries(seriesOf((await metrics.scrape()).text)).flatMap(([name, value]) =>
        name.startsWith('packagerdrmapi_fleet_') ? [[name.replace('packagerdrmapi_fleet_', ''), value]] : [],
      ),
    );
  return { ...metrics, fleet, reported };
}

const states = (present: keyof typeof FLEET_STATES) =>
  Object.fromEntries(
    Object.keys(FLEET_STATES).map((state) => [`state{state="${state}"}`, state === present ? 1 : 0]),
  );

const NOTHING_HAPPENED = {
  ...Object.fromEntries(ENTRY_RESULTS.map((result) => [`entries_total{result="${result}"}`, 0])),
  apply_seconds_sum: 0,
  apply_seconds_count: 0,
  conflicts_total: 0,
};

test('reports the membership state of the sidecar at the scrape, and 0 for the other states', async () => {
  let figures: FleetFigures | undefined;
  const { reported } = observed(() => figures);
  expect(await reported()).toEqual(NOTHING_HAPPENED);
  figures = {
    ...LEVEL,
    state: 'joining',
    behindSeconds: undefined,
    engineSize: undefined,
    engineQuota: undefined,
  };
  const none = { kept: 0, unreadable: 0, failed: 0, older: 0 };
  expect(await reported()).toEqual({ ...NOTHING_HAPPENED, ...states('joining'), ...none });
  figures = {
    ...LEVEL,
    state: 'away',
    behindSeconds: 61.5,
    lacks: { kept: 1, unreadable: 2, failed: 3, older: 4 },
  };
  expect(await reported()).toEqual({
    ...NOTHING_HAPPENED,
    ...states('away'),
    kept: 1,
    unreadable: 2,
    failed: 3,
    older: 4,
    behind_seconds: 61.5,
    engine_size_bytes: 20_480,
    engine_quota_bytes: 2_147_483_648,
  });
});

test('counts what becomes of entries and how long they took, none less than no time where clocks differ', async () => {
  const { fleet, reported, scrape } = observed(() => undefined);
  for (const result of ['written', 'written', 'removed', 'unreadable'] as const) fleet.entry(result);
  for (const seconds of [0.02, 0.03, 7, -3600]) fleet.applied(seconds);
  fleet.conflict();
  expect(await reported()).toEqual({
    ...NOTHING_HAPPENED,
    'entries_total{result="written"}': 2,
    'entries_total{result="removed"}': 1,
    'entries_total{result="unreadable"}': 1,
    apply_seconds_sum: 7.05,
    apply_seconds_count: 4,
    conflicts_total: 1,
  });
  const { text } = await scrape();
  const buckets = [...text.matchAll(/fleet_apply_seconds_bucket\{le="([^"]+)"\} (\d+)/g)];
  expect(buckets.map(([, bound, count]) => `${bound}: ${count}`)).toEqual([
    '0.005: 1',
    '0.01: 1',
    '0.025: 2',
    '0.05: 3',
    '0.1: 3',
    '0.25: 3',
    '0.5: 3',
    '1: 3',
    '2.5: 3',
    '5: 3',
    '10: 4',
    '30: 4',
    '60: 4',
    '300: 4',
    '+Inf: 4',
  ]);
});
