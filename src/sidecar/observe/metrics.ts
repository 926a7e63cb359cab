import type { Connections } from '../../http/connections';
import type { HttpError } from '../../http/errors';
import type { AnsweredRequest } from '../../http/shell';
import type { CertificateEnds } from '../../http/tls';
import type { CacheEvent } from '../provisioning/provider-cache';
import type { CallOutcome } from '../provisioning/upstream';
import type { WritePhase } from '../storage/durable-file';
import type { AuditEntry } from './audit';
import { openRecorders, type Recorders } from './recorders';
import type { FaultyKeyFiles } from './survey';

/** What the sidecar tells of itself to Prometheus. No method throws; all but `scrape` return at once. */
export interface Metrics {
  request(answered: AnsweredRequest): void;
  upstreamCall(upstream: Upstream, outcome: CallOutcome, ms: number): void;
  /** An upstream answered at this time what could be used. */
  upstreamAnswered(upstream: Upstream, time: Date): void;
  providerCache(event: CacheEvent): void;
  writePhase(phase: WritePhase, ms: number): void;
  /** An error that was answered. */
  failed(error: HttpError): void;
  /** A change of a key file, or a refused one; keeps the count of key files up to date. */
  changed(entry: AuditEntry): void;
  /** How many key files there were at the start. */
  keyFilesCounted(count: number): void;
  scrape(): Promise<Scrape>;
}

export type Upstream = 'config_service' | 'key_provider';

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
}

/** As many observations wait for the client library to be loaded. */
const MAX_QUEUED = 1000;

/**
 * Collects metrics. The client library is loaded by the first scrape or after some hundred requests, so that it costs
 * the start nothing.
 */
export function createMetrics(options: MetricsOptions): Metrics {
  let counted: number | undefined;
  let sinceCount = 0;
  const keyFiles = () => (counted === undefined ? undefined : counted + sinceCount);
  let queue: ((to: Recorders) => void)[] = [];
  let recorders: Recorders | undefined;

  const load = (): Recorders => {
    if (recorders) return recorders;
    const loaded = openRecorders({ ...options, keyFiles });
    recorders = loaded;
    for (const observation of queue) observation(loaded);
    queue = [];
    return loaded;
  };

  const record = (observation: (to: Recorders) => void) => {
    if (recorders) {
      observation(recorders);
      return;
    }
    queue.push(observation);
    if (queue.length === MAX_QUEUED) setImmediate(load);
  };

  return {
    request: (answered) => record((to) => to.request(answered)),
    upstreamCall: (upstream, outcome, ms) => record((to) => to.upstreamCall(upstream, outcome, ms)),
    upstreamAnswered: (upstream, time) => record((to) => to.upstreamAnswered(upstream, time)),
    providerCache: (event) => record((to) => to.providerCache(event)),
    writePhase: (phase, ms) => record((to) => to.writePhase(phase, ms)),
    failed: (error) => record((to) => to.failed(error)),
    changed(entry) {
      if (entry.result === 'created') sinceCount += 1;
      else if (entry.result === 'deleted') sinceCount -= 1;
      record((to) => to.changed(entry));
    },
    keyFilesCounted(count) {
      counted = count;
      sinceCount = 0;
    },
    scrape: async () => load().scrape(),
  };
}
