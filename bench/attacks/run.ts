import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { killChildren } from '../processes';
import { createCgroup, memoryLimitMiB } from './cgroup';
import { ATTACKS, type Attack } from './kinds';
import { besiege, type Outcome } from './siege';

const USAGE = `node dist/bench/attacks/run.js [--dist DIR] [--only NAME,NAME] [--seconds N] [--json FILE] [--cgroup]

Attacks a built sidecar and tells how it and its rightful clients fare. Run it in the root of the repository.

--dist     the folder of the build, which holds sidecar/main.js (default: dist)
--only     some attacks: ${ATTACKS.map(({ name }) => name).join(', ')}
--seconds  how long each attack goes on (default: 20)
--json     where to write everything that was measured
--cgroup   gives the sidecar the memory of docs/kubernetes.yaml and half a core

Exits with 1 when a sidecar died, or a GET and a POST with a valid key did not succeed after an attack.`;

/** What an attacker's process needs beside its connections. */
const SPARE_FILES = 100;
const MAX_SECONDS = 600;
/** Messages of the log that are told of each attack. */
const TOLD_MESSAGES = 5;

class Usage extends Error {}

interface Arguments {
  readonly dist: string;
  readonly attacks: readonly Attack[];
  readonly seconds: number;
  readonly json: string | undefined;
  readonly cgroup: boolean;
}

function readArguments(): Arguments {
  const { values } = parse();
  const seconds = Number(values.seconds);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > MAX_SECONDS)
    throw new Usage(`--seconds: must be a whole number from 1 to ${MAX_SECONDS}`);
  const dist = resolve(values.dist);
  if (!existsSync(join(dist, 'sidecar/main.js')))
    throw new Usage(`--dist: ${dist} holds no sidecar/main.js; build it with npm run build`);
  const names = values.only?.split(',') ?? ATTACKS.map(({ name }) => name);
  const attacks = names.map((name) => {
    const attack = ATTACKS.find((each) => each.name === name);
    if (!attack) throw new Usage(`--only: there is no attack ${name}`);
    return attack;
  });
  return { dist, attacks, seconds, json: values.json, cgroup: values.cgroup };
}

function parse() {
  try {
    return parseArgs({
      options: {
        dist: { type: 'string', default: 'dist' },
        only: { type: 'string' },
        seconds: { type: 'string', default: '20' },
        json: { type: 'string' },
        cgroup: { type: 'boolean', default: false },
      },
    });
  } catch (thrown) {
    throw new Usage(String(Reflect.get(Object(thrown), 'message')));
  }
}

/** @throws Usage when the system does not let this process try it. */
async function checkSystem({ attacks, cgroup }: Arguments): Promise<void> {
  const connections = attacks.map(({ parts }) => parts.reduce((sum, part) => sum + part.connections, 0));
  const needed = Math.max(...connections) + SPARE_FILES;
  // Node raises its own limit to the hard one.
  const [, most] = /Max open files\s+\S+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  if (Number(most) < needed)
    throw new Usage(`an attack opens ${needed} files; raise ulimit -Hn from ${most}`);
  if (!cgroup) return;
  try {
    await createCgroup().remove();
  } catch (thrown) {
    const why = Reflect.get(Object(thrown), 'message');
    throw new Usage(
      `--cgroup: no control group can be made (${why}); run as root where /sys/fs/cgroup is writable`,
    );
  }
}

async function main(): Promise<void> {
  const given = readArguments();
  await checkSystem(given);
  const { dist, attacks, seconds, json, cgroup } = given;
  let interrupted = false;
  process.on('exit', killChildren);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (interrupted) process.exit(130);
      interrupted = true;
      // What waits for them goes on then, and clears away what it has made.
      killChildren();
    });
  }
  const where = cgroup ? `${memoryLimitMiB()} MiB, half a core` : 'no limits';
  const processor = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}`;
  console.log(`Node ${process.versions.node}, ${processor}; ${seconds} s each, ${where}; ${dist}\n`);
  console.log(HEADINGS.map((line) => `|${line.join('|')}|`).join('\n'));
  const outcomes: Outcome[] = [];
  const faults: string[] = [];
  for (const attack of attacks) {
    try {
      const options = { dist, seconds, inCgroup: cgroup, certificates: resolve('test/vectors/tls') };
      const outcome = await besiege(attack, options);
      if (interrupted) break;
      outcomes.push(outcome);
      if (outcome.died !== undefined || outcome.recoversMs === undefined) process.exitCode = 1;
      console.log(`| ${row(outcome).join(' | ')} |`);
    } catch (thrown) {
      if (interrupted) break;
      faults.push(`- ${attack.name}: ${Reflect.get(Object(thrown), 'message')}`);
      process.exitCode = 1;
    }
    if (json) writeFileSync(json, JSON.stringify({ dist, seconds, cgroup, outcomes }, undefined, 2));
  }
  console.log(`\n${outcomes.map(details).join('\n')}`);
  if (faults.length > 0) console.log(`\nCould not be measured:\n${faults.join('\n')}`);
  if (interrupted) process.exitCode = 130;
}

const CLEAN = 'exit code 0';

const COLUMNS = [
  'Attack',
  'Rightful served / refused / timed out',
  'Longest ms',
  'Probes served / failed',
  'Longest ms',
  'Idle MiB',
  'Peak MiB',
  'Ratio',
  'Core',
  'Log lines',
  'Recovers ms',
  'Stops ms',
  'Died',
  'Group peak MiB / OOM kills',
];
const HEADINGS = [COLUMNS.map((name) => ` ${name} `), COLUMNS.map(() => '---')];

function row({ cgroup, ...outcome }: Outcome): string[] {
  const { attack, rightful, probe, idleMiB, peakMiB, processor, logLines, recoversMs, stop, died } = outcome;
  const whole = (value: number | undefined, without: string) => value?.toFixed(0) ?? without;
  const lines = Object.values(logLines).reduce((sum, lineCount) => sum + lineCount, 0);
  return [
    attack,
    `${rightful.served} / ${rightful.refused} / ${rightful.timedOut}`,
    whole(rightful.longestMs, ''),
    `${probe.served} / ${probe.refused + probe.timedOut}`,
    whole(probe.longestMs, ''),
    whole(idleMiB, ''),
    whole(peakMiB, ''),
    (peakMiB / idleMiB).toFixed(2),
    processor === undefined ? '–' : `${(processor * 100).toFixed(0)} %`,
    `${lines}`,
    whole(recoversMs, 'never'),
    stop ? `${whole(stop.ms, '')}${stop.ending === CLEAN ? '' : ` (${stop.ending})`}` : '–',
    died ?? 'no',
    cgroup ? `${cgroup.peakMiB.toFixed(0)} / ${cgroup.oomKills}` : '–',
  ];
}

function details({ attack, rightful, probe, logLines, attackers }: Outcome): string {
  const messages = Object.entries(logLines)
    .sort(([, one], [, other]) => other - one)
    .slice(0, TOLD_MESSAGES)
    .map(([kind, count]) => `${count} ${kind}`);
  return [
    `- ${attack}: attackers ${JSON.stringify(attackers)}`,
    `rightful ${JSON.stringify(rightful.what)}`,
    `probe ${JSON.stringify(probe.what)}`,
    `log ${messages.join(', ')}`,
  ].join('; ');
}

main()
  .catch((thrown: unknown) => {
    console.error(thrown instanceof Usage ? `${thrown.message}\n\n${USAGE}` : thrown);
    process.exitCode = thrown instanceof Usage ? 2 : 1;
  })
  // What still waits, for an attack that was interrupted or failed, has no use any more.
  .finally(() => process.exit());
