import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import type { EmulatorContext } from '../context';
import { authorizedClient } from './client-credential';
import { clientRecord } from './config-service-wire';

/** The configuration service: what an account's DRM settings are, its shared secret among them. */
export function mountConfigService(app: Express, { clients }: EmulatorContext): void {
  app
    .route('/config/v1/clients/:client')
    .get((request, response) => {
      const client = authorizedClient(clients, request.params.client, request.headers);
      response.set('cache-control', 'no-store').json(clientRecord(client));
    })
    .all(onlyMethods('GET'));
}
