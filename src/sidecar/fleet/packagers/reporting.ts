import { createHash } from 'node:crypto';
import { describeThrown } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { type Engine, EngineError } from '../engine/engine';
import type { Places } from '../places';
import type { Report } from './packagers';
import type { Presence } from './presence';
import { reportText, reportValue } from './roll';

export interface ReportingOptions {
  readonly engine: Engine;
  readonly places: Places;
  readonly name: string;
  readonly id: () => string;
  readonly report: () => Report;
  readonly presence: Pick<Presence, 'held' | 'look'>;
  readonly log: Log;
  readonly clock: () => Date;
  /** Monotonic, in ms. */
  readonly now: () => number;
  readonly pace: ReportingPace;
}

/** In ms. */
export interface ReportingPace {
  /** How often a report is sent that nobody waits for. */
  readonly periodMs: number;
  /** How long one that is waited for gathers what comes at the same moment. */
  readonly gatherMs: number;
  /** How soon one that is waited for is tried again. */
  readonly againMs: number;
}

/** Tells the others what this packager has. */
export interface Reporting {
  /** @see Membership.changed */
  changed(isAwaited: boolean): void;
  /** Has the report made whatever was sent before: the engine may have lost it. */
  renew(): void;
  close(): void;
}

/** After a report that is waited for comes a rest so many times as long as it took: many packagers at once slow the engine. */
const REST = 2;
const MAX_ROUNDS = 3;

export function createReporting(options: ReportingOptions): Reporting {
  const { engine, places, name, presence, log, now, pace } = options;
  const key = places.report(name);
  /** What was sent last, and the revision of that. */
  let sent: string | undefined;
  let revision = 0;
  let isWanted = false;
  let isAwaited = false;
  let isSending = false;
  let isFaulty = false;
  let isClosed = false;
  let restUntil = 0;
  /** When the last report was begun. */
  let began = -Infinity;
  let timer: NodeJS.Timeout | undefined;
  let due = Infinity;
  // Packagers hear of a change at the same moment: each reports at a moment of its own.
  const phase = (createHash('sha256').update(name).digest().readUInt32BE() / 2 ** 32) * pace.periodMs;

  const plan = (ms: number) => {
    const at = now() + ms;
    if (isClosed || isSending || at >= due) return;
    clearTimeout(timer);
    due = at;
    timer = setTimeout(send, ms).unref();
  };
  /** A timer may end a little before its time: that is no second turn. */
  const untilTurn = (at: number): number => {
    const wait = pace.periodMs - ((at + phase) % pace.periodMs);
    return at + wait - began < pace.periodMs / 10 ? wait + pace.periodMs : wait;
  };
  const planNext = () => {
    if (!isWanted) return;
    const at = now();
    if (isAwaited) plan(Math.max(pace.gatherMs, restUntil - at));
    else plan(untilTurn(at));
  };

  /** @returns false when the name is no longer held. @throws EngineError */
  const write = async (said: string): Promise<boolean> => {
    const value = reportValue(said, options.clock());
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const held = presence.held();
      if (held === undefined) return false;
      // Whoever has the name meanwhile must not seem to have what is here.
      const guard = { key: places.live(name), revision: held };
      const [answer] = (await engine.change([{ key, expected: revision, value }], guard))?.answers ?? [];
      if (!answer) {
        if (presence.held() === held) presence.look();
        return false;
      }
      revision = answer.made ? answer.revision : (answer.present?.revision ?? 0);
      if (answer.made) return true;
    }
    throw new EngineError('unavailable', 'somebody else writes the report of this packager');
  };

  const make = async (): Promise<void> => {
    const said = reportText(options.id(), options.report());
    if (said === sent) return;
    began = now();
    if (await write(said)) sent = said;
    else isWanted = true;
    restUntil = now() + REST * (now() - began);
  };

  const send = async (): Promise<void> => {
    due = Infinity;
    // It is asked for again when the name is held.
    if (presence.held() === undefined) return;
    const wasAwaited = isAwaited;
    [isWanted, isAwaited, isSending] = [false, false, true];
    try {
      await make();
      isFaulty = false;
    } catch (thrown) {
      if (!isFaulty) log.warn('the report to the fleet failed', { name, cause: describeThrown(thrown) });
      isFaulty = true;
      isWanted = true;
      isAwaited ||= wasAwaited;
      restUntil = now() + pace.againMs;
    }
    isSending = false;
    planNext();
  };

  return {
    changed(awaited) {
      isWanted = true;
      isAwaited ||= awaited;
      planNext();
    },
    renew() {
      sent = undefined;
      isWanted = true;
      isAwaited = true;
      planNext();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
