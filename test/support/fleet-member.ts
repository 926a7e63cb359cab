import { engineKeysUnder } from '../../src/sidecar/fleet/engine-keys';
import { createMembership, type MembershipOptions } from '../../src/sidecar/fleet/members/membership';
import type { Report } from '../../src/sidecar/fleet/members/packagers';
import { afterTest } from './after-test';
import type { FakeCluster } from './fake-engine';
import { recordedLog } from './recorded-log';

/** A report of a packager that has nothing yet. */
export const NO_REPORT: Report = {
  state: 'level',
  applied: [],
  lacks: {},
  lacking: 0,
  clockAhead: undefined,
  propagation: [],
};

export const KEYS = engineKeysUnder('fleet/');

export type Member = ReturnType<typeof fleetMember>;

/** Waits of a fifteenth of the real ones, or less. */
const PACE = {
  heartbeatMs: 20,
  retryMs: 20,
  checkMs: 100,
  closeMs: 100,
  reportMs: 150,
  reportRetryMs: 20,
  pollMs: [2, 10] as const,
};

/** A packager among others, at a stopped clock; it is closed after the test. */
export function fleetMember(cluster: FakeCluster, name: string, options: Partial<MembershipOptions> = {}) {
  const engine = cluster.connect();
  const { log, lines } = recordedLog();
  /** The events about the name. */
  const taken: boolean[] = [];
  /** Its report is asked for. */
  const member = { engine, lines, taken, report: NO_REPORT };
  const membership = createMembership({
    engine,
    keys: KEYS,
    name,
    streams: undefined,
    version: '1.0.0',
    id: () => `id-of-${name}`,
    report: () => member.report,
    admit: async () => undefined,
    log,
    clock: () => new Date('2026-11-22T12:00:00Z'),
    now: () => performance.now(),
    onNameTaken: (isTaken) => taken.push(isTaken),
    ...options,
    pace: { ...PACE, ...options.pace },
  });
  afterTest(() => membership.close());
  return Object.assign(member, { membership });
}
