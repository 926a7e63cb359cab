// Jest loads every package again for each test file, one small file after the other: express alone has a hundred. As one
// file each they load in a third less time, over all test files.
const { createHash } = require('node:crypto');
const { existsSync, mkdirSync, renameSync, rmSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { build, version } = require('esbuild');

const ROOT = join(__dirname, '..');
const CACHE = join(ROOT, 'node_modules', '.cache', 'bundled-packages');

/** The packages of many files that many test files load. */
const PACKAGES = [
  '@fastify/busboy',
  'ajv',
  'commander',
  'express',
  'express-rate-limit',
  'fast-check',
  'fast-xml-builder',
  'fs-extra',
  'helmet',
  'https-proxy-agent',
  'jsonwebtoken',
  'mime-types',
  'prom-client',
  '@peculiar/x509',
  'sax',
  'supertest',
  'type-is',
  'winston',
  'yaml',
  'zod',
];

const fileOf = (name) => `${name.replace('/', '__')}.js`;

/** Bundles them, once for each set of versions, and answers jest's `moduleNameMapper` for them. */
async function bundledPackages() {
  const versions = PACKAGES.map((name) => require(join(ROOT, 'node_modules', name, 'package.json')).version);
  const key = createHash('sha256').update(JSON.stringify([PACKAGES, versions, version]));
  const folder = join(CACHE, key.digest('hex').slice(0, 16));
  if (!existsSync(folder)) await bundle(folder);
  return Object.fromEntries(PACKAGES.map((name) => [`^${name}$`, join(folder, fileOf(name))]));
}

/** Large parts that no test reaches: zod's messages in other languages, and character sets other than UTF-8. */
const leftOut = {
  name: 'left-out',
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.c?js$/ }, ({ path }) => ({
      contents: `exports.en = require('./en.cjs').default;`,
      resolveDir: dirname(path),
    }));
    onResolve({ filter: /^\.\/tables\// }, ({ path, resolveDir }) => ({
      path: require.resolve(path, { paths: [resolveDir] }),
      external: true,
    }));
  },
};

async function bundle(folder) {
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  await build({
    absWorkingDir: ROOT,
    entryPoints: PACKAGES.map((name) => ({ in: require.resolve(name), out: fileOf(name).slice(0, -3) })),
    outdir: unfinished,
    bundle: true,
    platform: 'node',
    // Each once in a test file.
    external: PACKAGES,
    // To parse them is most of the time.
    minifySyntax: true,
    minifyWhitespace: true,
    plugins: [leftOut],
    logLevel: 'error',
  });
  try {
    renameSync(unfinished, folder);
  } catch (thrown) {
    // Another run was faster.
    rmSync(unfinished, { recursive: true });
    if (!existsSync(folder)) throw thrown;
  }
}

module.exports = { bundledPackages };
