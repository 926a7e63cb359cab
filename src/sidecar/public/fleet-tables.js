import {
  badge,
  byId,
  bytes,
  compareNames,
  count,
  createLimit,
  drawn,
  duration,
  fill,
  isLate,
  isWrongClock,
  message,
  moment,
  muted,
  named,
  number,
  part,
  reasonBadge,
  runsBadge,
  showRows,
  some,
  stateBadge,
  sub,
  troubleOf,
  withCode,
} from './fleet-parts.js';

const nameOf = ({ name }) => name;
const byName = (one, other) => compareNames(one.name, other.name);
const groupByReason = (list) => [...Map.groupBy(list, ({ why }) => why)];
const wordsIn = (id) => byId(id).value.trim().toLowerCase();

/** Seconds would change the page with every answer. */
const ago = (time, now) =>
  now - Date.parse(time) < 60_000 ? 'less than a minute' : duration(now - Date.parse(time));

function selectionText(streams) {
  if (streams === null) return 'takes all streams';
  return streams.length === 0 ? 'takes no stream' : `takes ${some(streams.map((each) => `${each}…`))}`;
}

const link = (attributes, text) => part('button', { type: 'button', ...attributes }, text);

const PACKAGER_COLUMNS = {
  Packager: ({ name, streams, isHere }) => [
    named(name, isHere && muted(' (this one)')),
    sub(selectionText(streams)),
  ],
  Sidecar: ({ live, version }) => [runsBadge(live), sub(`version ${version}`)],
  State: ({ live, state, reported, now }) => [
    live ? stateBadge(state) : badge(undefined, state.replaceAll('_', ' ')),
    sub(reported === null ? 'never reported' : live ? '' : `reported ${ago(reported, now)} ago`),
  ],
  Behind(packager) {
    const { behind, behind_seconds: seconds } = packager;
    if (behind === 0) return muted('no');
    const changes = count(behind, 'change');
    return [isLate(packager) ? badge('warning', changes) : changes, sub(`for ${duration(seconds * 1000)}`)];
  },
  Missing({ name, lacks, lacking }) {
    if (lacking === 0) return muted('nothing');
    const streams = count(lacking, 'stream');
    const reasons = groupByReason(lacks);
    const badges = reasons.map(([why, { length }]) =>
      reasonBadge(why, reasons.length > 1 ? `${number(length)} ${why}` : why),
    );
    const label = `Show the ${streams} missing at ${name}`;
    return [
      link({ class: 'link', 'data-missing-at': name, 'aria-label': label }, streams),
      part('span', { class: 'badges' }, badges),
    ];
  },
  Clock(packager) {
    const ahead = packager.clock_ahead_ms;
    if (ahead === null) return muted('not known');
    if (!isWrongClock(packager)) return muted('right');
    return badge('warning', `${duration(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'late'}`);
  },
};

const slowestOf = ({ propagation_ms: times }) => Math.max(-1, ...times);
const ORDERS = {
  name: byName,
  trouble: (one, other) => troubleOf(other) - troubleOf(one) || byName(one, other),
  missing: (one, other) => other.lacking - one.lacking || byName(one, other),
  slow: (one, other) => slowestOf(other) - slowestOf(one) || byName(one, other),
};

const limitPackagers = createLimit(byId('packagers-more'), 20);

export function showPackagers(session) {
  const { fleet, answered } = session;
  const words = wordsIn('packagers-search');
  const textOf = ({ name, state, version, live }) =>
    `${name} ${state.replaceAll('_', ' ')} ${version} ${live ? 'runs' : 'gone'}`.toLowerCase();
  const found = fleet.packagers
    .filter((packager) => textOf(packager).includes(words))
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

const MISSING_COLUMNS = {
  Stream: ({ streamid }) =>
    link({ class: 'link name', 'data-look': streamid, title: 'Where is it?' }, streamid),
  'Missing at': ({ at }) =>
    groupByReason(at).map(([why, those]) =>
      part('p', { class: 'reason' }, reasonBadge(why), ' ', some(those.map(nameOf))),
    ),
};

const limitMissing = createLimit(byId('missing-more'), 10);

function missingSummary(packagers, all, found, words) {
  if (all === 0) return packagers.length === 0 ? 'Not known: no packager is shown.' : 'No stream is missing.';
  const cut = packagers.filter(({ lacks, lacking }) => lacking > lacks.length);
  const names = some(cut.map(({ name, lacking }) => `${name} (${number(lacking)})`));
  const rest = `This table does not show all streams that are missing at ${names}: search for one below.`;
  return `${words === '' ? '' : `${number(found)} of `}${count(all, 'stream')}. ${cut.length > 0 ? rest : ''}`;
}

export function showMissing(session) {
  const { packagers } = session.fleet;
  const each = packagers.flatMap(({ name, lacks }) => lacks.map((lack) => ({ ...lack, name })));
  const all = [...Map.groupBy(each, ({ streamid }) => streamid)].map(([streamid, at]) => ({ streamid, at }));
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

const ENGINE_COLUMNS = {
  Server: ({ url, version }) => [named(url), sub(version !== undefined && `version ${version}`)],
  Role({ fault, leader }) {
    if (fault !== undefined) return [badge('danger', 'does not answer'), sub(fault)];
    if (leader === undefined) return muted('not known');
    return leader ? badge('success', 'leader') : badge(undefined, 'follower');
  },
  Size({ size, size_in_use: used, quota }) {
    if (size === undefined) return '–';
    const share = { max: quota, value: size, 'aria-label': 'Used of its quota' };
    return [
      bytes(size),
      quota !== undefined && [` of ${bytes(quota)}`, part('progress', share)],
      sub(used !== undefined && `${bytes(used)} in use`),
    ];
  },
  Alarms: ({ alarms }) =>
    alarms?.length > 0 ? alarms.map((alarm) => badge('danger', alarm)) : muted(alarms ? 'none' : 'not known'),
};

export function showEngine({ engine, compacted }) {
  showRows(byId('engine'), ENGINE_COLUMNS, engine, ({ url }) => url);
  const notes = { true: 'It compacts old revisions.', false: 'It keeps every old revision.' };
  fill(byId('engine-note'), notes[compacted]);
}

const WHERE_COLUMNS = {
  Packager: ({ name }) => named(name),
  'Has it': ({ has, why = 'no', todo = '' }) =>
    has ? badge('success', 'yes') : [reasonBadge(why), sub(withCode(todo))],
  Sidecar: ({ live }) => runsBadge(live),
};

const ARRIVES = 'it arrives automatically once the packager runs and reaches the engine';

const limitWhere = createLimit(byId('where-more'), 20);

const ENTRY_STATES = {
  file: ['success', 'has a key file'],
  deleted: [undefined, 'is deleted'],
  unreadable: ['danger', 'cannot be opened here: sealed with another secret, or damaged'],
};

export function showWhere(entry, findings) {
  const { packagers, streamid, state, changed, from, key, etag, revision } = entry;
  const having = packagers.filter(({ has }) => has).length;
  const takers = `${count(packagers.length, 'packager')} that take${packagers.length === 1 ? 's' : ''} it`;
  const facts = {
    'Has it': `${number(having)} of ${takers}`,
    Accepted: changed && moment(changed),
    By: from && `${from}, with the API key ${key ?? 'not known'}`,
    ETag: etag,
    Revision: number(revision),
  };
  const shownFacts = Object.entries(facts).map(
    ([term, value]) => value && part('div', {}, part('dt', {}, term), part('dd', {}, value)),
  );
  fill(
    byId('where-answer'),
    part('p', { class: 'name' }, streamid, ' ', badge(...(ENTRY_STATES[state] ?? ['warning', state]))),
    part('dl', { class: 'facts' }, shownFacts),
  );
  const todoOf = (why) =>
    why === 'behind' ? ARRIVES : findings.find(({ code }) => code === `fleet_${why}`)?.todo;
  const sorted = packagers
    .toSorted((one, other) => Number(one.has) - Number(other.has) || byName(one, other))
    .map((each) => ({ ...each, todo: todoOf(each.why) }));
  const shown = limitWhere(sorted, 'packagers', () => showWhere(entry, findings));
  showRows(byId('where-packagers'), WHERE_COLUMNS, shown, nameOf);
}

export function showNowhere(says) {
  fill(byId('where-answer'), says !== undefined && message('warning', says));
  showRows(byId('where-packagers'), WHERE_COLUMNS, [], nameOf);
  byId('where-more').hidden = true;
}

const MOST_STRIPS = 20;
/** A stroke each up to this number of values; of more, an even choice. */
const MOST_STROKES = 400;
/** In milliseconds. Shorter and negative times (clocks differ) are drawn here. */
const LEAST_MS = 1;
const WIDTH = 1000;

function scaleOf(rows) {
  const exponent = (ms) => Math.log10(Math.max(LEAST_MS, ms));
  const low = Math.floor(exponent(Math.min(...rows.map(({ least }) => least))));
  const high = Math.max(low + 3, Math.ceil(exponent(Math.max(...rows.map(({ most }) => most)))));
  const at = (ms) => Math.min(1, (exponent(ms) - low) / (high - low));
  return { at, decades: Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step)) };
}

const percent = (share) => `${(share * 100).toFixed(2)}%`;

function axis({ decades, at }) {
  const labels = decades.map((ms, index) => {
    const anchor = index === 0 ? 'start' : index === decades.length - 1 ? 'end' : 'middle';
    const tick = ms < 1000 ? `${ms} ms` : `${number(ms / 1000)} s`;
    return drawn('text', { x: percent(at(ms)), y: '70%', 'text-anchor': anchor }, tick);
  });
  return drawn('svg', { class: 'axis', 'aria-hidden': 'true' }, labels);
}

function strip({ values, p50, p99 }, { decades, at }) {
  const line = (kind, from, to, y1, y2) =>
    drawn('line', { class: kind, x1: percent(at(from)), x2: percent(at(to)), y1, y2 });
  const dot = (kind, ms) => drawn('circle', { class: kind, cx: percent(at(ms)), cy: '50%', r: '5' });
  const strokes = values
    .map((ms) => `M${Math.min(WIDTH - 1, Math.max(1, at(ms) * WIDTH)).toFixed(1)} 2v16`)
    .join('');
  const box = { viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: 'none', width: '100%', height: '100%' };
  return drawn(
    'svg',
    { class: 'strip', 'aria-hidden': 'true' },
    decades.map((ms) => line('grid', ms, ms, '0', '100%')),
    drawn('svg', box, drawn('path', { class: 'strokes', d: strokes, 'vector-effect': 'non-scaling-stroke' })),
    line('range', p50, p99, '50%', '50%'),
    dot('p50', p50),
    dot('p99', p99),
  );
}

function summary(name, given) {
  const sorted = given.toSorted((one, other) => one - other);
  const step = Math.max(1, sorted.length / MOST_STROKES);
  const chosen = sorted.slice(0, MOST_STROKES).map((_, index) => sorted[Math.floor(index * step)]);
  const [least, most, size] = [sorted[0], sorted.at(-1), sorted.length];
  const quantile = (share) => sorted[Math.ceil(share * size) - 1];
  return { name, values: [...chosen, most], least, most, size, p50: quantile(0.5), p99: quantile(0.99) };
}

const ALL = 'all packagers';

export function timesOf(packagers) {
  const values = packagers.flatMap(({ propagation_ms: times }) => times);
  return values.length === 0 ? undefined : summary(ALL, values);
}

const NO_TIMES = 'No packager has reported a change yet: write a key file, and look again.';

export function showTimes({ packagers }) {
  const table = byId('times');
  const each = packagers
    .filter(({ propagation_ms: times }) => times.length > 0)
    .map(({ name, propagation_ms: times }) => summary(name, times));
  const isCut = each.length > MOST_STRIPS;
  fill(byId('times-none'), each.length === 0 && NO_TIMES);
  const note = `Of ${count(each.length, 'packager')}, the ${MOST_STRIPS} slowest are shown.`;
  fill(byId('times-note'), isCut && note);
  table.hidden = each.length === 0;
  if (each.length === 0) return;
  const slowest = each.toSorted((one, other) => other.p99 - one.p99 || byName(one, other));
  const strips = isCut ? slowest.slice(0, MOST_STRIPS) : each;
  const rows = each.length > 1 ? [timesOf(packagers), ...strips] : strips;
  const scale = scaleOf(rows);
  const columns = {
    Packager: ({ name }) => named(name),
    Times: (row) => strip(row, scale),
    p50: ({ p50 }) => duration(p50),
    p99: ({ p99 }) => duration(p99),
    Changes: ({ size }) => number(size),
  };
  // The row of all is no packager's: none can have its key.
  showRows(table, columns, rows, ({ name }) => (name === ALL ? ' ' : name));
  const [, head] = table.tHead.rows[0].cells;
  head.className = 'strips';
  head.replaceChildren(part('span', { class: 'unseen' }, 'Times'), axis(scale));
}
