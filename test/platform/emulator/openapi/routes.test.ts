import type { Express } from 'express';
import type * as httpApp from '../../../../src/http/app';
import { templateOf } from '../../../../src/platform/emulator/openapi/operation';
import { OPERATIONS } from '../../../support/start-described-emulator';
import { startEmulator } from '../../../support/start-emulator';

let apps: Express[] = [];

jest.mock('../../../../src/http/app', () => {
  const actual = jest.requireActual<typeof httpApp>('../../../../src/http/app');
  const createApp: typeof actual.createApp = (shell, mount) =>
    actual.createApp(shell, (app) => {
      apps.push(app);
      mount(app);
    });
  return { ...actual, createApp };
});

afterEach(() => {
  apps = [];
});

/** Pages for a person and what they load, and forms that they send. */
const isOfPages = (path: string) => path === '/' || /^\/(?:dashboard|docs|verify)\b/.test(path);

interface Layer {
  readonly route?: {
    readonly path: string | readonly string[] | RegExp;
    readonly stack: readonly { readonly method?: string }[];
  };
}

/** Every route of the platform port, as `METHOD /path/{name}`, without a slash at its end. */
async function routes(): Promise<string[]> {
  await startEmulator();
  // The last app is that of the control port.
  const layers: readonly Layer[] = apps.slice(0, -1).flatMap(({ router }) => router.stack);
  return layers.flatMap(({ route }) => {
    const { path, stack = [] } = route ?? {};
    if (path === undefined || path instanceof RegExp) return [];
    const paths = [path].flat().filter((each) => !isOfPages(each));
    const methods = new Set(stack.flatMap(({ method }) => method ?? []));
    return paths.flatMap((each) =>
      [...methods].map((method) => `${method.toUpperCase()} ${namelessly(templateOf(each))}`),
    );
  });
}

/** What a parameter is called is no matter. */
const namelessly = (path: string) => path.replaceAll(/\{\w+\}/g, '{}').replace(/\/$/, '');

const titles = OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${namelessly(path)}`);

it('describes every route of the platform port, and none beside them', async () => {
  const described = titles.filter((title) => title !== 'GET /docs').sort();
  const present = (await routes()).sort();
  expect(present.length).toBeGreaterThan(150);
  expect(described).toEqual(present);
});

it('describes every route that a fault switch can mean', async () => {
  const { context } = await startEmulator();
  const known = context.faults.routes.flatMap(({ path, methods }) =>
    isOfPages(path) ? [] : methods.map((method) => `${method} ${namelessly(templateOf(path))}`),
  );
  expect(known.filter((route) => !titles.includes(route))).toEqual([]);
});

it('asks for a credential of the management API exactly where it says so', async () => {
  const { unauthenticated } = await startEmulator();
  for (const { title, method, path, operation } of OPERATIONS) {
    if (!path.startsWith('/v2/')) continue;
    const target = path.replace('{site_id}', 'demosite').replaceAll(/\{\w+\}/g, 'absent00');
    const { status } = await unauthenticated[method](target);
    expect([title, status === 401]).toEqual([title, operation.security.length > 0]);
  }
});
