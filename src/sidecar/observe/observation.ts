import type { Express } from 'express';
import type { Shell } from '../../http/app';
import type { HttpError } from '../../http/errors';
import type { CacheEvent } from '../provisioning/provider-cache';
import type { UpstreamOptions } from '../provisioning/upstream';
import type { WriteTimes } from '../storage/durable-file';
import type { Audit } from './audit';
import { createMetrics, type Metrics, type MetricsOptions, type Upstream } from './metrics';
import { METRICS_PATH, metricsRoutes } from './metrics-routes';
import type { OpenAudit } from './open-audit';

/** What the parts of the sidecar are given to be observed by. */
export interface Observation {
  readonly audit: Audit;
  readonly requests: Pick<Shell, 'observe'> & { readonly onError?: (error: HttpError) => void };
  readonly writes: WriteTimes | undefined;
  /** Paths that machines ask for every few seconds. */
  readonly quietPaths: readonly string[];
  calls(upstream: Upstream): Pick<UpstreamOptions, 'observe'>;
  /** An upstream answered what could be used. */
  answered(upstream: Upstream): void;
  providerCache(event: CacheEvent): void;
  keyFilesCounted(count: number): void;
  mount(app: Express): void;
}

export interface ObservationOptions extends Omit<MetricsOptions, 'audit'> {
  readonly audit: OpenAudit;
  /** Whether there is a `/metrics`; without it nothing is measured. */
  readonly metrics: boolean;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly clock: () => Date;
}

export function createObservation(options: ObservationOptions): Observation {
  const { audit } = options.audit;
  return options.metrics ? observed(createMetrics(options), audit, options) : unobserved(audit);
}

function observed(
  metrics: Metrics,
  audit: Audit,
  { now, clock }: Pick<ObservationOptions, 'now' | 'clock'>,
): Observation {
  return {
    audit(entry) {
      metrics.changed(entry);
      audit(entry);
    },
    requests: { observe: metrics.request, onError: metrics.failed },
    writes: { now, observe: metrics.writePhase },
    quietPaths: [METRICS_PATH],
    calls: (upstream) => ({ observe: (outcome, ms) => metrics.upstreamCall(upstream, outcome, ms) }),
    answered: (upstream) => metrics.upstreamAnswered(upstream, clock()),
    providerCache: metrics.providerCache,
    keyFilesCounted: metrics.keyFilesCounted,
    mount: (app) => metricsRoutes(app, metrics, now),
  };
}

function unobserved(audit: Audit): Observation {
  return {
    audit,
    requests: {},
    writes: undefined,
    quietPaths: [],
    calls: () => ({}),
    answered: () => undefined,
    providerCache: () => undefined,
    keyFilesCounted: () => undefined,
    mount: () => undefined,
  };
}
