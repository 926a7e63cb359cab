import * as prometheus from 'prom-client';
import { Registry } from 'prom-client';
import { defineProcessMetrics } from '../../../src/sidecar/observe/process-metrics';

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setTimeout', 'performance', 'hrtime'] });
});

afterEach(() => {
  jest.useRealTimers();
});

test('tells every scraper the same event loop lag, that of the last full 15 seconds', async () => {
  const registry = new Registry();
  defineProcessMetrics(prometheus, registry);
  const lag = async () =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('nodejs_eventloop_lag_'));
  expect(new Set((await lag()).map((line) => line.split(' ')[1]))).toEqual(new Set(['0']));
  await new Promise((resolve) => setTimeout(resolve, 100));
  jest.advanceTimersByTime(15_000);
  const first = await lag();
  expect(first).toEqual(
    expect.arrayContaining([expect.stringMatching(/^nodejs_eventloop_lag_p99_seconds 0\.\d+$/)]),
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await lag()).toEqual(first);
});

test('tells the same metrics as the client library, but for a lag of the scrape itself', async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  defineProcessMetrics(prometheus, ours);
  prometheus.collectDefaultMetrics({ register: theirs });
  const namesOf = (registry: Registry) => registry.getMetricsAsArray().map(({ name }) => name);
  expect(namesOf(ours).sort()).toEqual(
    namesOf(theirs)
      .filter((name) => name !== 'nodejs_eventloop_lag_seconds')
      .sort(),
  );
});
