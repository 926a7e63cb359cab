import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Plan } from './figure';
import { API_KEY, load } from './load';
import { durableLoop } from './processes';
import { BODY, inFolder, keyFileText, names, pathOf, startSidecar } from './sidecar';

const COUNT = 1000;

/** A batch of 1,000 supplied streams, against as many single POSTs, and against the bare durable loop. */
export function batch(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    const text = await keyFileText(sidecar, 'stream-0');
    const loopFolder = join(folder, 'loop');
    mkdirSync(loopFolder);
    const single: number[] = [];
    const bare: number[] = [];
    let detail = '';
    for (let round = 0; round <= plan.rounds; round += 1) {
      // New names for each: a batch does not write again what is there already.
      const streams = names(COUNT).map((name) => `batch-${round}-${name}`);
      const paths = names(COUNT).map((name) => pathOf(`single-${round}-${name}`));
      const ours = await postBatch(sidecar.url, streams);
      const post = { url: sidecar.url, method: 'POST', body: BODY, connections: 32 } as const;
      const theirs = await load({ ...post, paths, seconds: plan.seconds });
      const loop = (await durableLoop(loopFolder, text, 32, plan.seconds * 1000)).perSecond;
      if (round === 0) continue; // the first round warms all three up
      single.push(ours / theirs);
      bare.push(ours / loop);
      detail = `last round: batch ${Math.round(ours)}/s, single POSTs ${Math.round(theirs)}/s, loop ${Math.round(loop)}/s`;
    }
    await sidecar.stop();
    const name = (to: string) => `batch of ${COUNT} supplied streams, to ${to}`;
    return [
      { name: name('single POSTs'), atLeast: 1, ratios: single, detail },
      { name: name('the bare loop'), atLeast: 0.7, ratios: bare, detail },
    ];
  });
}

/** Sends a batch and answers its streams per second. Any stream that isn't created is an error. */
async function postBatch(url: string, streamIds: readonly string[]): Promise<number> {
  const fields = JSON.parse(BODY);
  const body = JSON.stringify({ streams: streamIds.map((streamid) => ({ streamid, ...fields })) });
  const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
  const started = performance.now();
  const response = await fetch(`${url}/api/keyfiles`, { method: 'POST', headers, body });
  const { summary } = (await response.json()) as { summary?: { created?: number } };
  const seconds = (performance.now() - started) / 1000;
  if (summary?.created !== streamIds.length) throw new Error(`a batch answered ${JSON.stringify(summary)}`);
  return streamIds.length / seconds;
}
