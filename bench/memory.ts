import type { Figure, Plan } from './figure';
import { load } from './load';
import { residentMiB, type Started, start } from './processes';
import { inFolder, keyFileText, pathOf, startSidecar } from './sidecar';

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
        atMost: 1.5,
        ratios: [first / theirs],
        detail: `sidecar ${first.toFixed(0)} MiB, Express + helmet ${theirs.toFixed(0)} MiB`,
      },
      {
        name: `resident memory after three times ${n} to after one`,
        atMost: 1.1,
        ratios: [third / first],
        detail: `${mib} MiB`,
      },
    ];
  });
}
