// Before `npm start` and `npm pack`: builds where TypeScript is installed, and else takes what is built.
const { spawnSync } = require('node:child_process');
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '..');
const isBuilt = ['sidecar', 'cli'].every((program) => existsSync(join(root, 'dist', program, 'main.js')));

if (existsSync(join(root, 'node_modules', 'typescript'))) {
  const build = spawnSync('npm run --silent build', { cwd: root, shell: true, stdio: 'inherit' });
  process.exitCode = build.status ?? 1;
} else if (!isBuilt) {
  process.stderr.write(
    'Nothing is built yet, and TypeScript, which builds it, is not installed.\n' +
      'Run: npm ci && npm run build\n' +
      'After that, npm prune --omit=dev may take TypeScript away again.\n',
  );
  process.exitCode = 1;
}
