import { FLEET_STATES, type FleetState, LACK_REASONS, type LackReason } from './fleet';
import type { FleetAnswer, FleetFinding, FleetPackager } from './fleet-answers';

type Finding = FleetFinding | { severity: 'ok'; code: string; description: string; commands?: never };
type Make = (code: string, description: string, todo: string, commands?: string[][]) => FleetFinding;

const ok = (code: string, description: string): Finding => ({ severity: 'ok', code, description });
const make = (severity: FleetFinding['severity'], [code, description, todo, commands]: Parameters<Make>) => ({
  ...{ severity, code, description, todo },
  ...(commands && { commands }),
});
const error: Make = (...given) => make('error', given);
const warning: Make = (...given) => make('warning', given);

/** The errors first. */
export function findingsIn(answer: FleetAnswer): FleetFinding[] {
  const found = [...checkFleet(answer)].flatMap((each) => (each.severity === 'ok' ? [] : [each]));
  return found.sort((one, other) => one.severity.localeCompare(other.severity));
}

/** Faults of a fleet as one of its sidecars sees it, and what is right (`ok`). No text has a full stop. */
export function* checkFleet(answer: FleetAnswer): Generator<Finding> {
  const { name, state, since, compacted, missing, ignored = 0 } = answer;
  const { former_secret: former, missing_secret: absent } = answer;
  if (state === 'level') yield ok('fleet_state', `${name} is level with the fleet`);
  else {
    const message = `${name} is not level with the fleet: ${FLEET_STATES[state]} (${state}, since ${since})`;
    yield ofState(state)(`fleet_${state}`, message, STATES[state]);
  }
  yield serversFinding(answer);
  yield* checkLeader(answer);
  yield* checkAlarms(answer);
  yield* checkQuota(answer);
  if (compacted === false)
    yield warning(
      'fleet_compaction_off',
      'The engine is not compacted: it keeps every former revision until its quota is used up',
      'start its servers with --auto-compaction-mode=periodic --auto-compaction-retention=1h',
    );
  if (missing > 0)
    yield warning(
      'fleet_missing',
      `${count(missing, 'key file')} of the fleet ${missing === 1 ? 'is' : 'are'} here that the engine no longer knows`,
      'they stay; packager-drm fleet import brings them back into the fleet, unless a newer backup of the engine is still to be restored',
    );
  if (former && former.entries > 0)
    yield warning(
      'fleet_former_secret',
      `Sealed with another secret than the first of the file: ${entriesText(former)}`,
      'before a secret is removed from any file, seal them with the first one',
      [['packager-drm', 'fleet', 'reseal']],
    );
  if (absent && absent.entries > 0)
    yield error(
      'fleet_missing_secret',
      `Sealed with a secret that is missing here: ${entriesText(absent)}`,
      'append that secret to the file of PACKAGERDRMAPI_FLEET_SECRET_FILE, or reseal at a sidecar that has it; if no secret of the fleet is missing, another writer has changed the engine: POST the streams again',
    );
  if (ignored > 0)
    yield warning(
      'fleet_ignored_names',
      `${count(ignored, 'key')} of the engine below packagers/, live/ or reports/ ${ignored === 1 ? 'has' : 'have'} no name of a packager`,
      'they have no effect; find out which other writer reaches the engine, and remove them with etcdctl',
    );
  yield* checkClocks(answer);
  yield* checkPackagers(answer);
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}

const MAX_NAMED = 5;

function someOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  const first = names.slice(0, MAX_NAMED).join(', ');
  return more > 0 ? `${first} and ${more.toLocaleString('en-US')} more` : first;
}

export function entryNames({ entries, streamids }: NonNullable<FleetAnswer['former_secret']>): string {
  const named = streamids.slice(0, MAX_NAMED).join(', ');
  return entries > MAX_NAMED ? `such as ${named}` : named;
}

function entriesText(sealed: NonNullable<FleetAnswer['former_secret']>): string {
  return `${count(sealed.entries, 'entry', 'entries')} of the fleet (${entryNames(sealed)})`;
}

const STATES: Readonly<Record<Exclude<FleetState, 'level'>, string>> = {
  joining: 'wait, and run this again; if nothing changes, the log of the sidecar says why',
  away: 'start the servers of PACKAGERDRMAPI_FLEET_URLS, or correct the addresses, the network or the certificates; until then changes are refused',
  wrong_secret:
    'put the secret of the fleet into the file of PACKAGERDRMAPI_FLEET_SECRET_FILE; it is read again automatically',
  other_fleet:
    'correct PACKAGERDRMAPI_FLEET_URLS or PACKAGERDRMAPI_FLEET_PREFIX; docs/fleet.md says how a packager moves to another fleet',
  lost_fleet:
    'restore a backup of the engine, or found the fleet again from the packager with the newest key files: packager-drm fleet import --found',
  name_taken:
    'give each sidecar a PACKAGERDRMAPI_FLEET_NAME of its own; copied machines may have one host name',
  denied:
    'check PACKAGERDRMAPI_FLEET_USER, its password and the rights of its role; a client certificate must have no CN',
  no_folder: 'check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner',
};

/** A state that passes automatically is no fault. */
function ofState(state: Exclude<FleetState, 'level'>): Make {
  return state === 'joining' ? warning : error;
}

function serversFinding({ engine, state }: FleetAnswer): Finding {
  const gone = engine.filter((server) => server.fault !== undefined);
  const names = someOf(gone.map(({ url, fault: why }) => `${url} (${why})`));
  const reached = engine.length - gone.length;
  if (gone.length === 0) {
    const all = engine.length === 1 ? 'The server' : `All ${engine.length} servers`;
    return ok('fleet_engine', `${all} of the engine can be reached`);
  }
  // A sidecar that is level reaches a majority, by any addresses.
  if (reached * 2 <= engine.length && state !== 'level')
    return error(
      'fleet_no_majority',
      `The engine has no majority: ${reached} of ${count(engine.length, 'server')} answer; not ${names}`,
      'start the servers: until more than half of them run, nothing can be changed; the key files stay',
    );
  return warning(
    'fleet_server_unreachable',
    `${count(gone.length, 'server')} of the engine can't be reached: ${names}`,
    'start it, or take its address out of PACKAGERDRMAPI_FLEET_URLS: without a majority nothing can be changed',
  );
}

/** etcd may refuse to say who leads. */
function checkLeader({ engine }: FleetAnswer): Finding[] {
  const asked = engine.filter(({ leader }) => leader !== undefined);
  if (asked.length === 0 || asked.some(({ leader }) => leader)) return [];
  return [
    (asked.length * 2 > engine.length ? error : warning)(
      'fleet_no_leader',
      'None of the servers that answer is the leader of the engine',
      'an election takes a few seconds; if it lasts, the servers do not reach each other, or some of them are missing in PACKAGERDRMAPI_FLEET_URLS',
    ),
  ];
}

function* checkAlarms(answer: FleetAnswer): Generator<Finding> {
  const { engine } = answer;
  for (const alarm of new Set(engine.flatMap(({ alarms = [] }) => alarms))) {
    const urls = engine.filter(({ alarms }) => alarms?.includes(alarm)).map(({ url }) => url);
    const message = `The engine warns of ${alarm} (${someOf(urls)})`;
    if (alarm === 'NOSPACE')
      yield error(
        'fleet_engine_alarm',
        `${message}: its quota is used up, and it accepts no changes`,
        'compact and defragment it, then disarm the alarm, with the user and certificates that etcdctl needs there; then turn compaction on, or give it a larger --quota-backend-bytes',
        spaceCommands(answer, [['defrag'], ['alarm', 'disarm']]),
      );
    else
      yield error(
        'fleet_engine_alarm',
        message,
        'a server has damaged data, and no change is accepted. It may be one that does not answer or is gone: etcdctl alarm list shows its member id. Remove that one from the cluster, add it again with an empty folder, and then disarm the alarm; docs/fleet.md says how',
      );
  }
}

function spaceCommands(
  { engine, revision }: FleetAnswer,
  further: readonly string[][],
): string[][] | undefined {
  const urls = engine.filter((server) => server.fault === undefined).map(({ url }) => url);
  if (revision === null || urls.length === 0) return undefined;
  const steps = [['compact', String(revision)], ...further];
  return steps.map((step) => ['etcdctl', `--endpoints=${urls.join(',')}`, ...step]);
}

const QUOTA_PART = 0.8;
/** The default of etcd: 2 GiB. */
const USUAL_QUOTA = 2 * 1024 ** 3;

function* checkQuota(answer: FleetAnswer): Generator<Finding> {
  const { engine } = answer;
  const full = engine.flatMap(({ url, size = 0, quota = USUAL_QUOTA, alarms = [] }) => {
    const part = size / quota;
    // The alarm says it already.
    return part > QUOTA_PART && !alarms.includes('NOSPACE') ? [`${url} (${Math.floor(part * 100)} %)`] : [];
  });
  if (full.length === 0) return;
  const isKnown = engine.every(({ quota, fault: why }) => quota !== undefined || why !== undefined);
  const quota = isKnown ? 'the quota' : 'the quota (2 GiB unless --quota-backend-bytes says another)';
  yield warning(
    'fleet_quota',
    `More than ${QUOTA_PART * 100} % of ${quota} of the engine is used: ${someOf(full)}. When it is used up nothing can be changed`,
    'compact and defragment it, with the user and certificates that etcdctl needs there, or give it a larger --quota-backend-bytes',
    spaceCommands(answer, [['defrag']]),
  );
}

/** Milliseconds. The difference is known to about a second. */
const CLOCK = { warning: 2000, fault: 60_000 } as const;

function* checkClocks({ packagers }: FleetAnswer): Generator<Finding> {
  for (const make of [error, warning]) {
    const names = packagers.flatMap(({ name, clock_ahead_ms: ahead }) => {
      const off = Math.abs(ahead ?? 0);
      const isMeant = make === error ? off > CLOCK.fault : off > CLOCK.warning && off <= CLOCK.fault;
      return isMeant ? [`${name} (${clockText(ahead)})`] : [];
    });
    const message = `The clock differs from the engine's: ${someOf(names)}`;
    const todo = "synchronize it with NTP (timedatectl, chronyc tracking), on the engine's servers, too";
    if (names.length > 0) yield make('fleet_clock', message, todo);
  }
}

/** Reports come every five seconds; a shorter delay is not late. */
const LATE_SECONDS = 10;

/** In these states the registered packagers may be of another fleet, and must not be retired. */
const FOREIGN: ReadonlySet<FleetState> = new Set(['wrong_secret', 'other_fleet', 'lost_fleet']);

function checkPackagers({ name: here, packagers, state }: FleetAnswer): Finding[] {
  if (FOREIGN.has(state) || packagers.length === 0) return [];
  const findings = [
    ...packagers.flatMap((packager) =>
      packager.live ? [...checkLive(packager, here)] : [notLive(packager)],
    ),
    ...REASONS.flatMap((why) => checkLacks(packagers, why)),
  ];
  if (findings.length > 0) return findings;
  const all =
    packagers.length === 1
      ? 'The packager is live and has'
      : `All ${packagers.length} packagers are live and have`;
  return [ok('fleet_packagers', `${all} everything`)];
}

function notLive({ name, reported, behind }: FleetPackager): Finding {
  const last = reported === null ? '' : `, and reported last at ${reported}`;
  const late = behind > 0 ? `; it is ${count(behind, 'change')} behind` : '';
  return warning(
    'fleet_packager_not_live',
    `${name} is not live${last}${late}`,
    'start its sidecar, or let it reach the engine; retire a packager that no longer exists with',
    [['packager-drm', 'fleet', 'retire', name]],
  );
}

function* checkLive(
  { name, state, behind, behind_seconds }: FleetPackager,
  here: string,
): Generator<Finding> {
  // This sidecar's own state stands above.
  if (state !== 'level' && name !== here) {
    const message = `${name}: ${FLEET_STATES[state]} (${state})`;
    yield ofState(state)(`fleet_packager_${state}`, message, `at ${name}: ${STATES[state]}`);
  }
  if (behind > 0 && behind_seconds > LATE_SECONDS)
    yield warning(
      'fleet_packager_behind',
      `${name} is ${count(behind, 'change')} behind, for ${ageText(behind_seconds)}`,
      'check its load, its disk and its connection to the engine; its log says more',
    );
}

const REASONS = ['unreadable', 'failed', 'kept', 'older'] as const satisfies readonly LackReason[];

const LACKS: Readonly<Record<(typeof REASONS)[number], readonly [Make, todo: string]>> = {
  unreadable: [error, 'give it the secret that they were sealed with; a POST replaces a damaged entry'],
  failed: [error, 'free space on its disk, or correct the rights of its folder; its log says more'],
  kept: [
    warning,
    "if the fleet is right, remove the file from the packager's folder: the fleet's file then arrives automatically; else provision the stream with the keys of the file. Until then the packager uses its own file",
  ],
  older: [
    warning,
    'the packager keeps its newer state; bring it back with packager-drm fleet import there, or provision or delete the stream again, or restore a newer backup',
  ],
};

function checkLacks(packagers: readonly FleetPackager[], wanted: (typeof REASONS)[number]): Finding[] {
  const lacking = packagers.flatMap(({ name, lacks }) =>
    lacks.flatMap(({ streamid, why }) => (why === wanted ? [{ streamid, name }] : [])),
  );
  if (lacking.length === 0) return [];
  // Of one packager only some are named.
  const more = packagers.some((one) => one.lacking > one.lacks.length) ? ', and maybe more' : '';
  const streams = new Set(lacking.map(({ streamid }) => streamid)).size;
  const differ = streams === 1 ? 'differs' : 'differ';
  const names = lacking.map(({ streamid, name }) => `${streamid} at ${name}`);
  const message = `${count(streams, 'stream')} ${differ} from the fleet, because ${LACK_REASONS[wanted]}: ${someOf(names)}${more}`;
  const [make, todo] = LACKS[wanted];
  return [make(`fleet_${wanted}`, message, todo)];
}

/** A time span for a person, to about a tenth of it: `0.4 s`, `12 s`, `3 min`, `5 h`, `2 d`. */
export function ageText(seconds: number): string {
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** By how much a clock is ahead, `-` before it. It is known to about a second only. */
export function clockText(aheadMs: number | null): string {
  if (aheadMs === null) return '-';
  if (Math.abs(aheadMs) < 1000) return '±1 s';
  return `${aheadMs > 0 ? '+' : '-'}${ageText(Math.abs(aheadMs) / 1000)}`;
}
