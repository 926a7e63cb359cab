import type { FleetAnswer } from '../../../api/fleet-answers';
import { apiError, type ErrorCode } from '../../errors';

/** Maximum number of changes in one transaction, and of keys in one read. */
export const MAX_CHANGES = 64;

/**
 * The fleet's view of its engine: a store of keys and values that acknowledges a change once a majority of its servers
 * has it on disk. Each transaction has a revision, which grows by one. Only `etcd.ts` knows which engine it is.
 */
export interface Engine {
  /**
   * The values of some keys, in their order; undefined for those that are absent. No answer is older than a change
   * acknowledged before the call. @throws EngineError
   */
  read(keys: readonly string[]): Promise<Snapshot<StoredValue | undefined>>;
  /** The values of a range of keys, in the order of the keys. @throws EngineError */
  list(range: KeyRange, options: ListOptions): Promise<Page>;
  /**
   * Compare-and-set: makes each change whose key still has the expected revision. All are made in one transaction; if some
   * can't be made, the others in another one. `undefined`: the guard's key has another revision, and nothing is changed. The
   * keys differ, and all values together have less than 1 MiB. A call whose answer is lost is repeated, so a change that was
   * made may be answered as not made with its own value as the present one, or as `undefined` if it changed the guard's key.
   * @throws EngineError of the kind `unknown` when the changes may have been made.
   */
  change(changes: readonly Change[], guard?: Guard): Promise<readonly ChangeAnswer[] | undefined>;
  /**
   * Reports every change of a range from a revision on, in order. Reconnects to the next server when one is gone or has
   * lost the majority, and continues where it was. Ends only as `WatchEnd` says.
   */
  watch(range: KeyRange, options: WatchOptions): Watch;
  /** Grants a lease for a number of seconds. @throws EngineError */
  grant(seconds: number): Promise<Lease>;
  /** Renews a lease; false: it has ended. @throws EngineError */
  keepAlive(lease: Lease): Promise<boolean>;
  /** Ends a lease, and removes its keys. @throws EngineError */
  revoke(lease: Lease): Promise<void>;
  /** The state of each server, in the order of the addresses. Never rejects. */
  servers(): Promise<readonly EngineServer[]>;
  /** Whether a revision can still be read: then it is not compacted. @throws EngineError */
  remembers(revision: number): Promise<boolean>;
  /** How far this machine's clock is ahead of the engine's, in ms, to about a second; undefined before an answer. */
  clockAhead(): number | undefined;
  close(): void;
}

export interface StoredValue {
  readonly key: string;
  readonly value: Buffer;
  /** Of its last change. */
  readonly revision: number;
}

/** A point in the history of the engine. */
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

/** All keys with a prefix, after a key if it is given. */
export interface KeyRange {
  readonly prefix: string;
  readonly after?: string | undefined;
}

export interface ListOptions {
  /** Maximum number of keys in an answer. */
  readonly limit: number;
  /** As it was at a revision. */
  readonly revision?: number;
}

export interface Page extends Snapshot<StoredValue> {
  /** Whether there are more keys after these. */
  readonly more: boolean;
  /** The number of keys of the whole range. */
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
  /** Takes the changes of whole revisions. The next ones come when it is done; when it rejects, the same come again. */
  readonly onEvents: (events: readonly WatchedEvent[], at: Moment) => Promise<void>;
  /**
   * Reports the engine's revision every few seconds and after each reconnection: all changes of the range up to it
   * were reported, or are on their way.
   */
  readonly onHeartbeat?: (at: Moment) => void;
  /** Reports that the connection is lost, and again when its fault is another; a heartbeat follows when there is one again. */
  readonly onLost?: (cause: EngineError) => void;
  /** Reports that it can't continue. */
  readonly onEnd: (end: WatchEnd) => void;
}

/**
 * `compacted`: the engine no longer has the changes from where it should continue; `restored`: it is at an earlier
 * revision, an earlier term, or another cluster, so it was restored or replaced.
 */
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

/** A server as `GET /api/fleet` describes it. */
export type EngineServer = FleetAnswer['engine'][number];

/** The faults of the engine, and the error that a client gets. */
const FAULTS = {
  /** Not reached, or without a majority: nothing was changed. */
  unavailable: 'fleet_unavailable',
  /** A change was sent and not answered: it may be made. */
  unknown: 'fleet_outcome_unknown',
  /** User, password, certificate or right is refused. */
  denied: 'fleet_denied',
  /** The quota is used up. */
  full: 'fleet_full',
  /** The revision was compacted. */
  compacted: 'fleet_unavailable',
  /** The answer is none of the engine's. */
  refused: 'fleet_unavailable',
} as const satisfies Readonly<Record<string, ErrorCode>>;

export type EngineFault = keyof typeof FAULTS;

/** A fault of the engine. Its message is for the log: it may name addresses. */
export class EngineError extends Error {
  readonly kind: EngineFault;

  constructor(kind: EngineFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EngineError';
    this.kind = kind;
  }
}

/** The error that a client gets for an `EngineError`; others pass unchanged. */
export function toFleetError(thrown: unknown): unknown {
  return thrown instanceof EngineError ? apiError(FAULTS[thrown.kind], undefined, { cause: thrown }) : thrown;
}
