import express from 'express';
import request from 'supertest';
import { createConnections } from '../../../src/http/connections';
import { createMetrics, type Scrape } from '../../../src/sidecar/observe/metrics';
import { metricsRoutes } from '../../../src/sidecar/observe/metrics-routes';

/** `/metrics` with scrapes that are counted, each ended by the test. */
function start() {
  const metrics = createMetrics({
    version: '1.2.3',
    audit: { lost: () => 0, waiting: () => 0 },
    connections: createConnections(),
  });
  const runs: { end(): void; fail(): void }[] = [];
  const time = { now: 0 };
  const scrape = () =>
    new Promise<Scrape>((resolve, reject) => {
      const text = `run ${runs.length + 1}\n`;
      runs.push({
        end: () => resolve({ contentType: 'text/plain; version=0.0.4', text }),
        fail: () => reject(new Error('out of luck')),
      });
    });
  const app = express();
  metricsRoutes(app, { ...metrics, scrape }, () => time.now);
  app.use(((_error, _request, response, _next) => {
    response.status(500).send('failed\n');
  }) satisfies express.ErrorRequestHandler);
  const ask = () =>
    request(app)
      .get('/metrics')
      .then(({ text }) => text);
  /** Asks, and ends the run that this begins. */
  const askAnew = async (how: 'end' | 'fail' = 'end') => {
    const before = runs.length;
    const answer = ask();
    while (runs.length === before) await new Promise((resolve) => setImmediate(resolve));
    runs[before]?.[how]();
    return answer;
  };
  return { ask, askAnew, runs, time };
}

test('runs once for scrapes that come together', async () => {
  const { ask, runs } = start();
  const answers = Promise.all(Array.from({ length: 20 }, ask));
  while (runs.length === 0) await new Promise((resolve) => setImmediate(resolve));
  runs[0]?.end();
  expect(await answers).toEqual(Array.from({ length: 20 }, () => 'run 1\n'));
  expect(runs).toHaveLength(1);
});

test('answers the same for a second, and anew after it', async () => {
  const { ask, askAnew, time } = start();
  expect(await askAnew()).toBe('run 1\n');
  time.now = 999;
  expect(await ask()).toBe('run 1\n');
  time.now = 1000;
  expect(await askAnew()).toBe('run 2\n');
});

test('keeps no failure', async () => {
  const { askAnew } = start();
  expect([await askAnew('fail'), await askAnew()]).toEqual(['failed\n', 'run 2\n']);
});
