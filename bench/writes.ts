import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Plan } from './figure';
import { API_KEY, median, oneByOne } from './load';
import { durableLoop, type Started, start } from './processes';
import { BODY, inFolder, keyFileText, loadAndWeigh, names, pathOf, startSidecar } from './sidecar';

const PATHS = names(256).map(pathOf);

/** Durable POSTs against servers that write as durably and do little or nothing else. */
export function writes(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const sidecar = await startSidecar(folder);
    const text = await keyFileText(sidecar, 'stream-0');
    const [loopFolder, bareFolder, expressFolder] = ['loop', 'bare', 'express'].map((name) => {
      const path = join(folder, name);
      mkdirSync(path);
      return path;
    }) as [string, string, string];
    const env = { BENCH_BODY: text, BENCH_API_KEY: API_KEY };
    const bare = await start('bench/servers/bare-writer.js', { ...env, BENCH_FOLDER: bareFolder }, '/');
    const express = await start(
      'bench/servers/express-writer.js',
      { ...env, BENCH_FOLDER: expressFolder },
      '/',
    );
    const servers = [sidecar, bare, express];
    const rate: number[] = [];
    const alone: number[] = [];
    const processor: number[] = [];
    const toExpress: number[] = [];
    const toLoop: number[] = [];
    const aloneToLoop: number[] = [];
    const details = { rate: '', alone: '', loop: '' };
    for (let round = 0; round <= plan.rounds; round += 1) {
      // By turns first and last: a disk that gets slower or faster meanwhile must not favour one.
      const order = round % 2 === 0 ? servers : [...servers].reverse();
      const many = await inTurn(order, (server) => postMany(server, plan.seconds));
      const single = await inTurn(order, postAlone);
      const loop = await durableLoop(loopFolder, text, 32, plan.seconds * 1000);
      const loopAlone = (await durableLoop(loopFolder, text, 1, plan.seconds * 500)).median;
      if (round === 0) continue; // the first round warms all up
      const [ours, theirs, plain] = [many(sidecar), many(bare), many(express)];
      rate.push(ours.perSecond / theirs.perSecond);
      processor.push(ours.processorUs / theirs.processorUs);
      alone.push(single(sidecar) / single(bare));
      toExpress.push(ours.perSecond / plain.perSecond);
      toLoop.push(ours.perSecond / loop.perSecond);
      aloneToLoop.push(single(sidecar) / loopAlone);
      const show = ({ perSecond, processorUs }: typeof ours) =>
        `${Math.round(perSecond)}/s, ${Math.round(processorUs)} us processor`;
      details.rate = `last round: sidecar ${show(ours)}; bare ${show(theirs)}; Express ${show(plain)}`;
      details.alone = `last round: ${servers.map((server) => single(server).toFixed(2)).join(', ')} ms (Express last)`;
      details.loop = `last round: ${Math.round(loop.perSecond)}/s; alone ${loopAlone.toFixed(2)} ms`;
    }
    await Promise.all(servers.map((server) => server.stop()));
    const figure = (name: string, ratios: readonly number[], more: Partial<Figure> = {}): Figure => ({
      name: `durable POST, ${name}`,
      ratios,
      ...more,
    });
    return [
      figure('32 connections, to the bare server', rate, { atLeast: 0.85, detail: details.rate }),
      figure('1 connection, median time, to the bare server', alone, { atMost: 1.25, detail: details.alone }),
      figure('32 connections, processor time, to the bare server', processor, { atMost: 1.3 }),
      figure('32 connections, to Express + helmet + zod', toExpress, { atLeast: 1.3 }),
      figure('32 connections, to the loop without HTTP', toLoop, { detail: details.loop }),
      figure('1 connection, median time, to the loop without HTTP', aloneToLoop),
    ];
  });
}

async function inTurn<T>(servers: readonly Started[], measure: (server: Started) => Promise<T>) {
  const results = new Map<Started, T>();
  for (const server of servers) results.set(server, await measure(server));
  return (server: Started) => results.get(server) as T;
}

function postMany(server: Started, seconds: number) {
  return loadAndWeigh(server, { method: 'POST', paths: PATHS, body: BODY, connections: 32, seconds });
}

async function postAlone({ url }: Started): Promise<number> {
  return median(await oneByOne(url, 'POST', PATHS, { body: BODY, count: 300 }));
}
