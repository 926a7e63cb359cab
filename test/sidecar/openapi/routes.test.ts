import type { Express } from 'express';
import type * as httpApp from '../../../src/http/app';
import { addressOf, OPERATIONS } from '../../support/start-described';
import { startSidecar } from '../../support/start-sidecar';

let app: Express | undefined;

jest.mock('../../../src/http/app', () => {
  const actual = jest.requireActual<typeof httpApp>('../../../src/http/app');
  const createApp: typeof actual.createApp = (shell, mount) =>
    actual.createApp(shell, (routes) => {
      app = routes;
      mount(routes);
    });
  return { ...actual, createApp };
});

/** Routes that do nothing but refuse every method. */
const REFUSALS = ['/api/keyfile', '/api/keyfile/*rest', '/api/fleet/*rest'];

/** What the pages load. */
const PAGE_FILES = /^\/(?:docs|fleet)\//;

interface Layer {
  /** The path of what refuses OPTIONS everywhere is a pattern. */
  readonly route?: {
    readonly path: string | RegExp;
    readonly stack: readonly { readonly method?: string }[];
  };
}

async function routes(): Promise<string[]> {
  await startSidecar();
  const layers: readonly Layer[] = app?.router.stack ?? [];
  return layers.flatMap(({ route }) => {
    const { path, stack = [] } = route ?? {};
    if (typeof path !== 'string' || REFUSALS.includes(path) || PAGE_FILES.test(path)) return [];
    const methods = new Set(stack.flatMap(({ method }) => method ?? []));
    return [...methods].map((method) => `${method.toUpperCase()} ${path.replace(/:(\w+)/g, '{$1}')}`);
  });
}

it('describes every route of the service, and none beside them', async () => {
  const described = OPERATIONS.map(({ title }) => title);
  expect([...new Set(await routes())].sort()).toEqual(described.sort());
});

it.each(REFUSALS)('%s is no route to describe: it refuses whatever comes', async (path) => {
  const { api } = await startSidecar();
  const target = path.replace('*rest', 'a/b');
  for (const method of ['get', 'post', 'delete'] as const) await api[method](target).expect(400);
});

it('needs the API key exactly where it says so', async () => {
  const { unauthenticated } = await startSidecar();
  for (const { title, method, path, operation } of OPERATIONS) {
    const { status } = await unauthenticated[method](addressOf(path));
    expect([title, status === 401 || status === 429]).toEqual([title, operation.security.length > 0]);
  }
});
