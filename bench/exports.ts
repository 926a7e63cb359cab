import { EXPORT_NAMES } from '../src/drm/export/names';
import type { Figure, Plan } from './figure';
import { median } from './load';
import { inFolder, keyFileText, loadAndWeigh, pathOf, startSidecar } from './sidecar';

/** GET of a key file in each form for other packagers, against GET of the file itself. */
export function exports(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    await keyFileText(sidecar, 'stream-0');
    const run = (query: string) =>
      loadAndWeigh(sidecar, {
        method: 'GET',
        paths: [`${pathOf('stream-0')}${query}`],
        connections: 32,
        seconds: plan.seconds,
      });
    const queries = EXPORT_NAMES.map((as) => `?as=${as}`);
    for (const query of ['', ...queries]) await run(query);
    const ratios = new Map<string, number[]>(queries.map((query) => [query, []]));
    const processor = new Map<string, number[]>(queries.map((query) => [query, []]));
    const details = new Map<string, string>();
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const query of queries) {
        // By turns first and second, as the machine gets slower or faster meanwhile.
        const pair = round % 2 === 0 ? ['', query] : [query, ''];
        const results = new Map<string, Awaited<ReturnType<typeof run>>>();
        for (const each of pair) results.set(each, await run(each));
        const [plain, exported] = [results.get(''), results.get(query)];
        if (!plain || !exported) continue;
        ratios.get(query)?.push(exported.perSecond / plain.perSecond);
        processor.get(query)?.push(plain.processorUs / exported.processorUs);
        const ofProcessor = median(processor.get(query) ?? []).toFixed(2);
        const show = (r: typeof plain) =>
          `${Math.round(r.perSecond)}/s, ${Math.round(r.processorUs)} us processor`;
        details.set(
          query,
          `last round: ${show(exported)}; plain ${show(plain)}; processor's ratio, median ${ofProcessor}`,
        );
      }
    }
    await sidecar.stop();
    return queries.map((query) => ({
      name: `GET ${query}, 32 connections, to GET of the key file`,
      atLeast: 0.8,
      ratios: ratios.get(query) ?? [],
      detail: details.get(query) ?? '',
    }));
  });
}
