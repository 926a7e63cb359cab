import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/**
 * Loaded into a server before its program: at each SIGUSR2 it adds to the file BENCH_HOLD the longest time, in
 * milliseconds, that the event loop was held since the last one.
 */
const RESOLUTION_MS = 1;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
process.on('SIGUSR2', () => {
  appendFileSync(process.env.BENCH_HOLD ?? '/dev/null', `${delay.max / 1e6 - RESOLUTION_MS}\n`);
  delay.reset();
});
