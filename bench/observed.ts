import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Plan } from './figure';
import { API_KEY, median } from './load';
import type { Started } from './processes';
import { BODY, inFolder, keyFileText, loadAndWeigh, names, pathOf, startSidecar } from './sidecar';

const KEYS = 20;

/** GET and POST with a file of API keys, audit and metrics, against the same without: what watching costs. */
export function observed(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const off = { PACKAGERDRMAPI_AUDIT: 'off', PACKAGERDRMAPI_METRICS: 'off' };
    const plain = await startSidecar(join(folder, 'plain'), off);
    const full = await startSidecar(join(folder, 'full'), {
      PACKAGERDRMAPI_APIKEY: '',
      PACKAGERDRMAPI_APIKEYS_FILE: keysFile(folder),
      PACKAGERDRMAPI_AUDIT: join(folder, 'audit.log'),
    });
    for (const sidecar of [plain, full]) await keyFileText(sidecar, 'stream-0');
    const paths = names(256).map(pathOf);
    const run = (server: Started, method: 'GET' | 'POST') => {
      const post = method === 'POST' ? { paths, body: BODY } : { paths: [pathOf('stream-0')] };
      return loadAndWeigh(server, { method, connections: 32, seconds: plan.seconds, ...post });
    };
    const figures: Figure[] = [];
    for (const method of ['GET', 'POST'] as const) {
      const ratios: number[] = [];
      const processor: number[] = [];
      let detail = '';
      for (let round = 0; round <= plan.rounds; round += 1) {
        // By turns first and second: a disk that gets slower or faster meanwhile must not favour one.
        const order = round % 2 === 0 ? [plain, full] : [full, plain];
        const results = new Map<Started, Awaited<ReturnType<typeof run>>>();
        for (const sidecar of order) results.set(sidecar, await run(sidecar, method));
        const [without, withAll] = [results.get(plain), results.get(full)];
        if (round === 0 || !without || !withAll) continue; // the first pair warms both up
        ratios.push(withAll.perSecond / without.perSecond);
        processor.push(without.processorUs / withAll.processorUs);
        detail = `last round: ${Math.round(withAll.perSecond)}/s, ${Math.round(withAll.processorUs)} us processor; without ${Math.round(without.perSecond)}/s, ${Math.round(without.processorUs)} us; processor's ratio, median ${median(processor).toFixed(2)}`;
      }
      const name = `${method}, 32 connections, with ${KEYS} API keys, audit and metrics, to without`;
      figures.push({ name, atLeast: 0.9, ratios, detail });
    }
    await Promise.all([plain, full].map((sidecar) => sidecar.stop()));
    return figures;
  });
}

function keysFile(folder: string): string {
  const others = names(KEYS - 1).map((name) => ({ name, key: `another-bench-api-key-${name}` }));
  const path = join(folder, 'keys.json');
  writeFileSync(path, JSON.stringify({ keys: [...others, { name: 'bench', key: API_KEY }] }));
  return path;
}
