/* The tables of the page of the fleet: packagers, what they lack, where a stream is, and the engine's servers. */
import {
  byId,
  createLimit,
  fill,
  part,
  pill,
  reasonPill,
  showRows,
  spoken,
  statePill,
  sub,
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

/** How many streams a packager lacks for each reason, of those that it names. */
function reasonsOf(lacks) {
  const counts = new Map();
  for (const { why } of lacks) counts.set(why, (counts.get(why) ?? 0) + 1);
  return [...counts];
}

const ago = (time, now) =>
  now - Date.parse(time) < 60_000 ? 'less than a minute' : duration(now - Date.parse(time));

const PACKAGER_COLUMNS = [
  {
    title: 'Packager',
    facts: ({ name, streams, isHere }) => [name, streams, isHere],
    show: ([name, streams, isHere]) => [
      part('span', { class: 'name' }, name, isHere && part('span', { class: 'muted' }, ' (this one)')),
      sub(
        streams === null
          ? 'takes all streams'
          : streams.length === 0
            ? 'takes no stream'
            : `takes ${some(streams.map((each) => `${each}…`))}`,
      ),
    ],
  },
  {
    title: 'Sidecar',
    facts: ({ live, version }) => [live, version],
    show: ([live, version]) => [live ? pill('good', 'runs') : pill('bad', 'gone'), sub(`version ${version}`)],
  },
  {
    title: 'State',
    facts: ({ live, state, reported, now }) => [live, state, reported === null ? null : ago(reported, now)],
    show: ([live, state, time]) => [
      live ? statePill(state) : pill('calm', state.replaceAll('_', ' ')),
      sub(time === null ? 'never reported' : live ? '' : `reported ${time} ago`),
    ],
  },
  {
    title: 'Behind',
    facts: ({ behind, behind_seconds: seconds }) => [behind, behind === 0 ? 0 : seconds],
    show: ([behind, seconds]) =>
      behind === 0
        ? part('span', { class: 'muted' }, 'no')
        : [
            isLate({ behind_seconds: seconds })
              ? pill('wait', count(behind, 'change'))
              : count(behind, 'change'),
            sub(`for ${duration(seconds * 1000)}`),
          ],
  },
  {
    title: 'Lacks',
    facts: ({ name, lacks, lacking }) => [name, reasonsOf(lacks), lacking],
    show: ([name, reasons, lacking]) =>
      lacking === 0
        ? part('span', { class: 'muted' }, 'nothing')
        : [
            part(
              'button',
              {
                type: 'button',
                class: 'link',
                'data-lacks-of': name,
                'aria-label': `Show the ${count(lacking, 'stream')} that ${name} lacks`,
              },
              count(lacking, 'stream'),
            ),
            part(
              'span',
              { class: 'badges' },
              reasons.map(([why, size]) =>
                reasonPill(why, reasons.length > 1 ? `${number(size)} ${why}` : why),
              ),
            ),
          ],
  },
  {
    title: 'Clock',
    facts: ({ clock_ahead_ms: ahead }) => ahead,
    show(ahead) {
      if (ahead === null) return part('span', { class: 'muted' }, 'not known');
      if (!isWrongClock({ clock_ahead_ms: ahead })) return part('span', { class: 'muted' }, 'right');
      return pill('wait', `${duration(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'late'}`);
    },
  },
];

const byName = (one, other) => compareNames(one.name, other.name);
const lastOf = ({ propagation_ms: times }) => Math.max(-1, ...times);
const ORDERS = {
  name: byName,
  trouble: (one, other) => troubleOf(other) - troubleOf(one) || byName(one, other),
  lacking: (one, other) => other.lacking - one.lacking || byName(one, other),
  slow: (one, other) => lastOf(other) - lastOf(one) || byName(one, other),
};

const limitPackagers = createLimit(byId('packagers-more'), 20);

const wordsIn = (id) => byId(id).value.trim().toLowerCase();

export function showPackagers(mine) {
  const { fleet, answered } = mine;
  const words = wordsIn('packagers-search');
  const found = fleet.packagers
    .filter(({ name, state, version, live }) =>
      `${name} ${state.replaceAll('_', ' ')} ${version} ${live ? 'runs' : 'gone'}`
        .toLowerCase()
        .includes(words),
    )
    .sort(ORDERS[byId('packagers-order').value])
    .map((packager) => ({ ...packager, isHere: packager.name === fleet.name, now: answered }));
  fill(byId('packagers-found'), [fleet.packagers.length, found.length, words], ([all, some]) => {
    if (all === 0)
      return 'No packager has registered: this sidecar has not joined, or the engine does not answer.';
    return words === '' ? '' : `${number(some)} of ${count(all, 'packager')}`;
  });
  showRows(
    byId('packagers'),
    PACKAGER_COLUMNS,
    limitPackagers(found, 'packagers', () => showPackagers(mine)),
    ({ name }) => name,
  );
}

const LACK_COLUMNS = [
  {
    title: 'Stream',
    facts: ({ streamid }) => streamid,
    show: (streamid) =>
      part(
        'button',
        { type: 'button', class: 'link name', 'data-look': streamid, title: 'Where is it?' },
        streamid,
      ),
  },
  {
    title: 'Lacked by',
    facts: ({ by }) => by,
    show: (by) => {
      const reasons = groupBy(by);
      return [...reasons].map(([why, those]) =>
        part('p', { class: 'reason' }, reasonPill(why), ' ', some(those.map(({ name }) => name))),
      );
    },
  },
];

function groupBy(by) {
  const groups = new Map();
  for (const each of by) groups.set(each.why, [...(groups.get(each.why) ?? []), each]);
  return groups;
}

const limitLacks = createLimit(byId('lacks-more'), 10);

export function showLacks(mine) {
  const { packagers } = mine.fleet;
  const streams = new Map();
  for (const { name, lacks } of packagers)
    for (const { streamid, why } of lacks) {
      const by = streams.get(streamid);
      if (by) by.push({ name, why });
      else streams.set(streamid, [{ name, why }]);
    }
  const words = wordsIn('lacks-search');
  const all = [...streams].map(([streamid, by]) => ({ streamid, by }));
  const found = all
    .filter(
      ({ streamid, by }) =>
        words === '' ||
        streamid.toLowerCase().includes(words) ||
        by.some(({ name, why }) => name.toLowerCase().includes(words) || why === words),
    )
    .sort((one, other) => other.by.length - one.by.length || compareNames(one.streamid, other.streamid));
  const cut = packagers.filter(({ lacks, lacking }) => lacking > lacks.length);
  byId('lacks-form').hidden = all.length === 0;
  fill(
    byId('lacks-found'),
    [
      packagers.length === 0,
      all.length,
      found.length,
      words,
      cut.map(({ name, lacking }) => [name, lacking]),
    ],
    () => [
      all.length === 0
        ? packagers.length === 0
          ? 'Not known: no packager is shown.'
          : 'Nobody lacks a stream.'
        : `${words === '' ? '' : `${number(found.length)} of `}${count(all.length, 'stream')}. `,
      ...(cut.length === 0
        ? []
        : [
            `${some(cut.map(({ name, lacking }) => `${name} (${number(lacking)})`))} lack${cut.length === 1 ? 's' : ''} more streams than ${cut.length === 1 ? 'it names' : 'they name'}: look for one of them below.`,
          ]),
    ],
  );
  showRows(
    byId('lacks'),
    LACK_COLUMNS,
    limitLacks(found, 'streams', () => showLacks(mine)),
    ({ streamid }) => streamid,
  );
}

const ENGINE_COLUMNS = [
  {
    title: 'Server',
    facts: ({ url, version }) => [url, version],
    show: ([url, version]) => [
      part('span', { class: 'name' }, url),
      sub(version === undefined ? '' : `version ${version}`),
    ],
  },
  {
    title: 'Role',
    facts: ({ fault, leader }) => [fault, leader],
    show: ([fault, leader]) =>
      fault === undefined
        ? pill(leader ? 'good' : 'calm', leader ? 'leads' : 'follows')
        : [pill('bad', 'does not answer'), sub(fault)],
  },
  {
    title: 'Size',
    facts: ({ size, size_in_use: used, quota }) => [size, used, quota],
    show: ([size, used, quota]) =>
      size === undefined
        ? '–'
        : [
            bytes(size),
            quota !== undefined && ` of ${bytes(quota)}`,
            quota !== undefined &&
              part('progress', {
                max: String(quota),
                value: String(size),
                'aria-label': 'Used of its quota',
              }),
            sub(used === undefined ? '' : `${bytes(used)} in use`),
          ],
  },
  {
    title: 'Alarms',
    facts: ({ fault, alarms = [] }) => [fault, alarms],
    show: ([fault, alarms]) =>
      alarms.length > 0
        ? alarms.map((alarm) => pill('bad', alarm))
        : part('span', { class: 'muted' }, fault === undefined ? 'none' : 'not known'),
  },
];

export function showEngine({ engine, compacted }) {
  showRows(byId('engine'), ENGINE_COLUMNS, engine, ({ url }) => url);
  const says = { true: 'It forgets old revisions.', false: 'It keeps every old revision.', null: '' };
  fill(byId('engine-note'), compacted, () => says[String(compacted)] ?? '');
}

const WHERE_COLUMNS = [
  { title: 'Packager', facts: ({ name }) => name, show: (name) => part('span', { class: 'name' }, name) },
  {
    title: 'Has it',
    facts: ({ has, why = 'behind' }) => [has, why],
    show: ([has, why]) =>
      has
        ? pill('good', 'yes')
        : [reasonPill(why), part('span', { class: 'sub' }, spoken(REASONS[why]?.[2] ?? ''))],
  },
  {
    title: 'Sidecar',
    facts: ({ live }) => live,
    show: (live) => (live ? pill('good', 'runs') : pill('bad', 'gone')),
  },
];

const limitWhere = createLimit(byId('where-more'), 20);

const WHAT = {
  file: ['good', 'has a key file'],
  deleted: ['calm', 'is deleted'],
  unreadable: ['bad', 'cannot be opened here: sealed with another secret, or damaged'],
};

export function showWhere(body) {
  const { packagers, ...entry } = body;
  const having = packagers.filter(({ has }) => has).length;
  fill(byId('where-answer'), [entry, having, packagers.length], () => {
    const [tone, says] = WHAT[entry.state] ?? ['wait', entry.state];
    const facts = [
      [
        'Has it',
        `${number(having)} of ${count(packagers.length, 'packager')} that take${packagers.length === 1 ? 's' : ''} it`,
      ],
      ['Accepted', entry.changed === null ? undefined : moment(entry.changed)],
      [
        'By',
        entry.from === null ? undefined : `${entry.from}, with the API key ${entry.key ?? 'of somebody'}`,
      ],
      ['ETag', entry.etag ?? undefined],
      ['Revision', number(entry.revision)],
    ];
    return [
      part('p', { class: 'name' }, part('b', {}, entry.streamid), ' ', pill(tone, says)),
      part(
        'dl',
        { class: 'facts' },
        facts
          .filter(([, value]) => value !== undefined)
          .map(([term, value]) => part('div', {}, part('dt', {}, term), part('dd', {}, value))),
      ),
    ];
  });
  const sorted = [...packagers].sort(
    (one, other) => Number(one.has) - Number(other.has) || byName(one, other),
  );
  showRows(
    byId('where-packagers'),
    WHERE_COLUMNS,
    limitWhere(sorted, 'packagers', () => showWhere(body)),
    ({ name }) => name,
  );
}

/** Says why nothing is known of a stream. */
export function showNowhere(stream, says) {
  fill(byId('where-answer'), [stream, says], () =>
    part('p', { class: 'message', 'data-variant': 'warning' }, says),
  );
  showRows(byId('where-packagers'), WHERE_COLUMNS, [], ({ name }) => name);
  byId('where-more').hidden = true;
}
