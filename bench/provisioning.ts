import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeSpekeRequest } from '../src/drm/cpix/speke';
import type { Figure, Plan } from './figure';
import { median, oneByOne } from './load';
import { durableLoop, type Started, start } from './processes';
import { inFolder, keyFileText, names, pathOf, startSidecar } from './sidecar';

const CLIENT = { name: 'bench', apiKey: 'bench-client-key' };
const CONTENT_ID = 'some-content';

/** A protocol of the key provider, and the comparison for the time of a POST by it. */
interface Measured {
  readonly figure: string;
  /** The variables of the sidecar; `proxy` stands before the emulator. */
  readonly env: (proxy: string, folder: string) => Record<string, string>;
  readonly body: Readonly<Record<string, string>>;
  /** How long each upstream takes, by its path, in milliseconds. */
  readonly delays: Readonly<Record<string, number>>;
  /** A call to the slowest one, as the sidecar makes it. */
  readonly slowest: { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: string };
  /** In addition to the slowest call and a write, in milliseconds. */
  readonly allowed: number;
}

const JSON_PROTOCOL: Measured = {
  figure: 'provisioning POST, median, to slowest upstream call + write + 2 ms',
  env: (proxy) => ({
    PACKAGERDRMAPI_GRANDCENTRALURL: `${proxy}/config/v1/clients`,
    PACKAGERDRMAPI_KEYPROVIDERURL: `${proxy}/keyprovider`,
  }),
  body: { client: CLIENT.name, clientApiKey: CLIENT.apiKey, contentId: CONTENT_ID },
  delays: { '/config/': 10, '/keyprovider/cenc/': 25, '/keyprovider/fairplay/': 15 },
  slowest: { method: 'GET', path: `/keyprovider/cenc/${CLIENT.name}/${CONTENT_ID}` },
  allowed: 2,
};

const SPEKE: Measured = {
  figure: 'provisioning POST by SPEKE v2, median, to slowest upstream call + write + 3 ms',
  env(proxy, folder) {
    const headers = join(folder, 'headers.txt');
    writeFileSync(headers, `API-KEY: ${CLIENT.apiKey}\n`, { mode: 0o600 });
    return {
      PACKAGERDRMAPI_KEYPROVIDERPROTOCOL: 'speke2',
      PACKAGERDRMAPI_KEYPROVIDERURL: `${proxy}/keyprovider/speke2/${CLIENT.name}`,
      PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE: headers,
    };
  },
  body: { contentId: CONTENT_ID },
  delays: { '/keyprovider/speke2/': 25 },
  slowest: {
    method: 'POST',
    path: `/keyprovider/speke2/${CLIENT.name}`,
    body: writeSpekeRequest({ version: 2, contentId: CONTENT_ID, scheme: 'cenc' }),
  },
  allowed: 3,
};

export async function provisioning(plan: Plan): Promise<Figure[]> {
  const emulator = await start(
    'emulator/main.js',
    {
      EMULATOR_CLIENT: CLIENT.name,
      EMULATOR_CLIENT_API_KEY: CLIENT.apiKey,
      EMULATOR_CLIENT_SHARED_SECRET: 'bench-shared-secret-0123456789',
      EMULATOR_CONTROL_PORT: '0',
      EMULATOR_RTMP_PORT: 'off',
    },
    '/healthz',
  );
  const figures = [await measure(plan, emulator, JSON_PROTOCOL), await measure(plan, emulator, SPEKE)];
  await emulator.stop();
  return figures;
}

function measure(plan: Plan, emulator: Started, protocol: Measured): Promise<Figure> {
  const { figure, env, delays, slowest, allowed } = protocol;
  return inFolder(async (folder) => {
    const proxyEnv = { BENCH_TARGET: emulator.url, BENCH_DELAYS: JSON.stringify(delays) };
    const proxy = await start('bench/servers/delaying-proxy.js', proxyEnv, '/healthz');
    const sidecar = await startSidecar(folder, env(proxy.url, folder));
    const body = JSON.stringify(protocol.body);
    const text = await keyFileText(sidecar, 'stream-0');
    const loopFolder = join(folder, 'loop');
    mkdirSync(loopFolder);
    const ratios: number[] = [];
    let detail = '';
    for (let round = 0; round <= plan.rounds; round += 1) {
      const ours = median(await oneByOne(sidecar.url, 'POST', names(64).map(pathOf), { body, count: 60 }));
      const headers = { 'api-key': CLIENT.apiKey, 'x-speke-version': '2.0' };
      const { method, path, body: asked } = slowest;
      const call = { headers, count: 40, ...(asked !== undefined && { body: asked }) };
      const upstream = median(await oneByOne(proxy.url, method, [path], call));
      const write = (await durableLoop(loopFolder, text, 1, 500)).median;
      if (round === 0) continue;
      ratios.push(ours / (upstream + write + allowed));
      detail = `last round: POST ${ours.toFixed(2)} ms; slowest call ${upstream.toFixed(2)} + write ${write.toFixed(2)} + ${allowed} ms`;
    }
    await Promise.all([sidecar, proxy].map((server) => server.stop()));
    return { name: figure, atMost: 1, ratios, detail };
  });
}
