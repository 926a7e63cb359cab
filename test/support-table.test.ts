import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RESOURCES } from '../src/platform/emulator/resources/library';
import type { Action, Verb } from '../src/platform/emulator/resources/resource';
import { TAG_ACTIONS } from '../src/platform/emulator/resources/tags';
import { USAGE_ACTIONS } from '../src/platform/emulator/resources/usage';
import { ROUTES } from '../src/platform/migration/mapping/routes';
import { startEmulator } from './support/start-emulator';

const TESTS = __dirname;
const PAGE = readFileSync(join(TESTS, '../docs/specification-support.md'), 'utf8');

interface Row {
  readonly operation: string;
  readonly state: string;
  /** The titles of the tests that show it. */
  readonly tests: readonly string[];
}

const ROWS: readonly Row[] = PAGE.split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  )
  .filter((cells) => cells.length === 3 && cells[1] !== 'State')
  .map(([operation = '', state = '', tests = '']) => ({
    operation,
    state,
    tests: tests === '–' ? [] : tests.split('<br>'),
  }));

/** The routes of Management API and delivery that a row names, each as `METHOD /path`. */
function routesOf({ operation }: Row): string[] {
  const named = [
    ...operation.matchAll(/`(?:([A-Z]+(?:, [A-Z]+)*) )?(?:\{cdn_url\})?(\/(?:v1|v2|live)\/[^`]*)`/g),
  ];
  return named.flatMap(([, methods = '*', path = '']) =>
    methods.split(', ').map((method) => `${method} ${path}`),
  );
}

test('the support table says of every operation what its state is', () => {
  expect(ROWS.length).toBeGreaterThan(100);
  expect(ROWS.filter(({ state }) => !['done', 'partly', 'not'].includes(state))).toEqual([]);
});

test('every operation that is done, or partly, names tests that exist', () => {
  const names = readdirSync(TESTS, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => name.endsWith('.test.ts'));
  const texts = files.map((name) => readFileSync(join(TESTS, name), 'utf8'));
  const isTitle = (title: string) =>
    texts.some((text) => ["'", '"', '`'].some((quote) => text.includes(`${quote}${title}${quote}`)));
  const offences = ROWS.filter(({ state }) => state !== 'not').flatMap(({ operation, tests }) =>
    tests.length === 0
      ? [`${operation}: names no test`]
      : tests.filter((title) => !isTitle(title)).map((title) => `${operation}: no test is called "${title}"`),
  );
  expect(offences).toEqual([]);
});

test('the counts above the support table are those of its rows', () => {
  const count = (wanted: string) => ROWS.filter(({ state }) => state === wanted).length;
  const counts = `${count('done')} done, ${count('partly')} partly, ${count('not')} not yet`;
  expect(PAGE).toContain(counts);
});

/** The routes that a test holds the table to: those of the resources, and those that the specification maps v1 to. */
function wantedRoutes(): string[] {
  const verbs = { list: 'GET', create: 'POST', read: 'GET', update: 'PATCH', delete: 'DELETE' } as const;
  const placeOf = (verb: Verb) => (verb === 'list' || verb === 'create' ? 'collection' : 'one');
  const resources = RESOURCES.flatMap((resource) => [
    ...resource.verbs.map((verb) => `${verbs[verb]} ${resource[placeOf(verb)]}`),
    ...routesOfActions(resource.actions ?? {}),
  ]);
  const mapped = ROUTES.flatMap(({ route, v2 }) => [
    `* ${route}`,
    ...v2.map(({ method, path }) => `${method} ${path}`),
  ]);
  return [
    ...new Set(
      [...resources, ...routesOfActions({ ...TAG_ACTIONS, ...USAGE_ACTIONS }), ...mapped].map(comparable),
    ),
  ];
}

function routesOfActions(actions: Readonly<Record<string, Action>>): string[] {
  return Object.values(actions).flatMap(({ methods, path }) => methods.map((method) => `${method} ${path}`));
}

/** As a row writes it, without the names of parameters and the type of a playlist. */
function comparable(route: string): string {
  return route
    .replaceAll(/:\w+|\{\w+\}/g, '{}')
    .replaceAll(/\b\w+_playlist\b/g, '{}')
    .replace(/\/$/, '');
}

test('every route of the resources and of the mapping from v1 has a row', () => {
  const rows = new Set(ROWS.flatMap((row) => routesOf(row).map(comparable)));
  expect(wantedRoutes().length).toBeGreaterThan(90);
  expect(wantedRoutes().filter((route) => !rows.has(route))).toEqual([]);
});

test('a route of v1 is done only where v2 does what it does', () => {
  const unsupported = ROUTES.filter(({ v2 }) => v2.length === 0).map(({ route }) => comparable(`* ${route}`));
  const offences = ROWS.flatMap((row) =>
    routesOf(row)
      .filter((route) => unsupported.includes(comparable(route)))
      // v1's own answer to a call that is not supported is there.
      .filter(() => row.state !== 'not' && !/not ?supported/i.test(row.operation)),
  );
  expect(offences).toEqual([]);
});

test('the emulator has every route that is done or partly, and none that is not', async () => {
  const { control } = await startEmulator();
  const named = ROWS.flatMap((row) => routesOf(row).map((target) => ({ target, state: row.state })));
  expect(named.length).toBeGreaterThan(80);
  const offences: string[] = [];
  for (const { target, state } of named) {
    // The control port takes a fault only for a route that the platform has.
    const { status } = await control.post('/faults').send({ target, kind: 'fail' });
    if ((status === 201) !== (state !== 'not')) offences.push(`${target}: ${state}, but answered ${status}`);
  }
  expect(offences).toEqual([]);
  // A hundred requests, on a machine that does other things too.
}, 60_000);
