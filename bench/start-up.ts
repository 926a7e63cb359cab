import type { Figure, Plan } from './figure';
import { start } from './processes';
import { inFolder, startSidecar } from './sidecar';

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
