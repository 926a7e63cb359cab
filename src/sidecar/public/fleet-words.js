/* What the page of the fleet says: states, reasons, times, and what to do about what is wrong. */

/** How a sidecar can be with its fleet: tone, what that means, and what to do. */
export const STATES = {
  level: ['good', 'It has what the engine has, and hears of every change.', ''],
  joining: [
    'wait',
    'It has not yet got every key file of the fleet.',
    'Wait: this takes seconds, and up to a minute for 100,000 key files. If it lasts, look at the log for what the engine answers.',
  ],
  away: [
    'bad',
    'It does not reach the engine. The key files that are there stay, and can be read; changes are refused.',
    'Look at the servers of the engine below, and at the network between them and this machine: `packager-drm doctor` says what is wrong.',
  ],
  wrong_secret: [
    'bad',
    'The fleet is sealed with a secret that it does not have. Nothing is written here.',
    'Put the secret of the fleet into `PACKAGERDRMAPI_FLEET_SECRET_FILE`. It is read again within seconds.',
  ],
  other_fleet: [
    'bad',
    'The engine holds another fleet than the one that it joined. Nothing is written here.',
    'Check `PACKAGERDRMAPI_FLEET_URLS` and `PACKAGERDRMAPI_FLEET_PREFIX`. To move a packager to another fleet, follow `docs/fleet.md`.',
  ],
  lost_fleet: [
    'bad',
    'The engine is empty, though it has joined a fleet. Nothing is written or removed here.',
    'Make sure that these are the right servers. Restore their backup, or found the fleet again from the key files here: `packager-drm fleet import --found`.',
  ],
  name_taken: [
    'wait',
    'Another sidecar runs under its name. Key files arrive all the same.',
    'Give each sidecar a `PACKAGERDRMAPI_FLEET_NAME` of its own, and look whether a copied machine runs twice.',
  ],
  denied: [
    'bad',
    'The engine refuses its user, its certificate, or a right that it needs.',
    'Check `PACKAGERDRMAPI_FLEET_USER`, its password file and certificate, and the rights of its role.',
  ],
  no_folder: [
    'bad',
    'Its key-file folder cannot be used.',
    'Look whether the folder is mounted, and belongs to the user of the sidecar: `/readyz` says more.',
  ],
};

/** Why a packager can lack a stream: tone, what that means, and what to do. */
export const REASONS = {
  failed: [
    'bad',
    'could not be written or removed; it is tried again',
    'Look at the disk and the folder of the packager: most often it is full, or belongs to another user.',
  ],
  unreadable: [
    'bad',
    'cannot be opened: sealed with another secret, or damaged',
    'Compare the files of secrets. If they are the same, send the POST of the stream again.',
  ],
  kept: [
    'wait',
    "has a file in its place that is not the fleet's, and stays",
    'If the fleet is right, send the POST of the stream again; if the stream is deleted there, remove the file from the folder. If the file is right, provision the stream with its keys.',
  ],
  older: [
    'wait',
    'is older in the engine than at the packager: a backup was restored, or something replayed',
    'Send the POST of the stream again, or import the file from a packager that has it: `packager-drm fleet import`.',
  ],
  behind: [
    'wait',
    'has not arrived yet',
    'It comes by itself once the packager runs and reaches the engine.',
  ],
};

/** Beyond so many ms, a clock is called wrong: it is known to about a second. */
const CLOCK_WRONG_MS = 5000;
/** A packager that is behind for longer is worth a look. */
const BEHIND_SECONDS = 5;
/** Share of its quota beyond which the engine fills. */
const FULL = 0.8;

export const isWrongClock = ({ clock_ahead_ms: ms }) => ms !== null && Math.abs(ms) >= CLOCK_WRONG_MS;
export const isLate = ({ behind_seconds: seconds }) => seconds >= BEHIND_SECONDS;

/** How bad it is with a packager; 0: all is well. */
export function troubleOf(packager) {
  const { live, state, lacks } = packager;
  if (!live) return 4;
  if (STATES[state]?.[0] === 'bad' || lacks.some(({ why }) => REASONS[why]?.[0] === 'bad')) return 3;
  if (isLate(packager)) return 2;
  return isWrongClock(packager) || state !== 'level' || lacks.some(({ why }) => why !== 'behind') ? 1 : 0;
}

const WHOLE = new Intl.NumberFormat('en');
export const number = (value) => WHOLE.format(value);
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** A time that passes, of milliseconds. */
export function duration(ms) {
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 9.95) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return count(Math.floor(seconds / 86_400), 'day');
}

export function bytes(size) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, size)) / 10));
  const value = size / 1024 ** power;
  return `${power === 0 || value >= 99.5 ? Math.round(value) : Number(value.toFixed(1))} ${units[power]}`;
}

export const clock = (time) => new Date(time).toLocaleTimeString('en-GB');
export const moment = (time) =>
  new Date(time).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

const SOME = 5;
/** Names some of a list, and how many there are beside them. */
export function some(names) {
  const named = names.slice(0, SOME);
  const others = names.length - named.length;
  if (others > 0) return `${named.join(', ')} and ${number(others)} more`;
  return named.length > 1 ? `${named.slice(0, -1).join(', ')} and ${named.at(-1)}` : named.join('');
}

/** The order of names in which 2 comes before 10. */
export const compareNames = new Intl.Collator('en', { numeric: true }).compare;

/** The value below which this share of sorted values is. */
export const quantile = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];

/** In these, who is registered may be of another fleet, and is nobody's to retire. */
const FOREIGN = ['wrong_secret', 'other_fleet', 'lost_fleet'];

/** What is wrong with a fleet, worst first: tone, what it is, and what to do. */
export function findingsIn(fleet) {
  const found = [
    ...stateFindings(fleet),
    ...engineFindings(fleet),
    ...(FOREIGN.includes(fleet.state) ? [] : [...packagerFindings(fleet), ...lackFindings(fleet)]),
  ];
  if (fleet.missing > 0)
    found.push([
      'wait',
      `The engine no longer knows ${count(fleet.missing, 'key file')} of the fleet that ${fleet.missing === 1 ? 'is' : 'are'} here. They stay.`,
      'If they are wanted, `packager-drm fleet import` brings them back to the fleet; else delete the streams.',
    ]);
  return [...found.filter(([tone]) => tone === 'bad'), ...found.filter(([tone]) => tone !== 'bad')];
}

/** What sidecars report, said of one or several. */
const reports = (names, isOne, state, says) =>
  `${names} ${isOne ? 'reports' : 'report'} “${state.replaceAll('_', ' ')}”: ${sentence(says)}`;

function stateFindings({ name, state }) {
  const [tone, says, todo] = STATES[state] ?? ['wait', 'This page does not know that state.', ''];
  return tone === 'good' ? [] : [[tone, reports(`This sidecar, ${name},`, true, state, says), todo]];
}

function engineFindings({ engine, compacted, state }) {
  const found = [];
  const faulty = engine.filter(({ fault }) => fault !== undefined);
  const answering = engine.length - faulty.length;
  const has = (alarm) => engine.some(({ alarms = [] }) => alarms.includes(alarm));
  if (faulty.length > 0)
    found.push([
      answering * 2 > engine.length ? 'wait' : 'bad',
      `${faulty.length === engine.length ? 'No server of the engine answers' : `${count(faulty.length, 'server')} of the engine ${faulty.length === 1 ? 'does' : 'do'} not answer`}: ${some(faulty.map(({ url }) => url))}.`,
      answering * 2 > engine.length
        ? 'The fleet goes on with the others. Bring it back before another one fails.'
        : 'Without a majority of its servers the engine takes no change. Look whether they run, and at the network.',
    ]);
  if (answering > 0 && state !== 'denied' && !engine.some(({ leader }) => leader))
    found.push([
      answering * 2 > engine.length ? 'bad' : 'wait',
      'None of the servers that answer leads the engine.',
      'An election takes a few seconds. If it lasts, the servers do not reach each other, or a part of them is not in `PACKAGERDRMAPI_FLEET_URLS`.',
    ]);
  if (has('NOSPACE'))
    found.push([
      'bad',
      'The engine is full, and takes no change.',
      'Compact it, defragment its servers one after another, and disarm the alarm: `etcdctl compact`, `etcdctl defrag`, `etcdctl alarm disarm`.',
    ]);
  else if (engine.some(({ size = 0, quota }) => quota && size > FULL * quota))
    found.push([
      'wait',
      'The engine has used more than four fifths of its quota.',
      'Defragment its servers one after another (`etcdctl defrag`), or raise `--quota-backend-bytes`.',
    ]);
  if (has('CORRUPT'))
    found.push([
      'bad',
      'The servers of the engine differ in what they hold.',
      'Replace the corrupt server: the log of etcd names it.',
    ]);
  if (compacted === false)
    found.push([
      'wait',
      'The engine keeps every old revision, and fills with time.',
      'Start its servers with `--auto-compaction-mode=periodic --auto-compaction-retention=1h`.',
    ]);
  return found;
}

function packagerFindings({ packagers, name }) {
  const found = [];
  const names = (list) => some(list.map((each) => each.name));
  const gone = packagers.filter(({ live }) => !live);
  if (gone.length > 0)
    found.push([
      'bad',
      `${gone.length === 1 ? 'The sidecar' : 'The sidecars'} of ${names(gone)} ${gone.length === 1 ? 'does' : 'do'} not run, or not reach the engine.`,
      'Start what is off: it gets what it lacks. If a packager is gone for good, take it out of the fleet, so that nobody waits for it: `packager-drm fleet retire NAME`.',
    ]);
  const live = packagers.filter((each) => each.live);
  for (const [state, [tone, says, todo]] of Object.entries(STATES)) {
    const those = live.filter((each) => each.state === state && each.name !== name);
    if (tone !== 'good' && those.length > 0)
      found.push([tone, reports(names(those), those.length === 1, state, says), todo]);
  }
  const late = live.filter((each) => isLate(each) && each.state === 'level');
  if (late.length > 0)
    found.push([
      'wait',
      `${names(late)} ${late.length === 1 ? 'is' : 'are'} behind by more than ${BEHIND_SECONDS} seconds.`,
      'Look at the load of these machines and at their disks: a file counts when it is on disk.',
    ]);
  const wrong = live.filter(isWrongClock);
  if (wrong.length > 0)
    found.push([
      'wait',
      `The clock of ${names(wrong)} is wrong by more than ${CLOCK_WRONG_MS / 1000} seconds.`,
      'Have NTP set it. Key files arrive all the same, but times of propagation are wrong, and a clock far ahead makes its changes look newer.',
    ]);
  return found;
}

function lackFindings({ packagers }) {
  return Object.entries(REASONS).flatMap(([reason, [tone, says, todo]]) => {
    const those = packagers.filter(({ lacks }) => lacks.some(({ why }) => why === reason));
    if (reason === 'behind' || those.length === 0) return [];
    const streams = new Set(
      those.flatMap(({ lacks }) => lacks.filter(({ why }) => why === reason).map(({ streamid }) => streamid)),
    );
    const isOne = streams.size === 1;
    const what = isOne ? `${[...streams][0]} ${says}` : `${count(streams.size, 'stream')} ${plural(says)}`;
    return [[tone, `At ${some(those.map(({ name }) => name))}, ${what}.`, todo]];
  });
}

const sentence = (text) => `${text[0].toLowerCase()}${text.slice(1)}`;
/** The reasons, said of several streams. */
const plural = (text) =>
  text
    .replace(/^has a file in its place/, 'have files in their places')
    .replace(/^is older/, 'are older')
    .replace("is not the fleet's, and stays", "are not the fleet's, and stay")
    .replace('; it is tried', '; they are tried');
