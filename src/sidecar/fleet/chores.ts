/** What is done again and again beside everything else. */
interface Chores {
  /** Does something so many milliseconds after the start, and after each time that it was done. What fails is done again then. */
  every(ms: number, what: () => Promise<unknown>): void;
  close(): void;
}

export function createChores(): Chores {
  const timers = new Set<NodeJS.Timeout>();
  let isClosed = false;
  const every: Chores['every'] = (ms, what) => {
    const timer = setTimeout(async () => {
      timers.delete(timer);
      await what().catch(() => undefined);
      if (!isClosed) every(ms, what);
    }, ms).unref();
    timers.add(timer);
  };
  return {
    every,
    close() {
      isClosed = true;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
