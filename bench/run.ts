import { constants, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { batch } from './batch';
import { channels } from './channels';
import { checks } from './checks';
import { cpix } from './cpix';
import { exports } from './exports';
import type { Figure, Plan } from './figure';
import { fleet } from './fleet';
import { listing } from './listing';
import { median } from './load';
import { manyFiles } from './many-files';
import { memory } from './memory';
import { migration } from './migration';
import { observed } from './observed';
import { killChildren } from './processes';
import { provisioning } from './provisioning';
import { queries } from './queries';
import { reads } from './reads';
import { realChain } from './real-chain';
import { rotation } from './rotation';
import { removeFolders } from './sidecar';
import { startUp } from './start-up';
import { webhooks } from './webhooks';
import { writes } from './writes';

const FULL: Plan = {
  rounds: 7,
  seconds: 3,
  requestsForMemory: 100_000,
  manyFiles: 100_000,
  listedFiles: 100_000,
  logLines: 1_000_000,
  fleetKeys: 100_000,
  rotatedKeys: 360,
};
const QUICK: Plan = {
  rounds: 2,
  seconds: 1,
  requestsForMemory: 5000,
  manyFiles: 2000,
  listedFiles: 20_000,
  logLines: 20_000,
  fleetKeys: 20_000,
  rotatedKeys: 12,
};
/** They need ffmpeg and chromium, and so run only when they are named. */
const NAMED_GROUPS = { chain: realChain, rotation };
const GROUPS = {
  reads,
  exports,
  writes,
  batch,
  observed,
  checks,
  provisioning,
  startUp,
  memory,
  manyFiles,
  listing,
  webhooks,
  channels,
  migration,
  queries,
  cpix,
  fleet,
};

/** Measures every figure and its comparison in one run, and prints the ratios as a table. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { quick: { type: 'boolean' }, keys: { type: 'string' } },
    allowPositionals: true,
  });
  const all = { ...GROUPS, ...NAMED_GROUPS };
  const chosen = Object.entries(positionals.length === 0 ? GROUPS : all).filter(
    ([name]) => positionals.length === 0 || positionals.includes(name),
  );
  if (chosen.length === 0) throw new Error(`Known groups: ${Object.keys(all).join(', ')}`);
  const chosenPlan = values.quick ? QUICK : FULL;
  const { keys = `${chosenPlan.rotatedKeys}` } = values;
  if (!/^(?:[2-9]|[1-9]\d{1,3})$/.test(keys)) {
    console.error('--keys must be how many keys there are to be, from 2 to 9999, such as --keys 12.');
    process.exitCode = 2;
    return;
  }
  const plan = { ...chosenPlan, rotatedKeys: Number(keys) };
  console.log(
    `Node ${process.versions.node}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}\n`,
  );
  console.log('| Figure | Must reach | Median | Lowest | Highest | |');
  console.log('|---|---|---|---|---|---|');
  const details: string[] = [];
  for (const [, measure] of chosen) {
    for (const figure of await measure(plan)) {
      console.log(row(figure));
      if (figure.detail) details.push(`- ${figure.name}: ${figure.detail}`);
    }
  }
  console.log(`\n${details.join('\n')}`);
}

function row({ name, ratios, atLeast, atMost }: Figure): string {
  const show = (ratio: number) => ratio.toFixed(2);
  const middle = median(ratios);
  const reached =
    middle >= (atLeast ?? Number.NEGATIVE_INFINITY) && middle <= (atMost ?? Number.POSITIVE_INFINITY);
  const bounds = [
    ...(atLeast === undefined ? [] : [`>= ${atLeast}`]),
    ...(atMost === undefined ? [] : [`<= ${atMost}`]),
  ];
  const verdict = reached ? 'reached' : 'not reached';
  const cells = [
    bounds.join(', ') || '–',
    show(middle),
    show(Math.min(...ratios)),
    show(Math.max(...ratios)),
  ];
  return `| ${name} | ${cells.join(' | ')} | ${bounds.length > 0 ? verdict : '–'} |`;
}

// However it ends, its servers and folders go with it.
process.on('exit', () => {
  killChildren();
  removeFolders();
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => process.exit(128 + constants.signals[signal]));

main().catch((thrown: unknown) => {
  console.error(thrown);
  process.exitCode = 1;
});
