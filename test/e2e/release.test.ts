import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  access,
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';

const ROOT = resolve(__dirname, '../..');
const PRODUCT = 'packager-drm-api';
const PLATFORM = 'packager-drm-platform';
const MB = 1024 * 1024;
/** The folders of `dist` in each file of a release. */
const HOUSES = {
  [PRODUCT]: ['sidecar', 'cli'],
  [PLATFORM]: ['emulator', 'packager', 'demo', 'migration'],
  'image-sidecar': ['sidecar', 'cli'],
  'image-emulator': ['emulator'],
  'image-packager': ['packager'],
};

/** A package in a CycloneDX document. */
interface Listed {
  readonly 'bom-ref': string;
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly licenses: readonly [{ readonly license: { readonly id?: string; readonly name?: string } }];
}

/** The folder of a package, as deep as it is below others, in the path of a file. */
const PACKAGE = /node_modules\/(?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+/g;

interface Workflow {
  readonly permissions: object;
  readonly jobs: Record<
    string,
    { readonly permissions: object; readonly steps: { readonly uses?: string; readonly run?: string }[] }
  >;
}

const JEST = join(ROOT, 'node_modules/jest/bin/jest.js');

/** Uses the library as no example does, and writes what it left. */
const MANY = `
import { readdir } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
const before = process.memoryUsage().rss;
// Both are made on request.
void [process.stdout, process.stderr];
const handles = process.getActiveResourcesInfo();
const { startEmulator, startSidecar } = await import('packager-drm-platform/testing');
const first = await startEmulator();
const megabytes = (process.memoryUsage().rss - before) / 1e6;
const port = new URL(first.url).port;
const quiet = { PACKAGERDRMAPI_LOGLEVEL: 'silent', PACKAGERDRMAPI_KEYFILESPATH: 'own-keys' };
const sidecar = await startSidecar({ emulator: first, variables: quiet });
const { keyFilesFolder } = sidecar;
const said = [];
for (const attempt of [
  () => startEmulator({ variables: { EMULATOR_PROT: '1' } }),
  () => startEmulator({ variables: { EMULATOR_SITE_ID: 'x' } }),
  () => startEmulator({ variables: { EMULATOR_CONTROL_PORT: port } }),
  () => startSidecar({ variables: { PACKAGERDRMAPI_PORT: 'none' } }),
  () => startSidecar({ variables: { PACKAGERDRMAPI_PROT: '1' } }),
  () => first.encoder.connect('no-such-key'),
])
  said.push(await attempt().then(() => 'nothing', ({ message }) => message));
await sidecar.close();
await first.close();
const channel = { EMULATOR_CHANNEL_ID: 'harbour1', EMULATOR_CHANNEL_STREAM_KEY: 'harbour-stream-key' };
const used = [];
for (let count = 0; count < 20; count += 1) {
  const emulator = await startEmulator({ variables: channel });
  await emulator.encoder.connect('harbour-stream-key');
  await emulator.clock.advance(1);
  await emulator.restore(await emulator.state());
  await emulator.close();
  await setImmediate();
  gc();
  used.push(process.memoryUsage().heapUsed / 1e6);
}
const kept = used[19] - used[4];
const left = process.getActiveResourcesInfo();
for (const handle of handles) if (left.includes(handle)) left.splice(left.indexOf(handle), 1);
const folders = await readdir(process.env.TMPDIR);
const { url } = await startSidecar();
process.stdout.write(JSON.stringify({ megabytes, kept, keyFilesFolder, said, handles: left, folders, url }), () => process.exit());
`;

/** A program with one fault, a kind that there is none of. */
const TYPED = `
import { type RunningEmulator, startEmulator, startSidecar } from 'packager-drm-platform/testing';
const emulator: RunningEmulator = await startEmulator({ variables: { EMULATOR_SITE_ID: 'mysite01' } });
const sidecar: AsyncDisposable & { readonly apiKey: string } = await startSidecar({ emulator });
const target = 'webhook:*';
await emulator.faults.add({ target, kind: 'explode' });
const [first] = await emulator.requests({ status: '4xx' });
const end: Date = await emulator.clock.advance(first === undefined ? 0 : first.ms);
await emulator[Symbol.asyncDispose]();
void [end, sidecar];
`;

// Two builds, and npm, on a machine with other work.
jest.setTimeout(180_000);

const run = promisify(execFile);

/** A repository of one commit with the files of this clone as they are now. */
let clone: string;
let released: string;
let version: string;
const git = (...args: string[]) =>
  run('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: clone });
const commit = async () => {
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'A state to release');
};

const release = (env: Record<string, string> = {}) =>
  run(process.execPath, ['release.mjs'], { cwd: clone, env: { ...process.env, ...env } });

beforeAll(async () => {
  clone = await mkdtemp(join(tmpdir(), 'release-'));
  const options = { cwd: ROOT, maxBuffer: 10 * MB };
  const { stdout } = await run(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    options,
  );
  const names = stdout
    .split('\0')
    .filter((name) => /^(?:src|docs|examples|[^/]+$)/.test(name) && name !== 'node_modules');
  for (const name of names) await cp(join(ROOT, name), join(clone, name));
  await symlink(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  await git('init', '--quiet');
  await writeFile(join(clone, '.git/info/exclude'), 'node_modules\n');
  await commit();
  ({ version } = JSON.parse(await readFile(join(clone, 'package.json'), 'utf8')));
  released = join(clone, 'dist/release');
});

afterAll(() => rm(clone, { recursive: true }));

test('is refused from a tree with changes, without news of the version, and with an epoch that is no number', async () => {
  await writeFile(join(clone, 'new.txt'), '');
  await appendFile(join(clone, 'README.md'), 'changed\n');
  const code = 1;
  const changes =
    'the working tree has changes. Commit or remove them, then try again:\nM README.md\n?? new.txt';
  await expect(release()).rejects.toMatchObject({ code, stderr: `No release is made: ${changes}\n` });
  await rm(join(clone, 'new.txt'));
  await git('checkout', '--quiet', 'README.md');
  await expect(release({ SOURCE_DATE_EPOCH: 'now' })).rejects.toMatchObject({
    code,
    stderr: 'No release is made: SOURCE_DATE_EPOCH must be a whole number of seconds since 1970\n',
  });
  const path = join(clone, 'CHANGELOG.md');
  await writeFile(path, (await readFile(path, 'utf8')).replace(`## ${version}\n`, '## Unreleased\n'));
  await commit();
  const news = `CHANGELOG.md has no section "## ${version}", the version in package.json, or it is empty`;
  await expect(release()).rejects.toMatchObject({ code, stderr: `No release is made: ${news}\n` });
  await git('reset', '--quiet', '--hard', 'HEAD~1');
  await expect(readdir(released)).rejects.toThrow('ENOENT');
});

describe('the release', () => {
  /** A folder with both packages, as npm installs them. */
  const project = () => join(clone, 'dist/unpacked');
  const unpacked = (name: string) => join(project(), 'node_modules', name);

  beforeAll(async () => {
    await release();
    for (const name of Object.keys(HOUSES)) {
      const [ending, folders] = name.startsWith('image-') ? ['tar.gz', 0] : ['tgz', 1];
      await mkdir(unpacked(name), { recursive: true });
      const archive = join(released, `${name}-${version}.${ending}`);
      await run('tar', ['-xzf', archive, '-C', unpacked(name), `--strip-components=${folders}`]);
    }
  });

  test('is the same byte by byte when it is made again, and fits its sums', async () => {
    const first = join(clone, 'dist/first');
    await rename(released, first);
    await release({ TZ: 'Asia/Tokyo', LANG: 'de_DE.UTF-8' });
    const names = await readdir(first);
    expect(names).toHaveLength(2 * Object.keys(HOUSES).length + 2);
    expect(await readdir(released)).toEqual(names);
    const sums = [];
    for (const name of names) {
      const [former, now] = await Promise.all([first, released].map((at) => readFile(join(at, name))));
      expect({ name, same: former?.equals(now ?? Buffer.of()) }).toEqual({ name, same: true });
      if (name !== 'SHA256SUMS')
        sums.push(
          `${createHash('sha256')
            .update(now ?? '')
            .digest('hex')}  ${name}\n`,
        );
    }
    expect(await readFile(join(released, 'SHA256SUMS'), 'utf8')).toBe(sums.join(''));
    const news = await readFile(join(released, `changelog-${version}.md`), 'utf8');
    expect(news).toMatch(new RegExp(`^## ${version} - \\d{4}-\\d\\d-\\d\\d\n\n### `));
  });

  test('is small, has no native code and no link to a source map, has each page that README.md links to, and names no package that it contains', async () => {
    const readme = await readFile(join(unpacked(PRODUCT), 'README.md'), 'utf8');
    const linked = [...readme.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path);
    expect(linked).toEqual(expect.arrayContaining(['docs/run-with-docker.md', 'SECURITY.md']));
    for (const path of linked) await access(join(unpacked(PRODUCT), path));
    const product = await readFile(join(released, `${PRODUCT}-${version}.tgz`));
    expect(product.length).toBeLessThan(3 * MB);
    const { stdout: kilobytes } = await run('du', ['-sk', '--apparent-size', unpacked(PRODUCT)]);
    expect(Number.parseInt(kilobytes, 10) * 1024).toBeLessThan(12 * MB);
    const image = ['-sk', '--apparent-size', join(unpacked('image-sidecar'), 'dist/sidecar')];
    expect(Number.parseInt((await run('du', image)).stdout, 10) * 1024).toBeLessThan(6 * MB);
    const manifests = [PRODUCT, PLATFORM].map(async (name) => {
      const manifest = JSON.parse(await readFile(join(unpacked(name), 'package.json'), 'utf8'));
      const { private: isPrivate, scripts, dependencies, devDependencies } = manifest;
      expect({ isPrivate, scripts, dependencies, devDependencies }).toEqual({});
      return [
        Object.keys(manifest.bin),
        manifest.peerDependencies,
        Object.keys(manifest.optionalDependencies ?? {}),
      ];
    });
    expect(await Promise.all(manifests)).toEqual([
      [[PRODUCT, 'packager-drm'], undefined, []],
      [
        ['packager-drm-emulator', 'packager-drm-packager', 'packager-drm-demo', 'platform-migrate'],
        { [PRODUCT]: `^${version}` },
        ['shaka-packager'],
      ],
    ]);
    const { stdout: found } = await run('grep', ['-rlP', '^\\x7fELF|^//# sourceMappingURL', project()]);
    const programs = found.trim().split('\n').sort();
    expect(programs).toEqual(
      ['amd64', 'arm64'].map((arch) => join(unpacked('image-packager'), 'shaka-packager', arch)),
    );
  });

  test('has a list of exactly the packages that its bundles contain, with licenses and their texts', async () => {
    for (const [name, houses] of Object.entries(HOUSES)) {
      const read = JSON.parse(await readFile(join(released, `${name}-${version}.cdx.json`), 'utf8'));
      const { bomFormat, specVersion, metadata, components } = read;
      expect({ bomFormat, specVersion }).toEqual({ bomFormat: 'CycloneDX', specVersion: '1.6' });
      expect(metadata.component).toMatchObject({ version });
      const listed: Listed[] = components;
      const paths = listed.map((each) => each['bom-ref'].split('?path=')[1]);
      // Of the source maps: what the bundler wrote without being asked for a list.
      const inMaps = new Set<string>();
      let texts = '';
      for (const house of houses) {
        const folder = join(clone, 'dist', house);
        for (const file of (await readdir(folder)).filter((each) => each.endsWith('.js.map'))) {
          const { sources } = JSON.parse(await readFile(join(folder, file), 'utf8'));
          for (const source of sources as string[])
            for (const [place] of source.matchAll(PACKAGE)) inMaps.add(place);
        }
        texts += await readFile(join(folder, 'THIRD-PARTY.txt'), 'utf8');
      }
      expect(paths).toEqual(expect.arrayContaining([...inMaps]));
      const others = paths.filter((path = '') => !inMaps.has(path));
      const served = ['@knadh/oat', 'shaka-packager', 'shaka-player', 'swagger-ui-dist'].map(
        (each) => `node_modules/${each}`,
      );
      expect(served).toEqual(expect.arrayContaining(others));
      for (const { group, name: pack, version: has, licenses } of listed) {
        const [{ license }] = licenses;
        const title = `${group ? `${group}/` : ''}${pack} ${has} (${license.id ?? license.name})\n`;
        if (pack !== 'shaka-packager') expect(texts).toContain(title);
      }
    }
  });

  test('has build contexts with all that their Dockerfiles copy, labels, and another user than root', async () => {
    for (const name of Object.keys(HOUSES).filter((each) => each.startsWith('image-'))) {
      const dockerfile = await readFile(join(unpacked(name), 'Dockerfile'), 'utf8');
      const copied = [...dockerfile.matchAll(/^COPY (\S+) \S+$/gm)].map(([, path = '']) => path);
      expect(copied).toContain(`dist/${name.replace('image-', '')}`);
      for (const path of copied)
        expect((await readdir(join(unpacked(name), dirname(path)))).length).toBeGreaterThan(0);
      expect(dockerfile).toMatch(new RegExp(`^ARG VERSION=${version} REVISION=[0-9a-f]{40} CREATED=\\d{4}-`));
      expect(dockerfile).toMatch(/^USER 100[01]:1000$/m);
      expect(dockerfile).toContain('org.opencontainers.image.version="$VERSION"');
    }
  });

  test('has a library for tests, whose examples run with node:test, Jest and, in the same words, Vitest', async () => {
    const examples = join(unpacked(PLATFORM), 'examples');
    for (const name of await readdir(examples)) await cp(join(examples, name), join(project(), name));
    await writeFile(join(project(), 'jest.config.json'), '{"testMatch":["**/*.test.cjs"]}');
    // A runner whose hook fails may wait for what the hook has started.
    const options = { cwd: project(), env: { PATH: process.env.PATH }, timeout: 60_000 };
    const { stdout } = await run(
      process.execPath,
      ['--test', '--test-reporter=tap', 'node-test.test.mjs'],
      options,
    );
    expect(stdout).toContain('# pass 3\n# fail 0\n');
    const { stderr } = await run(process.execPath, [JEST, '--ci', '--config', 'jest.config.json'], options);
    expect(stderr).toContain('Tests:       3 passed, 3 total');
    const [jestOne, vitestOne] = await Promise.all(
      ['jest.test.cjs', 'vitest.test.mjs'].map(async (name) => {
        const text = await readFile(join(project(), name), 'utf8');
        return text.slice(text.indexOf('let emulator'));
      }),
    );
    expect(vitestOne).toBe(jestOne);
  });

  test('starts twenty emulators without a handle, a folder or much memory left, and types the library', async () => {
    const tmp = join(clone, 'dist/tmp');
    await mkdir(tmp);
    await writeFile(join(project(), 'many.mjs'), MANY);
    const options = { cwd: project(), env: { TMPDIR: tmp } };
    const { stdout } = await run(process.execPath, ['--expose-gc', 'many.mjs'], options);
    const { megabytes, kept, keyFilesFolder, said, url, ...left } = JSON.parse(stdout);
    expect(left).toEqual({ handles: [], folders: [] });
    expect(megabytes).toBeLessThan(50);
    expect(kept).toBeLessThan(5);
    expect(keyFilesFolder).toBe(await realpath(join(project(), 'own-keys')));
    expect(said).toEqual([
      'Unknown variable EMULATOR_PROT (did you mean EMULATOR_PORT?)',
      expect.stringContaining('EMULATOR_SITE_ID: must be 8 letters and digits'),
      expect.stringContaining('EADDRINUSE'),
      expect.stringContaining('PACKAGERDRMAPI_PORT: must be a whole number'),
      'Unknown variable PACKAGERDRMAPI_PROT (did you mean PACKAGERDRMAPI_PORT?)',
      expect.stringContaining('The control port answered 404 to POST /encoder/connect: {"errors":['),
    ]);
    // The process ended without closing it.
    while (await fetch(url).then(Boolean, () => false));
    await writeFile(join(project(), 'typed.mts'), TYPED);
    const strict = '--ignoreConfig --noEmit --strict --target es2022 --module nodenext --types'.split(' ');
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const checked = await run(process.execPath, [tsc, ...strict, '', 'typed.mts'], options).catch(
      (thrown) => thrown,
    );
    expect(checked.stdout).toMatch(/^typed\.mts\(6,37\): error TS2322: .*"explode".*\n(?: .*\n)*$/);
  });

  test('is installed from its files, shows key file and picture, and is removed', async () => {
    const prefix = join(clone, 'dist/prefix');
    const cwd = join(clone, 'dist/user');
    await mkdir(cwd);
    const env = { PATH: `${join(prefix, 'bin')}:${process.env.PATH}`, HOME: cwd, npm_config_offline: 'true' };
    const npm = (...args: string[]) => run('npm', [...args, '--global', '--prefix', prefix], { cwd, env });
    const names = [PRODUCT, PLATFORM];
    // npm's cache has the archive of shaka-packager after npm ci, and no list of its versions.
    const given = names.map((name) => join(released, `${name}-${version}.tgz`));
    await npm('install', ...given, join(ROOT, 'node_modules/shaka-packager'));
    const { stdout } = await run('packager-drm-demo', ['--once'], { cwd, env });
    expect(await readFile(join(cwd, 'keys/demo.key'), 'utf8')).toContain(
      'mpegdashstreaming-cenc-content-key: ',
    );
    expect(stdout.match(/ decrypts$/gm)).toHaveLength(4);
    expect(stdout.match(/2 renditions: no faults\./g)).toHaveLength(2);
    for (const program of ['packager-drm', 'platform-migrate'])
      expect((await run(program, ['--version'], { cwd, env })).stdout).toBe(`${version}\n`);
    const refused = run(PRODUCT, { cwd, env: { ...env, PACKAGERDRMAPI_PORT: 'none' } });
    await expect(refused).rejects.toMatchObject({ code: 2 });
    await npm('uninstall', ...names, 'shaka-packager');
    const left = await readdir(prefix, { recursive: true, withFileTypes: true });
    expect(left.filter((each) => !each.isDirectory())).toEqual([]);
  });
});

test('is published by a workflow whose steps are pinned, and whose jobs have no right that they do not use', async () => {
  const text = await readFile(join(ROOT, '.github/workflows/release.yml'), 'utf8');
  const { permissions, jobs }: Workflow = parse(text);
  expect(permissions).toEqual({});
  expect(Object.fromEntries(Object.entries(jobs).map(([name, job]) => [name, job.permissions]))).toEqual({
    build: { contents: 'read' },
    npm: { 'id-token': 'write' },
    images: { packages: 'write', 'id-token': 'write', attestations: 'write' },
    release: { contents: 'write', 'id-token': 'write', attestations: 'write' },
  });
  const used = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []));
  expect(used.filter((each) => !/^[\w/-]+@[0-9a-f]{40}$/.test(each))).toEqual([]);
  const run = Object.values(jobs).flatMap(({ steps }) => steps.flatMap((step) => step.run ?? []));
  // The name of a tag reaches a shell as a variable, never as text of the script.
  expect(run.filter((each) => each.includes('${{'))).toEqual([]);
});
