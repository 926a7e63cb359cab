import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Gauge, Registry } from 'prom-client';

type Prometheus = typeof import('prom-client');

/** The client library's own metrics of a process, by the names of their files: all but `eventLoopLag`. */
const OF_LIBRARY = [
  'processCpuTotal',
  'processStartTime',
  'osMemoryHeap',
  'processOpenFileDescriptors',
  'processMaxFileDescriptors',
  'processResources',
  'processHandles',
  'processRequests',
  'heapSizeAndUsed',
  'heapSpacesSizeAndUsed',
  'version',
  'gc',
];

const LAG_SPAN_MS = 15_000;
const LAG_RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;

/** Defines the usual metrics of a Node process. */
export function defineProcessMetrics(prometheus: Prometheus, registry: Registry): void {
  for (const name of OF_LIBRARY) {
    const define: (registry: Registry) => void = require(`prom-client/lib/metrics/${name}`);
    define(registry);
  }
  defineEventLoopLag(prometheus, registry);
}

/**
 * How late the event loop was in the last full 15 seconds; 0 before the first are over. The library's metrics of the
 * same names begin anew with each scrape: of two scrapers, one of them a stranger, each sees but a part.
 */
function defineEventLoopLag({ Gauge }: Prometheus, registry: Registry): void {
  const lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  const define = (name: string, what: string, read: () => number): [Gauge, () => number] => {
    const help = `The ${what} of the event loop's delays in the last full ${LAG_SPAN_MS / 1000} seconds.`;
    return [new Gauge({ name: `nodejs_eventloop_lag_${name}_seconds`, help, registers: [registry] }), read];
  };
  const gauges = [
    define('min', 'minimum', () => lag.min),
    define('max', 'maximum', () => lag.max),
    define('mean', 'mean', () => lag.mean),
    define('stddev', 'standard deviation', () => lag.stddev),
    define('p50', '50th percentile', () => lag.percentile(50)),
    define('p90', '90th percentile', () => lag.percentile(90)),
    define('p99', '99th percentile', () => lag.percentile(99)),
  ];
  lag.enable();
  setInterval(() => {
    for (const [gauge, read] of gauges) gauge.set(read() / NANOSECONDS);
    lag.reset();
  }, LAG_SPAN_MS).unref();
}
