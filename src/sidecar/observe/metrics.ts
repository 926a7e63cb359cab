import type { Express } from 'express';
import { Registry } from 'prom-client';
import { type AnsweredRequest, CLIENT_GONE, onlyMethods, type Shell } from '../../http/app';
import type { Connections } from '../../http/connections';
import type { HttpError } from '../../http/errors';
import type { CertificateEnds } from '../../http/tls';
import { cached } from '../cached';
import type { FleetFigures, FleetObserver } from '../fleet/fleet';
import { CACHE_EVENTS, type CacheEvent } from '../provisioning/provider-cache';
import type { CallOutcome, UpstreamName, UpstreamOptions } from '../provisioning/upstream';
import type { WritePhase, WriteTimes } from '../storage/durable-file';
import type { Audit, AuditEntry, OpenAudit } from './audit';
import { defineIn } from './define-metrics';
import { createFleetMetrics, UNOBSERVED } from './fleet-metrics';
import type { FaultyKeyFiles } from './survey';

/** The observers of the sidecar's parts. */
export interface Observation {
  readonly audit: Audit;
  readonly requests: Pick<Shell, 'observe'> & { readonly onError?: (error: HttpError) => void };
  readonly writes: WriteTimes | undefined;
  /** Paths that machines ask for every few seconds. */
  readonly quietPaths: readonly string[];
  calls(upstream: UpstreamName): Pick<UpstreamOptions, 'observe'>;
  /** An upstream answered what could be used. */
  answered(upstream: UpstreamName): void;
  providerCache(event: CacheEvent): void;
  readonly fleet: FleetObserver;
  /** How many key files there were at the start. */
  keyFilesCounted(count: number): void;
  mount(app: Express): void;
}

interface ObservationOptions extends Omit<MetricsOptions, 'audit'> {
  readonly audit: OpenAudit;
  /** Whether there is a `/metrics`; without it nothing is measured. */
  readonly metrics: boolean;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly clock: () => Date;
}

export function createObservation(options: ObservationOptions): Observation {
  const { audit, now, clock } = options;
  const metrics = options.metrics ? createMetrics(options) : undefined;
  return {
    audit(entry) {
      metrics?.changed(entry);
      audit.audit(entry);
    },
    requests: metrics ? { observe: metrics.request, onError: metrics.failed } : {},
    writes: metrics && { now, observe: metrics.writePhase },
    quietPaths: metrics ? [METRICS_PATH] : [],
    calls: (upstream) =>
      metrics ? { observe: (outcome, ms) => metrics.upstreamCall(upstream, outcome, ms) } : {},
    answered: (upstream) => metrics?.upstreamAnswered(upstream, clock()),
    providerCache: (event) => metrics?.providerCache(event),
    fleet: metrics?.fleet ?? UNOBSERVED,
    keyFilesCounted: (count) => metrics?.keyFilesCounted(count),
    mount(app) {
      if (metrics) metricsRoutes(app, metrics, now);
    },
  };
}

export const METRICS_PATH = '/metrics';

/** In milliseconds: a scrape holds up everybody for two, and needs no key. */
const KEPT_MS = 1000;

/** `/metrics` in the text format of Prometheus. Without a key, like the probes: it names no stream and no caller. */
export function metricsRoutes(app: Express, metrics: Pick<Metrics, 'scrape'>, now: () => number): void {
  const scrape = cached(KEPT_MS, now, metrics.scrape);
  app
    .route(METRICS_PATH)
    .get(async (_request, response) => {
      const { contentType, text } = await scrape();
      // As bytes: of a string, Express would write its own idea of the content type.
      response.set({ 'content-type': contentType, 'cache-control': 'no-store' }).send(Buffer.from(text));
    })
    .all(onlyMethods('GET', 'HEAD'));
}

/** The sidecar's metrics for Prometheus. No method throws; all but `scrape` return at once. */
export interface Metrics {
  request(answered: AnsweredRequest): void;
  upstreamCall(upstream: UpstreamName, outcome: CallOutcome, ms: number): void;
  /** An upstream answered at this time what could be used. */
  upstreamAnswered(upstream: UpstreamName, time: Date): void;
  providerCache(event: CacheEvent): void;
  writePhase(phase: WritePhase, ms: number): void;
  /** An error that was answered. */
  failed(error: HttpError): void;
  /** A change of a key file, or a refused one; keeps the count of key files up to date. */
  changed(entry: AuditEntry): void;
  /** How many key files there were at the start. */
  keyFilesCounted(count: number): void;
  /** Measures nothing without `fleetFigures`. */
  readonly fleet: FleetObserver;
  scrape(): Promise<Scrape>;
}

export interface Scrape {
  readonly contentType: string;
  readonly text: string;
}

export interface MetricsOptions {
  /** The version of the sidecar. */
  readonly version: string;
  readonly audit: { lost(): number; waiting(): number };
  readonly connections: Pick<Connections, 'counts' | 'refused'>;
  /** undefined: plain HTTP. */
  readonly certificateEnds?: (() => CertificateEnds) | undefined;
  /** Answers undefined before they are counted. */
  readonly faultyKeyFiles?: (() => FaultyKeyFiles | undefined) | undefined;
  /** Answers how the sidecar is with its fleet; undefined: it is in none, and has no metrics of one. */
  readonly fleetFigures?: (() => FleetFigures | undefined) | undefined;
  /** Adds the metrics of the process to these. It observes until the process ends, so a process needs it once. */
  readonly observeProcess?: ((registry: Registry) => void) | undefined;
}

/** Seconds. A read takes a quarter of a millisecond, a write a few, an upstream is given up after 5 s. */
const BUCKETS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** Statuses that refuse a caller, not a request. */
const REFUSALS = new Set([401, 403, 429]);

const REFUSED_REASONS = ['unauthorized', 'forbidden', 'too_many_attempts'];
const ALERTED_FAILURES = [
  'server_error',
  'insufficient_storage',
  'key_files_not_readable',
  'key_files_not_writable',
];

/**
 * Defines the metrics, in a registry of their own. No label holds a caller's text: routes are our own patterns, codes our
 * own words, methods and statuses those that there are.
 */
export function createMetrics(options: MetricsOptions): Metrics {
  const { version, audit, connections, certificateEnds, faultyKeyFiles, observeProcess, fleetFigures } =
    options;
  const registry = new Registry();
  const define = defineIn(registry);
  const { counter, histogram } = define;

  const requests = counter('http_requests_total', 'HTTP requests answered.', 'method', 'route', 'status');
  const requestSeconds = histogram(
    'http_request_duration_seconds',
    'Time from the head of a request to the end of its answer.',
    BUCKETS,
    'method',
    'route',
  );
  const calls = counter(
    'upstream_requests_total',
    'Calls to upstreams, each retry for itself.',
    'upstream',
    'status',
  );
  const callSeconds = histogram(
    'upstream_request_duration_seconds',
    'Duration of calls to upstreams.',
    BUCKETS,
    'upstream',
  );
  const lastAnswer = define.gauge(
    'upstream_last_answer_timestamp_seconds',
    'When an upstream last answered what could be used, as Unix time.',
    'upstream',
  );
  const cacheEvents = counter('provider_cache_events_total', 'Events of the provider cache.', 'event');
  const phases = histogram(
    'write_phase_duration_seconds',
    'Duration of the phases of writing a key file.',
    BUCKETS,
    'phase',
  );
  const failures = counter('failures_total', 'Error answers by the code of their first problem.', 'code');
  const refused = counter(
    'refused_total',
    'Clients refused: unknown key, missing right, or too many attempts.',
    'reason',
  );
  // A counter that first appears at 1 has risen by nothing in the eyes of an alert rule.
  for (const event of CACHE_EVENTS) cacheEvents.inc({ event }, 0);
  for (const code of ALERTED_FAILURES) failures.inc({ code }, 0);
  for (const reason of REFUSED_REASONS) refused.inc({ reason }, 0);
  const changes = counter(
    'key_file_changes_total',
    'Changes of key files, and refused ones, as they are audited.',
    'action',
    'result',
  );

  let keyFilesAtStart: number | undefined;
  let keyFilesSince = 0;
  define.read('key_files', 'Key files: counted at the start, and kept by the changes made since.', () =>
    keyFilesAtStart === undefined ? undefined : keyFilesAtStart + keyFilesSince,
  );
  define.readEach(
    'key_files_faulty',
    'Key files by the severity of the worst fault that list and check find in them.',
    'severity',
    () => ({ ...faultyKeyFiles?.() }),
  );
  define.readEach(
    'tls_certificate_not_after_timestamp_seconds',
    'When the first certificate of the file ends, as Unix time.',
    'certificate',
    () => {
      const ends = certificateEnds?.();
      return { server: seconds(ends?.server), client_authorities: seconds(ends?.clientAuthorities) };
    },
  );
  define.readEach('connections', 'Open connections by what happens on them.', 'state', () =>
    connections.counts(),
  );
  define.readCounters(
    'connections_refused_total',
    'Connections that were ended or refused by a limit, by its name.',
    'cause',
    connections.refused,
  );
  define.read('audit_lines_waiting', 'Audit lines that are not written yet.', audit.waiting);
  define.readCounter(
    'audit_lines_lost_total',
    'Audit lines that could not be written and are lost.',
    audit.lost,
  );
  define
    .gauge('build_info', 'Always 1; its labels say what runs.', 'version', 'node')
    .set({ version, node: process.version }, 1);
  const fleet = fleetFigures ? createFleetMetrics(define, fleetFigures) : UNOBSERVED;
  observeProcess?.(registry);

  return {
    request({ method: given, route, status, ms, aborted }) {
      const method = METHODS.has(given) ? given : 'other';
      requestSeconds.observe({ method, route }, ms / 1000);
      requests.inc({ method, route, status: statusLabel(aborted ? CLIENT_GONE : status) });
    },
    upstreamCall(upstream, outcome, ms) {
      callSeconds.observe({ upstream }, ms / 1000);
      calls.inc({ upstream, status: typeof outcome === 'string' ? outcome : statusLabel(outcome) });
    },
    upstreamAnswered: (upstream, time) => lastAnswer.set({ upstream }, time.getTime() / 1000),
    providerCache: (event) => cacheEvents.inc({ event }),
    writePhase: (phase, ms) => phases.observe({ phase }, ms / 1000),
    failed({ status, problems }) {
      const code = problems[0]?.code ?? 'other';
      failures.inc({ code });
      if (REFUSALS.has(status)) refused.inc({ reason: code });
    },
    changed({ action, result, isElsewhere = false }) {
      if (result === 'created' && !isElsewhere) keyFilesSince += 1;
      else if (result === 'deleted' && !isElsewhere) keyFilesSince -= 1;
      changes.inc({ action, result });
    },
    keyFilesCounted(count) {
      keyFilesAtStart = count;
      keyFilesSince = 0;
    },
    fleet,
    scrape: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

function statusLabel(status: number): string {
  return status >= 100 && status <= 599 ? String(status) : 'other';
}

function seconds(time: Date | undefined): number | undefined {
  return time && time.getTime() / 1000;
}
