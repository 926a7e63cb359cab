#!/usr/bin/env node
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { config as loadDotenv } from 'dotenv';
import { collectDefaultMetrics } from 'prom-client';
import { describeThrown, HttpError } from '../http/errors';
import { createLog } from '../http/log';
import { answerHelp, configOrExit, listen, runAsProcess } from '../http/server';
import { openTls } from '../http/tls';
import { openUpstreamTls, UPSTREAM_TLS } from '../provider/config';
import { openCpixRecipient } from '../provider/cpix-recipient';
import { HEADERS_VARIABLE, openProviderHeaders } from '../provider/provider-headers';
import { createKeyRing } from './api-key';
import { createSidecar } from './app';
import { readSidecarConfig } from './config';
import { openAudit } from './observe/audit';
import {
  guardDocumentedKeys,
  readSecret,
  refuseCacheFolder,
  refuseUnreadable,
  warningOfNewFolder,
  warningOfShortKey,
  warningsOfFileSystem,
  whyNotWritable,
} from './start-up';
import { openKeyFilesFolder } from './storage/key-file-store';
import { toStorageError } from './storage/open-file';

const page = 'docs/configuration.md';
const GRACE_MS = 10_000;
/** The time to answer a batch that starts no further stream. */
const ANSWER_MS = 3000;
const LOG_BATCH_MS = 10;

answerHelp(page);
loadDotenv({ quiet: true });
const config = configOrExit(page, () => {
  refuseUnreadable({ '.env': existsSync('.env') ? resolve('.env') : undefined });
  return readSidecarConfig(process.env, readSecret);
});
const log = createLog(config.logLevel, process.stdout, () => new Date(), LOG_BATCH_MS);

async function openAccess() {
  const { apiKey, apiKeysFile, tls, cpix, host, demo, providerCache, keyFilesPath } = config;
  const { keyProviderHeadersFile: headersFile, upstreamTls } = config;
  refuseUnreadable({
    PACKAGERDRMAPI_APIKEYS_FILE: apiKeysFile,
    PACKAGERDRMAPI_TLSCERT: tls?.certificate,
    PACKAGERDRMAPI_TLSKEY: tls?.key,
    PACKAGERDRMAPI_TLSCLIENTCA: tls?.clientAuthorities,
    [HEADERS_VARIABLE]: headersFile,
    [UPSTREAM_TLS.authorities]: upstreamTls?.authorities,
    [UPSTREAM_TLS.certificate]: upstreamTls?.client?.certificate,
    [UPSTREAM_TLS.key]: upstreamTls?.client?.key,
    PACKAGERDRMAPI_CPIXCERT: cpix?.certificate,
    PACKAGERDRMAPI_CPIXKEY: cpix?.key,
  });
  if (providerCache) refuseCacheFolder(providerCache.folder, keyFilesPath);
  const { find } = createKeyRing({ single: apiKey, file: apiKeysFile, log });
  const findApiKey = guardDocumentedKeys(find, { apiKey, host, demo }, log);
  const options = { log, clock: () => new Date() };
  return {
    findApiKey,
    tls: tls && openTls(tls, 'PACKAGERDRMAPI_TLS', options),
    cpixRecipient: cpix && openCpixRecipient(cpix, options).current,
    // A sidecar without a fleet starts without its code.
    fleet: config.fleet && (await import('./fleet/join')).joinFleet(config.fleet, options),
    upstreamTls: upstreamTls && openUpstreamTls(upstreamTls, options).current,
    providerHeaders:
      headersFile === undefined ? undefined : openProviderHeaders(headersFile, options).current,
  };
}

async function start() {
  const { tls, ...access } = await openAccess();
  for (const variable of config.unknownVariables) log.warn('unknown variable', { variable });
  const { keyFilesPath, isNew } = openFolder(config.keyFilesPath);
  const shortKey = warningOfShortKey(config);
  const warnings = [
    ...(isNew ? [warningOfNewFolder(keyFilesPath)] : []),
    ...warningsOfFileSystem(keyFilesPath, config.keyFileMode, randomUUID),
    ...(shortKey ? [shortKey] : []),
  ];
  const audit = openAudit(config.audit, { log, clock: () => new Date(), stdout: process.stdout });
  const sidecar = createSidecar(
    { ...config, keyFilesPath },
    {
      ...access,
      log,
      newId: randomUUID,
      random: randomBytes,
      now: () => performance.now(),
      clock: () => new Date(),
      tunnel: await openTunnel(),
      audit,
      version: readVersion(),
      publicFolder: join(__dirname, 'public'),
      certificateEnds: tls && (() => tls.ends),
      observeProcess: (register) => collectDefaultMetrics({ register }),
      warnings,
    },
  );
  const server = await listen(sidecar.handler, config.host, config.port, {
    tls,
    connections: sidecar.connections,
  });
  log.info('listening', {
    service: 'sidecar',
    address: `${config.host.includes(':') ? `[${config.host}]` : config.host}:${server.port}`,
    url: server.url,
    keyFilesPath,
    provisioning: sidecar.canProvision,
  });
  for (const { code, description } of warnings) log.warn('warning at the start', { code, why: description });
  // Not waited for: a stop must not wait for it either.
  void sidecar.sweep();
  const stop = async () => {
    const stopTimer = setTimeout(sidecar.beginStop, GRACE_MS - ANSWER_MS);
    await server.stop(GRACE_MS);
    clearTimeout(stopTimer);
    await sidecar.close();
  };
  return { stop };
}

async function openTunnel() {
  const { proxy } = config;
  if (!proxy) return undefined;
  log.info('https upstreams are asked through a proxy', { proxy: new URL(proxy.url).origin });
  const { createTunnel } = await import('../provider/proxy');
  return createTunnel(proxy);
}

function readVersion(): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(join(__dirname, '../../package.json'), 'utf8'),
  );
  return version;
}

/** A folder that can't be used doesn't refuse the start: its mount may come; `/readyz` says no until then. */
function openFolder(path: string): ReturnType<typeof openKeyFilesFolder> {
  try {
    const opened = openKeyFilesFolder(path);
    const { keyFilesPath } = opened;
    const why = whyNotWritable(keyFilesPath);
    if (why !== undefined) log.error('the key-file folder cannot be used', { keyFilesPath, why });
    return opened;
  } catch (thrown) {
    const error = toStorageError('write', thrown);
    const found = error instanceof HttpError ? error.problems[0]?.description : undefined;
    const why = whyNotWritable(path) ?? found;
    const cause = describeThrown(thrown);
    log.error('the key-file folder cannot be used', { keyFilesPath: resolve(path), why, cause });
    return { keyFilesPath: resolve(path), isNew: false };
  }
}

void runAsProcess({ name: 'sidecar', page, log, start });
