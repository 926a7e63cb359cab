const { bundledPackages } = require('./test/bundled-packages');

const transform = {
  '^.+\\.ts$': [
    '@swc/jest',
    { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' } },
  ],
};

/** Tests below a folder, without those of projects of their own. */
const project = (displayName, folder, others = []) => ({
  displayName,
  transform,
  testMatch: [`<rootDir>/${folder}/**/*.test.ts`],
  testPathIgnorePatterns: ['/node_modules/', ...others.map((other) => `<rootDir>/${other}/`)],
});

module.exports = async () => {
  const moduleNameMapper = await bundledPackages();
  const projects = [
    project('unit', 'test', ['test/e2e', 'test/browser']),
    project('e2e', 'test/e2e'),
    { ...project('browser', 'test/browser'), setupFilesAfterEnv: ['<rootDir>/test/support/retry-once.ts'] },
  ];
  return { projects: projects.map((each) => ({ ...each, moduleNameMapper })) };
};
