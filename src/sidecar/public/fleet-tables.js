/* The tables of the page of the fleet: packagers, missing streams, the place of a stream, and the engine's servers. */
import {
  badge,
  byId,
  createLimit,
  fill,
  message,
  muted,
  named,
  part,
  reasonBadge,
  runsBadge,
  showRows,
  stateBadge,
  sub,
  withCode,
} from './fleet-parts.js';
import {
  bytes,
  compareNames,
  count,
  duration,
  isLate,
  isWrongClock,
  moment,
  number,
  REASONS,
  some,
  troubleOf,
} from './fleet-words.js';

const nameOf = ({ name }) => name;
const groupByReason = (list) => [...Map.groupBy(list, ({ why }) => why)];

/** The age of a report; seconds would change the page with every answer. */
const ago = (time, now) =>
  now - Date.parse(time) < 60_000 ? 'less than a minute' : duration(now - Date.parse(time));

function takes(streams) {
  if (streams === null) return 'takes all streams';
  return streams.length === 0 ? 'takes no stream' : `takes ${some(streams.map((each) => `${each}…`))}`;
}

const PACKAGER_COLUMNS = [
  [
    'Packager',
    ({ name, streams, isHere }) => [named(name, isHere && muted(' (this one)')), sub(takes(streams))],
  ],
  ['Sidecar', ({ live, version }) => [runsBadge(live), sub(`version ${version}`)]],
  [
    'State',
    ({ live, state, reported, now }) => [
      live ? stateBadge(state) : badge(undefined, state.replaceAll('_', ' ')),
      sub(reported === null ? 'never reported' : live ? '' : `reported ${ago(reported, now)} ago`),
    ],
  ],
  [
    'Behind',
    (packager) => {
      const { behind, behind_seconds: seconds } = packager;
      if (behind === 0) return muted('no');
      const changes = count(behind, 'change');
      return [isLate(packager) ? badge('warning', changes) : changes, sub(`for ${duration(seconds * 1000)}`)];
    },
  ],
  [
    'Missing',
    ({ name, lacks, lacking }) => {
      if (lacking === 0) return muted('nothing');
      const streams = count(lacking, 'stream');
      const reasons = groupByReason(lacks);
      return [
        part(
          'button',
          {
            type: 'button',
            class: 'link',
            'data-missing-at': name,
            'aria-label': `Show the ${streams} missing at ${name}`,
          },
          streams,
        ),
        part(
          'span',
          { class: 'badges' },
          reasons.map(([why, { length }]) =>
            reasonBadge(why, reasons.length > 1 ? `${number(length)} ${why}` : why),
          ),
        ),
      ];
    },
  ],
  [
    'Clock',
    (packager) => {
      const ahead = packager.clock_ahead_ms;
      if (ahead === null) return muted('not known');
      if (!isWrongClock(packager)) return muted('right');
      return badge('warning', `${duration(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'late'}`);
    },
  ],
];

const byName = (one, other) => compareNames(one.name, other.name);
const slowestOf = ({ propagation_ms: times }) => Math.max(-1, ...times);
const ORDERS = {
  name: byName,
  trouble: (one, other) => troubleOf(other) - troubleOf(one) || byName(one, other),
  missing: (one, other) => other.lacking - one.lacking || byName(one, other),
  slow: (one, other) => slowestOf(other) - slowestOf(one) || byName(one, other),
};

const limitPackagers = createLimit(byId('packagers-more'), 20);

const wordsIn = (id) => byId(id).value.trim().toLowerCase();

export function showPackagers(session) {
  const { fleet, answered } = session;
  const words = wordsIn('packagers-search');
  const found = fleet.packagers
    .filter(({ name, state, version, live }) =>
      `${name} ${state.replaceAll('_', ' ')} ${version} ${live ? 'runs' : 'gone'}`
        .toLowerCase()
        .includes(words),
    )
    .sort(ORDERS[byId('packagers-order').value])
    .map((packager) => ({ ...packager, isHere: packager.name === fleet.name, now: answered }));
  const all = fleet.packagers.length;
  fill(
    byId('packagers-found'),
    all === 0
      ? 'No packager has registered: this sidecar has not joined, or the engine does not answer.'
      : words !== '' && `${number(found.length)} of ${count(all, 'packager')}`,
  );
  const shown = limitPackagers(found, 'packagers', () => showPackagers(session));
  showRows(byId('packagers'), PACKAGER_COLUMNS, shown, nameOf);
}

const MISSING_COLUMNS = [
  [
    'Stream',
    ({ streamid }) =>
      part(
        'button',
        { type: 'button', class: 'link name', 'data-look': streamid, title: 'Where is it?' },
        streamid,
      ),
  ],
  [
    'Missing at',
    ({ at }) =>
      groupByReason(at).map(([why, those]) =>
        part('p', { class: 'reason' }, reasonBadge(why), ' ', some(those.map(nameOf))),
      ),
  ],
];

const limitMissing = createLimit(byId('missing-more'), 10);

/** Says how many streams are missing, and that a packager may miss more than it names. */
function missingSummary(packagers, all, found, words) {
  const cut = packagers.filter(({ lacks, lacking }) => lacking > lacks.length);
  if (all === 0 && packagers.length === 0) return 'Not known: no packager is shown.';
  if (all === 0) return 'No stream is missing.';
  const ofAll = words === '' ? '' : `${number(found)} of `;
  const names = some(cut.map(({ name, lacking }) => `${name} (${number(lacking)})`));
  const rest = `This table does not show all streams that are missing at ${names}: search for one below.`;
  return `${ofAll}${count(all, 'stream')}. ${cut.length > 0 ? rest : ''}`;
}

export function showMissing(session) {
  const { packagers } = session.fleet;
  const named = packagers.flatMap(({ name, lacks }) => lacks.map((lack) => ({ ...lack, name })));
  const all = [...Map.groupBy(named, ({ streamid }) => streamid)].map(([streamid, at]) => ({ streamid, at }));
  const words = wordsIn('missing-search');
  const has = (text) => text.toLowerCase().includes(words);
  const found = all
    .filter(({ streamid, at }) => has(streamid) || at.some(({ name, why }) => has(name) || why === words))
    .sort((one, other) => other.at.length - one.at.length || compareNames(one.streamid, other.streamid));
  byId('missing-form').hidden = all.length === 0;
  fill(byId('missing-found'), missingSummary(packagers, all.length, found.length, words));
  const shown = limitMissing(found, 'streams', () => showMissing(session));
  showRows(byId('missing'), MISSING_COLUMNS, shown, ({ streamid }) => streamid);
}

const ENGINE_COLUMNS = [
  ['Server', ({ url, version }) => [named(url), sub(version !== undefined && `version ${version}`)]],
  [
    'Role',
    ({ fault, leader }) => {
      if (fault !== undefined) return [badge('danger', 'does not answer'), sub(fault)];
      return leader ? badge('success', 'leader') : badge(undefined, 'follower');
    },
  ],
  [
    'Size',
    ({ size, size_in_use: used, quota }) =>
      size === undefined
        ? '–'
        : [
            bytes(size),
            quota !== undefined && [
              ` of ${bytes(quota)}`,
              part('progress', { max: quota, value: size, 'aria-label': 'Used of its quota' }),
            ],
            sub(used !== undefined && `${bytes(used)} in use`),
          ],
  ],
  [
    'Alarms',
    ({ fault, alarms = [] }) =>
      alarms.length > 0
        ? alarms.map((alarm) => badge('danger', alarm))
        : muted(fault === undefined ? 'none' : 'not known'),
  ],
];

export function showEngine({ engine, compacted }) {
  showRows(byId('engine'), ENGINE_COLUMNS, engine, ({ url }) => url);
  const notes = { true: 'It compacts old revisions.', false: 'It keeps every old revision.' };
  fill(byId('engine-note'), notes[compacted]);
}

const WHERE_COLUMNS = [
  ['Packager', ({ name }) => named(name)],
  [
    'Has it',
    ({ has, why = 'behind' }) =>
      has ? badge('success', 'yes') : [reasonBadge(why), sub(withCode(REASONS[why]?.[2] ?? ''))],
  ],
  ['Sidecar', ({ live }) => runsBadge(live)],
];

const limitWhere = createLimit(byId('where-more'), 20);

const ENTRY_STATES = {
  file: ['success', 'has a key file'],
  deleted: [undefined, 'is deleted'],
  unreadable: ['danger', 'cannot be opened here: sealed with another secret, or damaged'],
};

export function showWhere(entry) {
  const { packagers, streamid, state, changed, from, key, etag, revision } = entry;
  const having = packagers.filter(({ has }) => has).length;
  const [variant, says] = ENTRY_STATES[state] ?? ['warning', state];
  const takers = `${count(packagers.length, 'packager')} that take${packagers.length === 1 ? 's' : ''} it`;
  const facts = [
    ['Has it', `${number(having)} of ${takers}`],
    ['Accepted', changed && moment(changed)],
    ['By', from && `${from}, with the API key ${key ?? 'not known'}`],
    ['ETag', etag],
    ['Revision', number(revision)],
  ];
  fill(
    byId('where-answer'),
    part('p', { class: 'name' }, streamid, ' ', badge(variant, says)),
    part(
      'dl',
      { class: 'facts' },
      facts.map(([term, value]) => value && part('div', {}, part('dt', {}, term), part('dd', {}, value))),
    ),
  );
  const sorted = packagers.toSorted(
    (one, other) => Number(one.has) - Number(other.has) || byName(one, other),
  );
  const shown = limitWhere(sorted, 'packagers', () => showWhere(entry));
  showRows(byId('where-packagers'), WHERE_COLUMNS, shown, nameOf);
}

/** Says why nothing is known of a stream. */
export function showNowhere(says) {
  fill(byId('where-answer'), message('warning', says));
  showRows(byId('where-packagers'), WHERE_COLUMNS, [], nameOf);
  byId('where-more').hidden = true;
}
