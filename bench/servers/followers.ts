import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { createLog } from '../../src/http/log';
import { joinFleet } from '../../src/sidecar/fleet/join';
import { createDurableWriter } from '../../src/sidecar/storage/durable-file';
import { createKeyFileStore } from '../../src/sidecar/storage/key-file-store';

// Many packagers of a fleet in one process, each with a folder, a ledger and connections of its own. GET / answers 200 once
// all are level; GET /taken how long each change took to each of them since the last time, in seconds.
const folder = process.env.BENCH_FOLDER ?? '';
const from = Number(process.env.BENCH_FROM);
const count = Number(process.env.BENCH_COUNT);
const urls = (process.env.BENCH_ETCD ?? '').split(',');
let taken: number[] = [];

const clock = () => new Date();
const log = createLog('error', new Writable({ write: (_chunk, _encoding, done) => done() }), clock);
const followers = Array.from({ length: count }, (_none, index) => {
  const name = `follower-${from + index}`;
  const keys = join(folder, name);
  mkdirSync(keys, { recursive: true });
  const config = {
    // Each asks another server first.
    urls: urls.map((_url, at) => urls[(at + index) % urls.length] ?? ''),
    secretFile: process.env.BENCH_SECRET_FILE ?? '',
    name,
    streams: undefined,
    prefix: 'packagerdrmapi/',
    timeoutMs: 5000,
    tls: {},
  };
  const now = () => performance.now();
  const open = joinFleet(config, { log, clock });
  const local = createKeyFileStore(keys, 0o640, createDurableWriter(randomUUID));
  const observer = {
    entry: () => undefined,
    applied: (seconds: number) => {
      taken.push(seconds);
    },
    conflict: () => undefined,
  };
  const fleet = open(local, {
    ...{ folder: keys, log, newId: randomUUID, random: randomBytes, now, clock, version: '0.0.0' },
    ...{ audit: () => undefined, observer },
  });
  fleet.start();
  return fleet;
});

const areLevel = () => {
  try {
    for (const fleet of followers) fleet.checkReady();
    return true;
  } catch {
    return false;
  }
};

createServer(({ url }, response) => {
  if (url === '/taken') {
    response.end(JSON.stringify(taken));
    taken = [];
  } else response.writeHead(areLevel() ? 200 : 503).end();
}).listen(Number(process.env.BENCH_PORT), '127.0.0.1');
