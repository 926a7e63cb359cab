import { createServer } from 'node:net';
import { freePort, Programs } from '../../../src/platform/demo/child-program';

const HANGS = 'setInterval(() => {}, 1000); console.log(process.pid);';

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('passes over a port that another of its programs was promised', async () => {
  const port = await freePort(20_000);
  expect(await freePort(port, new Set([port, port + 1]))).toBeGreaterThan(port + 1);
});

test('passes over a port that is taken', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as { port: number };
  try {
    expect(await freePort(port)).toBeGreaterThan(port);
  } finally {
    await new Promise((resolve) => taken.close(resolve));
  }
});

test('answers what a program wrote and how it ended, without the variables of this process', async () => {
  const programs = new Programs();
  const script = 'console.log(JSON.stringify(process.env)); console.error("no"); process.exitCode = 3;';
  const program = programs.start({ name: 'test', args: ['-e', script], variables: { ONE: '1' } });
  const { code, out, err } = await program.result;
  expect({ code, err, env: JSON.parse(out) }).toEqual({
    code: 3,
    err: 'no\n',
    env: expect.objectContaining({ ONE: '1' }),
  });
  expect(JSON.parse(out)).not.toHaveProperty('PATH');
  expect(await program.ended).toMatch(/^The test ended with exit code 3\. Its last lines:\n/);
});

test('hands on each line that a program writes', async () => {
  const lines: string[] = [];
  const script = 'process.stdout.write("one\\ntw"); process.stdout.write("o\\n");';
  const start = {
    name: 'test',
    args: ['-e', script],
    variables: {},
    onLine: (line: string) => lines.push(line),
  };
  await new Programs().start(start).ended;
  expect(lines).toEqual(['one', 'two']);
});

test('tells a program that is not there', async () => {
  const start = { name: 'encoder', command: '/nowhere/ffmpeg', args: [], variables: {} };
  expect(await new Programs().start(start).ended).toMatch(/^The encoder can't be started: .*ENOENT/);
});

test('leaves no program running, and starts none, once it is told to stop', async () => {
  const programs = new Programs();
  const started = [0, 1].map(() => programs.start({ name: 'test', args: ['-e', HANGS], variables: {} }));
  const stopped = programs.stop();
  expect(programs.isOver).toBe(true);
  expect(() => programs.start({ name: 'late one', args: ['-e', HANGS], variables: {} })).toThrow(
    'The late one is not started: the demo ends.',
  );
  await stopped;
  const results = await Promise.all(started.map(({ result }) => result));
  for (const { out } of results) expect(out !== '' && isRunning(Number(out))).toBe(false);
  expect(await Promise.all(started.map(({ ended }) => ended))).toEqual([
    expect.stringContaining('The test ended with SIGTERM'),
    expect.stringContaining('The test ended with SIGTERM'),
  ]);
});
