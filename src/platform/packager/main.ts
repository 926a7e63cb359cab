#!/usr/bin/env node
import { randomUUID } from 'node:crypto';
import { config as loadDotenv } from 'dotenv';
import { createConnections } from '../../http/connections';
import { createLog } from '../../http/log';
import { createRefusalLog } from '../../http/refusal-log';
import { answerHelp, configOrExit, listen, runAsProcess } from '../../http/server';
import { createPackagerApp } from './app';
import { readPackagerConfig } from './config';
import { LIVE_LIMITS } from './live/session';
import { openMediaFolder } from './media-folder';
import { type Programs, shakaPackagerOfNpm } from './shaka-packager';
import { Streams } from './streams';

const page = 'docs/packager.md';
const GRACE_MS = 5000;
/** How long a media file may take to come over a slow connection. */
const UPLOAD_MS = 24 * 60 * 60 * 1000;
const LOG_BATCH_MS = 10;
const LOOK_MS = 5000;

answerHelp(page);
loadDotenv({ quiet: true });
const config = configOrExit(page, () => readPackagerConfig(process.env));
const clock = () => new Date();
const now = () => performance.now();
const log = createLog(config.logLevel, process.stdout, clock, LOG_BATCH_MS);

async function start() {
  const { apiKey, keyFilesPath, maxBytes, rotate } = config;
  const folder = await openMediaFolder(config.folder, randomUUID);
  const programs: Programs = {
    ffmpeg: config.ffmpeg,
    shakaPackager: config.shakaPackager ?? shakaPackagerOfNpm(process.platform, process.arch, __filename),
    // Playlists are written there before they are moved to their place, which must be on the same file system.
    env: { PATH: process.env.PATH ?? '', TMPDIR: folder.temporary },
    folder: folder.temporary,
  };
  for (const variable of config.unknownVariables) log.warn('unknown variable', { variable });
  if (!folder.isLocked)
    log.warn('PACKAGER_FOLDER takes no lock: no sockets, or a long path; no second packager may use it');
  const streams = new Streams({
    ...{ keyFilesPath, maxBytes, rotate, lookMs: LOOK_MS, limits: LIVE_LIMITS },
    ...{ folder, programs, log, clock, now },
  });
  const app = createPackagerApp({ log, clock, now, streams, programs, newId: randomUUID, apiKey });
  const connections = createConnections({
    isProbe: ({ url }) => url === '/healthz',
    onRefused: createRefusalLog(log),
  });
  const server = await listen(app, config.host, config.port, { connections, requestTimeoutMs: UPLOAD_MS });
  log.info('listening', { service: 'packager', url: server.url });
  return {
    stop: async () => {
      await Promise.all([streams.stop(), server.stop(GRACE_MS)]);
      await folder.release();
    },
  };
}

void runAsProcess({ name: 'packager', page, log, start });
