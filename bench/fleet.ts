import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { parseStreamId } from '../src/api/stream-id';
import { createLog } from '../src/http/log';
import { MAX_CHANGES } from '../src/sidecar/fleet/engine/engine';
import { createEtcd } from '../src/sidecar/fleet/engine/etcd';
import { engineKeysUnder } from '../src/sidecar/fleet/engine-keys';
import { createSeal } from '../src/sidecar/fleet/entries/seal';
import { type Etcd, hasEtcd, openWay, startEtcd, type Way } from './etcd';
import type { Figure, Plan } from './figure';
import { API_KEY } from './load';
import { peakMiB, processorMs, residentMiB, type Started, start } from './processes';
import { BODY, inFolder, keyFileText, pathOf, startSidecar } from './sidecar';

const SECRET = 'the-secret-of-the-fleet-of-the-benchmark-0123456789';
const HEADERS = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
const BATCH = 3000;
const FOLLOWERS = 100;
const FOLLOWER_PROCESSES = 2;
const WAIT_SECONDS = 20;

/** A fleet on etcd itself, each packager a process. The figures are milliseconds, seconds and MiB, not ratios. */
export async function fleet(plan: Plan): Promise<Figure[]> {
  if (!hasEtcd()) {
    console.error('The group `fleet` is left out: etcd is not installed (apt-get install etcd-server).');
    return [];
  }
  const groups = [
    changes,
    trouble,
    cold,
    (each: Plan, folder: string) => batches(each, folder, 3),
    (each: Plan, folder: string) => batches(each, folder, 5),
    many,
  ];
  const figures: Figure[] = [];
  for (const group of groups) {
    for (const figure of await inFolder((folder) => group(plan, folder))) {
      const [load = 0] = loadavg();
      figures.push({
        ...figure,
        detail: [figure.detail ?? '', `load of the machine ${load.toFixed(1)}`].join('; '),
      });
    }
  }
  return figures;
}

interface Packager extends Started {
  readonly keys: string;
}

async function startPackagers(folder: string, urls: readonly string[], count: number): Promise<Packager[]> {
  const packagers: Packager[] = [];
  for (let index = 0; index < count; index += 1)
    packagers.push(await startPackager(folder, `packager-${index}`, urls));
  return packagers;
}

async function startPackager(folder: string, name: string, urls: readonly string[]): Promise<Packager> {
  const own = join(folder, name);
  mkdirSync(own, { recursive: true });
  const secret = secretIn(folder);
  const env = {
    PACKAGERDRMAPI_FLEET_URLS: urls.join(','),
    PACKAGERDRMAPI_FLEET_SECRET_FILE: secret,
    PACKAGERDRMAPI_FLEET_NAME: name,
  };
  return { ...(await startSidecar(own, env, 300_000)), keys: join(own, 'keys') };
}

function secretIn(folder: string): string {
  const path = join(folder, 'secret');
  writeFileSync(path, `${SECRET}\n`, { mode: 0o600 });
  return path;
}

const stopAll = (packagers: readonly Started[], etcd: Etcd) =>
  Promise.all(packagers.map((packager) => packager.stop())).finally(() => etcd.stop());

async function post(url: string, path: string, body: string): Promise<Response> {
  const response = await fetch(url + path, { method: 'POST', headers: HEADERS, body });
  await response.clone().arrayBuffer();
  return response;
}

/** Resolves when a stream's file is next to all of them. */
async function untilFile(packagers: readonly Packager[], name: string): Promise<void> {
  for (const { keys } of packagers) while (!existsSync(join(keys, `${name}.key`))) await wait(1);
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

/** From a POST to its file next to five packagers, on three servers of etcd. */
async function changes(plan: Plan, folder: string): Promise<Figure[]> {
  const etcd = await startEtcd(folder, 3);
  const packagers = await startPackagers(folder, etcd.urls, 5);
  const url = packagers[0]?.url ?? '';
  const files: number[] = [];
  const answers: number[] = [];
  const count = plan.rounds * 50;
  for (let index = -10; index < count; index += 1) {
    const began = performance.now();
    const answered = post(url, pathOf(`plain-${index}`), BODY);
    await untilFile(packagers, `plain-${index}`);
    const ms = performance.now() - began;
    await answered;
    const begun = performance.now();
    const { status } = await post(url, `${pathOf(`awaited-${index}`)}?wait=${WAIT_SECONDS}`, BODY);
    if (status !== 200) throw new Error(`a POST that waits answered ${status}`);
    if (index < 0) continue; // the first ones warm all up
    files.push(ms);
    answers.push(performance.now() - begun);
    await wait(20);
  }
  await stopAll(packagers, etcd);
  const p = (values: readonly number[]) =>
    `p50 ${quantile(values, 0.5).toFixed(1)} ms, p99 ${quantile(values, 0.99).toFixed(1)} ms`;
  return [
    {
      name: 'fleet: POST to its file at 5 packagers, p99 in ms',
      ratios: [quantile(files, 0.99)],
      atMost: 100,
      detail: `${count} changes: ${p(files)}; answers of ?wait=: ${p(answers)}`,
    },
  ];
}

/** How soon all have a change that is made after the leader of the engine was killed, and after a partition. */
async function trouble(plan: Plan, folder: string): Promise<Figure[]> {
  const seconds = plan.rounds > 2 ? 60 : 10;
  const etcd = await startEtcd(folder, 3);
  const ways: Way[] = await Promise.all(etcd.urls.map(openWay));
  const near = await startPackagers(folder, etcd.urls, 4);
  const far = await startPackager(
    folder,
    'packager-far',
    ways.map(({ url }) => url),
  );
  const all = [...near, far];
  const url = near[0]?.url ?? '';
  for (const way of ways) way.interrupt();
  const written: string[] = [];
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    const name = `parted-${written.length}`;
    if ((await post(url, pathOf(name), BODY)).ok) written.push(name);
    await wait(100);
  }
  for (const way of ways) way.restore();
  const healed = performance.now();
  for (const name of written) await untilFile(all, name);
  const parted = (performance.now() - healed) / 1000;

  await etcd.killLeader();
  const killed = performance.now();
  let accepted = 0;
  while (accepted === 0) {
    const { ok } = await post(url, pathOf('after-the-kill'), BODY);
    if (ok) accepted = (performance.now() - killed) / 1000;
    else await wait(20);
  }
  await untilFile(all, 'after-the-kill');
  const level = (performance.now() - killed) / 1000;
  await stopAll(all, etcd);
  return [
    {
      name: 'fleet: level after the leader is killed, in s',
      ratios: [level],
      atMost: 5,
      detail: `the next POST was accepted after ${accepted.toFixed(2)} s`,
    },
    {
      name: `fleet: level after a partition of ${seconds} s, in s`,
      ratios: [parted],
      atMost: 5,
      detail: `${written.length} changes were made meanwhile`,
    },
  ];
}

/** Puts entries into the engine as sidecars do: each a key file like `text`, with keys of its own. */
async function seed(url: string, count: number, text: string): Promise<void> {
  const clock = () => new Date();
  const log = createLog('error', new Writable({ write: (_chunk, _encoding, done) => done() }), clock);
  const now = () => performance.now();
  const engine = createEtcd({ urls: [url], timeoutMs: 20_000, log, now, clock });
  const seal = createSeal([SECRET], randomBytes);
  const places = engineKeysUnder('packagerdrmapi/');
  const changeOf = (index: number) => {
    const streamId = parseStreamId(`channels/channel-${index}`);
    if (!streamId.ok) throw new Error('no stream id');
    const key = places.entry(streamId.value);
    const entry = {
      streamId: streamId.value,
      id: randomUUID(),
      version: Date.now(),
      bytes: Buffer.from(text.replaceAll(/(cenc-(?:key-id|content-key): ).+/g, ownKey)),
      at: Date.now(),
      by: { key: 'bench', address: '127.0.0.1', requestId: randomUUID() },
      from: 'bench',
      awaited: false,
      isFound: false,
    };
    return { key, expected: 0, value: seal.seal(key, entry) };
  };
  const ownKey = (_line: string, name: string) => name + randomBytes(16).toString('base64');
  const WORKERS = 4;
  const seedFrom = async (first: number) => {
    for (let begin = first; begin < count; begin += WORKERS * MAX_CHANGES) {
      const length = Math.min(MAX_CHANGES, count - begin);
      await engine.change(Array.from({ length }, (_none, index) => changeOf(begin + index)));
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, (_none, index) => seedFrom(index * MAX_CHANGES)));
  engine.close();
}

/** A packager without any key files joins a fleet that has many. */
async function cold(plan: Plan, folder: string): Promise<Figure[]> {
  const etcd = await startEtcd(folder, 1);
  const [url = ''] = etcd.urls;
  // It founds the fleet.
  const first = await startPackager(folder, 'first', [url]);
  const text = await keyFileText(first, 'stream-0');
  await first.stop();
  await seed(url, plan.fleetKeys, text);
  const packager = await startPackager(folder, 'cold', [url]);
  const peak = peakMiB(packager.child);
  const seconds = packager.readyMs / 1000;
  const processor = processorMs(packager.child) / 1000;
  await stopAll([packager], etcd);
  const keys = `${plan.fleetKeys.toLocaleString('en')} keys to a cold packager`;
  const rate = Math.round(plan.fleetKeys / seconds);
  return [
    {
      name: `fleet: ${keys}, in s`,
      ratios: [seconds],
      atMost: (30 * plan.fleetKeys) / 100_000,
      detail: `${rate} a second; processor time ${processor.toFixed(1)} s`,
    },
    { name: `fleet: ${keys}, most memory in MiB`, ratios: [peak], atMost: 250 },
  ];
}

/** A batch through one sidecar, until it is answered. */
async function batches(plan: Plan, folder: string, count: number): Promise<Figure[]> {
  const etcd = await startEtcd(folder, 1);
  const packagers = await startPackagers(folder, etcd.urls, count);
  const fields = JSON.parse(BODY);
  const rates: number[] = [];
  for (let round = 0; round <= plan.rounds; round += 1) {
    const length = round === 0 ? 100 : BATCH;
    const streams = Array.from({ length }, (_none, index) => ({
      streamid: `batch-${round}-${index}`,
      ...fields,
    }));
    const began = performance.now();
    const response = await post(packagers[0]?.url ?? '', '/api/keyfiles', JSON.stringify({ streams }));
    const perSecond = length / ((performance.now() - began) / 1000);
    const { summary } = (await response.json()) as { summary?: { created?: number } };
    if (summary?.created !== length) throw new Error(`a batch answered ${JSON.stringify(summary)}`);
    await untilFile(packagers, `batch-${round}-${length - 1}`);
    if (round > 0) rates.push(perSecond);
  }
  await stopAll(packagers, etcd);
  const name = `fleet: batch of ${BATCH} with ${count} packagers, streams a second`;
  return [{ name, ratios: rates, atLeast: 300 }];
}

/** One change to a hundred packagers, which share two processes. */
async function many(plan: Plan, folder: string): Promise<Figure[]> {
  const etcd = await startEtcd(folder, 3);
  const writer = await startPackager(folder, 'writer', etcd.urls);
  const each = FOLLOWERS / FOLLOWER_PROCESSES;
  const followers: Started[] = [];
  for (let index = 0; index < FOLLOWER_PROCESSES; index += 1) {
    const env = {
      BENCH_FOLDER: join(folder, 'followers'),
      BENCH_FROM: `${index * each}`,
      BENCH_COUNT: `${each}`,
      BENCH_ETCD: etcd.urls.join(','),
      BENCH_SECRET_FILE: secretIn(folder),
    };
    followers.push(await start('bench/servers/followers.js', env, '/', undefined, 120_000));
  }
  const taken = async () => {
    const answers = await Promise.all(followers.map(({ url }) => fetch(`${url}/taken`)));
    return (await Promise.all(answers.map((answer) => answer.json()))).flat() as number[];
  };
  const all: number[] = [];
  const last: number[] = [];
  const count = plan.rounds * 15;
  let before = 0;
  let began = 0;
  for (let index = -5; index < count; index += 1) {
    if (index === 0) {
      before = engineMs(etcd);
      began = performance.now();
    }
    await post(writer.url, pathOf(`many-${index}`), BODY);
    const seconds: number[] = [];
    for (const until = performance.now() + 30_000; seconds.length < FOLLOWERS; await wait(20)) {
      seconds.push(...(await taken()));
      if (performance.now() > until)
        throw new Error(`only ${seconds.length} of ${FOLLOWERS} took a change in 30 s`);
    }
    if (index < 0) continue;
    all.push(...seconds);
    last.push(Math.max(...seconds));
    await wait(200);
  }
  const elapsed = performance.now() - began;
  const cores = (engineMs(etcd) - before) / elapsed;
  const memory = etcd.children.map((child) => residentMiB(child).toFixed(0)).join(', ');
  const begunIdle = [performance.now(), engineMs(etcd)] as const;
  await wait(5000);
  const idle = (engineMs(etcd) - begunIdle[1]) / (performance.now() - begunIdle[0]);
  await stopAll([writer, ...followers], etcd);
  const ms = (values: readonly number[], part: number) => (quantile(values, part) * 1000).toFixed(0);
  return [
    {
      name: `fleet: one change to the last of ${FOLLOWERS} packagers, p99 in ms`,
      ratios: [quantile(last, 0.99) * 1000],
      detail: `${count} changes: to one of them p50 ${ms(all, 0.5)}, p99 ${ms(all, 0.99)} ms; to the last p50 ${ms(last, 0.5)} ms; the three servers of etcd ${cores.toFixed(2)} cores at ${((count / elapsed) * 1000).toFixed(1)} changes a second, ${idle.toFixed(2)} without, and ${memory} MiB`,
    },
  ];
}

const engineMs = ({ children }: Etcd): number => children.reduce((sum, child) => sum + processorMs(child), 0);
