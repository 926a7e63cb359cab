import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import { kept } from './kept';
import type { Metrics } from './metrics';

export const METRICS_PATH = '/metrics';

/** In milliseconds: a scrape holds up everybody for two, and needs no key. */
const KEPT_MS = 1000;

/** `/metrics` in the text format of Prometheus. Without a key, like the probes: it tells of no stream and no caller. */
export function metricsRoutes(app: Express, metrics: Metrics, now: () => number): void {
  const scrape = kept(KEPT_MS, now, metrics.scrape);
  app
    .route(METRICS_PATH)
    .get(async (_request, response) => {
      const { contentType, text } = await scrape();
      // As bytes: of a string, Express would write its own idea of the content type.
      response.set({ 'content-type': contentType, 'cache-control': 'no-store' }).send(Buffer.from(text));
    })
    .all(onlyMethods('GET', 'HEAD'));
}
