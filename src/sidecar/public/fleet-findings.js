import {
  BEHIND_SECONDS,
  CLOCK_WRONG_MS,
  count,
  isLate,
  isWrongClock,
  REASONS,
  STATES,
  some,
} from './fleet-parts.js';

/** In these states the registered packagers may be of another fleet: no advice to retire them. */
const FOREIGN = ['wrong_secret', 'other_fleet', 'lost_fleet'];
/** The share of its quota from which on the engine is nearly full. */
const FULL = 0.8;

const danger = (says, todo) => ({ variant: 'danger', says, todo });
const warning = (says, todo) => ({ variant: 'warning', says, todo });

const namesOf = (packagers) => some(packagers.map(({ name }) => name));
const isOrAre = ({ length }) => (length === 1 ? 'is' : 'are');
const doesOrDo = ({ length }) => (length === 1 ? 'does' : 'do');

export function findingsIn(fleet) {
  const { missing } = fleet;
  const found = [
    ...stateFindings(fleet),
    ...engineFindings(fleet),
    ...(FOREIGN.includes(fleet.state) ? [] : [...packagerFindings(fleet), ...missingFindings(fleet)]),
    missing > 0 &&
      warning(
        `The engine no longer knows ${count(missing, 'key file')} of the fleet that ${missing === 1 ? 'is' : 'are'} here. They stay.`,
        'If they are wanted, `packager-drm fleet import` brings them back to the fleet; else delete the streams.',
      ),
  ].filter(Boolean);
  return found.toSorted((one, other) => one.variant.localeCompare(other.variant));
}

function reported(names, isOne, state) {
  const [variant, says, todo] = STATES[state] ?? ['warning', 'This page does not know that state.', ''];
  const sentence = `${says[0].toLowerCase()}${says.slice(1)}`;
  return {
    variant,
    says: `${names} ${isOne ? 'reports' : 'report'} “${state.replaceAll('_', ' ')}”: ${sentence}`,
    todo,
  };
}

function stateFindings({ name, state }) {
  return state === 'level' ? [] : [reported(`This sidecar, ${name},`, true, state)];
}

function engineFindings({ engine, compacted, state }) {
  const faulty = engine.filter(({ fault }) => fault !== undefined);
  const answering = engine.length - faulty.length;
  const hasMajority = answering * 2 > engine.length;
  const has = (alarm) => engine.some(({ alarms = [] }) => alarms.includes(alarm));
  const urls = some(faulty.map(({ url }) => url));
  const none = `${answering === 0 ? 'No server of the engine answers' : `${count(faulty.length, 'server')} of the engine ${doesOrDo(faulty)} not answer`}: ${urls}.`;
  const hasNoLeader = answering > 0 && state !== 'denied' && !engine.some(({ leader }) => leader);
  const isNearlyFull = engine.some(({ size = 0, quota }) => quota && size > FULL * quota);
  return [
    faulty.length > 0 &&
      (hasMajority
        ? warning(none, 'The fleet works with the others. Bring it back before another one fails.')
        : danger(
            none,
            'Without a majority of its servers the engine accepts no change. Check that they run, and the network.',
          )),
    hasNoLeader &&
      (hasMajority ? danger : warning)(
        'None of the servers that answer is the leader of the engine.',
        'An election takes a few seconds. If it lasts, the servers do not reach each other, or some of them are missing in `PACKAGERDRMAPI_FLEET_URLS`.',
      ),
    has('NOSPACE') &&
      danger(
        'The engine is full, and accepts no change.',
        'Compact it, defragment its servers one after another, and disarm the alarm: `etcdctl compact`, `etcdctl defrag`, `etcdctl alarm disarm`.',
      ),
    !has('NOSPACE') &&
      isNearlyFull &&
      warning(
        'The engine has used more than four fifths of its quota.',
        'Defragment its servers one after another (`etcdctl defrag`), or raise `--quota-backend-bytes`.',
      ),
    has('CORRUPT') &&
      danger(
        'The servers of the engine hold different data.',
        'Replace the corrupt server: the log of etcd names it.',
      ),
    compacted === false &&
      warning(
        'The engine keeps every old revision, and fills up over time.',
        'Start its servers with `--auto-compaction-mode=periodic --auto-compaction-retention=1h`.',
      ),
  ];
}

function packagerFindings({ packagers, name }) {
  const gone = packagers.filter(({ live }) => !live);
  const live = packagers.filter((each) => each.live);
  const late = live.filter((each) => isLate(each) && each.state === 'level');
  const wrong = live.filter(isWrongClock);
  return [
    gone.length > 0 &&
      danger(
        `The ${gone.length === 1 ? 'sidecar' : 'sidecars'} of ${namesOf(gone)} ${doesOrDo(gone)} not run, or can’t reach the engine.`,
        'Start it, or restore its connection to the engine: it then receives the missing key files. If a packager is gone for good, remove it from the fleet, so that no request waits for it: `packager-drm fleet retire NAME`.',
      ),
    ...Object.keys(STATES).map((state) => {
      const those = live.filter((each) => each.state === state && each.name !== name);
      return state !== 'level' && those.length > 0 && reported(namesOf(those), those.length === 1, state);
    }),
    late.length > 0 &&
      warning(
        `${namesOf(late)} ${isOrAre(late)} behind by more than ${BEHIND_SECONDS} seconds.`,
        'Check the load of these machines and their disks: a file counts when it is on disk.',
      ),
    wrong.length > 0 &&
      warning(
        `The clock of ${namesOf(wrong)} is wrong by more than ${CLOCK_WRONG_MS / 1000} seconds.`,
        'Synchronize it with NTP. Key files still arrive, but times of propagation are wrong, and a clock far ahead makes its changes look newer.',
      ),
  ];
}

function missingFindings({ packagers }) {
  return Object.entries(REASONS).map(([reason, [variant, says, todo]]) => {
    const isMissing = ({ why }) => why === reason;
    const those = packagers.filter(({ lacks }) => lacks.some(isMissing));
    const streams = new Set(
      those.flatMap(({ lacks }) => lacks.filter(isMissing).map(({ streamid }) => streamid)),
    );
    const [first] = streams;
    const what = streams.size === 1 ? `${first} ${says}` : `${count(streams.size, 'stream')} ${plural(says)}`;
    return (
      reason !== 'behind' && those.length > 0 && { variant, says: `At ${namesOf(those)}, ${what}.`, todo }
    );
  });
}

const plural = (text) =>
  text
    .replace(/^has a file in its place/, 'have files in their places')
    .replace(/^is older/, 'are older')
    .replace("is not the fleet's, and stays", "are not the fleet's, and stay");
