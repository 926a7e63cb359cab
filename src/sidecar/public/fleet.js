/* Keeps the API key in memory only. */
import {
  badge,
  byId,
  bytes,
  clock,
  count,
  duration,
  fill,
  message,
  moment,
  muted,
  number,
  part,
  some,
  stateBadge,
  sub,
  withCode,
} from './fleet-parts.js';
import {
  showEngine,
  showMissing,
  showNowhere,
  showPackagers,
  showTimes,
  showWhere,
  timesOf,
} from './fleet-tables.js';

const REFRESH_MS = 2000;
const ANSWER_MS = 15_000;

/** `{ apiKey, stream, timer, isPaused, fleet, failedSince, answered }`; undefined: no key was given. */
let session;

const AWAY = 'This sidecar does not answer.';

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

/** Another try has no chance. The answer of a 404 says all of it. */
const REFUSALS = {
  401: 'This is not an API key of this sidecar.',
  403: 'This API key has stream limits.',
  404: '',
  429: 'There were too many attempts without a valid API key.',
};

function signOut(...refusal) {
  clearTimeout(session?.timer);
  session = undefined;
  for (const id of ['fleet', 'controls']) byId(id).hidden = true;
  document.title = 'Fleet';
  byId('where-stream').value = '';
  showNowhere();
  byId('access').hidden = false;
  fill(byId('refusal'), refusal.length > 0 && message('danger', ...refusal));
  byId('api-key').focus();
}

async function refresh(mine) {
  clearTimeout(mine.timer);
  if (mine.isAsking) return;
  mine.isAsking = true;
  try {
    const answer = await ask('api/fleet', mine);
    if (session !== mine) return;
    const refusal = REFUSALS[answer?.status];
    if (refusal !== undefined) signOut(refusal, answer.says);
    else if (answer?.status !== 200) showTrouble(mine, answer?.says ?? AWAY);
    else {
      Object.assign(mine, { fleet: answer.body, answered: Date.now(), failedSince: undefined });
      show(mine);
      await refreshStream(mine);
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
    signOut(says, 'Check that the sidecar runs and this machine reaches it, and try again.');
    return;
  }
  const since = `This state is from ${clock(answered)}. The page asks again every ${REFRESH_MS / 1000} seconds.`;
  fill(byId('trouble'), message('danger', says, since));
  fill(byId('asked'), `No answer since ${clock(failedSince)}`);
}

function show(mine) {
  const { fleet, answered } = mine;
  const { name, state, findings } = fleet;
  const isFirst = byId('fleet').hidden;
  byId('access').hidden = true;
  for (const id of ['fleet', 'controls']) byId(id).hidden = false;
  fill(byId('trouble'));
  fill(byId('asked'), `As of ${clock(answered)}`);
  fill(byId('title'), 'Fleet ', muted(`seen by ${name}`));
  fill(byId('state'), stateBadge(state));
  fill(byId('about'), aboutOf(fleet));
  fill(
    byId('tiles'),
    Object.entries(tilesOf(fleet)).map(([title, [value, note]]) =>
      part('li', { class: 'tile' }, part('span', {}, title), part('b', {}, value), sub(note)),
    ),
  );
  fill(byId('findings'), findings.length > 0 ? rowsOf(findings) : nothing());
  showPackagers(mine);
  showMissing(mine);
  showTimes(fleet);
  showEngine(fleet);
  document.title = findings.length > 0 ? `(${findings.length}) Fleet` : 'Fleet';
  // Figures in it change with each answer, and would be read out each time.
  const news = [state, ...findings.map(({ code }) => code)].join();
  if (news !== mine.news) fill(byId('announcement'), `${findings[0]?.description ?? LEVEL}.`);
  mine.news = news;
  if (isFirst) byId('title').focus();
}

function aboutOf({ state, since, fleet, revision }) {
  return [
    `${state === 'level' ? `${LEVEL}. ` : ''}In this state since ${moment(since)}. `,
    fleet ? ['Fleet ', part('code', {}, fleet)] : 'It has joined no fleet yet',
    revision === null ? '.' : `, revision ${number(revision)} of its engine.`,
  ];
}

function tilesOf({ packagers, streams, deleted, engine }) {
  const all = number(packagers.length);
  const live = packagers.filter((packager) => packager.live).length;
  const incomplete = packagers.filter(({ lacking, behind }) => lacking > 0 || behind > 0);
  const missing =
    incomplete.length === 0 ? 'none is missing' : `not ${some(incomplete.map(({ name }) => name))}`;
  const times = timesOf(packagers);
  const answering = engine.filter(({ fault }) => fault === undefined);
  const largest = Math.max(0, ...answering.map(({ size = 0 }) => size));
  return {
    'Sidecars that run': [`${number(live)} of ${all}`, 'and reach the engine'],
    'Have every change': [
      `${number(packagers.length - incomplete.length)} of ${all}`,
      packagers.length === 0 ? 'not known: no packager is shown' : missing,
    ],
    'Key files here': [number(streams), `${number(deleted)} noted as deleted`],
    Propagation: times ? [duration(times.p50), `median; p99 ${duration(times.p99)}`] : ['–', 'no change yet'],
    'Engine servers': [
      `${answering.length} of ${engine.length}`,
      answering.length > 0 ? bytes(largest) : 'none answers',
    ],
  };
}

const LEVEL = 'It has every change of the engine, and receives every change';

const findingRow = (variant, label, description, todo = '', commands = []) =>
  part(
    'li',
    {},
    badge(variant, label),
    part(
      'div',
      {},
      part('p', {}, part('b', {}, `${description}.`)),
      todo &&
        part('p', {}, withCode(`${todo[0].toUpperCase()}${todo.slice(1)}${commands.length > 0 ? ':' : '.'}`)),
      commands.map((words) => part('p', {}, part('code', {}, words.join(' ')))),
    ),
  );

const nothing = () =>
  findingRow('success', 'Nothing', 'Every packager has its streams, or is receiving them');

const MOST_ALIKE = 5;

const rowsOf = (findings) =>
  [...Map.groupBy(findings, ({ severity, code }) => severity + code).values()].map((alike) => {
    const look = alike[0].severity === 'error' ? ['danger', 'Act'] : ['warning', 'Look'];
    const named = alike.slice(0, MOST_ALIKE);
    const more = alike.length - named.length;
    return [
      named.map(({ description, todo, commands }) => findingRow(...look, description, todo, commands)),
      more > 0 && findingRow(...look, `${count(more, 'more finding')} of this kind`),
    ];
  });

async function refreshStream(mine) {
  const { stream } = mine;
  if (stream === undefined) return;
  const answer = await ask(`api/fleet/${encodeURIComponent(stream)}`, mine);
  if (session !== mine || mine.stream !== stream) return;
  if (answer?.status === 200) showWhere(answer.body, mine.fleet.findings);
  else showNowhere(answer?.says ?? AWAY);
}

function selectStream(stream) {
  if (!session || stream === '') return;
  session.stream = stream;
  byId('where-stream').value = stream;
  void refreshStream(session);
}

byId('access-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const field = byId('api-key');
  const apiKey = field.value.trim();
  field.value = '';
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    signOut('This is not an API key.', 'An API key has printable ASCII characters without spaces.');
    return;
  }
  session = { apiKey, isPaused: false };
  // While the engine is away, the answer takes some seconds.
  fill(byId('refusal'), part('p', { class: 'muted' }, 'Asking the sidecar …'));
  byId('pause').textContent = 'Pause';
  void refresh(session);
});

byId('forget').addEventListener('click', () => signOut());

function resume() {
  if (!session) return;
  clearTimeout(session.timer);
  if (!document.hidden && !session.isPaused) void refresh(session);
}

byId('pause').addEventListener('click', () => {
  session.isPaused = !session.isPaused;
  byId('pause').textContent = session.isPaused ? 'Resume' : 'Pause';
  resume();
});

document.addEventListener('visibilitychange', resume);

// The browser keeps a page that is left, to go back to it: the key would stay with it.
window.addEventListener('pagehide', () => signOut());

byId('where-form').addEventListener('submit', (event) => {
  event.preventDefault();
  selectStream(byId('where-stream').value.trim());
});

byId('missing').addEventListener('click', ({ target }) => {
  const stream = target.closest('[data-look]')?.dataset.look;
  if (stream === undefined) return;
  selectStream(stream);
  byId('where').scrollIntoView({ block: 'start' });
  byId('where-stream').focus({ preventScroll: true });
});

byId('packagers').addEventListener('click', ({ target }) => {
  const name = target.closest('[data-missing-at]')?.dataset.missingAt;
  if (name === undefined || !session?.fleet) return;
  byId('missing-search').value = name;
  showMissing(session);
  byId('missing-search').focus();
});

/** The count that was found changes with answers as well: it is read out only for a search. */
const search = (show, found) => () => {
  if (!session?.fleet) return;
  show(session);
  fill(byId('announcement'), byId(found).textContent);
};
for (const id of ['packagers-search', 'packagers-order'])
  byId(id).addEventListener('input', search(showPackagers, 'packagers-found'));
byId('missing-search').addEventListener('input', search(showMissing, 'missing-found'));

byId('api-key').focus();
