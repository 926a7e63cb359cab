import type { RequestListener } from 'node:http';
import { createApp } from '../kernel/app';
import { HttpError } from '../kernel/errors';
import type { Log } from '../kernel/log';
import type { SidecarConfig } from './config';
import { createConfigService } from './config-service';
import { createDurableWriter } from './durable-file';
import { HEALTH_PATHS, healthRoutes, shareRuns } from './health-routes';
import { keyFileRoutes } from './key-file-routes';
import { createKeyFileStore } from './key-file-store';
import { createKeyProvider } from './key-provider';
import { createProvision, type Upstreams } from './provision';
import { withReadLane } from './read-lane';
import { keyCheck, requireApiKey } from './require-api-key';
import { MOST_PARTS } from './stream-id';
import { createUpstream } from './upstream';

/** What the sidecar takes from its process. */
export interface Ambient {
  readonly log: Log;
  /** A new, unguessable UUID. */
  readonly newId: () => string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export interface Sidecar {
  readonly handler: RequestListener;
  /** Removes what killed writers left; until it is done, `/readyz` says no. */
  sweep(): Promise<void>;
}

/** Puts the sidecar together. `config.keyFilesPath` is the folder as `openKeyFilesFolder` answers it. */
export function createSidecar(config: SidecarConfig, { log, newId, now }: Ambient): Sidecar {
  const writer = createDurableWriter(newId);
  const store = createKeyFileStore(config.keyFilesPath, config.keyFileMode, writer);
  const provision = createProvision(createUpstreams(config, log, now), config.checks);
  let swept = false;
  const checkReady = shareRuns(async () => {
    if (!swept)
      throw new HttpError(503, { code: 'starting', description: 'Left-over files are being swept.' });
    await store.probe();
  });
  const isApiKey = keyCheck(config.apiKey);
  const requests = { log, newId, now, quietPaths: HEALTH_PATHS };
  const app = createApp(requests, (routes) => {
    routes.use(requireApiKey(isApiKey));
    keyFileRoutes(routes, { store, provision, log });
    healthRoutes(routes, { checkReady });
  });
  return {
    handler: withReadLane(app, isApiKey, store, requests),
    async sweep() {
      const count = await writer.sweep(config.keyFilesPath, MOST_PARTS);
      if (count > 0) log.info('swept left-over temporary files', { count });
      swept = true;
    },
  };
}

function createUpstreams(config: SidecarConfig, log: Log, now: () => number): Upstreams {
  const { configServiceUrl, keyProviderUrl, upstreamTimeoutMs: timeoutMs } = config;
  const configService = {
    name: 'configuration service',
    code: 'config_service_failed',
    variable: 'PACKAGERDRMAPI_GRANDCENTRALURL',
  };
  const keyProvider = {
    name: 'key provider',
    code: 'key_provider_failed',
    variable: 'PACKAGERDRMAPI_KEYPROVIDERURL',
  };
  if (configServiceUrl === undefined || keyProviderUrl === undefined) {
    const absent = [
      ...(configServiceUrl === undefined ? [configService] : []),
      ...(keyProviderUrl === undefined ? [keyProvider] : []),
    ];
    return { missing: absent.map(({ variable }) => variable) };
  }
  const common = { timeoutMs, log, now };
  return {
    configService: createConfigService(configServiceUrl, createUpstream({ ...configService, ...common })),
    keyProvider: createKeyProvider(keyProviderUrl, createUpstream({ ...keyProvider, ...common })),
  };
}
