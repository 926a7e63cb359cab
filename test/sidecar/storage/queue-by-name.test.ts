import { queueByName } from '../../../src/sidecar/storage/key-file-store';

/** A task that ends when it is told to. */
function task(log: string[], name: string) {
  let end: (failed?: Error) => void = () => {};
  const ended = new Promise<string>((resolve, reject) => {
    end = (failed) => (failed ? reject(failed) : resolve(name));
  });
  const run = () => {
    log.push(name);
    return ended;
  };
  return { run, end: (failed?: Error) => end(failed) };
}

test('starts the tasks of one name one after another, in the order given', async () => {
  const inTurn = queueByName();
  const started: string[] = [];
  const [a, b, c] = [task(started, 'a'), task(started, 'b'), task(started, 'c')];
  const results = [a, b, c].map(({ run }) => inTurn('live', run));
  expect(started).toEqual(['a']);
  c.end();
  a.end();
  await results[0];
  await Promise.resolve();
  expect(started).toEqual(['a', 'b']);
  b.end();
  expect(await Promise.all(results)).toEqual(['a', 'b', 'c']);
  expect(started).toEqual(['a', 'b', 'c']);
});

test('lets a task that comes when the first has ended wait for the second', async () => {
  const inTurn = queueByName();
  const started: string[] = [];
  const [a, b, c] = [task(started, 'a'), task(started, 'b'), task(started, 'c')];
  const first = inTurn('live', a.run);
  const second = inTurn('live', b.run);
  a.end();
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  const third = inTurn('live', c.run);
  expect(started).toEqual(['a', 'b']);
  b.end();
  c.end();
  expect(await Promise.all([second, third])).toEqual(['b', 'c']);
});

test('starts tasks of different names at once', () => {
  const inTurn = queueByName();
  const started: string[] = [];
  void inTurn('live', task(started, 'a').run);
  void inTurn('other', task(started, 'b').run);
  expect(started).toEqual(['a', 'b']);
});

test('runs the next task after one that failed, and tells the failure to its caller alone', async () => {
  const inTurn = queueByName();
  const started: string[] = [];
  const [a, b] = [task(started, 'a'), task(started, 'b')];
  const results = Promise.allSettled([inTurn('live', a.run), inTurn('live', b.run)]);
  const failure = new Error('disk full');
  a.end(failure);
  b.end();
  expect(await results).toEqual([
    { status: 'rejected', reason: failure },
    { status: 'fulfilled', value: 'b' },
  ]);
});

test.each([
  ['ended well', async () => 'done'],
  ['failed', () => Promise.reject(new Error('disk full'))],
])('keeps nothing of names whose tasks have all %s', async (_how, run) => {
  const set = jest.spyOn(Map.prototype, 'set');
  const inTurn = queueByName();
  const names = Array.from({ length: 1000 }, (_, index) => `stream-${index}`);
  await Promise.allSettled(names.flatMap((name) => [inTurn(name, run), inTurn(name, run)]));
  const queues = set.mock.contexts.filter((_map, index) => set.mock.calls[index]?.[0] === 'stream-0');
  set.mockRestore();
  expect(queues.map((map) => (map as Map<string, unknown>).size)).toEqual([0, 0]);
});
