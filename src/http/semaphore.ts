export type Semaphore = ReturnType<typeof createSemaphore>;

/** Those who wait get places in the order of their calls. */
export function createSemaphore(places: number) {
  let free = places;
  const waiting: (() => void)[] = [];
  const leave = () => {
    const first = waiting.shift();
    // Not at once: many short tasks in a row would hold up all others.
    if (first) setImmediate(first);
    else free += 1;
  };
  const place = Object.assign(leave, { [Symbol.dispose]: leave });
  return {
    /** Resolves with a place, which a call of it or the end of its `using` block releases. */
    async enter(): Promise<typeof place> {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return place;
    },
  };
}

/** Others are served during long work. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
