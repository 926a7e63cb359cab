// The tests expect the files of a usual umask, whatever the user's is.
process.umask(0o022);

const { bundledPackages } = require('./test/bundled-packages');
const { testGroups } = require('./test/test-groups');

const transform = {
  '^.+\\.ts$': [
    '@swc/jest',
    { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' } },
  ],
};

// A test file runs in a context of its own, where each use of a global takes 0.3 µs, and that of a parameter nothing.
// No file that is loaded may declare one of these names at its top, as @lezer/php does Boolean.
const sandboxInjectedGlobals = [
  'Array ArrayBuffer BigInt Buffer DataView Error JSON Map Math Number Object Promise Proxy RangeError',
  'Reflect RegExp Set String Symbol TypeError Uint8Array Uint32Array WeakMap WeakSet',
  'decodeURIComponent encodeURIComponent',
].flatMap((names) => names.split(' '));

/** Tests below a folder, without those of projects of their own. */
const project = (displayName, folder, others = []) => ({
  displayName,
  transform,
  sandboxInjectedGlobals,
  testMatch: [`<rootDir>/${folder}/**/*.test.ts`],
  testPathIgnorePatterns: ['/node_modules/', ...others.map((other) => `<rootDir>/${other}`)],
});

// One of each kind, which `npm test` runs: start, provision, stop, kill, emulator.
const FIRST_FLOWS = ['start', 'provision', 'stop', 'crash', 'emulator'].map(
  (name) => `test/e2e/${name}.test.ts`,
);

// It measures how long clients wait, so nothing else may run.
const ATTACKS = 'test/e2e/attacks.test.ts';

// It builds twice, which nothing waits for.
const RELEASE = 'test/e2e/release.test.ts';

// What waits for pictures most of the time, in a browser of its own each.
const PICTURES = ['live-chain', 'packager-live', 'chain-keys', 'conversions', 'embed', 'embed-media'].map(
  (name) => `test/browser/${name}.test.ts`,
);

/** The same; with TEST_GROUPS in the environment, files next to each other as one. */
const grouped = (displayName, folder, others) => ({
  ...project(displayName, folder, others),
  ...(process.env.TEST_GROUPS && { testMatch: testGroups(displayName, folder, others) }),
});

module.exports = async () => {
  const moduleNameMapper = await bundledPackages();
  const projects = [
    grouped('product', 'test', ['test/platform/', 'test/e2e/', 'test/browser/', 'test/fleet/']),
    grouped('platform', 'test/platform', []),
    { ...project('flows', 'test/e2e'), testMatch: FIRST_FLOWS.map((file) => `<rootDir>/${file}`) },
    project('e2e', 'test/e2e', [...FIRST_FLOWS, ATTACKS, RELEASE]),
    { ...project('attacks', 'test/e2e'), testMatch: [`<rootDir>/${ATTACKS}`] },
    { ...project('release', 'test/e2e'), testMatch: [`<rootDir>/${RELEASE}`] },
    project('fleet', 'test/fleet'),
    { ...project('pictures', 'test/browser'), testMatch: PICTURES.map((file) => `<rootDir>/${file}`) },
    project('pages', 'test/browser', PICTURES),
  ];
  const setupFilesAfterEnv = ['<rootDir>/test/support/after-test.ts'];
  if (process.env.RETRY_ONCE) setupFilesAfterEnv.push('<rootDir>/test/support/retry-once.ts');
  return { projects: projects.map((each) => ({ ...each, moduleNameMapper, setupFilesAfterEnv })) };
};
