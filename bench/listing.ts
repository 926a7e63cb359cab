import { linkSync, mkdirSync, opendirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { summariseKeyFile } from '../src/drm/check/key-file-text';
import type { Figure, Plan } from './figure';
import { API_KEY, median } from './load';
import { residentMiB, type Started } from './processes';
import { inFolder, keyFileText, startSidecar } from './sidecar';

const PAGE = 100;
const PAGES = 10;
/** Fewer than the links that ext4 lets a file have. */
const MAX_LINKS = 50_000;

export function listing(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const { listedFiles, rounds } = plan;
    const keys = join(folder, 'keys');
    const sidecar = await startSidecar(folder);
    fill(keys, listedFiles, await keyFileText(sidecar, 'stream-0'));
    for (let round = 0; round < 20; round += 1) await list(sidecar, PAGE, PAGES);
    const ratios: number[] = [];
    const times = { bare: [] as number[], first: [] as number[] };
    for (let round = 0; round < rounds; round += 1) {
      const bare: number[] = [];
      const first: number[] = [];
      for (let page = 0; page < PAGES; page += 1) {
        bare.push(bareLoop(keys, summariseKeyFile));
        first.push(...(await list(sidecar, PAGE, 1)));
      }
      times.bare.push(median(bare));
      times.first.push(median(first));
      ratios.push(median(first) / median(bare));
    }
    const whole = await listWhole(sidecar);
    await sidecar.stop();
    const n = listedFiles.toLocaleString('en');
    const ms = (durations: readonly number[]) => `${median(durations).toFixed(1)} ms`;
    return [
      {
        name: `first page of ${PAGE} of ${n} key files to a bare opendir, ${PAGE} reads and their checks`,
        ratios,
        detail: `${ms(times.first)}, bare ${ms(times.bare)}`,
      },
      {
        name: `resident memory while ${n} key files are listed to before`,
        atMost: 1.1,
        ratios: [whole.mostMiB / whole.beforeMiB],
        detail: `${whole.beforeMiB.toFixed(0)} MiB before, ${whole.mostMiB.toFixed(0)} MiB at most; the whole list ${whole.seconds.toFixed(0)} s`,
      },
    ];
  });
}

/** Lists everything in pages of 1,000. */
async function listWhole(sidecar: Started) {
  // The first pages of that size make the process grow to what it needs for one.
  for (let round = 0; round < 3; round += 1) await list(sidecar, 1000, 50);
  const beforeMiB = residentMiB(sidecar.child);
  let mostMiB = beforeMiB;
  const durations = await list(sidecar, 1000, Number.POSITIVE_INFINITY, () => {
    mostMiB = Math.max(mostMiB, residentMiB(sidecar.child));
  });
  const seconds = durations.reduce((sum, duration) => sum + duration, 0) / 1000;
  return { beforeMiB, mostMiB, seconds };
}

/** Asks for a number of pages, one after another, and returns the duration of each in milliseconds. */
async function list(sidecar: Started, limit: number, pages: number, between = () => {}): Promise<number[]> {
  const durations: number[] = [];
  for (let cursor: string | null = ''; cursor !== null && durations.length < pages; ) {
    const query = cursor === '' ? '' : `&cursor=${cursor}`;
    const started = performance.now();
    const response = await fetch(`${sidecar.url}/api/keyfiles?limit=${limit}${query}`, {
      headers: { 'x-api-key': API_KEY },
    });
    const text = await response.text();
    durations.push(performance.now() - started);
    if (!response.ok) throw new Error(`the sidecar answered ${response.status}`);
    cursor = (JSON.parse(text) as { cursor: string | null }).cursor;
    between();
  }
  return durations;
}

/** The least that a first page takes: milliseconds to open the folder, and to read and check its first files. */
function bareLoop(folder: string, check: (text: string) => unknown): number {
  const started = performance.now();
  const dir = opendirSync(folder);
  for (let read = 0; read < PAGE; ) {
    const entry = dir.readSync();
    if (!entry) break;
    if (!entry.name.endsWith('.key')) continue;
    check(readFileSync(join(folder, entry.name), 'utf8'));
    read += 1;
  }
  dir.closeSync();
  return performance.now() - started;
}

/** Fills a folder with key files of one text. Most are hard links: names are what a list costs. */
function fill(folder: string, count: number, text: string): void {
  mkdirSync(folder, { recursive: true });
  let file = '';
  for (let index = 0; index < count; index += 1) {
    const path = join(folder, `stream-${index}.key`);
    if (index % MAX_LINKS === 0) {
      file = path;
      writeFileSync(file, text);
    } else {
      linkSync(file, path);
    }
  }
}
