import type { Express } from 'express';
import request from 'supertest';
import { createApp } from '../../src/http/app';
import { createConnections } from '../../src/http/connections';
import {
  createMetrics,
  METRICS_PATH,
  type MetricsOptions,
  metricsRoutes,
} from '../../src/sidecar/observe/metrics';
import { recordedLog } from './recorded-log';
import { serve } from './serve';

/** Starts a small app whose requests are observed; each request takes the next of these milliseconds, over and over. */
export async function startObserved(
  durations: readonly number[] = [1],
  observeProcess?: MetricsOptions['observeProcess'],
) {
  const audit = { lost: () => 3, waiting: () => 5 };
  const connections = createConnections();
  const metrics = createMetrics({ version: '1.2.3', audit, connections, observeProcess });
  let asked = 0;
  let clock = 0;
  let scrapes = 0;
  const now = () => {
    // The first question of a request is its start, the second its end; they come in turn here.
    if (asked % 2 === 1) clock += durations[((asked - 1) / 2) % durations.length] ?? 0;
    asked += 1;
    return clock;
  };
  const shell = {
    log: recordedLog().log,
    newId: () => 'id',
    now,
    observe: metrics.request,
    onError: metrics.failed,
  };
  const app = createApp(shell, (routes: Express) => {
    routes.get('/api/keyfile/:streamid', (_request, response) => void response.send('name: value\n'));
    metricsRoutes(routes, metrics, () => {
      // No scrape is kept from one to the next.
      scrapes += 1;
      return scrapes * 1000;
    });
  });
  const { url, port } = await serve(app);
  const client = request(url);
  /** The series of `/metrics` that are ours, without those of the scrapes themselves: `name{labels}` and value. */
  const series = async () => {
    const { text } = await client.get(METRICS_PATH);
    return seriesOf(text);
  };
  return { metrics, client, port, series };
}

/** The series of a scrape that are the sidecar's own, without buckets and the scrapes themselves. */
export function seriesOf(text: string): Record<string, number> {
  const found = text
    .split('\n')
    .filter((line) => line.startsWith('packagerdrmapi_'))
    .filter((line) => !/_bucket|route="\/metrics"|_build_info/.test(line))
    .map((line) => line.split(/ (?=[^ ]+$)/));
  return Object.fromEntries(found.map(([name, value]) => [name, Number(value)]));
}
