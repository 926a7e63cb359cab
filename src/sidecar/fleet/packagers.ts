import type { FleetState, LackReason } from '../../api/fleet';
import type { AwaitedChange } from './fleet';

/** What a packager says of itself now. It goes to the engine as JSON. */
export interface Report {
  readonly state: FleetState;
  /**
   * Every change of its streams up to this revision of the engine is made here, but for `lacks`. One for each range that
   * `Places.entries` answers for its beginnings, in that order: they are followed each for itself. Empty: none was yet.
   */
  readonly applied: readonly number[];
  /** The streams whose state it has not, up to 1,000, and why. */
  readonly lacks: Readonly<Record<string, Exclude<LackReason, 'behind'>>>;
  /** How many they are. */
  readonly lacking: number;
  readonly clockAhead: number | undefined;
  /** Milliseconds; oldest first, up to 50. */
  readonly propagation: readonly number[];
}

/** A registered packager with what it reported last. */
export interface Packager {
  readonly name: string;
  /** Of its folder, `LedgerHead.id`. */
  readonly id: string;
  readonly streams: readonly string[] | undefined;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly version: string;
  readonly live: boolean;
  /** With the time that it was made at, by its own clock. */
  readonly report: (Report & { readonly at: number }) | undefined;
}

/** This packager among the others. */
export interface Membership {
  /**
   * Registers, and says from now on that it lives, while the engine can be reached. Called again after `lost`, it does
   * so anew. Answers false when another folder's sidecar lives under the name; it is tried again by itself then, and
   * `onNameTaken` hears of each change of that.
   * @throws EngineError
   */
  join(): Promise<boolean>;
  /**
   * Has a report made: within milliseconds when somebody waits for it, else within five seconds of the last one. Without
   * a change of the report nothing is sent. Never throws.
   */
  changed(isAwaited: boolean): void;
  /** All registered packagers, by name. @throws EngineError */
  list(): Promise<readonly Packager[]>;
  /** @see Fleet.waitFor @throws EngineError */
  waitFor(changes: readonly AwaitedChange[], seconds: number): Promise<readonly string[]>;
  /** Removes a packager. @throws HttpError 404, 409. @throws EngineError */
  retire(name: string): Promise<void>;
  /** Says that it no longer lives; waits for that no longer than a second. */
  close(): Promise<void>;
}
