import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Plan } from './figure';
import { load, median, oneByOne } from './load';
import { durableLoop } from './processes';
import { BODY, inFolder, keyFileText, names, pathOf, startSidecar } from './sidecar';

export function writes(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    const text = await keyFileText(sidecar, 'stream-0');
    const loopFolder = join(folder, 'loop');
    mkdirSync(loopFolder);
    const paths = names(256).map(pathOf);
    const many: number[] = [];
    const one: number[] = [];
    let detailMany = '';
    let detailOne = '';
    for (let round = 0; round <= plan.rounds; round += 1) {
      const ms = plan.seconds * 1000;
      const post = { url: sidecar.url, method: 'POST', paths, body: BODY, connections: 32 } as const;
      const ours = await load({ ...post, seconds: plan.seconds });
      const theirs = await durableLoop(loopFolder, text, 32, ms);
      const single = median(await oneByOne(sidecar.url, 'POST', paths, { body: BODY, count: 300 }));
      const bare = (await durableLoop(loopFolder, text, 1, ms / 2)).median;
      if (round === 0) continue; // the first pair warms both up
      many.push(ours / theirs.perSecond);
      one.push(single / bare);
      detailMany = `last round: sidecar ${Math.round(ours)}/s, loop ${Math.round(theirs.perSecond)}/s`;
      detailOne = `last round: sidecar ${single.toFixed(2)} ms, loop ${bare.toFixed(2)} ms`;
    }
    await sidecar.stop();
    const [a, b] = [
      'durable POST, 32 connections, to the bare loop',
      'durable POST, 1 connection, median, to the loop',
    ];
    return [
      { name: a, bound: '>= 0.7', ratios: many, reached: (r) => r >= 0.7, detail: detailMany },
      { name: b, bound: '<= 1.5', ratios: one, reached: (r) => r <= 1.5, detail: detailOne },
    ];
  });
}
