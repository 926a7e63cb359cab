import { writeDurably } from './write-durably';

// Durable writes without HTTP, N at a time.
const folder = process.env.BENCH_FOLDER ?? '';
const bytes = Buffer.from(process.env.BENCH_BODY ?? '');
const concurrency = Number(process.env.BENCH_CONCURRENCY);
const until = performance.now() + Number(process.env.BENCH_MS);
const durations: number[] = [];

async function worker(index: number): Promise<void> {
  for (let turn = 0; performance.now() < until; turn += 1) {
    const started = performance.now();
    await writeDurably(folder, `loop-${index}-${turn % 8}`, bytes);
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
