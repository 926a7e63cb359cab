import type { FleetState } from '../../api/fleet';
import { describeThrown, HttpError } from '../../http/errors';
import { apiError, type ErrorCode } from '../errors';
import { EngineError, type Moment } from './engine/engine';
import type { FleetHooks } from './fleet';

export type MembershipState = ReturnType<typeof createMembershipState>;

/** The errors of the states in which the sidecar should get no requests. */
const CODES = {
  wrong_secret: 'fleet_wrong_secret',
  other_fleet: 'fleet_other',
  lost_fleet: 'fleet_lost',
  name_taken: 'fleet_name_taken',
  denied: 'fleet_denied',
} as const satisfies Partial<Record<FleetState, ErrorCode>>;

const NO_LEDGER =
  'The ledger of the fleet in the key-file folder cannot be used. The line `fleet` of the log says why, and what to do.';

interface Known {
  trouble: FleetState | undefined;
  hasEverything: boolean;
  isLost: boolean;
  isNameTaken: boolean;
}

export function createMembershipState({ log, now, clock }: Pick<FleetHooks, 'log' | 'now' | 'clock'>) {
  const known: Known = { trouble: undefined, hasEverything: false, isLost: false, isNameTaken: false };
  let moment: Moment | undefined;
  let lastLevel: number | undefined;
  let shown: { readonly state: FleetState; readonly since: Date } = { state: 'joining', since: clock() };

  const isLevel = () => known.hasEverything && !known.isLost && known.trouble === undefined;
  const stateNow = (): FleetState => {
    if (known.trouble !== undefined) return known.trouble;
    if (known.isLost) return 'away';
    if (!known.hasEverything) return 'joining';
    return known.isNameTaken ? 'name_taken' : 'level';
  };

  const learn = (news: Partial<Known>, cause?: unknown): void => {
    Object.assign(known, news);
    const state = stateNow();
    if (isLevel()) lastLevel = now();
    if (state === shown.state) return;
    const fields = { state, former: shown.state, revision: moment?.revision };
    if (state === 'level' || state === 'joining') log.info('fleet', fields);
    else log.error('fleet', { ...fields, ...(cause !== undefined && { cause: describeThrown(cause) }) });
    shown = { state, since: clock() };
  };

  return {
    get state() {
      return shown.state;
    },
    get since() {
      return shown.since;
    },
    get moment() {
      return moment;
    },
    get isLevel() {
      return isLevel();
    },
    /** Seconds since it was last level; 0 while it is; undefined: it never was. */
    behindSeconds(): number | undefined {
      if (isLevel()) return 0;
      return lastLevel === undefined ? undefined : (now() - lastLevel) / 1000;
    },
    engineReached(at: Moment): void {
      moment = at;
      learn({ isLost: false, trouble: undefined });
    },
    /** The engine holds this packager's fleet. `denied` stays: another request may be refused again. */
    admitted: () => learn({ ...(known.trouble !== 'denied' && { trouble: undefined }), isLost: false }),
    levelled: () => learn({ trouble: undefined, hasEverything: true }),
    /** The fleet is read again; until something is learnt, the state shown stays. */
    reading(): void {
      known.hasEverything = false;
    },
    setNameTaken: (isNameTaken: boolean) => learn({ isNameTaken }),
    failed(thrown: unknown): void {
      if (!(thrown instanceof EngineError)) learn({ trouble: troubleOf(thrown) }, thrown);
      else learn({ isLost: true, trouble: thrown.kind === 'denied' ? 'denied' : undefined }, thrown);
    },
    /** `hasJoined`: it had all of the fleet once, and can stream without the engine. @throws HttpError 503 */
    checkReady(hasJoined: boolean): void {
      const { state } = shown;
      // A packager that reads the whole fleet again keeps its key files meanwhile.
      const isAgain = state === 'joining' && lastLevel !== undefined;
      if (state === 'level' || isAgain || (['away', 'denied'].includes(state) && hasJoined)) return;
      if (state === 'no_folder') throw apiError('key_files_not_writable', NO_LEDGER);
      throw apiError(state in CODES ? CODES[state as keyof typeof CODES] : 'fleet_joining');
    },
  };
}

function troubleOf(thrown: unknown): FleetState {
  const code = thrown instanceof HttpError ? thrown.problems[0]?.code : undefined;
  const states = Object.keys(CODES) as (keyof typeof CODES)[];
  return states.find((state) => CODES[state] === code) ?? 'no_folder';
}
