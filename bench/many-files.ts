import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Plan } from './figure';
import { load } from './load';
import type { Started } from './processes';
import { BODY, inFolder, keyFileText, names, pathOf, startSidecar } from './sidecar';

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
    const ratios = { GET: [] as number[], POST: [] as number[] };
    for (let round = 0; round <= plan.rounds; round += 1) {
      for (const method of ['GET', 'POST'] as const) {
        const common = {
          method,
          connections: 32,
          seconds: plan.seconds,
          ...(method === 'POST' ? { body: BODY } : {}),
        };
        // The same requests to both; writes go to more streams than connections, as none may wait for another.
        const paths = names(method === 'GET' ? 10 : 64).map(pathOf);
        const ten = await load({ ...common, url: small.url, paths });
        const lots = await load({ ...common, url: large.url, paths });
        if (round > 0) ratios[method].push(lots / ten);
      }
    }
    await Promise.all(sidecars.map((sidecar) => sidecar.stop()));
    return (['GET', 'POST'] as const).map((method) => ({
      name: `${method} with ${plan.manyFiles.toLocaleString('en')} key files to with 10`,
      atLeast: 0.9,
      ratios: ratios[method],
    }));
  });
}
