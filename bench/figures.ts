import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { API_KEY, load, median, oneByOne } from './load';
import { durableLoop, processorMs, residentMiB, type Started, start } from './processes';

/** One line of the table: what was measured, what it must reach, and what it reached, as ratios of pairs of runs. */
export interface Figure {
  readonly name: string;
  readonly bound: string;
  readonly ratios: readonly number[];
  readonly reached: (ratio: number) => boolean;
  readonly detail: string;
}

export interface Plan {
  /** How many pairs of runs, and how long one run is. */
  readonly rounds: number;
  readonly seconds: number;
  readonly requestsForMemory: number;
  readonly manyFiles: number;
}

export const BODY = JSON.stringify({
  cenc: { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: 'lnA03mLuxnL3toiRMxV4Zw==' },
  playready: {
    laurl: 'https://playready-license.example.com/rightsmanager.asmx',
    checksum: 'pcTs6CEp98A=',
  },
  widevine: { psshdata: 'IiRkN2EyOTk1Ni0yOTgwLTQzMzgtYjYyNy04N2MxZjA3OWUwOTFI49yVmwY=' },
  fairplay: {
    key: 'CBF76BB43B9A54254A5FC20074A3A53B',
    iv: '1A3F2AA76D84742DD123E3E50E7BC681',
    laurl: 'skd://fairplay-license.example.com/license/d7a29956-2980-4338-b627-87c1f079e091',
  },
});

const pathOf = (name: string) => `/api/keyfile/${name}`;
const names = (count: number) => Array.from({ length: count }, (_none, index) => `stream-${index}`);

/** A folder of its own for one figure, on the disk that TMPDIR names. */
export async function inFolder<T>(run: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'packager-drm-api-bench-'));
  try {
    return await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function startSidecar(folder: string, env: Record<string, string> = {}): Promise<Started> {
  const keys = join(folder, 'keys');
  mkdirSync(keys, { recursive: true });
  const variables = {
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_KEYFILESPATH: keys,
    PACKAGERDRMAPI_HOST: '127.0.0.1',
  };
  return start('sidecar/main.js', { ...variables, ...env }, '/readyz', join(folder, 'sidecar.log'));
}

/** The key file that BODY makes, as the sidecar writes it. */
export async function keyFileText(sidecar: Started, name: string): Promise<string> {
  const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
  const response = await fetch(sidecar.url + pathOf(name), { method: 'POST', headers, body: BODY });
  if (!response.ok) throw new Error(`the sidecar answered ${response.status}`);
  return response.text();
}

export function reads(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    const text = await keyFileText(sidecar, 'stream-0');
    const bare = await start('bench/servers/bare-express.js', { BENCH_BODY: text }, pathOf('x'));
    const env = { BENCH_FOLDER: join(folder, 'keys') };
    const plain = await start('bench/servers/plain-express.js', env, pathOf('stream-0'));
    const run = async ({ url, child }: Started) => {
      const before = processorMs(child);
      const perSecond = await load({
        url,
        method: 'GET',
        paths: [pathOf('stream-0')],
        connections: 32,
        seconds: plan.seconds,
      });
      return { perSecond, processorUs: ((processorMs(child) - before) / (perSecond * plan.seconds)) * 1000 };
    };
    for (const server of [sidecar, bare, plain]) await run(server);
    const toBare: number[] = [];
    const toPlain: number[] = [];
    let detail = '';
    for (let round = 0; round < plan.rounds; round += 1) {
      const [ours, theirs, plains] = [await run(sidecar), await run(bare), await run(plain)];
      toBare.push(ours.perSecond / theirs.perSecond);
      toPlain.push(ours.perSecond / plains.perSecond);
      const show = (r: typeof ours) =>
        `${Math.round(r.perSecond)}/s, ${Math.round(r.processorUs)} us processor`;
      detail = `last round: sidecar ${show(ours)}; bare ${show(theirs)}; plain ${show(plains)}`;
    }
    await Promise.all([sidecar, bare, plain].map((server) => server.stop()));
    const name = 'GET, 32 connections, to ';
    return [
      {
        name: `${name}a bare Express route`,
        bound: '>= 0.85',
        ratios: toBare,
        reached: (r) => r >= 0.85,
        detail,
      },
      {
        name: `${name}plain Express + readFile`,
        bound: '>= 1.8',
        ratios: toPlain,
        reached: (r) => r >= 1.8,
        detail,
      },
    ];
  });
}

export function writes(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    const text = await keyFileText(sidecar, 'stream-0');
    const loopFolder = join(folder, 'loop');
    mkdirSync(loopFolder);
    const paths = names(256).map(pathOf);
    const many: number[] = [];
    const one: number[] = [];
    let detailMany = '';
    let detailOne = '';
    for (let round = 0; round <= plan.rounds; round += 1) {
      const ms = plan.seconds * 1000;
      const post = { url: sidecar.url, method: 'POST', paths, body: BODY, connections: 32 } as const;
      const ours = await load({ ...post, seconds: plan.seconds });
      const theirs = await durableLoop(loopFolder, text, 32, ms);
      const single = median(await oneByOne(sidecar.url, 'POST', paths, { body: BODY, count: 300 }));
      const bare = (await durableLoop(loopFolder, text, 1, ms / 2)).median;
      if (round === 0) continue; // the first pair warms both up
      many.push(ours / theirs.perSecond);
      one.push(single / bare);
      detailMany = `last round: sidecar ${Math.round(ours)}/s, loop ${Math.round(theirs.perSecond)}/s`;
      detailOne = `last round: sidecar ${single.toFixed(2)} ms, loop ${bare.toFixed(2)} ms`;
    }
    await sidecar.stop();
    const [a, b] = [
      'durable POST, 32 connections, to the bare loop',
      'durable POST, 1 connection, median, to the loop',
    ];
    return [
      { name: a, bound: '>= 0.7', ratios: many, reached: (r) => r >= 0.7, detail: detailMany },
      { name: b, bound: '<= 1.5', ratios: one, reached: (r) => r <= 1.5, detail: detailOne },
    ];
  });
}

export function manyFiles(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const [few, many] = [join(folder, 'few'), join(folder, 'many')];
    const sidecars: Started[] = [];
    for (const [place, count] of [
      [few, 10],
      [many, plan.manyFiles],
    ] as const) {
      const sidecar = await startSidecar(place);
      const text = await keyFileText(sidecar, 'stream-0');
      for (const name of names(count)) writeFileSync(join(place, 'keys', `${name}.key`), text);
      sidecars.push(sidecar);
    }
    const [small, large] = sidecars as [Started, Started];
    const step = Math.max(1, Math.floor(plan.manyFiles / 1000));
    const spread = names(plan.manyFiles).filter((_name, index) => index % step === 0);
    const ratios = { GET: [] as number[], POST: [] as number[] };
    for (let round = 0; round <= plan.rounds; round += 1) {
      for (const method of ['GET', 'POST'] as const) {
        const common = {
          method,
          connections: 32,
          seconds: plan.seconds,
          ...(method === 'POST' ? { body: BODY } : {}),
        };
        // Writes to the small folder go to as many streams, so that only the number of files differs.
        const smallPaths = method === 'GET' ? names(10) : spread.slice(0, 64);
        const ten = await load({ ...common, url: small.url, paths: smallPaths.map(pathOf) });
        const lots = await load({ ...common, url: large.url, paths: spread.map(pathOf) });
        if (round > 0) ratios[method].push(lots / ten);
      }
    }
    await Promise.all(sidecars.map((sidecar) => sidecar.stop()));
    return (['GET', 'POST'] as const).map((method) => ({
      name: `${method} with ${plan.manyFiles.toLocaleString('en')} key files to with 10`,
      bound: '>= 0.9',
      ratios: ratios[method],
      reached: (r: number) => r >= 0.9,
      detail: '',
    }));
  });
}

export function memory(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    await keyFileText(sidecar, 'stream-0');
    const hello = await start('bench/servers/hello.js', {}, '/');
    const run = ({ url }: Started) =>
      load({
        url,
        method: 'GET',
        paths: [pathOf('stream-0')],
        connections: 32,
        amount: plan.requestsForMemory,
      });
    const steps: number[] = [];
    await run(hello);
    const theirs = residentMiB(hello.child);
    for (let step = 0; step < 3; step += 1) {
      await run(sidecar);
      steps.push(residentMiB(sidecar.child));
    }
    await Promise.all([sidecar.stop(), hello.stop()]);
    const [first = 0, , third = 0] = steps;
    const n = plan.requestsForMemory.toLocaleString('en');
    const mib = steps.map((step) => step.toFixed(0)).join(', ');
    return [
      {
        name: `resident memory after ${n} requests to Express + helmet`,
        bound: '<= 1.5',
        ratios: [first / theirs],
        reached: (r) => r <= 1.5,
        detail: `sidecar ${first.toFixed(0)} MiB, Express + helmet ${theirs.toFixed(0)} MiB`,
      },
      {
        name: `resident memory after three times ${n} to after one`,
        bound: 'flat (<= 1.1)',
        ratios: [third / first],
        reached: (r) => r <= 1.1,
        detail: `${mib} MiB`,
      },
    ];
  });
}

export function startUp(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const ratios: number[] = [];
    let detail = '';
    for (let round = 0; round < plan.rounds * 2; round += 1) {
      const sidecar = await startSidecar(folder);
      await sidecar.stop();
      const hello = await start('bench/servers/hello.js', {}, '/');
      await hello.stop();
      ratios.push(sidecar.readyMs / hello.readyMs);
      detail = `last round: sidecar ${sidecar.readyMs.toFixed(0)} ms, Express + helmet ${hello.readyMs.toFixed(0)} ms`;
    }
    return [
      { name: 'start to /readyz to Express + helmet', bound: '<= 2', ratios, reached: (r) => r <= 2, detail },
    ];
  });
}

export function provisioning(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const client = { EMULATOR_CLIENT: 'bench', EMULATOR_CLIENT_API_KEY: 'bench-client-key' };
    const secret = { EMULATOR_CLIENT_SHARED_SECRET: 'bench-shared-secret-0123456789' };
    const emulator = await start(
      'emulator/main.js',
      { ...client, ...secret, EMULATOR_HOST: '127.0.0.1' },
      '/healthz',
    );
    const delays = { '/config/': 10, '/keyprovider/cenc/': 25, '/keyprovider/fairplay/': 15 };
    const proxyEnv = { BENCH_TARGET: emulator.url, BENCH_DELAYS: JSON.stringify(delays) };
    const proxy = await start('bench/servers/delaying-proxy.js', proxyEnv, '/healthz');
    const sidecar = await startSidecar(folder, {
      PACKAGERDRMAPI_GRANDCENTRALURL: `${proxy.url}/config/v1/clients`,
      PACKAGERDRMAPI_KEYPROVIDERURL: `${proxy.url}/keyprovider`,
    });
    const body = JSON.stringify({
      client: 'bench',
      clientApiKey: 'bench-client-key',
      contentId: 'some-content',
    });
    const text = await keyFileText(sidecar, 'stream-0');
    const loopFolder = join(folder, 'loop');
    mkdirSync(loopFolder);
    const ratios: number[] = [];
    let detail = '';
    for (let round = 0; round <= plan.rounds; round += 1) {
      const ours = median(await oneByOne(sidecar.url, 'POST', names(64).map(pathOf), { body, count: 60 }));
      const headers = { 'api-key': 'bench-client-key' };
      const path = '/keyprovider/cenc/bench/some-content';
      const slowest = median(await oneByOne(proxy.url, 'GET', [path], { headers, count: 40 }));
      const write = (await durableLoop(loopFolder, text, 1, 500)).median;
      if (round === 0) continue;
      ratios.push(ours / (slowest + write + 2));
      detail = `last round: POST ${ours.toFixed(2)} ms; slowest call ${slowest.toFixed(2)} + write ${write.toFixed(2)} + 2 ms`;
    }
    await Promise.all([sidecar, proxy, emulator].map((server) => server.stop()));
    const name = 'provisioning POST, median, to slowest upstream call + write + 2 ms';
    return [{ name, bound: '<= 1', ratios, reached: (r) => r <= 1, detail }];
  });
}
