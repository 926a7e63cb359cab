import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';

// The least a durable write can be, without HTTP: temporary, datasync, rename, sync of the folder, N at a time.
const folder = process.env.BENCH_FOLDER ?? '';
const body = Buffer.from(process.env.BENCH_BODY ?? '');
const concurrency = Number(process.env.BENCH_CONCURRENCY);
const until = performance.now() + Number(process.env.BENCH_MS);
const durations: number[] = [];

async function writeDurably(name: string): Promise<void> {
  const temporary = join(folder, `.${name}.tmp`);
  const file = await open(temporary, 'wx', 0o640);
  await file.write(body);
  await file.datasync();
  await file.close();
  await rename(temporary, join(folder, `${name}.key`));
  const directory = await open(folder, 'r');
  await directory.sync();
  await directory.close();
}

async function worker(index: number): Promise<void> {
  for (let turn = 0; performance.now() < until; turn += 1) {
    const started = performance.now();
    await writeDurably(`loop-${index}-${turn % 8}`);
    durations.push(performance.now() - started);
  }
}

const started = performance.now();
Promise.all(Array.from({ length: concurrency }, (_none, index) => worker(index))).then(() => {
  const seconds = (performance.now() - started) / 1000;
  durations.sort((a, b) => a - b);
  const median = durations[Math.floor(durations.length / 2)];
  process.stdout.write(JSON.stringify({ perSecond: durations.length / seconds, median }));
});
