import type * as z from 'zod';
import type { FleetState, fleetStepQuery, LackReason } from '../../api/fleet';
import type {
  FleetAnswer,
  FleetImportAnswer,
  FleetResealAnswer,
  FleetStreamAnswer,
} from '../../api/fleet-answers';
import type { StreamId } from '../../api/stream-id';
import type { Log } from '../../http/log';
import type { Audit } from '../observe/audit';
import type { ChangedBy, KeyFileStore } from '../storage/key-file-store';

/** A fleet of packagers, as one sidecar of it takes part. */
export interface Fleet {
  /**
   * The key files of the whole fleet: changes go to every packager that takes the stream, and into the
   * folder here if this one does. Reads are those of the folder.
   */
  readonly store: KeyFileStore;
  /** Starts to follow the fleet. */
  start(): void;
  /** @throws HttpError 503 while the sidecar should get no requests: it has not joined, or can't. */
  checkReady(): void;
  /** `GET /api/fleet`. While the engine is away, returns the last known state. */
  status(): Promise<FleetAnswer>;
  /** `GET /api/fleet/{streamid}`. @throws HttpError 404, 503. */
  whereIs(streamId: StreamId): Promise<FleetStreamAnswer>;
  /**
   * Resolves when every registered packager has the streams at these revisions, or after this number of seconds: with
   * the sorted names of those that do not.
   */
  waitFor(changes: readonly AwaitedChange[], seconds: number): Promise<readonly string[]>;
  /** One step of an import: up to `limit` key files here after a stream that the fleet does not have go to it. */
  importStep(step: Step, by: ChangedBy): Promise<FleetImportAnswer>;
  /** Founds the fleet again in an engine that has lost it. @throws HttpError when it has not. */
  found(): Promise<void>;
  /** One step of sealing the engine's entries with the first secret. */
  resealStep(step: Step): Promise<FleetResealAnswer>;
  /** Removes a packager that does not run any more. @throws HttpError 404, 409. */
  retire(name: string): Promise<void>;
  figures(): FleetFigures;
  /**
   * Ends the heartbeat lease, and closes open resources. Waiting requests to the engine end at once; `busy`
   * resolves when none changes anything any more.
   */
  close(busy?: Promise<unknown>): Promise<void>;
}

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
