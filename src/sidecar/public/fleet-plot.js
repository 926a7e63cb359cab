/* The plot of propagation times: a strip for each packager on one logarithmic scale. */
import { drawn, part, showRows } from './fleet-parts.js';
import { compareNames, count, duration, number, quantile } from './fleet-words.js';

/** The most packagers that have a strip; of more, the slowest have. */
const MOST_STRIPS = 20;
/** A stroke each up to so many values; of more, an even choice. */
const MOST_STROKES = 400;
/** What is quicker, or negative since clocks differ, is drawn here. In milliseconds. */
const LEAST_MS = 1;
const WIDTH = 1000;

/** Whole decades that hold all values, at least three. */
function scaleOf(values) {
  const decade = (value, round) => round(Math.log10(Math.max(LEAST_MS, value)));
  const low = decade(Math.min(...values.map(([least]) => least)), Math.floor);
  const high = Math.max(low + 3, decade(Math.max(...values.map(([, most]) => most)), Math.ceil));
  const at = (ms) => Math.min(1, Math.max(0, (Math.log10(Math.max(LEAST_MS, ms)) - low) / (high - low)));
  return { low, high, at, decades: Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step)) };
}

const percent = (share) => `${(share * 100).toFixed(2)}%`;
const tick = (ms) => (ms < 1000 ? `${ms} ms` : ms < 60_000 ? `${ms / 1000} s` : `${number(ms / 1000)} s`);

function axis({ decades, at }) {
  const labels = decades.map((ms, index) => {
    const anchor = index === 0 ? 'start' : index === decades.length - 1 ? 'end' : 'middle';
    return drawn('text', { x: percent(at(ms)), y: '70%', 'text-anchor': anchor }, tick(ms));
  });
  return drawn('svg', { class: 'axis', 'aria-hidden': 'true' }, labels);
}

function strip({ values, p50, p99 }, { decades, at }) {
  const lines = decades.map((ms) =>
    drawn('line', { class: 'grid', x1: percent(at(ms)), x2: percent(at(ms)), y1: '0', y2: '100%' }),
  );
  const strokes = values
    .map((ms) => `M${Math.min(WIDTH - 1, Math.max(1, at(ms) * WIDTH)).toFixed(1)} 2v16`)
    .join('');
  return drawn(
    'svg',
    { class: 'strip', 'aria-hidden': 'true' },
    lines,
    drawn(
      'svg',
      { viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: 'none', width: '100%', height: '100%' },
      drawn('path', { class: 'strokes', d: strokes, 'vector-effect': 'non-scaling-stroke' }),
    ),
    drawn('line', { class: 'range', x1: percent(at(p50)), x2: percent(at(p99)), y1: '50%', y2: '50%' }),
    drawn('circle', { class: 'p50', cx: percent(at(p50)), cy: '50%', r: '5' }),
    drawn('circle', { class: 'p99', cx: percent(at(p99)), cy: '50%', r: '5' }),
  );
}

function summary(name, given) {
  const sorted = [...given].sort((one, other) => one - other);
  const step = Math.max(1, sorted.length / MOST_STROKES);
  const chosen = Array.from(
    { length: Math.min(sorted.length, MOST_STROKES) },
    (_, index) => sorted[Math.floor(index * step)],
  );
  return {
    name,
    values: [...chosen, ...sorted.slice(-1)],
    range: [sorted[0], sorted.at(-1)],
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    size: sorted.length,
  };
}

const ALL = 'all packagers';

/** Median and 99th percentile of all times that packagers told of; undefined: they told of none. */
export function timesOf(packagers) {
  const values = packagers.flatMap(({ propagation_ms: times }) => times);
  return values.length === 0 ? undefined : summary(ALL, values);
}

/** Shows the strips in a table, whose cells hold the same as numbers, and answers what is to be said of it. */
export function showPlot(table, packagers) {
  const each = packagers
    .filter(({ propagation_ms: times }) => times.length > 0)
    .map(({ name, propagation_ms: times }) => summary(name, times));
  const slowest = [...each]
    .sort((one, other) => other.p99 - one.p99 || compareNames(one.name, other.name))
    .slice(0, MOST_STRIPS);
  const few = each.length <= MOST_STRIPS;
  const all = each.length > 1 ? [timesOf(packagers)] : [];
  const rows = [...all, ...(few ? each : slowest)];
  if (rows.length === 0) {
    showRows(table, [], [], ({ name }) => name);
    return { none: 'No packager has told of a change yet: write a key file, and look again.', note: '' };
  }
  const scale = scaleOf(rows.map(({ range }) => range));
  const ends = [scale.low, scale.high];
  const columns = [
    { title: 'Packager', facts: ({ name }) => name, show: (name) => part('span', { class: 'name' }, name) },
    {
      title: 'Times',
      wide: true,
      facts: ({ values, p50, p99 }) => ({ values, p50, p99, ends }),
      show: (facts) => strip(facts, scale),
    },
    { title: 'p50', facts: ({ p50 }) => p50, show: (ms) => duration(ms) },
    { title: 'p99', facts: ({ p99 }) => p99, show: (ms) => duration(ms) },
    { title: 'Changes', facts: ({ size }) => size, show: (size) => number(size) },
  ];
  // The row of all is no packager's: none can have its key.
  showRows(table, columns, rows, ({ name }) => (name === ALL ? ' ' : name));
  table.tHead.rows[0].cells[1].replaceChildren(part('span', { class: 'unseen' }, 'Times'), axis(scale));
  const note = few ? '' : `Of ${count(each.length, 'packager')}, the ${MOST_STRIPS} slowest are shown.`;
  return { none: '', note };
}
