import type { FleetState } from '../../api/fleet';
import { describeThrown, HttpError } from '../../http/errors';
import type { Log } from '../../http/log';
import { apiError, type ErrorCode } from '../errors';
import { EngineError, type Moment } from './engine/engine';

/** How this packager is with its fleet. */
export interface Standing {
  readonly state: FleetState;
  readonly since: Date;
  /** Of the engine, when it was last heard of. */
  readonly moment: Moment | undefined;
  readonly isLevel: boolean;
  /** Seconds since it was last level; 0 while it is; undefined: it never was. */
  behindSeconds(): number | undefined;
  /** The engine was heard of. */
  heard(at: Moment): void;
  /** The connection to the engine is lost. */
  lost(cause: EngineError): void;
  /** It is this packager's fleet. */
  admitted(): void;
  /** All that the engine has is here, or no longer. */
  level(is: boolean): void;
  nameTaken(is: boolean): void;
  /** What keeps it from taking part. */
  failed(thrown: unknown): void;
  /**
   * @param hasJoined whether it has ever had all of the fleet: its packager can stream then, while the engine is away.
   * @throws HttpError that says why it should get no requests.
   */
  checkReady(hasJoined: boolean): void;
}

interface StandingOptions {
  readonly log: Log;
  readonly now: () => number;
  readonly clock: () => Date;
}

/** What is answered in states in which it gets no requests. */
const CODES = {
  wrong_secret: 'fleet_wrong_secret',
  other_fleet: 'fleet_other',
  lost_fleet: 'fleet_lost',
  name_taken: 'fleet_name_taken',
  denied: 'fleet_denied',
} as const satisfies Partial<Record<FleetState, ErrorCode>>;

export function createStanding({ log, now, clock }: StandingOptions): Standing {
  let trouble: FleetState | undefined;
  let isLevel = false;
  let isLost = false;
  let isNameTaken = false;
  let moment: Moment | undefined;
  let lastLevel: number | undefined;
  let told: { readonly state: FleetState; readonly since: Date } = { state: 'joining', since: clock() };

  const stateNow = (): FleetState => {
    if (trouble !== undefined) return trouble;
    if (isLost) return 'away';
    if (!isLevel) return 'joining';
    return isNameTaken ? 'name_taken' : 'level';
  };

  const settle = (cause?: unknown): void => {
    const state = stateNow();
    if (isLevel && !isLost && trouble === undefined) lastLevel = now();
    if (state === told.state) return;
    const fields = { state, former: told.state, revision: moment?.revision };
    if (state === 'level' || state === 'joining') log.info('fleet', fields);
    else log.error('fleet', { ...fields, ...(cause !== undefined && { cause: describeThrown(cause) }) });
    told = { state, since: clock() };
  };

  return {
    get state() {
      return told.state;
    },
    get since() {
      return told.since;
    },
    get moment() {
      return moment;
    },
    get isLevel() {
      return isLevel && !isLost && trouble === undefined;
    },
    behindSeconds() {
      if (isLevel && !isLost && trouble === undefined) return 0;
      return lastLevel === undefined ? undefined : (now() - lastLevel) / 1000;
    },
    heard(at) {
      moment = at;
      isLost = false;
      settle();
    },
    lost(cause) {
      isLost = true;
      settle(cause);
    },
    admitted() {
      trouble = undefined;
      isLost = false;
      settle();
    },
    level(is) {
      isLevel = is;
      if (is) settle();
    },
    nameTaken(is) {
      isNameTaken = is;
      settle();
    },
    failed(thrown) {
      if (thrown instanceof EngineError) {
        trouble = thrown.kind === 'denied' ? 'denied' : undefined;
        isLost = true;
      } else trouble = stateOf(thrown);
      settle(thrown);
    },
    checkReady(hasJoined) {
      // Who has to look at all of the fleet again has its key files meanwhile.
      const isAgain = told.state === 'joining' && lastLevel !== undefined;
      if (told.state === 'level' || isAgain || (told.state === 'away' && hasJoined)) return;
      throw apiError(isTrouble(told.state) ? CODES[told.state] : 'fleet_joining');
    },
  };
}

function stateOf(thrown: unknown): FleetState {
  const code = thrown instanceof HttpError ? thrown.problems[0]?.code : undefined;
  return Object.keys(CODES).find(isTroubleOf(code)) ?? 'no_folder';
}

function isTrouble(state: string): state is keyof typeof CODES {
  return state in CODES;
}

const isTroubleOf =
  (code: string | undefined) =>
  (state: string): state is keyof typeof CODES =>
    isTrouble(state) && CODES[state] === code;
