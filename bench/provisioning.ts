import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Plan } from './figure';
import { median, oneByOne } from './load';
import { durableLoop, start } from './processes';
import { inFolder, keyFileText, names, pathOf, startSidecar } from './sidecar';

export function provisioning(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const client = { EMULATOR_CLIENT: 'bench', EMULATOR_CLIENT_API_KEY: 'bench-client-key' };
    const secret = { EMULATOR_CLIENT_SHARED_SECRET: 'bench-shared-secret-0123456789' };
    const emulator = await start(
      'emulator/main.js',
      { ...client, ...secret, EMULATOR_CONTROL_PORT: '0', EMULATOR_RTMP_PORT: 'off' },
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
    return [{ name, atMost: 1, ratios, detail }];
  });
}
