/*
 * The page of the fleet: asks for an API key, keeps it in memory alone, and asks the sidecar for the fleet every two
 * seconds while somebody can see it.
 */
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
import { showPlot, timesOf } from './fleet-plot.js';
import {
  bytes,
  clock,
  compareNames,
  count,
  duration,
  findingsIn,
  isLate,
  isWrongClock,
  moment,
  number,
  REASONS,
  STATES,
  some,
  troubleOf,
} from './fleet-words.js';

const REFRESH_MS = 2000;
/** After so long an answer is given up. */
const ANSWER_MS = 15_000;

/** `{ apiKey, stream, timer, isPaused, fleet, failedSince, answered }`; undefined: no key was given. */
let session;

async function ask(path, { apiKey }) {
  const response = await fetch(path, {
    headers: { 'x-api-key': apiKey, accept: 'application/json' },
    cache: 'no-store',
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  const body = await response.json();
  return { status: response.status, body, says: body?.errors?.[0]?.description ?? '' };
}

/** What a key is told that is not answered with the fleet; undefined: another try may have it. */
function refusalOf({ status, says }) {
  if (status === 401) return ['This is no API key of this sidecar.', says];
  if (status === 403)
    return [
      'This API key does not reach all streams.',
      `${says} The page of the fleet shows the streams of all.`,
    ];
  if (status === 404) return ['This sidecar is in no fleet.', says];
  if (status === 429) return ['There were too many attempts without a valid API key.', says];
  return undefined;
}

function leave(refusal) {
  clearTimeout(session?.timer);
  session = undefined;
  byId('fleet').hidden = true;
  byId('controls').hidden = true;
  byId('access').hidden = false;
  byId('refusal').replaceChildren(
    ...(refusal
      ? [
          part(
            'div',
            { class: 'message message-bad' },
            part('p', {}, refusal[0]),
            refusal[1] && part('p', {}, refusal[1]),
          ),
        ]
      : []),
  );
  byId('api-key').focus();
}

/** Asks for the fleet, shows it, and has itself called again. */
async function refresh(mine) {
  clearTimeout(mine.timer);
  if (mine.isAsking) return;
  mine.isAsking = true;
  try {
    const answer = await ask('api/fleet', mine);
    if (session !== mine) return;
    const refusal = refusalOf(answer);
    if (refusal) {
      leave(refusal);
      return;
    }
    if (answer.status !== 200) {
      showTrouble(mine, answer.says || `It answers with status ${answer.status}.`);
      return;
    }
    mine.failedSince = undefined;
    mine.answered = Date.now();
    mine.fleet = answer.body;
    show(mine);
    await look(mine);
  } catch {
    if (session === mine) showTrouble(mine, 'This sidecar does not answer.');
  } finally {
    mine.isAsking = false;
    if (session === mine && !mine.isPaused && !document.hidden)
      mine.timer = setTimeout(() => refresh(mine), REFRESH_MS);
  }
}

/** A sidecar that is away for a moment takes nothing off the page. */
function showTrouble(mine, says) {
  mine.failedSince ??= Date.now();
  const { fleet, failedSince, answered } = mine;
  if (!fleet) {
    leave([says, 'Look whether the sidecar runs and this machine reaches it, and try again.']);
    return;
  }
  fill(byId('trouble'), [says, failedSince], () =>
    part(
      'div',
      { class: 'message message-bad' },
      part('p', {}, says),
      part(
        'p',
        {},
        `What you see is from ${clock(answered)}. It is asked again every ${REFRESH_MS / 1000} seconds.`,
      ),
    ),
  );
  fill(byId('asked'), [failedSince, 'failed'], () => `No answer since ${clock(failedSince)}`);
}

function show(mine) {
  const { fleet, answered } = mine;
  const { name, state, since, packagers } = fleet;
  const isFirst = byId('fleet').hidden;
  byId('access').hidden = true;
  byId('fleet').hidden = false;
  byId('controls').hidden = false;
  fill(byId('trouble'), undefined, () => []);
  fill(byId('asked'), clock(answered), (time) => `As of ${time}`);
  fill(byId('title'), name, () => ['Fleet ', part('span', { class: 'muted' }, `seen by ${name}`)]);
  fill(byId('state'), state, statePill);
  fill(byId('about'), [state, since, fleet.fleet, fleet.revision], aboutOf);
  const findings = findingsIn(fleet);
  const lacking = packagers.filter((packager) => packager.lacking > 0 || packager.behind > 0);
  fill(byId('tiles'), tilesOf(fleet, lacking), (tiles) =>
    tiles.map(([title, value, note]) =>
      part('li', { class: 'tile' }, part('span', {}, title), part('b', {}, value), sub(note)),
    ),
  );
  fill(byId('findings'), findings, showFindings);
  showPackagers(mine);
  showLacks(mine);
  const { none, note } = showPlot(byId('times'), packagers);
  fill(byId('times-none'), none, (text) => text);
  fill(byId('times-note'), note, (text) => text);
  showEngine(fleet);
  document.title = findings.length > 0 ? `(${findings.length}) Fleet` : 'Fleet';
  const worst = findings[0];
  fill(byId('announcement'), [state, worst?.[1]], () => `${STATES[state]?.[1] ?? state} ${worst?.[1] ?? ''}`);
  if (isFirst) byId('title').focus();
}

function aboutOf([state, since, fleet, revision]) {
  return [
    `${STATES[state]?.[1] ?? ''} So since ${moment(since)}. `,
    ...(fleet ? ['Fleet ', part('code', {}, fleet)] : ['It has joined no fleet yet']),
    revision === null ? '.' : `, revision ${number(revision)} of its engine.`,
  ];
}

function tilesOf({ packagers, streams, deleted, engine }, lacking) {
  const live = packagers.filter((packager) => packager.live).length;
  const times = timesOf(packagers);
  const answering = engine.filter(({ fault }) => fault === undefined);
  const largest = Math.max(0, ...answering.map(({ size = 0 }) => size));
  return [
    ['Sidecars that run', `${number(live)} of ${number(packagers.length)}`, 'and reach the engine'],
    [
      'Have every change',
      `${number(packagers.length - lacking.length)} of ${number(packagers.length)}`,
      lacking.length === 0 ? 'nobody lacks a stream' : `not ${some(lacking.map(({ name }) => name))}`,
    ],
    ['Key files here', number(streams), `${number(deleted)} noted as deleted`],
    times
      ? ['Propagation', duration(times.p50), `median; p99 ${duration(times.p99)}`]
      : ['Propagation', '–', 'no change yet'],
    [
      'Servers of the engine',
      `${answering.length} of ${engine.length}`,
      answering.length > 0 ? bytes(largest) : 'none answers',
    ],
  ];
}

function showFindings(findings) {
  if (findings.length === 0)
    return part(
      'li',
      {},
      pill('good', 'Nothing'),
      part('p', {}, 'The fleet is well: each packager has what it takes, or is getting it.'),
    );
  return findings.map(([tone, says, todo]) =>
    part(
      'li',
      {},
      pill(tone, tone === 'bad' ? 'Act' : 'Look'),
      part('div', {}, part('p', {}, part('b', {}, says)), todo && part('p', {}, spoken(todo))),
    ),
  );
}

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
              { class: 'pills' },
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

function showPackagers(mine) {
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
        part('p', { class: 'lack' }, reasonPill(why), ' ', some(those.map(({ name }) => name))),
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

function showLacks(mine) {
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
    [all.length, found.length, words, cut.map(({ name, lacking }) => [name, lacking])],
    () => [
      all.length === 0
        ? 'Nobody lacks a stream.'
        : `${number(found.length)} of ${count(all.length, 'stream')}. `,
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

function showEngine({ engine, compacted }) {
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

/** Asks where the stream is that was looked for, if there is one. */
async function look(mine) {
  const { stream } = mine;
  if (stream === undefined) return;
  const { status, body, says } = await ask(`api/fleet/${encodeURIComponent(stream)}`, mine);
  if (session !== mine || mine.stream !== stream) return;
  if (status !== 200) {
    fill(byId('where-answer'), [stream, says], () =>
      part('p', { class: 'message message-wait' }, says || `It answers with status ${status}.`),
    );
    showRows(byId('where-packagers'), WHERE_COLUMNS, [], ({ name }) => name);
    byId('where-more').hidden = true;
    return;
  }
  showWhere(body);
}

const WHAT = {
  file: ['good', 'has a key file'],
  deleted: ['calm', 'is deleted'],
  unreadable: ['bad', 'cannot be opened here: sealed with another secret, or damaged'],
};

function showWhere(body) {
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
      part('p', { class: 'where-state' }, part('b', {}, entry.streamid), ' ', pill(tone, says)),
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

function lookFor(stream) {
  if (!session || stream === '') return;
  session.stream = stream;
  byId('where-stream').value = stream;
  const mine = session;
  look(mine).catch(() => {
    if (session === mine)
      fill(byId('where-answer'), [stream, 'away'], () =>
        part('p', { class: 'message message-bad' }, 'This sidecar does not answer.'),
      );
  });
}

byId('access-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const field = byId('api-key');
  const apiKey = field.value.trim();
  field.value = '';
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    leave(['This is no API key.', 'An API key has printable ASCII characters without spaces.']);
    return;
  }
  session = { apiKey, isPaused: false };
  byId('pause').textContent = 'Pause';
  void refresh(session);
});

byId('forget').addEventListener('click', () => leave());

byId('pause').addEventListener('click', () => {
  if (!session) return;
  session.isPaused = !session.isPaused;
  byId('pause').textContent = session.isPaused ? 'Go on' : 'Pause';
  clearTimeout(session.timer);
  if (!session.isPaused) void refresh(session);
});

document.addEventListener('visibilitychange', () => {
  if (!session) return;
  clearTimeout(session.timer);
  if (!document.hidden && !session.isPaused) void refresh(session);
});

// A page that the browser keeps for going back to it would keep the key as well.
window.addEventListener('pagehide', () => leave());

byId('where-form').addEventListener('submit', (event) => {
  event.preventDefault();
  lookFor(byId('where-stream').value.trim());
});

byId('lacks').addEventListener('click', ({ target }) => {
  const stream = target.closest('[data-look]')?.dataset.look;
  if (stream === undefined) return;
  lookFor(stream);
  byId('where').scrollIntoView({ block: 'start' });
  byId('where-stream').focus({ preventScroll: true });
});

byId('packagers').addEventListener('click', ({ target }) => {
  const name = target.closest('[data-lacks-of]')?.dataset.lacksOf;
  if (name === undefined || !session?.fleet) return;
  byId('lacks-search').value = name;
  showLacks(session);
  byId('lacks-search').focus();
});

for (const id of ['packagers-search', 'packagers-order'])
  byId(id).addEventListener('input', () => session?.fleet && showPackagers(session));
byId('lacks-search').addEventListener('input', () => session?.fleet && showLacks(session));

byId('api-key').focus();
