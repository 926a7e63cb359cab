import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { takes } from '../../../api/stream-id';
import { cached } from '../../../http/cached';
import { describeThrown } from '../../../http/errors';
import { EngineError } from '../engine/engine';
import type { AwaitedChange } from '../fleet';
import { type Packager, reportText, reportValue } from './member-records';
import type { MembershipOptions, NameLease, Pace } from './membership';
import { lackOf } from './replication-lag';

interface ReporterOptions extends Omit<MembershipOptions, 'pace'> {
  readonly lease: Pick<NameLease, 'heldSince' | 'checkSoon'>;
  readonly pace: Pace;
}

/** After a report comes a rest this many times as long as it took: the reports of many packagers slow the engine. */
const REST = 2;
const MAX_ROUNDS = 3;

/** Writes the report of this packager to the engine: every few seconds if it has changed, and on demand. */
export function createReporter(options: ReporterOptions) {
  const { engine, keys, name, lease, log, now, pace } = options;
  const key = keys.report(name);
  let sent: string | undefined;
  let revision = 0;
  let isSending = false;
  let isAwaited = false;
  let isFaulty = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  /** @returns whether it was written: the name is still held. @throws EngineError */
  const write = async (text: string, heldSince: number): Promise<boolean> => {
    const value = reportValue(text, options.clock());
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      // Another packager that has taken the name must not seem to have what is here.
      const guard = { key: keys.live(name), revision: heldSince };
      const [answer] = (await engine.change([{ key, expected: revision, value }], guard))?.answers ?? [];
      if (!answer) {
        if (lease.heldSince() === heldSince) lease.checkSoon();
        return false;
      }
      revision = answer.made ? answer.revision : (answer.present?.revision ?? 0);
      if (answer.made) return true;
    }
    throw new EngineError('unavailable', 'another sidecar writes the report of this packager');
  };

  const send = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const heldSince = lease.heldSince();
    const text = reportText(options.id(), options.report());
    if (isSending || heldSince === undefined || text === sent) return;
    [isSending, isAwaited] = [true, false];
    const began = now();
    let pause = 0;
    try {
      if (await write(text, heldSince)) sent = text;
      isFaulty = false;
      pause = Math.max(pace.gatherMs, REST * (now() - began));
    } catch (thrown) {
      if (!isFaulty) log.warn('the report to the fleet failed', { name, cause: describeThrown(thrown) });
      [isFaulty, isAwaited] = [true, true];
      pause = pace.againMs;
    }
    isSending = false;
    if (isAwaited) sendIn(pause);
  };
  const sendIn = (ms: number) => {
    if (!isClosed) timer ??= setTimeout(send, ms).unref();
  };
  const periodic = setInterval(send, pace.reportMs).unref();
  const hurry = () => {
    isAwaited = true;
    if (!isSending) sendIn(pace.gatherMs);
  };

  return {
    /** Writes the report soon: a client waits for it. */
    hurry,
    /** Writes the report again, even if it is unchanged: the engine may have lost it. */
    renew() {
      sent = undefined;
      hurry();
    },
    close() {
      isClosed = true;
      clearInterval(periodic);
      clearTimeout(timer);
    },
  };
}

interface WaiterOptions extends Pick<ReporterOptions, 'pace'> {
  readonly list: () => Promise<readonly Packager[]>;
}

/** Waits until packagers have changes, by reading their reports repeatedly. */
export function createWaiter({ list, pace }: WaiterOptions) {
  const closing = new AbortController();
  /** All waits share a reading that is under way. */
  const readAll = cached(0, () => 0, list);

  /** The packagers that do not have all of the changes, by name. */
  const behind = async (changes: readonly AwaitedChange[]): Promise<readonly string[]> =>
    (await readAll())
      .filter((packager) => {
        const reason = lackOf(packager);
        return changes.some(
          ({ streamId, revision }) =>
            takes(packager.streams, streamId) && reason(streamId, revision) !== undefined,
        );
      })
      .map(({ name }) => name);

  return {
    /** @see Fleet.waitFor @throws EngineError when the packagers could not be read in time. */
    async waitFor(changes: readonly AwaitedChange[], seconds: number): Promise<readonly string[]> {
      if (changes.length === 0) return [];
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(seconds * 1000)]);
      let names: readonly string[] | undefined;
      let fault: unknown = new EngineError('unavailable', 'the packagers could not be listed in time');
      const poll = async () => {
        const [first, longest] = pace.pollMs;
        for (let ms = first; names?.length !== 0; ms = Math.min(ms * 1.25, longest)) {
          await pause(ms, undefined, { signal, ref: false });
          try {
            names = await behind(changes);
          } catch (thrown) {
            fault = thrown;
          }
        }
      };
      // A reading may take longer than the wait.
      await Promise.race([poll(), once(signal, 'abort')]).catch(() => undefined);
      if (!names) throw fault;
      return names;
    },
    close: () => closing.abort(),
  };
}
