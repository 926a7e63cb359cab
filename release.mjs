// Makes a release of the checked-out commit in `dist/release`, without network: `npm run release`. The same commit gives the
// same bytes: all times are SOURCE_DATE_EPOCH, or the commit's time. RELEASE_REPOSITORY, an https:// address, is named as the
// source where it is set; `npm publish --provenance` compares it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const ROOT = fileURLToPath(new URL('.', import.meta.url));
const OUT = join(ROOT, 'dist', 'release');

const PRODUCT = 'packager-drm-api';
const PLATFORM = 'packager-drm-platform';
const TYPES = 'dist/emulator/testing.d.ts';
const SHAKA_PACKAGER = 'node_modules/shaka-packager';

/** The npm packages, with their folders of `dist`, and their other files. */
const PACKAGES = {
  [PRODUCT]: {
    houses: ['sidecar', 'cli'],
    files: ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE', '.env.example', 'docs'],
    bin: { [PRODUCT]: 'sidecar', 'packager-drm': 'cli' },
  },
  [PLATFORM]: {
    houses: ['emulator', 'packager', 'demo', 'migration'],
    files: ['LICENSE', 'examples'],
    bin: {
      'packager-drm-emulator': 'emulator',
      'packager-drm-packager': 'packager',
      'packager-drm-demo': 'demo',
      'platform-migrate': 'migration',
    },
  },
};

const PLATFORM_DESCRIPTION = `For tests against ${PRODUCT}: an emulator of the platform, also as a library, a reference packager, a demo, and platform-migrate.`;
const PLATFORM_README = `# ${PLATFORM}

${PLATFORM_DESCRIPTION}

    npm install -g ${PRODUCT} ${PLATFORM}
    packager-drm-demo

In tests: \`import { startEmulator, startSidecar } from '${PLATFORM}/testing'\`, as the files in \`examples\` do.

The pages are in the package ${PRODUCT}: docs/emulator.md, docs/packager.md and docs/migrate-to-v2.md.
`;

/** The images with programs of ours; each has a stage of its name in the Dockerfile. */
const IMAGES = {
  sidecar: { houses: ['sidecar', 'cli'] },
  emulator: { houses: ['emulator'] },
  packager: { houses: ['packager'], packages: [SHAKA_PACKAGER] },
};

/** A release that is not made; the message says what to do. */
class Refused extends Error {}

const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
const readJson = async (path) => JSON.parse(await readFile(join(ROOT, path), 'utf8'));
const byName = ([a], [b]) => (a < b ? -1 : 1);
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** @throws Refused for anything but a clean commit, and for a commit without the changes of its version. */
async function readCommit() {
  const changed = git('status', '--porcelain');
  if (changed !== '')
    throw new Refused(`the working tree has changes. Commit or remove them, then try again:\n${changed}`);
  const { SOURCE_DATE_EPOCH: epoch = git('log', '-1', '--format=%ct'), RELEASE_REPOSITORY: repository } =
    process.env;
  if (!/^\d{1,10}$/.test(epoch))
    throw new Refused('SOURCE_DATE_EPOCH must be a whole number of seconds since 1970');
  const { version, license, description, engines } = await readJson('package.json');
  const changelog = await readFile(join(ROOT, 'CHANGELOG.md'), 'utf8');
  const section = changelog.split(/^(?=## )/m).find((each) => each.split(/\s/, 2)[1] === version);
  const [heading, ...lines] = section?.split('\n') ?? [];
  if (lines.join('').trim() === '')
    throw new Refused(
      `CHANGELOG.md has no section "## ${version}", the version in package.json, or it is empty`,
    );
  const created = new Date(Number(epoch) * 1000).toISOString();
  return {
    version,
    about: { version, license, description, engines },
    created,
    mtime: Number(epoch),
    revision: git('rev-parse', 'HEAD'),
    repository,
    news: `${heading} - ${created.slice(0, 10)}\n${lines.join('\n').trimEnd()}\n`,
  };
}

/**
 * The files at and below a path of the clone, as entries of an archive. Maps of the source need the source: not these, nor
 * links to them, for a map that is missing is a warning of test runners and browsers.
 */
async function entriesAt(path) {
  if (!(await stat(join(ROOT, path))).isDirectory()) {
    const data = await readFile(join(ROOT, path));
    return [[path, path.endsWith('.js') ? `${data}`.replace(/^\/\/# sourceMappingURL=.*$/m, '') : data]];
  }
  const names = (await readdir(join(ROOT, path))).filter((name) => !name.endsWith('.map'));
  return (await Promise.all(names.map((name) => entriesAt(`${path}/${name}`)))).flat();
}

const entriesAll = async (paths) => (await Promise.all(paths.map(entriesAt))).flat();

/** A tar.gz (POSIX ustar) that depends on names, contents and `mtime` only. */
function archive(entries, mtime) {
  const blocks = entries.toSorted(byName).flatMap(([name, data]) => {
    const bytes = Buffer.from(data);
    return [tarHeader(name, bytes, mtime), bytes, Buffer.alloc(-bytes.length & 511)];
  });
  const zipped = gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
  // The system on which it was made: unknown.
  zipped[9] = 255;
  return zipped;
}

function tarHeader(name, bytes, mtime) {
  if (Buffer.byteLength(name) > 100)
    throw new Error(`${name}: longer than the 100 bytes that tar has for it`);
  const isProgram = bytes.subarray(0, 2).toString() === '#!' || bytes.subarray(1, 4).toString() === 'ELF';
  const octal = (number, length) => `${number.toString(8).padStart(length - 1, '0')}\0`;
  const before = [
    octal(isProgram ? 0o755 : 0o644, 8),
    octal(0, 8),
    octal(0, 8),
    octal(bytes.length, 12),
    octal(mtime, 12),
  ];
  const head = (sum) => `${name.padEnd(100, '\0')}${before.join('')}${sum}0${'\0'.repeat(100)}ustar\x0000`;
  const sum = Buffer.from(head(' '.repeat(8))).reduce((total, byte) => total + byte, 0);
  const header = Buffer.alloc(512);
  header.write(head(`${octal(sum, 7)} `));
  return header;
}

/** The package.json of a package: it names nothing that its files contain already, and builds nothing. */
function manifestOf(name, { about, version, repository }, shakaPackager) {
  const { bin } = PACKAGES[name];
  const programs = Object.entries(bin).map(([command, house]) => [command, `dist/${house}/main.js`]);
  return {
    name,
    ...about,
    ...(name === PLATFORM && { description: PLATFORM_DESCRIPTION }),
    ...(repository && { repository: { type: 'git', url: `git+${repository}.git` } }),
    bin: Object.fromEntries(programs),
    ...(name === PLATFORM && {
      exports: {
        './testing': { types: `./${TYPES}`, default: './dist/emulator/testing.js' },
        './package.json': './package.json',
      },
      peerDependencies: { [PRODUCT]: `^${version}` },
      // A native program of 36 MB for all systems; it is needed for media only.
      optionalDependencies: { 'shaka-packager': shakaPackager },
    }),
  };
}

/** The types of the library for tests: one file that names no other. */
async function typesOf(path) {
  const folder = join(ROOT, 'dist', 'types');
  const options = '--ignoreConfig --declaration --emitDeclarationOnly --noCheck --noResolve --module esnext';
  const library = [
    '--target',
    'es2023',
    '--lib',
    'es2023,esnext.disposable',
    '--outDir',
    folder,
    join(ROOT, path),
  ];
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, ...options.split(' '), ...library], { cwd: ROOT, stdio: 'inherit' });
  const types = await readFile(join(folder, 'main.d.ts'), 'utf8');
  return `/// <reference lib="esnext.disposable" />\n${types}`;
}

const asText = (json) => `${JSON.stringify(json, null, 2)}\n`;

/**
 * The build context of an image: its stage of the Dockerfile, with the files that the stage `build` makes otherwise.
 * TARGETARCH is Docker's name of a processor.
 */
async function contextOf(image, dockerfile, manifest, { version, revision, created }) {
  const stage = dockerfile
    .split(/^(?=FROM )/m)
    .find((each) => each.split('\n', 1)[0].endsWith(` AS ${image}`));
  const lines = stage.matchAll(/^COPY --from=build (.*) \S+$/gm);
  const paths = [...lines].flatMap(([, sources]) =>
    sources.split(' ').map((path) => path.replace('/build/', '')),
  );
  const entries = paths.map(async (path) => {
    if (path === 'package.json') return [[path, manifest]];
    if (!path.endsWith('$TARGETARCH')) return entriesAt(path);
    const programs = { amd64: 'x64', arm64: 'arm64' };
    return Promise.all(
      Object.entries(programs).map(async ([docker, node]) => [
        path.replace('$TARGETARCH', docker),
        await readFile(join(ROOT, SHAKA_PACKAGER, 'bin', `packager-linux-${node}`)),
      ]),
    );
  });
  const text = stage.trimEnd().replaceAll('--from=build /build/', '').replaceAll(' /build/', ' ');
  const args = `ARG VERSION=${version} REVISION=${revision} CREATED=${created}\n`;
  return [['Dockerfile', `${args}${text}\n`], ...(await Promise.all(entries)).flat()];
}

/** A CycloneDX 1.6 document of the packages of `folders`, below node_modules, in a component. */
async function sbomOf(component, folders, { created, repository }) {
  const { packages: locked } = await readJson('package-lock.json');
  const components = await Promise.all(
    [...new Set(folders)].map(async (folder) => {
      const { name, version, license } = await readJson(`${folder}/package.json`);
      const place = folder.slice(folder.indexOf('node_modules/'));
      if (locked[place]?.version !== version)
        throw new Refused(
          `${place} is ${version}, package-lock.json has ${locked[place]?.version}. Run: npm ci`,
        );
      const { integrity = '' } = locked[place];
      const [, sha512] = /^sha512-(.+)$/.exec(integrity) ?? [];
      const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
      return {
        type: 'library',
        'bom-ref': `${purl}?path=${place}`,
        ...(name.startsWith('@') && { group: name.split('/')[0] }),
        name: name.split('/').at(-1),
        version,
        ...(sha512 && {
          hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512, 'base64').toString('hex') }],
        }),
        licenses: [licenseOf(license)],
        purl,
      };
    }),
  );
  components.sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
  const ref = component.purl ?? `${component.name}@${component.version}`;
  const source = repository && { externalReferences: [{ type: 'vcs', url: repository }] };
  const content = {
    metadata: {
      timestamp: created,
      lifecycles: [{ phase: 'build' }],
      component: { ...component, 'bom-ref': ref, ...source },
    },
    components,
    dependencies: [{ ref, dependsOn: components.map((each) => each['bom-ref']) }],
  };
  // RFC 9562, version 8: a UUID from the content.
  const id = sha256(JSON.stringify(content)).replace(
    /^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/,
    '$1-$2-8$3-a$4-$5',
  );
  const head = { bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber: `urn:uuid:${id}`, version: 1 };
  return asText({ $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json', ...head, ...content });
}

/** A license as CycloneDX takes it: an SPDX id, an SPDX expression, or a name. */
function licenseOf(license) {
  if (/ (?:OR|AND|WITH) /.test(license)) return { expression: license };
  return { license: /\s/.test(license) ? { name: license } : { id: license } };
}

/** @returns the files of the release by name. */
async function makeRelease(commit) {
  const { version, mtime, about } = commit;
  const { buildAll } = await import('./build.mjs');
  const contained = await buildAll(await import('esbuild'));
  const foldersOf = (houses) => houses.flatMap((house) => contained[house]);
  const { version: shakaPackager } = await readJson(`${SHAKA_PACKAGER}/package.json`);
  const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8');
  const release = new Map([[`changelog-${version}.md`, commit.news]]);
  const manifests = {};
  for (const [name, { houses, files }] of Object.entries(PACKAGES)) {
    manifests[name] = asText(manifestOf(name, commit, shakaPackager));
    const entries = await entriesAll([...files, ...houses.map((house) => `dist/${house}`)]);
    entries.push(['package.json', manifests[name]]);
    if (name === PLATFORM)
      entries.push(['README.md', PLATFORM_README], [TYPES, await typesOf('src/platform/testing/main.ts')]);
    const packed = entries.map(([path, data]) => [`package/${path}`, data]);
    release.set(`${name}-${version}.tgz`, archive(packed, mtime));
    const purl = `pkg:npm/${name}@${version}`;
    const component = { type: 'application', name, version, licenses: [licenseOf(about.license)], purl };
    release.set(`${name}-${version}.cdx.json`, await sbomOf(component, foldersOf(houses), commit));
  }
  for (const [image, { houses, packages = [] }] of Object.entries(IMAGES)) {
    const name = `image-${image}-${version}`;
    const entries = await contextOf(image, dockerfile, manifests[PRODUCT], commit);
    release.set(`${name}.tar.gz`, archive(entries, mtime));
    const component = { type: 'container', name: `packager-drm-${image}`, version };
    const sbom = await sbomOf(component, [...foldersOf(houses), ...packages], commit);
    release.set(`${name}.cdx.json`, sbom);
  }
  const sums = [...release].toSorted(byName).map(([name, data]) => `${sha256(data)}  ${name}\n`);
  return release.set('SHA256SUMS', sums.join(''));
}

try {
  await rm(OUT, { recursive: true, force: true });
  const release = await makeRelease(await readCommit());
  await mkdir(OUT, { recursive: true });
  for (const [name, data] of release) {
    await writeFile(join(OUT, name), data);
    process.stdout.write(`dist/release/${name}  ${Buffer.byteLength(data)} bytes\n`);
  }
} catch (thrown) {
  if (!(thrown instanceof Refused)) throw thrown;
  process.stderr.write(`No release is made: ${thrown.message}\n`);
  process.exitCode = 1;
}
