import { processorMs, residentMiB } from '../processes';
import { inFolder } from '../sidecar';
import { beginAssault, startUpstream } from './assault';
import { type Cgroup, createCgroup } from './cgroup';
import type { Attack } from './kinds';
import { readOne, startProbe, startRightful, type Tally, warmUp, writeOne } from './rightful';
import { countLines, followMemory, logBytes, startVictim, type Victim } from './victim';
import { sleep, within } from './waiting';

export interface Outcome {
  readonly attack: string;
  readonly rightful: Tally;
  readonly probe: Tally;
  readonly idleMiB: number;
  readonly peakMiB: number;
  /** Processor time of the sidecar during the attack, as a share of one core. */
  readonly processor: number | undefined;
  /** Lines of the log during the attack, by level and message; those of the rightful client and the probe among them. */
  readonly logLines: Readonly<Record<string, number>>;
  readonly attackers: Readonly<Record<string, unknown>>;
  /** Milliseconds from the end of the attack to the end of the first GET that succeeds; undefined: none did. */
  readonly recoversMs: number | undefined;
  /** From SIGTERM, the attack under way, to the end of the process; undefined: it had ended before. */
  readonly stop: Stop | undefined;
  /** How the process ended when nobody had asked it to. */
  readonly died: string | undefined;
  readonly cgroup?: { readonly peakMiB: number; readonly oomKills: number };
}

export interface Stop {
  readonly ms: number;
  /** `exit code 0` is a clean stop, `SIGKILL` one that took too long. */
  readonly ending: string;
}

export interface SiegeOptions {
  readonly dist: string;
  readonly seconds: number;
  readonly inCgroup: boolean;
  readonly certificates: string;
}

/** How long an attack goes on before the sidecar is told to stop. */
const STOP_AFTER_SECONDS = 3;
const MAX_RECOVERY_MS = 30_000;
const MAX_STOP_MS = 30_000;

/** Starts a sidecar, attacks it, and tells how it and its rightful clients fared. */
export function besiege(attack: Attack, options: SiegeOptions): Promise<Outcome> {
  const { dist, certificates, inCgroup } = options;
  return inFolder(async (folder) => {
    const cgroup = inCgroup ? createCgroup() : undefined;
    const upstream = attack.upstream && (await startUpstream(attack.upstream));
    let victim: Victim | undefined;
    try {
      victim = await startVictim({
        dist,
        folder,
        cgroup,
        certificates: attack.secure ? certificates : undefined,
        env: upstream ? upstream.env : {},
      });
      return await observe(victim, attack, options.seconds, cgroup);
    } finally {
      victim?.child.kill('SIGKILL');
      await victim?.ended;
      await upstream?.stop();
      await cgroup?.remove();
    }
  });
}

async function observe(
  victim: Victim,
  attack: Attack,
  seconds: number,
  cgroup: Cgroup | undefined,
): Promise<Outcome> {
  await warmUp(victim);
  await sleep(1000);
  const idleMiB = residentMiB(victim.child);
  const peakMemory = followMemory(victim);
  const logFrom = logBytes(victim);
  const processorFrom = processorMs(victim.child);
  const begun = performance.now();

  const clients = [startRightful(victim), startProbe(victim)] as const;
  const assault = beginAssault(victim, attack, seconds);
  await Promise.race([assault.over, victim.ended]);
  const [rightful, probe] = await Promise.all([clients[0].stop(), clients[1].stop()]);
  const attackers = await assault.tell();
  const running = victim.ending() === undefined;
  const used = running ? processorMs(victim.child) - processorFrom : undefined;
  const processor = used === undefined ? undefined : used / (performance.now() - begun);
  const logLines = await countLines(victim, logFrom);
  await assault.end();
  const recoversMs = await untilServed(victim);
  const peakMiB = peakMemory();
  const died = victim.ending();
  const stop = died === undefined ? await stopUnderAttack(victim, attack) : undefined;
  return {
    attack: attack.name,
    rightful,
    probe,
    idleMiB,
    peakMiB,
    processor,
    logLines,
    attackers,
    recoversMs,
    stop,
    died,
    ...(cgroup && { cgroup: { peakMiB: cgroup.peakMiB(), oomKills: cgroup.oomKills() } }),
  };
}

async function untilServed(victim: Victim): Promise<number | undefined> {
  const begun = performance.now();
  while (victim.ending() === undefined && performance.now() - begun < MAX_RECOVERY_MS) {
    const read = await readOne(victim);
    const written = read.outcome === 'served' ? await writeOne(victim, 'afterwards') : read;
    if (written.outcome === 'served') return performance.now() - begun;
    await sleep(10);
  }
  return undefined;
}

async function stopUnderAttack(victim: Victim, attack: Attack): Promise<Stop> {
  const assault = beginAssault(victim, attack, STOP_AFTER_SECONDS);
  // The calls to an upstream are under way at once, and over soon.
  if (attack.upstream) await sleep(500);
  else await Promise.race([assault.over, victim.ended]);
  const begun = performance.now();
  victim.child.kill('SIGTERM');
  if (!(await within(MAX_STOP_MS, victim.ended))) victim.child.kill('SIGKILL');
  const ending = await victim.ended;
  const ms = performance.now() - begun;
  await assault.end();
  await assault.over;
  return { ms, ending };
}
