import { cached } from '../../src/http/cached';

/** Something that is run once a second at most; each run is ended by the test. */
function start() {
  const time = { now: 0 };
  const runs: { end(): void; fail(): void }[] = [];
  const ask = cached(
    1000,
    () => time.now,
    () => {
      const run = runs.length + 1;
      return new Promise<number>((resolve, reject) => {
        runs.push({ end: () => resolve(run), fail: () => reject(new Error(`run ${run} failed`)) });
      });
    },
  );
  return { ask, runs, time };
}

test('runs once for all who ask while it is under way, however long that takes', async () => {
  const { ask, runs, time } = start();
  const asked = [ask(), ask()];
  time.now = 5000;
  asked.push(ask());
  runs[0]?.end();
  expect(await Promise.all(asked)).toEqual([1, 1, 1]);
  expect(runs).toHaveLength(1);
});

test('answers the same until its time is over, counted from the start of the run, and runs again after it', async () => {
  const { ask, runs, time } = start();
  const first = ask();
  time.now = 999;
  runs[0]?.end();
  expect([await first, await ask()]).toEqual([1, 1]);
  time.now = 1000;
  const next = ask();
  expect(runs).toHaveLength(2);
  runs[1]?.end();
  expect(await next).toBe(2);
});

test('reports a failure to all who share it, and starts again after it', async () => {
  const { ask, runs } = start();
  const asked = [ask(), ask()];
  runs[0]?.fail();
  const failure = { status: 'rejected', reason: new Error('run 1 failed') };
  expect(await Promise.allSettled(asked)).toEqual([failure, failure]);
  const next = ask();
  runs[1]?.end();
  expect(await next).toBe(2);
});
