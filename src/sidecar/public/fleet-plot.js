/* The plot of propagation times: a strip for each packager on one logarithmic scale. */
import { drawn, named, part, showRows } from './fleet-parts.js';
import { compareNames, count, duration, number } from './fleet-words.js';

/** The most packagers that have a strip; of more, the slowest have. */
const MOST_STRIPS = 20;
/** A stroke each up to this number of values; of more, an even choice. */
const MOST_STROKES = 400;
/** Shorter times, and negative ones, since clocks differ, are drawn here. In milliseconds. */
const LEAST_MS = 1;
const WIDTH = 1000;

/** Whole decades that hold all values, at least three. */
function scaleOf(values) {
  const decade = (value, round) => round(Math.log10(Math.max(LEAST_MS, value)));
  const low = decade(Math.min(...values.map(([least]) => least)), Math.floor);
  const high = Math.max(low + 3, decade(Math.max(...values.map(([, most]) => most)), Math.ceil));
  const at = (ms) => Math.min(1, Math.max(0, (Math.log10(Math.max(LEAST_MS, ms)) - low) / (high - low)));
  return { at, decades: Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step)) };
}

const percent = (share) => `${(share * 100).toFixed(2)}%`;
const tick = (ms) => (ms < 1000 ? `${ms} ms` : `${number(ms / 1000)} s`);

function axis({ decades, at }) {
  const labels = decades.map((ms, index) => {
    const anchor = index === 0 ? 'start' : index === decades.length - 1 ? 'end' : 'middle';
    return drawn('text', { x: percent(at(ms)), y: '70%', 'text-anchor': anchor }, tick(ms));
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
  return drawn(
    'svg',
    { class: 'strip', 'aria-hidden': 'true' },
    decades.map((ms) => line('grid', ms, ms, '0', '100%')),
    drawn(
      'svg',
      { viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: 'none', width: '100%', height: '100%' },
      drawn('path', { class: 'strokes', d: strokes, 'vector-effect': 'non-scaling-stroke' }),
    ),
    line('range', p50, p99, '50%', '50%'),
    dot('p50', p50),
    dot('p99', p99),
  );
}

/** The value below which this share of sorted values is. */
const quantile = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];

function summary(name, given) {
  const sorted = [...given].sort((one, other) => one - other);
  const step = Math.max(1, sorted.length / MOST_STROKES);
  const chosen = sorted.slice(0, MOST_STROKES).map((_, index) => sorted[Math.floor(index * step)]);
  return {
    name,
    values: [...chosen, sorted.at(-1)],
    range: [sorted[0], sorted.at(-1)],
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    size: sorted.length,
  };
}

const ALL = 'all packagers';

/** Median and 99th percentile of all times that packagers reported; undefined: there are none. */
export function timesOf(packagers) {
  const values = packagers.flatMap(({ propagation_ms: times }) => times);
  return values.length === 0 ? undefined : summary(ALL, values);
}

/** Shows the strips in a table, whose cells hold the same as numbers. Returns the notes about it. */
export function showPlot(table, packagers) {
  const each = packagers
    .filter(({ propagation_ms: times }) => times.length > 0)
    .map(({ name, propagation_ms: times }) => summary(name, times));
  table.hidden = each.length === 0;
  if (each.length === 0)
    return { none: 'No packager has reported a change yet: write a key file, and look again.', note: '' };
  const isCut = each.length > MOST_STRIPS;
  const slowest = each
    .toSorted((one, other) => other.p99 - one.p99 || compareNames(one.name, other.name))
    .slice(0, MOST_STRIPS);
  const rows = [...(each.length > 1 ? [timesOf(packagers)] : []), ...(isCut ? slowest : each)];
  const scale = scaleOf(rows.map(({ range }) => range));
  const columns = [
    ['Packager', ({ name }) => named(name)],
    ['Times', (row) => strip(row, scale)],
    ['p50', ({ p50 }) => duration(p50)],
    ['p99', ({ p99 }) => duration(p99)],
    ['Changes', ({ size }) => number(size)],
  ];
  // The row of all is no packager's: none can have its key.
  showRows(table, columns, rows, ({ name }) => (name === ALL ? ' ' : name));
  const [, strips] = table.tHead.rows[0].cells;
  strips.className = 'strips';
  strips.replaceChildren(part('span', { class: 'unseen' }, 'Times'), axis(scale));
  const note = isCut ? `Of ${count(each.length, 'packager')}, the ${MOST_STRIPS} slowest are shown.` : '';
  return { none: '', note };
}
