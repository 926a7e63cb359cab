import type { Figure, Plan } from './figure';
import { load } from './load';
import { start } from './processes';
import { BODY, inFolder, pathOf, startSidecar } from './sidecar';

const CHECK = '/api/check';

/** Checks of a whole POST body a second, against a bare Express route that parses the same body. */
export function checks(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    const bare = await start('bench/servers/bare-express.js', { BENCH_BODY: 'ok' }, pathOf('x'));
    const run = (url: string, path: string) =>
      load({ url, method: 'POST', paths: [path], body: BODY, connections: 32, seconds: plan.seconds });
    const ratios: number[] = [];
    let detail = '';
    for (let round = 0; round <= plan.rounds; round += 1) {
      const ours = await run(sidecar.url, CHECK);
      const theirs = await run(bare.url, '/parse');
      if (round === 0) continue; // the first pair warms both up
      ratios.push(ours / theirs);
      detail = `last round: ${Math.round(ours)} checks/s, bare route ${Math.round(theirs)}/s`;
    }
    await Promise.all([sidecar.stop(), bare.stop()]);
    const name = 'checks of a POST body, 32 connections, to a bare Express route that parses it';
    return [{ name, ratios, detail }];
  });
}
