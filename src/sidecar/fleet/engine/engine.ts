import type { FleetAnswer } from '../../../api/fleet-answers';
import { apiError, type ErrorCode } from '../../errors';

/** Changes in one transaction, and keys in one read. */
export const MAX_CHANGES = 64;

/**
 * Acknowledges a change once a majority of its servers has it on disk. Each transaction has a revision, which
 * grows by one. Only `etcd.ts` knows which engine it is.
 */
export interface Engine {
  /** In the order of `keys`. No answer is older than a change acknowledged before. @throws EngineError */
  read(keys: readonly string[]): Promise<Snapshot<StoredValue | undefined>>;
  /** In the order of the keys. @throws EngineError */
  list(range: KeyRange, options: ListOptions): Promise<Page>;
  /**
   * Compare-and-set: makes the changes whose keys have the expected revisions in one transaction, or if some
   * can't be made, the others in another one. `undefined`: the guard's key has another revision. Keys must
   * differ, and values together have less than 1 MiB. A call whose answer is lost is repeated: a change that
   * was made may be answered as not made with its own value as the present one, or as `undefined` if it
   * changed the guard's key.
   * @throws EngineError of the kind `unknown` when the changes may have been made.
   */
  change(changes: readonly Change[], guard?: Guard): Promise<readonly ChangeAnswer[] | undefined>;
  /**
   * Reports every change of a range, in order. When a server is gone or has lost the majority, it continues at the next
   * one. Ends only as `WatchEnd` says.
   */
  watch(range: KeyRange, options: WatchOptions): Watch;
  /** @throws EngineError */
  grant(seconds: number): Promise<Lease>;
  /** Renews the lease. False: it has ended. @throws EngineError */
  keepAlive(lease: Lease): Promise<boolean>;
  /** Also removes the lease's keys. @throws EngineError */
  revoke(lease: Lease): Promise<void>;
  /** In the order of the addresses. Never rejects. */
  servers(): Promise<readonly EngineServer[]>;
  /** False: the revision is compacted. @throws EngineError */
  hasRevision(revision: number): Promise<boolean>;
  /** This machine's clock minus the engine's, in ms, rounded to a second; undefined before an answer. */
  clockAhead(): number | undefined;
  close(): void;
}

export interface StoredValue {
  readonly key: string;
  readonly value: Buffer;
  /** Of its last change. */
  readonly revision: number;
}

export interface Moment {
  readonly revision: number;
  /** Another id: other servers, or restored ones. */
  readonly cluster: string;
  /** Grows with every election. Less than before: the servers were restored. */
  readonly term: number;
}

export interface Snapshot<Value> {
  readonly at: Moment;
  readonly values: readonly Value[];
}

/** The keys with a prefix; with `after`, those behind that key. */
export interface KeyRange {
  readonly prefix: string;
  readonly after?: string | undefined;
}

export interface ListOptions {
  readonly limit: number;
  /** Undefined: the present state, else that at this revision. */
  readonly revision?: number;
}

export interface Page extends Snapshot<StoredValue> {
  readonly more: boolean;
  /** Of the whole range. */
  readonly count: number;
}

export interface Change {
  readonly key: string;
  /** The revision of the key's last change; 0: it is absent. */
  readonly expected: number;
  /** undefined: the key is removed. */
  readonly value: Buffer | undefined;
  readonly lease?: Lease;
}

export interface Guard {
  readonly key: string;
  /** 0: it is absent. */
  readonly revision: number;
}

export type ChangeAnswer =
  | { readonly made: true; readonly revision: number }
  | { readonly made: false; readonly present: StoredValue | undefined };

export type Lease = string & { readonly brand: 'Lease' };

export interface WatchOptions {
  /** The first revision that is reported. */
  readonly from: number;
  /** The moment of the caller's list: an engine that is behind it was restored. */
  readonly since: Moment;
  /** Takes whole revisions. The next changes come when it is done; when it rejects, the same come again. */
  readonly onEvents: (events: readonly WatchedEvent[], at: Moment) => Promise<void>;
  /** Every few seconds and after reconnections: all changes up to `at` were reported, or are on their way. */
  readonly onHeartbeat?: (at: Moment) => void;
  /** Called when the connection is lost, and when its fault is another one. A heartbeat follows when it is back. */
  readonly onLost?: (cause: EngineError) => void;
  readonly onEnd: (end: WatchEnd) => void;
}

/** `compacted`: the engine no longer has the next changes; `restored`: it is at an earlier state, or another engine. */
export type WatchEnd = 'compacted' | 'restored';

export interface WatchedEvent {
  readonly key: string;
  /** undefined: the key was removed. */
  readonly value: Buffer | undefined;
  readonly revision: number;
}

export interface Watch {
  close(): void;
}

export type EngineServer = FleetAnswer['engine'][number];

const FAULTS = {
  /** Not reached, or without a majority: nothing was changed. */
  unavailable: 'fleet_unavailable',
  /** A change was sent and not answered: it may be made. */
  unknown: 'fleet_outcome_unknown',
  denied: 'fleet_denied',
  full: 'fleet_full',
  compacted: 'fleet_unavailable',
  /** The answer is none of the engine's. */
  refused: 'fleet_unavailable',
} as const satisfies Readonly<Record<string, ErrorCode>>;

export type EngineFault = keyof typeof FAULTS;

/** The message is for the log: it may name addresses. */
export class EngineError extends Error {
  readonly kind: EngineFault;

  constructor(kind: EngineFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EngineError';
    this.kind = kind;
  }
}

/** The error that a client gets for an `EngineError`; other errors pass unchanged. */
export function toFleetError(thrown: unknown): unknown {
  return thrown instanceof EngineError ? apiError(FAULTS[thrown.kind], undefined, { cause: thrown }) : thrown;
}
