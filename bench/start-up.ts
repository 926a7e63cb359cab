import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import type { Figure, Plan } from './figure';
import { start } from './processes';
import { inFolder, startSidecar } from './sidecar';

/** Starts, of the service against a bare server and of the command line against Node itself. */
export function startUp(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const ratios: number[] = [];
    const cli: number[] = [];
    let detail = '';
    let cliDetail = '';
    for (let round = 0; round < plan.rounds * 2; round += 1) {
      const sidecar = await startSidecar(folder);
      await sidecar.stop();
      const plain = await start('bench/servers/plain-express.js', {}, '/', join(folder, 'plain.log'));
      await plain.stop();
      ratios.push(sidecar.readyMs / plain.readyMs);
      detail = `last round: sidecar ${sidecar.readyMs.toFixed(0)} ms, Express + helmet + winston ${plain.readyMs.toFixed(0)} ms`;
    }
    for (let round = 0; round < plan.rounds * 4; round += 1) {
      const nothing = spent(['-e', '0']);
      const version = spent([resolve('dist/cli/main.js'), '--version']);
      cli.push(version / nothing);
      cliDetail = `last round: ${version.toFixed(0)} ms, node -e 0 ${nothing.toFixed(0)} ms`;
    }
    return [
      { name: 'start to /readyz to Express + helmet + winston', atMost: 1.3, ratios, detail },
      { name: 'packager-drm --version to node -e 0', atMost: 1.5, ratios: cli, detail: cliDetail },
    ];
  });
}

/** How long a run of Node takes, in milliseconds. */
function spent(args: readonly string[]): number {
  const begun = performance.now();
  const { status } = spawnSync(process.execPath, args, { stdio: 'ignore' });
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}`);
  return performance.now() - begun;
}
