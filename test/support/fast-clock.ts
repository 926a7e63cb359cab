// Loaded into a program before its own code (`node --require`): what waits for seconds waits a tenth of them, so that a
// test need not. Short waits are left as they are.
const SPEED = 10;
const LONG_MS = 3000;

const wait = globalThis.setTimeout;

globalThis.setTimeout = Object.assign(
  (callback: () => void, ms = 0) => wait(callback, ms < LONG_MS ? ms : ms / SPEED),
  wait,
) as typeof wait;

export {};
