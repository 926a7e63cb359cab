import { join } from 'node:path';
import type { Figure, Plan } from './figure';
import { API_KEY } from './load';
import { type Started, start } from './processes';
import { inFolder, keyFileText, loadAndWeigh, pathOf, startSidecar } from './sidecar';

export function reads(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    const text = await keyFileText(sidecar, 'stream-0');
    const bare = await start('bench/servers/bare-express.js', { BENCH_BODY: text }, pathOf('x'));
    const env = { BENCH_FOLDER: join(folder, 'keys'), BENCH_API_KEY: API_KEY };
    const plain = await start('bench/servers/plain-express.js', env, '/', join(folder, 'plain.log'));
    const paths = [pathOf('stream-0')];
    const run = (server: Started) =>
      loadAndWeigh(server, { method: 'GET', paths, connections: 32, seconds: plan.seconds });
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
        atLeast: 1.0,
        ratios: toBare,
        detail,
      },
      {
        name: `${name}Express + helmet + winston + readFile`,
        atLeast: 1.5,
        ratios: toPlain,
        detail,
      },
    ];
  });
}
