import type * as z from 'zod';
import type { FleetState, fleetStepQuery, LackReason } from '../../api/fleet';
import type { StreamId } from '../../api/stream-id';
import type { Log } from '../../http/log';
import type { Audit } from '../observe/audit';
import type { KeyFileStore } from '../storage/key-file-store';
import type { openFleet } from './open-fleet';

/** A fleet of packagers, as one sidecar of it takes part. */
export type Fleet = ReturnType<typeof openFleet>;

/** Puts a fleet before the key files of this folder. */
export type OpenFleet = (local: KeyFileStore, hooks: FleetHooks) => Fleet;

/** The parts of the sidecar that a fleet uses. */
export interface FleetHooks {
  /** The key-file folder, where the ledger lies. */
  readonly folder: string;
  readonly log: Log;
  readonly newId: () => string;
  readonly random: (bytes: number) => Buffer;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly clock: () => Date;
  /** The sidecar's. */
  readonly version: string;
  /** Called for each change that another sidecar accepted and that is applied here, with `from`. */
  readonly audit: Audit;
  readonly observer: FleetObserver;
}

export interface AwaitedChange {
  readonly streamId: StreamId;
  readonly revision: number;
}

/** `after`: the stream after which it continues, in the order of code units. */
export type Step = z.output<typeof fleetStepQuery>;

/** The results of applying an entry. */
export const ENTRY_RESULTS = [
  'written',
  'removed',
  'unchanged',
  'kept',
  'unreadable',
  'older',
  'failed',
] as const;
export type EntryResult = (typeof ENTRY_RESULTS)[number];

/** The figures for the metrics of the fleet. */
export interface FleetFigures {
  readonly state: FleetState;
  /** Seconds since this sidecar was last level with the engine; 0 while it is; undefined: it never was. */
  readonly behindSeconds: number | undefined;
  /** Streams here that are not as the fleet has them, by the reason. */
  readonly lacks: Readonly<Record<Exclude<LackReason, 'behind'>, number>>;
  /** Of the largest server that answered last, in bytes. */
  readonly engineSize: number | undefined;
  readonly engineQuota: number | undefined;
}

/** Counts events of the fleet, for metrics. Must not throw. */
export interface FleetObserver {
  entry(result: EntryResult): void;
  /** Seconds from the acceptance of a change anywhere to its file here, by the clocks of both sidecars. */
  applied(seconds: number): void;
  /** A change that was retried because another sidecar was faster. */
  conflict(): void;
}
