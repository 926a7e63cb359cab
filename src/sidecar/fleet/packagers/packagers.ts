import type { FleetState, LackReason } from '../../../api/fleet';
import type { Log } from '../../../http/log';
import { apiError } from '../../errors';
import { type Change, type Engine, EngineError } from '../engine/engine';
import type { AwaitedChange } from '../fleet';
import type { Places } from '../places';
import { type AwaitingPace, createAwaiting } from './awaiting';
import { createPresence, type PresencePace } from './presence';
import { createReporting, type ReportingPace } from './reporting';
import { listPackagers } from './roll';

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

export interface MembershipOptions {
  readonly engine: Engine;
  readonly places: Places;
  readonly name: string;
  /** The beginnings of the ids of the streams that this packager takes; undefined: all. */
  readonly streams: readonly string[] | undefined;
  /** Of this sidecar. */
  readonly version: string;
  /** Of its folder, `LedgerHead.id`. */
  readonly id: () => string;
  readonly report: () => Report;
  readonly log: Log;
  readonly clock: () => Date;
  /** Monotonic, in ms. */
  readonly now: () => number;
  readonly onNameTaken: (taken: boolean) => void;
  readonly pace?: Partial<Pace>;
}

type Pace = PresencePace & ReportingPace & AwaitingPace;

const PACE: Pace = {
  leaseSeconds: 15,
  keepAliveMs: 4000,
  retryMs: 5000,
  lookMs: 30_000,
  closeMs: 1000,
  periodMs: 5000,
  gatherMs: 5,
  againMs: 1000,
  lingerMs: 5000,
  relistMs: 500,
};

export function createMembership(options: MembershipOptions): Membership {
  const { engine, places } = options;
  const pace = { ...PACE, ...options.pace };
  const presence = createPresence({ ...options, pace, onHeld: () => reporting.renew() });
  const reporting = createReporting({ ...options, pace, presence });
  const awaiting = createAwaiting({ ...options, pace });
  return {
    join: presence.join,
    changed: reporting.changed,
    list: () => listPackagers(engine, places),
    waitFor: awaiting.waitFor,
    retire: (name) => retire(engine, places, name),
    close() {
      reporting.close();
      awaiting.close();
      return presence.close();
    },
  };
}

/** So often a packager is looked at anew that changes while it is removed. */
const MAX_ROUNDS = 5;

async function retire(engine: Engine, places: Places, name: string): Promise<void> {
  const keys = [places.packager(name), places.report(name), places.live(name)];
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const [registration, report, life] = (await engine.read(keys)).values;
    if (!registration)
      throw apiError(
        'packager_not_found',
        `No packager of the fleet is called ${name}. GET /api/fleet lists them.`,
      );
    if (life)
      throw apiError(
        'packager_live',
        `The packager ${name} runs. Stop its sidecar, wait half a minute, and retire it then.`,
      );
    const removals = [registration, report].flatMap((stored): Change[] =>
      stored ? [{ key: stored.key, expected: stored.revision, value: undefined }] : [],
    );
    // One that has come to life meanwhile is looked at again.
    const done = await engine.change(removals, { key: places.live(name), revision: 0 });
    if (done?.answers[0]?.made) return;
  }
  throw new EngineError('unavailable', `the registration of the packager ${name} keeps changing`);
}
