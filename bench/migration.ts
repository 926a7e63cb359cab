import { spawnSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Figure, Plan } from './figure';
import { median } from './load';
import { inFolder } from './sidecar';

const TOOL = resolve('dist/migration/main.js');
const LOOP = resolve('dist/bench/servers/bare-log-loop.js');
const PEAK = resolve('dist/bench/servers/peak-memory.js');
const ROUTES = [
  'videos/list',
  'videos/show',
  'videos/create',
  'channels/list',
  'players/show',
  'templates/list',
];

/** The migration tool over an access log, against a loop that only reads and parses each line. */
export function migration(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const long = writeLog(join(folder, 'long.log'), plan.logLines);
    const short = writeLog(join(folder, 'short.log'), plan.logLines / 10);
    const ratios: number[] = [];
    const peaks: number[] = [];
    let detail = '';
    let peakDetail = '';
    for (let round = 0; round < plan.rounds; round += 1) {
      const ours = run([TOOL, '--json', long]);
      const theirs = run([LOOP, long]);
      const less = run([TOOL, '--json', short]);
      ratios.push(theirs.ms / ours.ms);
      peaks.push(ours.peakMiB / less.peakMiB);
      const perSecond = (ms: number) => Math.round((plan.logLines / ms) * 1000).toLocaleString('en');
      detail = `last round: ${perSecond(ours.ms)} lines/s, bare loop ${perSecond(theirs.ms)}/s`;
      peakDetail = `last round: ${ours.peakMiB.toFixed(0)} MiB and ${less.peakMiB.toFixed(0)} MiB, bare loop ${theirs.peakMiB.toFixed(0)} MiB`;
    }
    const n = plan.logLines.toLocaleString('en');
    return [
      {
        name: `platform-migrate on a log of ${n} lines, lines a second to a bare loop`,
        atLeast: 0.5,
        ratios,
        detail,
      },
      {
        name: `peak memory on ${n} lines to a tenth of them`,
        atMost: 1.1,
        ratios: [median(peaks)],
        detail: peakDetail,
      },
    ];
  });
}

/** Calls of six routes, each with values of its own. */
function writeLog(path: string, lines: number): string {
  for (let at = 0; at < lines; at += 1000) {
    const some = Array.from({ length: Math.min(1000, lines - at) }, (_each, index) => line(at + index));
    appendFileSync(path, some.join(''));
  }
  return path;
}

function line(index: number): string {
  const signed = `api_key=XOqEAfxj&api_nonce=${10_000_000 + index}&api_timestamp=${1_700_000_000 + index}`;
  const query = `api_format=json&${signed}&video_key=${(index * 7919).toString(36)}&title=a${index}&api_signature=fbdee51a45980f9876834dc5ee1ec5e93f67cb89`;
  const target = `/v1/${ROUTES[index % ROUTES.length]}?${query}`;
  return `10.0.0.${index % 256} - - [22/Nov/2026:12:00:00 +0000] "GET ${target} HTTP/1.1" 200 ${index % 5000} "-" "python-jwplatform/1.2"\n`;
}

/** How long a run took, start and end of the process included, and its most memory. */
function run(args: readonly string[]): { ms: number; peakMiB: number } {
  const begun = performance.now();
  const { stderr } = spawnSync(process.execPath, ['-r', PEAK, ...args], { encoding: 'utf8' });
  const ms = performance.now() - begun;
  const peak = /^peak (\d+)$/m.exec(stderr)?.[1];
  if (peak === undefined) throw new Error(`${args[0]} did not end well: ${stderr}`);
  return { ms, peakMiB: Number(peak) / 1024 };
}
