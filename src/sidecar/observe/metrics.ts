import type { Express } from 'express';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { FLEET_STATES } from '../../api/fleet';
import { type AnsweredRequest, CLIENT_GONE, routeAt } from '../../http/app';
import { cached } from '../../http/cached';
import type { Connections } from '../../http/connections';
import type { HttpError } from '../../http/errors';
import type { CertificateEnds } from '../../http/tls';
import type { CallOutcome, UpstreamName } from '../../provider/upstream';
import { ENTRY_RESULTS, type FleetFigures, type FleetObserver } from '../fleet/fleet';
import type { FaultyKeyFiles } from '../key-files/changes';
import { CACHE_EVENTS, type CacheEvent } from '../provider-cache';
import type { WritePhase } from '../storage/durable-file';
import type { Audit } from './audit';

export const METRICS_PATH = '/metrics';

/** In ms: a scrape holds up all requests for two, and needs no key. */
const KEPT_MS = 1000;

/** Without a key, like the probes: `/metrics` names no stream and no caller. */
export function metricsRoutes(app: Express, metrics: Pick<Metrics, 'scrape'>, now: () => number): void {
  const scrape = cached(KEPT_MS, now, metrics.scrape);
  routeAt(app, METRICS_PATH).get(async (_request, response) => {
    const { contentType, text } = await scrape();
    // For a string, Express would write its own content type.
    response.set({ 'content-type': contentType, 'cache-control': 'no-store' }).send(Buffer.from(text));
  });
}

export type Metrics = ReturnType<typeof createMetrics>;

export interface MetricsOptions {
  readonly version: string;
  readonly audit: { lost(): number; waiting(): number };
  readonly connections: Pick<Connections, 'counts' | 'refused'>;
  readonly certificateEnds?: (() => CertificateEnds) | undefined;
  readonly faultyKeyFiles?: (() => FaultyKeyFiles | undefined) | undefined;
  /** Adds the metrics of the process. It observes until the process ends, so a process needs it once. */
  readonly observeProcess?: ((registry: Registry) => void) | undefined;
}

/** Seconds. A read takes a quarter of a millisecond, a write a few, an upstream is given up after 5 s. */
const BUCKETS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Seconds. A change takes some milliseconds to reach a packager, and minutes where one was away. */
const APPLY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const REFUSALS = new Set([401, 403, 429]);

const REFUSED_REASONS = ['unauthorized', 'forbidden', 'too_many_attempts', 'too_many_pulls'];
const ALERTED_FAILURES = [
  'server_error',
  'insufficient_storage',
  'key_files_not_readable',
  'key_files_not_writable',
];

/** One value, or the values of a label. Undefined values are absent. */
type Reading = number | undefined | Readonly<Record<string, number | undefined>>;

const HELP = {
  http_requests_total: 'HTTP requests answered.',
  http_request_duration_seconds: 'Time from the head of a request to the end of its answer.',
  upstream_requests_total: 'Calls to upstreams, each retry counted.',
  upstream_request_duration_seconds: 'Duration of calls to upstreams.',
  upstream_last_answer_timestamp_seconds: 'Unix time of the last usable answer of an upstream.',
  provider_cache_events_total: 'Events of the provider cache.',
  write_phase_duration_seconds: 'Duration of the phases of writing a key file.',
  failures_total: 'Error answers by the code of their first problem.',
  refused_total: 'Clients refused: unknown key, missing right, or too many attempts.',
  key_file_changes_total: 'Changes of key files, and refused ones, as they are audited.',
  key_files: 'Key files: counted at the start, and kept by the changes made since.',
  key_files_faulty: 'Key files by the severity of the worst fault that list and check find in them.',
  tls_certificate_not_after_timestamp_seconds:
    'Unix time at which the first certificate of the file expires.',
  connections: 'Open connections by what happens on them.',
  connections_refused_total: 'Connections that were ended or refused by a limit, by its name.',
  audit_lines_waiting: 'Audit lines that are not written yet.',
  audit_lines_lost_total: 'Audit lines that could not be written and are lost.',
  build_info: 'Always 1; its labels have the versions.',
  fleet_state: 'Membership state of the sidecar in its fleet: 1 for the present state.',
  fleet_behind_seconds: 'Seconds since the sidecar last had every change of the engine; 0 while it has.',
  fleet_kept: "Streams with a file in their place that is not the fleet's.",
  fleet_unreadable: 'Streams whose entry in the engine cannot be opened.',
  fleet_failed: 'Streams whose key file could not be written or removed; the sidecar retries.',
  fleet_older: 'Streams of which the engine holds an older state than the packager has.',
  fleet_engine_size_bytes: "Size of the database of the engine's largest server.",
  fleet_engine_quota_bytes: 'The quota of this database in bytes.',
  fleet_entries_total: 'Entries that came from the engine.',
  fleet_apply_seconds:
    'Time from the acceptance of a change anywhere to its file here, by the clocks of both sidecars.',
  fleet_conflicts_total: 'Changes that were retried because another sidecar was faster.',
} as const;
type Name = keyof typeof HELP;

/** No method throws. No label holds a caller's text: all are our own words or standard ones. */
export function createMetrics(options: MetricsOptions) {
  const { version, audit, connections, certificateEnds, faultyKeyFiles, observeProcess } = options;
  const registry = new Registry();
  const described = <Label extends string>(name: Name, labelNames: Label[]) => ({
    name: `packagerdrmapi_${name}`,
    help: HELP[name],
    labelNames,
    registers: [registry],
  });
  const counter = <Label extends string>(name: Name, ...labels: Label[]) =>
    new Counter(described(name, labels));
  const histogram = <Label extends string>(name: Name, buckets: number[], ...labels: Label[]) =>
    new Histogram({ ...described(name, labels), buckets });
  const read = (name: Name, take: () => Reading, label?: string): void => {
    const Kind: typeof Gauge<string> | typeof Counter<string> = name.endsWith('_total') ? Counter : Gauge;
    const metric = new Kind({
      ...described(name, label === undefined ? [] : [label]),
      collect() {
        const reading = take();
        metric.reset();
        if (label === undefined) metric.remove();
        const values = typeof reading === 'object' ? Object.entries(reading) : [['', reading] as const];
        for (const [of, value] of values)
          if (value !== undefined) metric.inc(label === undefined ? {} : { [label]: of }, value);
      },
    });
  };

  const requests = counter('http_requests_total', 'method', 'route', 'status');
  const requestSeconds = histogram('http_request_duration_seconds', BUCKETS, 'method', 'route');
  const calls = counter('upstream_requests_total', 'upstream', 'status');
  const callSeconds = histogram('upstream_request_duration_seconds', BUCKETS, 'upstream');
  const lastAnswer = new Gauge(described('upstream_last_answer_timestamp_seconds', ['upstream']));
  const cacheEvents = counter('provider_cache_events_total', 'event');
  const phases = histogram('write_phase_duration_seconds', BUCKETS, 'phase');
  const failures = counter('failures_total', 'code');
  const refused = counter('refused_total', 'reason');
  // An alert rule sees no increase in a counter that first appears at 1.
  for (const event of CACHE_EVENTS) cacheEvents.inc({ event }, 0);
  for (const code of ALERTED_FAILURES) failures.inc({ code }, 0);
  for (const reason of REFUSED_REASONS) refused.inc({ reason }, 0);
  const changes = counter('key_file_changes_total', 'action', 'result');

  let keyFiles: number | undefined;
  read('key_files', () => keyFiles);
  read('key_files_faulty', () => ({ ...faultyKeyFiles?.() }), 'severity');
  const readEnds = () => {
    const ends = certificateEnds?.();
    return { server: seconds(ends?.server), client_authorities: seconds(ends?.clientAuthorities) };
  };
  read('tls_certificate_not_after_timestamp_seconds', readEnds, 'certificate');
  read('connections', connections.counts, 'state');
  read('connections_refused_total', connections.refused, 'cause');
  read('audit_lines_waiting', audit.waiting);
  read('audit_lines_lost_total', audit.lost);
  new Gauge(described('build_info', ['version', 'node'])).set({ version, node: process.version }, 1);
  observeProcess?.(registry);

  return {
    request({ method: given, route, status, ms, aborted }: AnsweredRequest): void {
      const method = METHODS.has(given) ? given : 'other';
      requestSeconds.observe({ method, route }, ms / 1000);
      requests.inc({ method, route, status: statusLabel(aborted ? CLIENT_GONE : status) });
    },
    upstreamCall(upstream: UpstreamName, outcome: CallOutcome, ms: number): void {
      callSeconds.observe({ upstream }, ms / 1000);
      calls.inc({ upstream, status: typeof outcome === 'string' ? outcome : statusLabel(outcome) });
    },
    upstreamAnswered: (upstream: UpstreamName, time: Date) =>
      lastAnswer.set({ upstream }, time.getTime() / 1000),
    providerCache: (event: CacheEvent) => cacheEvents.inc({ event }),
    writePhase: (phase: WritePhase, ms: number) => phases.observe({ phase }, ms / 1000),
    failed({ status, problems }: HttpError): void {
      const code = problems[0]?.code ?? 'other';
      failures.inc({ code });
      if (REFUSALS.has(status)) refused.inc({ reason: code });
    },
    counting:
      (audit: Audit): Audit =>
      (entry) => {
        changes.inc({ action: entry.action, result: entry.result });
        audit(entry);
      },
    keyFilesCounted(count: number): void {
      keyFiles = count;
    },
    keyFilesChanged(more: number): void {
      if (keyFiles !== undefined) keyFiles += more;
    },
    /** `figures` is called at each scrape; gauges are absent while it returns undefined. */
    fleet(figures: () => FleetFigures | undefined): FleetObserver {
      const gauge = (name: Name, of: (present: FleetFigures) => Reading, label?: string) => {
        const take = () => {
          const present = figures();
          return present && of(present);
        };
        read(name, take, label);
      };
      const states = Object.keys(FLEET_STATES);
      const stateOf = ({ state }: FleetFigures) =>
        Object.fromEntries(states.map((each) => [each, each === state ? 1 : 0]));
      gauge('fleet_state', stateOf, 'state');
      gauge('fleet_behind_seconds', ({ behindSeconds }) => behindSeconds);
      for (const reason of ['kept', 'unreadable', 'failed', 'older'] as const)
        gauge(`fleet_${reason}`, ({ lacks }) => lacks[reason]);
      gauge('fleet_engine_size_bytes', ({ engineSize }) => engineSize);
      gauge('fleet_engine_quota_bytes', ({ engineQuota }) => engineQuota);
      const entries = counter('fleet_entries_total', 'result');
      for (const result of ENTRY_RESULTS) entries.inc({ result }, 0);
      const apply = histogram('fleet_apply_seconds', APPLY_BUCKETS);
      const conflicts = counter('fleet_conflicts_total');
      return {
        entry: (result) => entries.inc({ result }),
        // Clocks differ, and a histogram of negative times has a sum that falls.
        applied: (seconds) => apply.observe(Math.max(0, seconds)),
        conflict: () => conflicts.inc(),
      };
    },
    scrape: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

function statusLabel(status: number): string {
  return status >= 100 && status <= 599 ? String(status) : 'other';
}

function seconds(time: Date | undefined): number | undefined {
  return time && time.getTime() / 1000;
}
