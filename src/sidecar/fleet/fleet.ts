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
import type { FleetConfig } from './config';
import type { Engine } from './engine/engine';
import type { Grouped } from './engine/grouped';
import type { EngineKeys } from './engine-keys';
import type { Seal, Versions } from './entries/seal';

export interface Fleet {
  /** Changes go to every packager that takes the stream, this one included. Reads are of the folder here. */
  readonly store: KeyFileStore;
  start(): void;
  /** @throws HttpError 503 while the sidecar should get no requests: it has not joined, or can't. */
  checkReady(): void;
  /** While the engine is away, the last known state. */
  status(): Promise<FleetAnswer>;
  /** @throws HttpError 404, 503. */
  streamStatus(streamId: StreamId): Promise<FleetStreamAnswer>;
  /**
   * Resolves when every registered packager has the streams at these revisions, or after `seconds`: with the sorted
   * names of those that do not. @throws HttpError 503 when the packagers could not be read.
   */
  waitFor(changes: readonly AwaitedChange[], seconds: number): Promise<readonly string[]>;
  /** Gives the fleet up to `limit` key files of this folder that it does not have. */
  importStep(step: Step, by: ChangedBy): Promise<FleetImportAnswer>;
  /** Founds the fleet again in an engine that has lost it. @throws HttpError when it has not. */
  found(): Promise<void>;
  resealStep(step: Step): Promise<FleetResealAnswer>;
  /** Removes a packager that does not run any more. @throws HttpError 404, 409. */
  retire(name: string): Promise<void>;
  figures(): FleetFigures;
  /** Ends the heartbeat lease at once. `busy` resolves when no request changes anything any more. */
  close(busy?: Promise<unknown>): Promise<void>;
}

export type OpenFleet = (local: KeyFileStore, hooks: FleetHooks) => Fleet;

export interface FleetHooks {
  readonly folder: string;
  readonly log: Log;
  readonly newId: () => string;
  readonly random: (bytes: number) => Buffer;
  readonly now: () => number;
  readonly clock: () => Date;
  readonly version: string;
  /** For changes that another sidecar accepted and that are applied here. */
  readonly audit: Audit;
  readonly observer: FleetObserver;
}

/** Shared by the parts of a fleet. */
export interface FleetParts extends FleetHooks, Pick<FleetConfig, 'name' | 'streams'> {
  readonly engine: Engine;
  readonly grouped: Grouped;
  readonly keys: EngineKeys;
  readonly local: KeyFileStore;
  readonly seal: () => Seal;
  readonly versions: Versions;
  readonly isTaken: (streamId: string) => boolean;
}

export interface AwaitedChange {
  readonly streamId: StreamId;
  readonly revision: number;
}

/** Continues after the stream `after`, in the order of code units. */
export type Step = z.output<typeof fleetStepQuery>;

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

export interface FleetFigures {
  readonly state: FleetState;
  /** Seconds since this sidecar was last level with the engine; 0 while it is; undefined: it never was. */
  readonly behindSeconds: number | undefined;
  readonly lacks: Readonly<Record<Exclude<LackReason, 'behind'>, number>>;
  /** Bytes, of the largest server that answered last. */
  readonly engineSize: number | undefined;
  readonly engineQuota: number | undefined;
}

/** Must not throw. */
export interface FleetObserver {
  entry(result: EntryResult): void;
  /** Seconds from the acceptance of a change anywhere to its file here, by the clocks of both sidecars. */
  applied(seconds: number): void;
  conflict(): void;
}
