import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { folderOfEachTest, temporaryFolder } from '../support/after-test';
import { DIST, runScript, startBuilt, untilReady } from '../support/built-program';
import { CENC_ONLY, CENC_ONLY_FILE } from '../support/post-manual';

const ROOT = resolve(__dirname, '../..');
const NOT_BUILT = `\
Nothing is built yet, and esbuild, which builds it, is not installed.
Run: npm ci && npm run build
After that, npm prune --omit=dev may take esbuild away again.
`;

// npm takes its time.
jest.setTimeout(60_000);

const run = promisify(execFile);

/** A copy of what a build needs. */
const folder = folderOfEachTest();

beforeEach(async () => {
  for (const name of ['package.json', 'build.mjs']) await cp(join(ROOT, name), join(folder, name));
});

/** Without the programs of our own packages: npm puts them there when it runs the tests. */
const PATH = (process.env.PATH ?? '')
  .split(':')
  .filter((entry) => !entry.includes('node_modules'))
  .join(':');

/** npm in the copy, with nothing of this process's environment. */
async function npm(args: readonly string[], env: Record<string, string> = {}) {
  const settings = { npm_config_cache: join(folder, '.npm'), npm_config_update_notifier: 'false' };
  const options = { cwd: folder, env: { PATH, HOME: folder, ...settings, ...env } };
  try {
    return { code: 0, ...(await run('npm', args, options)) };
  } catch (thrown) {
    const { code, stdout, stderr } = thrown as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

/** Gives the copy the packages that `npm prune --omit=dev` leaves, as far as it matters here: without esbuild. */
async function pruned(): Promise<void> {
  await mkdir(join(folder, 'node_modules'));
  for (const name of await readdir(join(ROOT, 'node_modules')))
    if (name !== 'esbuild' && name !== '.bin')
      await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
}

test('npm start says that Node is too old, and so does a program that was built', async () => {
  const versions = "{ value: { ...process.versions, node: '20.9.0' } }";
  const older = `data:text/javascript,Object.defineProperty(process,'versions',${encodeURIComponent(versions)})`;
  const env = { NODE_OPTIONS: `--import=${older}` };
  const built = ['sidecar', 'cli'].map((name) =>
    runScript(join(DIST, name, 'main.js'), { cwd: folder, env }),
  );
  for (const { code, stderr } of await Promise.all([npm(['start'], env), ...built.map(({ ended }) => ended)]))
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('Node 20.19.0 or newer is needed; this is 20.9.0.\n'),
    });
});

/** The start is over when the port is refused: nothing stays up. */
const ENDS = { PACKAGERDRMAPI_APIKEY: 'key', PACKAGERDRMAPI_PORT: 'none' };

describe('npm start without esbuild', () => {
  beforeEach(pruned);

  test('runs what is built', async () => {
    await cp(DIST, join(folder, 'dist'), { recursive: true });
    const { stderr } = await npm(['start'], ENDS);
    expect(stderr).toContain('PACKAGERDRMAPI_PORT: must be a whole number from 0 to 65535');
  });

  test('says what to do when nothing is built', async () => {
    const { code, stderr } = await npm(['start'], ENDS);
    expect({ code, said: stderr.slice(0, NOT_BUILT.length) }).toEqual({ code: 1, said: NOT_BUILT });
  });
});

describe('the build', () => {
  beforeEach(() => cp(DIST, join(folder, 'dist'), { recursive: true }));

  test('serves every path of the sidecar without node_modules, and the command line and health check with it', async () => {
    const dist = join(folder, 'dist');
    const apiKey = 'key-of-the-package-test';
    const { url } = await startBuilt('sidecar', {
      cwd: await temporaryFolder(),
      dist,
      env: { PACKAGERDRMAPI_APIKEY: apiKey },
    });
    await untilReady(url);
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
    const body = JSON.stringify(CENC_ONLY);
    const asked: [path: string, init: RequestInit][] = [
      ['/api/keyfile/live', { method: 'POST', body }],
      ['/api/keyfile/live', {}],
      [
        '/api/keyfile/live',
        { method: 'POST', body: CENC_ONLY_FILE, headers: { ...headers, 'content-type': 'text/plain' } },
      ],
      ['/api/keyfiles', {}],
      ['/api/check', { method: 'POST', body }],
      ['/docs', {}],
      ...['colors.css', 'docs.css', 'docs.js', 'oat.min.css', 'style.css', 'swagger-ui-bundle.js'].map(
        (name): [string, RequestInit] => [`/docs/${name}`, {}],
      ),
      ['/openapi.json', {}],
      ['/metrics', {}],
    ];
    const answers: string[] = [];
    for (const [path, init] of asked)
      answers.push(`${path} ${(await fetch(url + path, { headers, ...init })).status}`);
    expect(answers).toEqual(asked.map(([path]) => `${path} 200`));
    // The metrics of its process come from a package, too.
    const metrics = await (await fetch(`${url}/metrics`, { headers })).text();
    expect(metrics).toMatch(/^process_resident_memory_bytes \d+$/m);
    expect(metrics).toMatch(/^# TYPE nodejs_gc_duration_seconds histogram$/m);
    expect((await fetch(`${url}/api/keyfile/live`)).status).toBe(401);
    const cli = { cwd: folder, args: ['list'], env: { PACKAGERDRM_URL: url, PACKAGERDRM_APIKEY: apiKey } };
    expect(await runScript(join(dist, 'cli/main.js'), cli).ended).toMatchObject({ code: 0 });
    const probe = { cwd: folder, env: { PACKAGERDRMAPI_PORT: new URL(url).port } };
    expect(await runScript(join(dist, 'sidecar/health-check.js'), probe).ended).toMatchObject({
      code: 0,
      stderr: '',
    });
  });

  test('stays when a build fails', async () => {
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const { code, stderr } = await npm(['run', 'build']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('src/cli/main.ts') });
    const version = runScript(join(folder, 'dist/cli/main.js'), { cwd: folder, args: ['--version'] });
    expect(await version.ended).toMatchObject({ code: 0 });
  });
});
