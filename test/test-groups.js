// Each test file that jest runs loads all that it uses, and runs it slowly for the first time: half the time of a small one.
// So `npm test` runs files that are next to each other as one.
const { mkdirSync, readdirSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const ROOT = join(__dirname, '..');
const GROUPS = join(ROOT, 'dist', 'test-groups');
/** About 15 files. */
const GROUP_BYTES = 100_000;

/** A file that replaces a module would do so for the whole group. */
const isAlone = (source) => /^jest\.mock\(/m.test(source);

/**
 * Writes a test file for each group of test files of a folder, without those below other folders.
 * @returns jest's `testMatch`: groups, and files that run alone.
 */
function testGroups(project, folder, others) {
  const files = readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((file) => file.endsWith('.test.ts') && !others.some((other) => file.startsWith(other)))
    .sort();
  const alone = [];
  const groups = [];
  let bytes = GROUP_BYTES;
  for (const file of files) {
    const source = readFileSync(join(ROOT, file), 'utf8');
    if (isAlone(source)) {
      alone.push(file);
      continue;
    }
    if (bytes >= GROUP_BYTES) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1).push(file);
    bytes += source.length;
  }
  mkdirSync(GROUPS, { recursive: true });
  const written = groups.map((group, index) => {
    const lines = group.map((file) => `describe('${file}', () => void require('../../${file}'));\n`);
    const name = `${project}-${index + 1}.test.js`;
    writeFileSync(join(GROUPS, name), lines.join(''));
    return `dist/test-groups/${name}`;
  });
  return [...written, ...alone].map((file) => `<rootDir>/${file}`);
}

module.exports = { testGroups };
