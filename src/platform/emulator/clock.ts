export interface Timer {
  cancel(): void;
}

export type Clock = ReturnType<typeof createClock>;

interface Pending {
  readonly due: number;
  readonly run: () => void;
}

/** Node's timers pass over the time for which a machine sleeps, and by which its clock is set. */
const MAX_WAIT_MS = 10_000;

/** Real time plus an offset that the control port moves forward, so that twelve hours pass in a test. */
export function createClock(wallClock: () => Date) {
  let offset = 0;
  // While something runs, the time it sees is its own due time.
  let dueTime: number | undefined;
  let pending: Pending[] = [];
  let alarm: NodeJS.Timeout | undefined;

  const time = () => dueTime ?? wallClock().getTime() + offset;

  function setAlarm(): void {
    clearTimeout(alarm);
    alarm = undefined;
    const first = pending[0];
    if (!first) return;
    const wait = Math.min(Math.max(first.due - time(), 1), MAX_WAIT_MS);
    alarm = setTimeout(runUntilNow, wait).unref();
  }

  function runUntilNow(): void {
    const until = time();
    try {
      for (let first = pending[0]; first && first.due <= until; first = pending[0]) {
        pending.shift();
        dueTime = first.due;
        first.run();
      }
    } finally {
      dueTime = undefined;
      setAlarm();
    }
  }

  return {
    now: () => new Date(time()),
    /** Runs once, `ms` milliseconds from now: when they have passed, or when the clock is advanced over them. */
    after(ms: number, run: () => void): Timer {
      const entry = { due: time() + ms, run };
      // Most are later than all others.
      pending.splice(pending.findLastIndex(({ due }) => due <= entry.due) + 1, 0, entry);
      if (pending[0] === entry && dueTime === undefined) setAlarm();
      return {
        cancel() {
          pending = pending.filter((other) => other !== entry);
        },
      };
    },
    /** Moves forward. Timers that fall due run in order before this returns, each at its own due time. */
    advance(ms: number): void {
      offset += ms;
      runUntilNow();
    },
    /** How far it was advanced, in milliseconds. */
    offset: () => offset,
    reset(): void {
      offset = 0;
      pending = [];
      setAlarm();
    },
  };
}

/** A time as resources carry it: ISO 8601 with microseconds and offset. */
export function wireTime(time: Date): string {
  return `${time.toISOString().slice(0, -1)}000+00:00`;
}
