import type { Express } from 'express';
import { onlyMethods } from '../../kernel/app';
import type { Metrics } from './metrics';

export const METRICS_PATH = '/metrics';

/** `/metrics` in the text format of Prometheus. Without a key, like the probes: it tells of no stream and no caller. */
export function metricsRoutes(app: Express, metrics: Metrics): void {
  app
    .route(METRICS_PATH)
    .get(async (_request, response) => {
      const { contentType, text } = await metrics.scrape();
      // As bytes: of a string, Express would write its own idea of the content type.
      response.set({ 'content-type': contentType, 'cache-control': 'no-store' }).send(Buffer.from(text));
    })
    .all(onlyMethods('GET', 'HEAD'));
}
