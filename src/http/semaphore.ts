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
  return {
    /** Resolves with the function that releases the place. */
    async enter(): Promise<() => void> {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return leave;
    },
  };
}

/** Others are served during long work. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
