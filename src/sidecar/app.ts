import { stat } from 'node:fs/promises';
import type { Express } from 'express';
import { MemoryStore } from 'express-rate-limit';
import { MAX_PARTS, type StreamId } from '../api/stream-id';
import type { CpixRecipient } from '../drm/cpix/encryption';
import { createApp, pathOf, routeAt, type Shell } from '../http/app';
import { cached } from '../http/cached';
import type { ClientTls } from '../http/client-tls';
import { createConnections } from '../http/connections';
import { HttpError, type Problem, toHttpError } from '../http/errors';
import type { Log } from '../http/log';
import { mountApiPage, mountPage } from '../http/page';
import { createRefusalLog } from '../http/refusal-log';
import { type CertificateEnds, requireCertificate } from '../http/tls';
import type { ReadProviderHeaders } from '../provider/provider-headers';
import { createProvision, createUpstreams, providerRules } from '../provider/provision';
import type { Tunnel } from '../provider/proxy';
import { createUpstream, type UpstreamName } from '../provider/upstream';
import { apiKeyIn, type FindApiKey, requireApiKey } from './api-key';
import { createBatch } from './batch';
import { checkRoutes, exportRoutes } from './check-routes';
import type { SidecarConfig } from './config';
import { apiError } from './errors';
import type { Fleet, OpenFleet } from './fleet/fleet';
import { FLEET_PATH, fleetRoutes } from './fleet/routes';
import { createFleetWait } from './fleet/wait';
import { createKeyFileChanges, createKeyIndex, createSurvey } from './key-files/changes';
import { createFastRead } from './key-files/fast-read';
import { keyFileRoutes } from './key-files/routes';
import { createList, LIST_PATH } from './listing/list';
import { createRefusals, type OpenAudit } from './observe/audit';
import { createMetrics, METRICS_PATH, type MetricsOptions, metricsRoutes } from './observe/metrics';
import { createProviderCache } from './provider-cache';
import { pullRoutes } from './pull';
import { whyDenied } from './start-up';
import { createDurableWriter } from './storage/durable-file';
import { createKeyFileStore } from './storage/key-file-store';
import { toStorageError } from './storage/open-file';

export interface SidecarDependencies {
  readonly log: Log;
  /** Returns an unguessable UUID. */
  readonly newId: () => string;
  readonly random: (bytes: number) => Buffer;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly clock: () => Date;
  readonly findApiKey: FindApiKey;
  readonly audit: OpenAudit;
  readonly version: string;
  readonly publicFolder: string;
  readonly certificateEnds?: (() => CertificateEnds) | undefined;
  readonly providerHeaders?: ReadProviderHeaders | undefined;
  /** undefined: Node's authorities, no client certificate. */
  readonly upstreamTls?: (() => ClientTls) | undefined;
  readonly tunnel?: Tunnel | undefined;
  readonly observeProcess?: MetricsOptions['observeProcess'];
  /** Opens encrypted content keys of CPIX documents; without it they are refused. */
  readonly cpixRecipient?: (() => CpixRecipient | undefined) | undefined;
  readonly warnings?: readonly Problem[];
  readonly fleet?: OpenFleet | undefined;
  /** Counts pulls of streams without a key file, by the name of the API key. */
  readonly misses?: MemoryStore;
}

const PROBE_KEPT_MS = 1000;

const FLEET_PAGE_FILES = ['fleet.css', 'fleet.js', 'fleet-parts.js', 'fleet-tables.js'];

/** `config.keyFilesPath` is the folder as `openKeyFilesFolder` returns it. */
export function createSidecar(config: SidecarConfig, dependencies: SidecarDependencies) {
  const { log, newId, random, now, clock, findApiKey, version, publicFolder } = dependencies;
  const { providerHeaders, cpixRecipient = () => undefined, upstreamTls: tls, tunnel } = dependencies;
  const connections = createConnections({
    limits: config.connections,
    isTrusted: (request) => apiKeyIn(findApiKey, request) !== undefined,
    isProbe: ({ url = '' }) => HEALTH_PATHS.includes(url),
    onRefused: createRefusalLog(log),
  });
  const index = createKeyIndex((streamId) => local.read(streamId as StreamId));
  const survey = createSurvey(config.keyFilesPath, log, index);
  const metrics = createMetrics({
    ...dependencies,
    connections,
    faultyKeyFiles: survey.counts,
    observeProcess: config.metrics ? dependencies.observeProcess : undefined,
  });
  const audit = metrics.counting(dependencies.audit.audit);
  const writer = createDurableWriter(newId, { now, observe: metrics.writePhase });
  const local = survey.follow(
    createKeyFileStore(config.keyFilesPath, config.keyFileMode, writer),
    metrics.keyFilesChanged,
  );
  const fleet: Fleet | undefined = dependencies.fleet?.(local, {
    ...dependencies,
    folder: config.keyFilesPath,
    audit,
    observer: metrics.fleet(() => fleet?.figures()),
  });
  const store = fleet?.store ?? local;
  const wait = createFleetWait(fleet, log);
  const { checks, cmaf, keyProviderSystems } = config;
  const { providerCache, configServiceUrl, keyProviderUrl, keyProviderProtocol } = config;
  const cache =
    providerCache && keyProviderUrl !== undefined
      ? createProviderCache({
          ...{ ...providerCache, writer, log, newId, clock, observe: metrics.providerCache },
          scope: { configServiceUrl, keyProviderUrl, keyProviderProtocol, providerHeaders },
        })
      : undefined;
  const upstreams = createUpstreams({ ...config, providerHeaders, cpixRecipient }, (name) =>
    createUpstream(name, {
      ...{ timeoutMs: config.upstreamTimeoutMs, tls, tunnel, log, now, observe: metrics.upstreamCall },
    }),
  );
  const rules = providerRules(config);
  const onAnswer = (name: UpstreamName) => metrics.upstreamAnswered(name, clock());
  const provision = createProvision(upstreams, {
    ...{ checks, cmaf, keyProviderSystems, cache, onAnswer, cpixRecipient },
  });
  const refusals = createRefusals(audit);
  const changes = createKeyFileChanges({ index, store, audit, log });
  let hasStarted = false;
  const sweeping = new AbortController();
  const attempts = new MemoryStore();
  const { misses = new MemoryStore() } = dependencies;
  // Anyone may call /readyz, and each probe costs a sync of the disk. A failure is cached like a success.
  const probe = cached(PROBE_KEPT_MS, now, () =>
    store.probe().then(
      () => undefined,
      (thrown: unknown) => ({ thrown }),
    ),
  );
  let hasSwept = false;
  /** At the start; in a folder that comes later, when it is ready. */
  const sweepFolder = async () => {
    hasSwept = true;
    const { signal } = sweeping;
    const found = await writer.sweep(config.keyFilesPath, MAX_PARTS, signal);
    hasSwept = found !== undefined;
    if (!found || signal.aborted) return;
    const { temporaries: count, keyFiles } = found;
    if (count > 0) log.info('swept left-over temporary files', { count });
    metrics.keyFilesCounted(keyFiles);
    void survey.run();
  };
  const checkReady = async () => {
    if (!hasStarted) throw apiError('starting');
    const failure = await probe();
    if (failure) throw failure.thrown;
    if (!hasSwept) void sweepFolder();
    fleet?.checkReady();
  };
  let isStopping = false;
  const batch = createBatch({
    changes,
    provision,
    rules,
    refusals,
    wait,
    log,
    onError: metrics.failed,
    stopping: () => isStopping,
    hasFleet: fleet !== undefined,
  });
  const list = createList({ folder: config.keyFilesPath, checkFolder: store.check, index, log });
  // The page /fleet asks every two seconds.
  const quietPaths = [...HEALTH_PATHS, METRICS_PATH, FLEET_PATH];
  const onError: Shell['onError'] = (error, request, response) => {
    metrics.failed(error);
    refusals.answered(error, request, response);
  };
  const shell = { log, newId, now, quietPaths, observe: metrics.request, onError };
  let pulls: ReturnType<typeof pullRoutes> | undefined;
  const app = createApp(shell, (routes) => {
    if (config.tls?.clientAuthorities) {
      routes.use((request, _response, next) => {
        if (!HEALTH_PATHS.includes(pathOf(request))) requireCertificate(request);
        next();
      });
    }
    routes.use(requireApiKey(findApiKey, { ...dependencies, attempts }));
    keyFileRoutes(routes, { store, changes, provision, wait, rules });
    routeAt(routes, LIST_PATH).get(list).post(batch.handlers);
    checkRoutes(routes, rules);
    const { pullPattern: pattern, provisionOnRead } = config;
    pulls = pullRoutes(routes, {
      ...{ store, changes, provision, rules, refusals, pattern, provisionOnRead, misses, random, clock },
      hasFleet: fleet !== undefined,
    });
    exportRoutes(routes);
    fleetRoutes(routes, fleet, log);
    healthRoutes(routes, checkReady, config.keyFilesPath, dependencies);
    if (config.metrics) metricsRoutes(routes, metrics, now);
    // Also without a fleet: the page then shows what to set.
    mountPage(routes, { path: '/fleet', folder: publicFolder, html: 'fleet.html', files: FLEET_PAGE_FILES });
    mountApiPage(routes, { document: () => describe(version), publicFolder });
    // A browser at the address of the service gets the page; programs find nothing at the root.
    routes.use((request, response, next) => {
      const isPerson =
        request.path === '/' && request.method === 'GET' && request.accepts(['json', 'html']) === 'html';
      if (isPerson) response.vary('accept').redirect('docs');
      else next();
    });
  });
  return {
    // The fast path doesn't check client certificates.
    handler: config.tls?.clientAuthorities ? app : createFastRead(app, { ...shell, store, findApiKey }),
    connections,
    canProvision: !('missing' in upstreams),
    /** Removes temporary files of killed writers, unless `close` ends it. `/readyz` answers 503 until it is done. */
    async sweep(): Promise<void> {
      await sweepFolder();
      if (sweeping.signal.aborted) return;
      hasStarted = true;
      fleet?.start();
      void cache?.open();
    },
    /** Called when a stop begins: batches start no further stream, and no request waits for packagers. */
    beginStop(): void {
      isStopping = true;
      wait.endWaits();
    },
    /** Called after the last request. */
    async close(): Promise<void> {
      // A batch continues when its connection is cut: the audit closes after it.
      isStopping = true;
      sweeping.abort();
      survey.close();
      attempts.shutdown();
      misses.shutdown();
      const busy = Promise.all([batch.idle(), pulls?.idle()]);
      // An engine that is silent must not hold up the stop until its time limit.
      await fleet?.close(busy);
      await busy;
      await cache?.close();
      await dependencies.audit.close();
    },
  };
}

/** Loaded on demand: it would make the start a third longer. */
async function describe(version: string): Promise<object> {
  const { openApiDocument } = await import('./openapi/document');
  return openApiDocument(version);
}

const HEALTH_PATHS = ['/healthz', '/readyz'];

/** Neither probe needs an API key. At `/readyz`, a client with one also gets what `packager-drm doctor` shows. */
function healthRoutes(
  app: Express,
  checkReady: () => Promise<void>,
  keyFilesPath: string,
  { findApiKey, warnings = [] }: SidecarDependencies,
): void {
  routeAt(app, '/healthz').get((_request, response) => {
    response.json({ status: 'ok' });
  });

  routeAt(app, '/readyz').get(async ({ headers }, response) => {
    try {
      await checkReady();
      if (!findApiKey(headers['x-api-key'])) {
        response.json({ status: 'ready' });
        return;
      }
      // Device and inode are the same by every path to the folder. They may have 64 bits: text.
      const { dev, ino } = await stat(keyFilesPath, { bigint: true });
      const folder = { device: String(dev), inode: String(ino) };
      response.json({ status: 'ready', folder, ...(warnings.length > 0 && { warnings }) });
    } catch (thrown) {
      // 503 for every cause: load balancers and orchestrators understand it.
      const { problems, cause } = toHttpError(toStorageError('read', thrown));
      // Many users only see the failing probe: the answer says who owns the folder, and what to do.
      const why = whyDenied(cause);
      const described = (problem: Problem) =>
        why === undefined
          ? problem
          : { code: problem.code, description: `The key-file folder is not usable: ${why}` };
      throw new HttpError(503, problems.map(described), { cause });
    }
  });
}
