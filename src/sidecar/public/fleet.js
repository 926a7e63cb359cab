/*
 * The page of the fleet: asks for an API key, keeps it in memory alone, and asks the sidecar for the fleet every two
 * seconds while somebody can see it.
 */
import { byId, fill, part, pill, spoken, statePill, sub } from './fleet-parts.js';
import { showPlot, timesOf } from './fleet-plot.js';
import { showEngine, showLacks, showNowhere, showPackagers, showWhere } from './fleet-tables.js';
import { bytes, clock, duration, findingsIn, moment, number, STATES, some } from './fleet-words.js';

const REFRESH_MS = 2000;
/** After so long an answer is given up. */
const ANSWER_MS = 15_000;

/** `{ apiKey, stream, timer, isPaused, fleet, failedSince, answered }`; undefined: no key was given. */
let session;

const AWAY = 'This sidecar does not answer.';

/** Asks the sidecar; undefined: it does not answer. */
async function ask(path, { apiKey }) {
  try {
    const response = await fetch(path, {
      headers: { 'x-api-key': apiKey, accept: 'application/json' },
      cache: 'no-store',
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const body = await response.json();
    const says = body.errors?.[0]?.description ?? `It answers with status ${response.status}.`;
    return { status: response.status, body, says };
  } catch {
    return undefined;
  }
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
            { class: 'message', 'data-variant': 'danger' },
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
    const refusal = answer && refusalOf(answer);
    if (refusal) leave(refusal);
    else if (answer?.status !== 200) showTrouble(mine, answer?.says ?? AWAY);
    else {
      Object.assign(mine, { fleet: answer.body, answered: Date.now(), failedSince: undefined });
      show(mine);
      await look(mine);
    }
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
      { class: 'message', 'data-variant': 'danger' },
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
    `${STATES[state]?.[1] ?? ''} In this state since ${moment(since)}. `,
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
      packagers.length === 0
        ? 'not known: no packager is shown'
        : lacking.length === 0
          ? 'nobody lacks a stream'
          : `not ${some(lacking.map(({ name }) => name))}`,
    ],
    ['Key files here', number(streams), `${number(deleted)} noted as deleted`],
    times
      ? ['Propagation', duration(times.p50), `median; p99 ${duration(times.p99)}`]
      : ['Propagation', '–', 'no change yet'],
    [
      'Engine servers',
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

/** Asks where the stream is that was looked for, if there is one. */
async function look(mine) {
  const { stream } = mine;
  if (stream === undefined) return;
  const answer = await ask(`api/fleet/${encodeURIComponent(stream)}`, mine);
  if (session !== mine || mine.stream !== stream) return;
  if (answer?.status !== 200) {
    showNowhere(stream, answer?.says ?? AWAY);
    return;
  }
  showWhere(answer.body);
}

function lookFor(stream) {
  if (!session || stream === '') return;
  session.stream = stream;
  byId('where-stream').value = stream;
  void look(session);
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
  // While the engine is away, the answer takes some seconds.
  byId('refusal').replaceChildren(part('p', { class: 'muted' }, 'Asking the sidecar …'));
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
