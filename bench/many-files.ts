import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Plan } from './figure';
import { load } from './load';
import type { Started } from './processes';
import { BODY, inFolder, names, pathOf, startSidecar } from './sidecar';

export function manyFiles(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecars: Started[] = [];
    for (const count of [10, plan.manyFiles]) {
      const place = join(folder, `${count}`);
      mkdirSync(join(place, 'keys'), { recursive: true });
      for (const name of names(count)) writeFileSync(join(place, 'keys', `${name}.key`), ownKeys());
      const sidecar = await startSidecar(place);
      await untilSurveyed(sidecar);
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

/** A key file with a key of its own, as those of most streams are. */
function ownKeys(): string {
  const block = () => randomBytes(16).toString('base64');
  return `mpegdashstreaming-cenc-key-id: ${block()}\nmpegdashstreaming-cenc-content-key: ${block()}\nmpegdashstreaming-cenc-algorithm: AESCTR\n`;
}

/** The sidecar reads the files that it finds at its start one after another; a POST is compared with those that were read. */
async function untilSurveyed({ url }: Started): Promise<void> {
  while (!(await (await fetch(`${url}/metrics`)).text()).includes('key_files_faulty{'))
    await new Promise((resolve) => setTimeout(resolve, 100));
}
