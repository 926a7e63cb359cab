import { FLEET_STATES } from '../../api/fleet';
import { ENTRY_RESULTS, type FleetFigures, type FleetObserver } from '../fleet/fleet';
import type { Define } from './define-metrics';

/** Seconds. A change takes some milliseconds to get anywhere, and minutes where a packager was away. */
const APPLY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

const STATES = Object.keys(FLEET_STATES);

/** For a sidecar without metrics. */
export const UNOBSERVED: FleetObserver = {
  entry: () => undefined,
  applied: () => undefined,
  conflict: () => undefined,
};

/** Defines the metrics of a fleet. `figures` is asked at each scrape; while it answers undefined, gauges are absent. */
export function createFleetMetrics(define: Define, figures: () => FleetFigures | undefined): FleetObserver {
  define.readEach(
    'fleet_state',
    'How the sidecar is with its fleet: 1 for the present state.',
    'state',
    () => {
      const present = figures()?.state;
      return present === undefined
        ? {}
        : Object.fromEntries(STATES.map((state) => [state, state === present ? 1 : 0]));
    },
  );
  define.read(
    'fleet_behind_seconds',
    'Seconds since the sidecar last had everything that the engine has; 0 while it does.',
    () => figures()?.behindSeconds,
  );
  const lacks = (reason: keyof FleetFigures['lacks'], help: string) =>
    define.read(`fleet_${reason}`, help, () => figures()?.lacks[reason]);
  lacks('kept', "Streams at whose place a file lies that is not the fleet's.");
  lacks('unreadable', 'Streams whose entry in the engine cannot be opened.');
  lacks('failed', 'Streams whose key file could not be written or removed; it is tried again.');
  lacks('older', 'Streams of which the engine holds an older state than the packager has.');
  define.read(
    'fleet_engine_size_bytes',
    "Size of the database of the engine's largest server.",
    () => figures()?.engineSize,
  );
  define.read(
    'fleet_engine_quota_bytes',
    'The most bytes that this database may have.',
    () => figures()?.engineQuota,
  );
  const entries = define.counter('fleet_entries_total', 'Entries that came from the engine.', 'result');
  for (const result of ENTRY_RESULTS) entries.inc({ result }, 0);
  const apply = define.histogram(
    'fleet_apply_seconds',
    'Time from the acceptance of a change anywhere to its file here, by the clocks of both sidecars.',
    APPLY_BUCKETS,
  );
  const conflicts = define.counter(
    'fleet_conflicts_total',
    'Changes that were decided again, since another sidecar was faster.',
  );
  return {
    entry: (result) => entries.inc({ result }),
    // Clocks differ, and a histogram of negative times has a sum that falls.
    applied: (seconds) => apply.observe(Math.max(0, seconds)),
    conflict: () => conflicts.inc(),
  };
}
