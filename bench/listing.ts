import { linkSync, mkdirSync, opendirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { summariseKeyFile } from '../src/drm/check/key-file-text';
import type { Figure, Plan } from './figure';
import { API_KEY, median } from './load';
import { residentMiB, type Started } from './processes';
import { inFolder, keyFileText, startSidecar } from './sidecar';

const FEW = 1000;
const PAGE = 100;
const PAGES = 10;
/** Fewer than the links that ext4 lets a file have. */
const MAX_LINKS = 50_000;

export function listing(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const { listedFiles, rounds } = plan;
    const folders = { few: join(folder, 'few'), many: join(folder, 'many') };
    const few = await startSidecar(folders.few);
    const text = await keyFileText(few, 'stream-0');
    fill(join(folders.few, 'keys'), FEW, text);
    fill(join(folders.many, 'keys'), listedFiles, text);
    const many = await startSidecar(folders.many);
    const ratios = { bare: [] as number[], size: [] as number[] };
    for (const sidecar of [few, many]) await warmUp(sidecar);
    const times = { reads: [] as number[], bare: [] as number[], first: [] as number[] };
    for (let round = 0; round <= rounds; round += 1) {
      const reads: number[] = [];
      const bare: number[] = [];
      const first: number[] = [];
      for (let page = 0; page < PAGES; page += 1) {
        reads.push(bareLoop(join(folders.many, 'keys'), () => {}));
        bare.push(bareLoop(join(folders.many, 'keys'), summariseKeyFile));
        first.push(...(await list(many, PAGE, 1)));
      }
      const small: number[] = [];
      const large: number[] = [];
      for (let turn = 0; turn < 5; turn += 1) {
        small.push(...(await list(few, PAGE, PAGES)));
        large.push(...(await list(many, PAGE, PAGES)));
      }
      if (round === 0) continue;
      times.reads.push(median(reads));
      times.bare.push(median(bare));
      times.first.push(median(first));
      ratios.bare.push(median(first) / median(bare));
      ratios.size.push(median(large) / median(small));
    }
    const whole = await listWhole(many);
    await Promise.all([few.stop(), many.stop()]);
    const n = listedFiles.toLocaleString('en');
    const ms = (durations: readonly number[]) => `${median(durations).toFixed(1)} ms`;
    return [
      {
        name: `first page of ${PAGE} of ${n} key files to a bare opendir, ${PAGE} reads and their checks`,
        atMost: 2,
        ratios: ratios.bare,
        detail: `${ms(times.first)}, bare ${ms(times.bare)}; opendir and reads without the checks ${ms(times.reads)}`,
      },
      {
        name: `page of ${PAGE} of ${n} key files to one of ${FEW.toLocaleString('en')}`,
        atMost: 1.2,
        ratios: ratios.size,
      },
      {
        name: `last pages of ${n} key files to first pages`,
        atMost: 1.2,
        ratios: [median(whole.last) / median(whole.first)],
        detail: `${ms(whole.first)} and ${ms(whole.last)} a page of 1,000; the whole list ${whole.seconds.toFixed(0)} s`,
      },
      {
        name: `resident memory while ${n} key files are listed to before`,
        atMost: 1.1,
        ratios: [whole.mostMiB / whole.beforeMiB],
        detail: `${whole.beforeMiB.toFixed(0)} MiB before, ${whole.mostMiB.toFixed(0)} MiB at most`,
      },
    ];
  });
}

async function warmUp(sidecar: Started): Promise<void> {
  for (let round = 0; round < 20; round += 1) await list(sidecar, PAGE, PAGES);
}

/** Lists everything in pages of 1,000, and compares its beginning with its end. */
async function listWhole(sidecar: Started) {
  // The first pages of that size make the process grow to what it needs for one.
  for (let round = 0; round < 3; round += 1) await list(sidecar, 1000, 50);
  const beforeMiB = residentMiB(sidecar.child);
  let mostMiB = beforeMiB;
  const durations = await list(sidecar, 1000, Number.POSITIVE_INFINITY, () => {
    mostMiB = Math.max(mostMiB, residentMiB(sidecar.child));
  });
  // The very last page may hold few or none.
  const full = durations.slice(0, -1);
  const share = Math.min(50, Math.ceil(full.length / 4));
  const seconds = durations.reduce((sum, duration) => sum + duration, 0) / 1000;
  return { beforeMiB, mostMiB, seconds, first: full.slice(0, share), last: full.slice(-share) };
}

/** Asks for so many pages, one after another, and answers the duration of each in milliseconds. */
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
