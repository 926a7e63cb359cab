import { execFile, execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');
const SECONDS = '3';

jest.setTimeout(240_000);

test('serves clients with a key and probes, keeps its memory and stops in time under attack', async () => {
  execFileSync(process.execPath, ['build.mjs', '--bench'], { cwd: ROOT });
  const output = await new Promise<string>((done) => {
    execFile(process.execPath, ['dist/bench/attacks.js', SECONDS], { cwd: ROOT }, (_error, stdout) =>
      done(stdout),
    );
  });
  const rows = output.split('\n').filter((line) => / (?:holds|DOES NOT HOLD) \|$/.test(line));
  expect(rows).toHaveLength(7);
  expect(rows.filter((line) => !line.endsWith('| holds |'))).toEqual([]);
});
