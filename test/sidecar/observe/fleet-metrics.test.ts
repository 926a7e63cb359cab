import { FLEET_STATES } from '../../../src/api/fleet';
import { createConnections } from '../../../src/http/connections';
import { ENTRY_RESULTS, type FleetFigures } from '../../../src/sidecar/fleet/fleet';
import { createMetrics, type MetricsOptions } from '../../../src/sidecar/observe/metrics';
import { seriesOf } from '../../support/start-observed';

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
  /** The series of the fleet, their common beginning left out. */
  const told = async () =>
    Object.fromEntries(
      Object.entries(seriesOf((await metrics.scrape()).text)).flatMap(([name, value]) =>
        name.startsWith('packagerdrmapi_fleet_') ? [[name.replace('packagerdrmapi_fleet_', ''), value]] : [],
      ),
    );
  return { ...metrics, fleet, told };
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

test('tells how the sidecar is with its fleet at the scrape, and by 0 how it is not', async () => {
  let figures: FleetFigures | undefined;
  const { told } = observed(() => figures);
  expect(await told()).toEqual(NOTHING_HAPPENED);
  figures = {
    ...LEVEL,
    state: 'joining',
    behindSeconds: undefined,
    engineSize: undefined,
    engineQuota: undefined,
  };
  const none = { kept: 0, unreadable: 0, failed: 0, older: 0 };
  expect(await told()).toEqual({ ...NOTHING_HAPPENED, ...states('joining'), ...none });
  figures = LEVEL;
  expect(await told()).toEqual({
    ...NOTHING_HAPPENED,
    ...states('level'),
    ...none,
    behind_seconds: 0,
    engine_size_bytes: 20_480,
    engine_quota_bytes: 2_147_483_648,
  });
  figures = {
    ...LEVEL,
    state: 'away',
    behindSeconds: 61.5,
    lacks: { kept: 1, unreadable: 2, failed: 3, older: 4 },
    engineSize: undefined,
    engineQuota: undefined,
  };
  expect(await told()).toEqual({
    ...NOTHING_HAPPENED,
    ...states('away'),
    kept: 1,
    unreadable: 2,
    failed: 3,
    older: 4,
    behind_seconds: 61.5,
  });
});

test('counts what becomes of entries and how long they took, none less than no time where clocks differ', async () => {
  const { fleet, told, scrape } = observed(() => undefined);
  for (const result of ['written', 'written', 'removed', 'unreadable'] as const) fleet.entry(result);
  for (const seconds of [0.02, 0.03, 7, -3600]) fleet.applied(seconds);
  fleet.conflict();
  expect(await told()).toEqual({
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
