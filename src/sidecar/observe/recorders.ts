import { CLIENT_GONE } from '../../http/shell';
import { CACHE_EVENTS } from '../provisioning/provider-cache';
import type { CallOutcome } from '../provisioning/upstream';
import { bounded } from './bounded';
import type { Metrics, MetricsOptions } from './metrics';
import { defineProcessMetrics } from './process-metrics';

/** Where observations go once the client library is loaded. */
export type Recorders = Omit<Metrics, 'keyFilesCounted'>;

export interface RecorderOptions extends MetricsOptions {
  /** How many key files there are, or undefined before they are counted. */
  readonly keyFiles: () => number | undefined;
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

// No label holds a stranger's text: routes are our own patterns, codes our own words. The bounds hold if that fails.
const MAX_ROUTES = 64;
const MAX_STATUSES = 64;
const MAX_CODES = 128;

/** Loads the client library and defines the metrics. Labels are looked up once for each combination. */
export function openRecorders(options: RecorderOptions): Recorders {
  const { version, audit, connections, keyFiles, certificateEnds, faultyKeyFiles } = options;
  const prometheus: typeof import('prom-client') = require('prom-client');
  const registry = new prometheus.Registry();
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new prometheus.Counter({ name: `packagerdrmapi_${name}`, help, labelNames, registers });
  const durations = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new prometheus.Histogram({
      name: `packagerdrmapi_${name}`,
      help,
      labelNames,
      registers,
      buckets: BUCKETS,
    });
  const gauge = (name: string, help: string, collect: () => number | undefined) =>
    new prometheus.Gauge({
      name: `packagerdrmapi_${name}`,
      help,
      registers,
      collect() {
        const value = collect();
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });
  const labelledGauge = (
    name: string,
    help: string,
    label: string,
    collect: () => Readonly<Record<string, number | undefined>>,
  ) =>
    new prometheus.Gauge({
      name: `packagerdrmapi_${name}`,
      help,
      labelNames: [label],
      registers,
      collect() {
        this.reset();
        for (const [of, value] of Object.entries(collect()))
          if (value !== undefined) this.set({ [label]: of }, value);
      },
    });

  const requests = counter('http_requests_total', 'HTTP requests answered.', 'method', 'route', 'status');
  const requestSeconds = durations(
    'http_request_duration_seconds',
    'Time from the head of a request to the end of its answer.',
    'method',
    'route',
  );
  const ofRequest = bounded(MAX_ROUTES, 'other', (route: string) =>
    bounded(METHODS.size + 1, 'other', (method: string) => ({
      duration: requestSeconds.labels(method, route),
      count: bounded(MAX_STATUSES, 0, (status: number) =>
        requests.labels(method, route, statusLabel(status)),
      ),
    })),
  );

  const calls = counter(
    'upstream_requests_total',
    'Calls to upstreams, each retry for itself.',
    'upstream',
    'status',
  );
  const callSeconds = durations(
    'upstream_request_duration_seconds',
    'Duration of calls to upstreams.',
    'upstream',
  );
  const ofCall = bounded(MAX_CODES, 'other', (upstream: string) => ({
    duration: callSeconds.labels(upstream),
    count: bounded(MAX_STATUSES, 0, (status: CallOutcome) =>
      calls.labels(upstream, typeof status === 'string' ? status : statusLabel(status)),
    ),
  }));

  const lastAnswer = new prometheus.Gauge({
    name: 'packagerdrmapi_upstream_last_answer_timestamp_seconds',
    help: 'When an upstream last answered what could be used, as Unix time.',
    labelNames: ['upstream'],
    registers,
  });

  const cacheEvents = counter('provider_cache_events_total', 'What befell the provider cache.', 'event');
  for (const event of CACHE_EVENTS) cacheEvents.labels(event).inc(0);

  const phases = durations(
    'write_phase_duration_seconds',
    'Duration of the phases of writing a key file.',
    'phase',
  );
  const ofPhase = bounded(MAX_CODES, 'other', (phase: string) => phases.labels(phase));

  const failures = counter('failures_total', 'Error answers by the code of their first problem.', 'code');
  // A counter that first appears at 1 has risen by nothing in the eyes of an alert rule.
  for (const code of ALERTED_FAILURES) failures.labels(code).inc(0);
  const ofFailure = bounded(MAX_CODES, 'other', (code: string) => failures.labels(code));

  const refused = counter(
    'refused_total',
    'Callers refused: unknown key, lacking right, or too many attempts.',
    'reason',
  );
  for (const reason of REFUSED_REASONS) refused.labels(reason).inc(0);
  const ofRefusal = bounded(MAX_CODES, 'other', (reason: string) => refused.labels(reason));

  const changes = counter(
    'key_file_changes_total',
    'Changes of key files, and refused ones, as they are audited.',
    'action',
    'result',
  );
  const ofChange = bounded(MAX_CODES, 'other', (action: string) =>
    bounded(MAX_CODES, 'other', (result: string) => changes.labels(action, result)),
  );

  gauge('key_files', 'Key files: counted at the start, and kept by the changes made since.', keyFiles);
  labelledGauge(
    'key_files_faulty',
    'Key files by the severity of the worst fault that list and check find in them.',
    'severity',
    () => faultyKeyFiles?.() ?? {},
  );
  labelledGauge(
    'tls_certificate_not_after_timestamp_seconds',
    'When the first certificate of the file ends, as Unix time.',
    'certificate',
    () => {
      const ends = certificateEnds?.();
      return { server: seconds(ends?.server), client_authorities: seconds(ends?.clientAuthorities) };
    },
  );
  gauge('audit_lines_waiting', 'Audit lines that are not written yet.', audit.waiting);
  labelledGauge('connections', 'Open connections by what happens on them.', 'state', () =>
    connections.counts(),
  );
  new prometheus.Counter({
    name: 'packagerdrmapi_connections_refused_total',
    help: 'Connections that were ended or refused by a limit, by its name.',
    labelNames: ['cause'],
    registers,
    collect() {
      this.reset();
      for (const [cause, count] of Object.entries(connections.refused())) this.inc({ cause }, count);
    },
  });
  new prometheus.Counter({
    name: 'packagerdrmapi_audit_lines_lost_total',
    help: 'Audit lines that could not be written and are lost.',
    registers,
    collect() {
      this.reset();
      this.inc(audit.lost());
    },
  });
  new prometheus.Gauge({
    name: 'packagerdrmapi_build_info',
    help: 'Always 1; its labels say what runs.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.version }, 1);
  defineProcessMetrics(prometheus, registry);

  return {
    request({ method, route, status, ms, aborted }) {
      const { duration, count } = ofRequest(route)(METHODS.has(method) ? method : 'other');
      duration.observe(ms / 1000);
      count(aborted ? CLIENT_GONE : status).inc();
    },
    upstreamCall(upstream, outcome, ms) {
      const { duration, count } = ofCall(upstream);
      duration.observe(ms / 1000);
      count(outcome).inc();
    },
    upstreamAnswered: (upstream, time) => lastAnswer.labels(upstream).set(time.getTime() / 1000),
    providerCache: (event) => cacheEvents.labels(event).inc(),
    writePhase: (phase, ms) => ofPhase(phase).observe(ms / 1000),
    failed({ status, problems }) {
      const code = problems[0]?.code ?? 'other';
      ofFailure(code).inc();
      if (REFUSALS.has(status)) ofRefusal(code).inc();
    },
    changed: ({ action, result }) => ofChange(action)(result).inc(),
    scrape: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

function statusLabel(status: number): string {
  return status >= 100 && status <= 599 ? String(status) : 'other';
}

function seconds(time: Date | undefined): number | undefined {
  return time && time.getTime() / 1000;
}
