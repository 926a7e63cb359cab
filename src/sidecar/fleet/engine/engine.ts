import type { HttpError } from '../../../http/errors';
import { apiError, type ErrorCode } from '../../errors';

/** How many changes are decided in one transaction. */
export const MAX_CHANGES = 64;

/**
 * What the fleet asks of its engine, a store of keys and values that a majority of its servers has on disk before it
 * says so. Each change has a revision, which grows by one. `etcd.ts` is the only file that knows which engine it is.
 */
export interface Engine {
  /**
   * What some keys hold now, undefined for those that are absent, in their order. No answer is older than what was
   * acknowledged before the call.
   * @throws EngineError
   */
  read(keys: readonly string[]): Promise<Snapshot<StoredValue | undefined>>;
  /** What a range of keys holds, in the order of the keys. @throws EngineError */
  list(range: KeyRange, options?: ListOptions): Promise<Page>;
  /**
   * Makes each change whose key has still the revision that it is expected to have: all in one transaction, and if some can't
   * be made, the others in a further one. Nothing is done when the guard's key has another revision than it says. They are of different keys, and all
   * together have less than 1 MiB. Safe to repeat: a change that was made is not made again, and its answer shows what
   * stands there. It is repeated here while its answer is lost; so one that was made may be answered as not made, with its
   * own value as what is present, or with `undefined` when it changed the guard's key.
   * @throws EngineError of the kind `unknown` when they may have been made.
   * @throws RangeError for more than `MAX_CHANGES`, or two of one key.
   */
  change(changes: readonly Change[], guard?: Guard): Promise<ChangeAnswers>;
  /**
   * Sets a key whatever it holds. With a lease, it goes when that ends. Of one that was given up (`unknown`), the value may
   * still come. @throws EngineError
   */
  put(key: string, value: Buffer, lease?: Lease): Promise<number>;
  /** Removes a key and answers whether it was there, as far as an answer that was lost lets know. @throws EngineError */
  remove(key: string): Promise<boolean>;
  /**
   * Tells of every change of a range from a revision on, in their order. It looks after its connection: when the server
   * is gone, or has lost the majority, it goes on with another one where it was. It ends only as `WatchEnd` says.
   */
  watch(range: KeyRange, options: WatchOptions): Watch;
  /** A lease of so many seconds. @throws EngineError */
  grant(seconds: number): Promise<Lease>;
  /** Makes a lease last its whole time again; false: it has ended. @throws EngineError */
  keepAlive(lease: Lease): Promise<boolean>;
  /** Ends a lease, and removes its keys. @throws EngineError */
  revoke(lease: Lease): Promise<void>;
  /** How each of its servers is, in the order of the addresses. Never rejects. */
  servers(): Promise<readonly EngineServer[]>;
  /** Whether a revision so long ago can still be read: nothing is compacted then. @throws EngineError */
  remembers(revision: number): Promise<boolean>;
  /** By how much this machine's clock is ahead of the engine's, in ms, to about a second; undefined before an answer. */
  clockAhead(): number | undefined;
  close(): void;
}

export interface StoredValue {
  readonly key: string;
  readonly value: Buffer;
  /** Of its last change. */
  readonly revision: number;
}

/** When an answer was given: by which history of the engine, and at which revision of it. */
export interface Moment {
  readonly revision: number;
  /** Of the cluster. Another one: these are other servers, or they were restored. */
  readonly cluster: string;
  /** Grows with every election. Less than before: the servers were restored. */
  readonly term: number;
}

export interface Snapshot<Value> {
  readonly at: Moment;
  readonly values: readonly Value[];
}

/** All keys that begin with `prefix`; after `after`, if it is there. */
export interface KeyRange {
  readonly prefix: string;
  readonly after?: string | undefined;
}

export interface ListOptions {
  /** The most keys of an answer; by default all. */
  readonly limit?: number;
  /** As it was at a revision. */
  readonly revision?: number;
  /** Without the values, which are empty then. */
  readonly keysOnly?: boolean;
}

export interface Page extends Snapshot<StoredValue> {
  /** Whether there are more keys after these. */
  readonly more: boolean;
  /** How many keys the range has, those of this page included. */
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

/** `undefined`: the guard's key had another revision, and nothing was done. */
export type ChangeAnswers = { readonly at: Moment; readonly answers: readonly ChangeAnswer[] } | undefined;

export type ChangeAnswer =
  | { readonly made: true; readonly revision: number }
  /** What stands there instead. */
  | { readonly made: false; readonly present: StoredValue | undefined };

export type Lease = string & { readonly brand: 'Lease' };

export interface WatchOptions {
  /** The first revision that is told of. */
  readonly from: number;
  /**
   * The moment that it goes on from, as a list told it: when the engine is not where it was then, that ends the watch as
   * `restored`. By default what this Engine was told last.
   */
  readonly since?: Moment | undefined;
  /**
   * Takes the changes of one or several revisions, all of each. The next ones come when it is done. When it rejects, the same
   * come again.
   */
  readonly onEvents: (events: readonly WatchedEvent[], at: Moment) => Promise<void>;
  /**
   * Hears every few seconds, and after each reconnection, at which moment the engine is: all changes up to it that the range
   * had were told of, or are on their way.
   */
  readonly onPulse?: (at: Moment) => void;
  /** Hears that the connection is lost, and why; events or a pulse say that there is one again. */
  readonly onLost?: (cause: EngineError) => void;
  /** Hears that it can't go on. Nothing is told after that. */
  readonly onEnd: (end: WatchEnd) => void;
}

export type WatchEnd =
  /** The engine no longer has the changes from where it should go on. */
  | { readonly kind: 'compacted' }
  /** The engine is at an earlier revision, an earlier term, or another cluster: it was restored or replaced. */
  | { readonly kind: 'restored'; readonly at: Moment };

export interface WatchedEvent {
  readonly key: string;
  /** undefined: the key was removed. */
  readonly value: Buffer | undefined;
  readonly revision: number;
}

export interface Watch {
  close(): void;
}

export interface EngineServer {
  readonly url: string;
  /** Why it could not be asked; undefined: it answered. */
  readonly fault?: string;
  readonly version?: string;
  readonly isLeader?: boolean;
  /** Bytes of its database, allocated and in use. */
  readonly size?: number;
  readonly sizeInUse?: number;
  /** The most bytes that its database may have, where it tells. */
  readonly quota?: number;
  /** What it warns of, by its own names: `NOSPACE`, `CORRUPT`. */
  readonly alarms?: readonly string[];
}

/** What can be wrong with the engine, and what is answered then. */
const FAULTS = {
  /** Not reached, or without a majority: nothing was changed. */
  unavailable: 'fleet_unavailable',
  /** Asked to change something, and not heard of since: it may be done. */
  unknown: 'fleet_outcome_unknown',
  /** User, password or certificate are refused, or have not the right. */
  denied: 'fleet_denied',
  /** Its quota is used up. */
  full: 'fleet_full',
  /** It has no longer the revision that was asked for. */
  compacted: 'fleet_unavailable',
  /** It answered what it should not. */
  refused: 'fleet_unavailable',
} as const satisfies Readonly<Record<string, ErrorCode>>;

export type EngineFault = keyof typeof FAULTS;

/** What the engine could not do. Its message says why, in words for the log: it may name addresses. */
export class EngineError extends Error {
  readonly kind: EngineFault;

  constructor(kind: EngineFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EngineError';
    this.kind = kind;
  }
}

/** What a client is told of the engine's error; what is none passes unchanged. */
export function toFleetError(thrown: unknown): HttpError | unknown {
  return thrown instanceof EngineError ? apiError(FAULTS[thrown.kind], undefined, { cause: thrown }) : thrown;
}
