import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { bundledScript, runScript } from '../support/built-program';
import { until } from '../support/until';

const WRITER = bundledScript('audit-writer');
const KILLS = 5;

/** The request ids of the lines, in their order. A kill may have cut off the last line; half a line elsewhere is an error. */
function idsIn(text: string): number[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => Number(Reflect.get(Object(JSON.parse(line)), 'request_id')));
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

// Of a pipe, as many as it takes at once: what it has no room for ends with the process.
test.each([
  ['audit.log', 1000],
  ['stdout', 300],
])('writes every line of a process that ends without waiting for it, to %s', async (to, count) => {
  const cwd = await temporaryFolder();
  const { code, stdout, stderr } = await runScript(WRITER, { cwd, args: ['exit', to, String(count)] }).ended;
  const text = to === 'stdout' ? stdout : await fs.readFile(join(cwd, to), 'utf8');
  expect({ code, stderr, ids: idsIn(text) }).toEqual({ code: 0, stderr: '', ids: upTo(count) });
});

test('leaves no gap when the process is killed, and the next one begins a line of its own', async () => {
  for (let kill = 0; kill < KILLS; kill += 1) {
    const cwd = await temporaryFolder();
    const path = join(cwd, 'audit.log');
    const writer = runScript(WRITER, { cwd, args: ['forever', 'audit.log'] });
    const sizeOf = () => fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    await until(() => sizeOf() >= 200_000 * (kill + 1));
    writer.send('SIGKILL');
    expect(await writer.ended).toMatchObject({ signal: 'SIGKILL' });
    const left = await fs.readFile(path, 'utf8');
    const ids = idsIn(left);
    expect(ids).toEqual(upTo(ids.length));
    await fs.appendFile(path, 'half a li');
    await runScript(WRITER, { cwd, args: ['exit', 'audit.log'] }).ended;
    const added = (await fs.readFile(path, 'utf8')).slice(left.length);
    expect(added.startsWith('half a li\n')).toBe(true);
    expect(idsIn(added.slice(10))).toEqual(upTo(1000));
  }
});
