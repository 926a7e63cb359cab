// Builds the programs into `dist`: one file each, with the packages that it uses, and one for each part that it imports
// when it is needed (`await import()`); maps of the source next to them.
//
//   node build.mjs             bundles everything that runs without node_modules
//   node build.mjs --or-keep   the same, for `npm start`: where esbuild isn't installed (behind `npm prune --omit=dev`),
//                                  the existing build is used
//   node build.mjs --bench     bundles what `npm run bench` and `npm run attacks` start, next to node_modules
import { existsSync, realpathSync } from 'node:fs';
import { chmod, copyFile, cp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('.', import.meta.url));

const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const OLDEST = engines.node.slice('>='.length);
const rankOf = (version) => version.split('.').reduce((rank, part) => rank * 1000 + Number(part), 0);

/** The programs of each house. The tester of streams for another program is next to it, and so is the library for tests. */
const PROGRAMS = {
  sidecar: ['main', 'health-check'],
  cli: ['main', 'stream-test'],
  migration: ['main'],
  emulator: ['main', 'stream-test', 'testing'],
  packager: ['main'],
  demo: ['main'],
};

/** The houses of the workshop, below `src/platform`. */
const PLATFORM = ['migration', 'emulator', 'packager', 'demo'];
const FROM_OTHERS = { 'stream-test': 'src/verify/main.ts', testing: 'src/platform/testing/main.ts' };
const sourceOf = (house) => (PLATFORM.includes(house) ? `src/platform/${house}` : `src/${house}`);

/** The pages that the sidecar and the emulator share. */
const SHARED_PAGES = 'src/http/public';
const FOR_SHARED_PAGES = [
  {
    package: 'swagger-ui-dist',
    files: ['swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt', 'swagger-ui.css'],
  },
  { package: '@knadh/oat', files: ['oat.min.css'] },
];

/** The houses with pages, and the files of packages that they load. All go to `dist/<house>/public` as they are. */
const LOADED = {
  sidecar: FOR_SHARED_PAGES,
  emulator: [
    ...FOR_SHARED_PAGES,
    { package: 'shaka-player', from: 'dist', files: ['shaka-player.compiled.js'] },
  ],
};
/** The files next to a program, by house: `npm run demo` packages its test clip. */
const BESIDE = { demo: ['clip.mp4'] };

/** The programs for `npm run bench` and `npm run attacks`. */
const BENCH = ['run', 'durable-loop', 'servers/*', 'attacks'];

const OPTIONS = {
  absWorkingDir: ROOT,
  platform: 'node',
  target: 'node20',
  // winston loads packages for colours otherwise, and so starts 9 ms later.
  // With DEBUG=* in the environment, packages would write to standard error, the password of a proxy among it.
  define: { 'process.env.NODE_ENV': '"production"', 'process.env.DEBUG': 'undefined' },
  logOverride: { 'assign-to-define': 'silent' },
  sourcemap: 'linked',
  sourcesContent: false,
  logLevel: 'warning',
};

/** Where a house is built: a build that ends in the middle leaves the former one, and two at once do no harm. */
const unfinishedOf = (house) => join(ROOT, 'dist', `${house}.${process.pid}`);

/** Builds the programs of a house, and returns the folders of the packages that are in them. */
async function buildHouse(esbuild, house) {
  const folder = unfinishedOf(house);
  const { metafile } = await esbuild.build({
    ...OPTIONS,
    bundle: true,
    // It splits ES modules alone, and CommonJS starts sooner; so it reads its own output once more.
    format: 'esm',
    splitting: true,
    entryPoints: PROGRAMS[house].map((program) => ({
      in: FROM_OTHERS[program] ?? `${sourceOf(house)}/${program}.ts`,
      out: program,
    })),
    outdir: folder,
    legalComments: 'eof',
    // JSON of packages is read when it is needed: tables of encodings never are.
    loader: { '.json': 'copy' },
    metafile: true,
  });
  await esbuild.build({
    ...OPTIONS,
    format: 'cjs',
    entryPoints: Object.keys(metafile.outputs).filter((path) => path.endsWith('.js')),
    outdir: folder,
    allowOverwrite: true,
    // npm only warns of an old Node, a unit may name another one, and a program would end with a TypeError.
    banner: {
      js: `"use strict";if((${rankOf})(process.versions.node)<${rankOf(OLDEST)}){throw Error(\`Node ${OLDEST} or newer is needed; this is \${process.versions.node}.\`)}`,
    },
    // Node reads less at each start. Names, and lines, stay for those who read stack traces.
    ...{ minifySyntax: true, minifyWhitespace: true, lineLimit: 120 },
    // import() of a file by require(): Node's own would give its default export another shape.
    supported: { 'dynamic-import': false },
  });
  const packages = packagesIn(metafile);
  const target = join(folder, 'public');
  if (LOADED[house]) await cp(join(ROOT, SHARED_PAGES), target, { recursive: true });
  for (const loaded of LOADED[house] ?? []) {
    const served = join('node_modules', loaded.package);
    for (const file of loaded.files)
      await copyFile(join(ROOT, served, loaded.from ?? '', file), join(target, file));
    packages.push(served);
  }
  for (const file of BESIDE[house] ?? [])
    await copyFile(join(ROOT, sourceOf(house), file), join(folder, file));
  const source = join(ROOT, sourceOf(house), 'public');
  if (existsSync(source)) await cp(source, target, { recursive: true });
  const contained = [...new Set(packages)].sort();
  await writeFile(join(folder, 'THIRD-PARTY.txt'), await licensesOf(contained));
  // npm makes programs of them, and so may a link.
  await chmod(join(folder, 'main.js'), 0o755);
  return contained;
}

/** Builds all programs. @returns by house, the folders of the packages that are in its files. */
export async function buildAll(esbuild) {
  const houses = Object.keys(PROGRAMS);
  const built = await Promise.all(houses.map((house) => buildHouse(esbuild, house)));
  for (const house of houses) {
    const folder = join(ROOT, 'dist', house);
    await rm(folder, { recursive: true, force: true });
    await rename(unfinishedOf(house), folder);
  }
  return Object.fromEntries(houses.map((house, index) => [house, built[index]]));
}

/** The folders of the packages that are in the bundles. */
function packagesIn({ outputs }) {
  const files = Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
  );
  return files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []);
}

/** Name, version and license of each package, for users of the bundle without node_modules. */
async function licensesOf(packages) {
  const texts = packages.map(async (folder) => {
    const path = join(ROOT, folder);
    const { name, version, license, author } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8'));
    const files = (await readdir(path)).filter((each) => /^(?:licen[cs]e|copying|notice)/i.test(each));
    const read = files.sort().map(async (file) => `\n${(await readFile(join(path, file), 'utf8')).trim()}\n`);
    const text = (await Promise.all(read)).join('') || `\nBy ${author?.name ?? author}\n`;
    return `${name} ${version} (${license})\n${text}`;
  });
  return (await Promise.all(texts)).join(`\n${'-'.repeat(80)}\n\n`);
}

function buildBench(esbuild) {
  return esbuild.build({
    ...OPTIONS,
    bundle: true,
    format: 'cjs',
    entryPoints: BENCH.map((program) => `bench/${program}.ts`),
    outbase: 'bench',
    outdir: 'dist/bench',
    // The servers to compare with are started as anyone would start them.
    packages: 'external',
  });
}

async function main(option) {
  const esbuild = await import('esbuild').catch(() => undefined);
  if (rankOf(process.versions.node) < rankOf(OLDEST)) {
    process.stderr.write(`Node ${OLDEST} or newer is needed; this is ${process.versions.node}.\n`);
    process.exitCode = 1;
  } else if (esbuild && option === '--bench') {
    await buildBench(esbuild);
  } else if (esbuild) {
    await buildAll(esbuild);
  } else if (option !== '--or-keep' || !isBuilt()) {
    process.stderr.write(
      'Nothing is built yet, and esbuild, which builds it, is not installed.\n' +
        'Run: npm ci && npm run build\n' +
        'After that, npm prune --omit=dev may take esbuild away again.\n',
    );
    process.exitCode = 1;
  }
}

const isBuilt = () => ['sidecar', 'cli'].every((house) => existsSync(join(ROOT, 'dist', house, 'main.js')));

// The release imports this file.
if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    await main(process.argv[2]);
  } catch (thrown) {
    // esbuild has reported its own errors.
    if (!Array.isArray(Reflect.get(Object(thrown), 'errors'))) throw thrown;
    process.exitCode = 1;
  }
}
