import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import type { EmulatorContext } from '../context';
import { renderState } from './snapshot-wire';

/** What there is and what was delivered, and the way back to the start. */
export function mountSnapshot(app: Express, context: EmulatorContext): void {
  app
    .route('/state')
    .get((request, response) => {
      const reveal = request.query.reveal === 'true';
      response.set('cache-control', 'no-store').json(renderState(context, reveal));
    })
    .all(onlyMethods('GET'));

  app
    .route('/deliveries')
    .get((_request, response) => void response.json({ deliveries: context.webhooks.deliveries() }))
    .all(onlyMethods('GET'));

  app
    .route('/reset')
    .post((_request, response) => {
      context.reset();
      response.status(204).end();
    })
    .all(onlyMethods('POST'));
}
