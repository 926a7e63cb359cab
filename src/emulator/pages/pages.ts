import type { Express } from 'express';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import { refuseWebhooks } from '../webhooks/webhook-agent';
import { mountAssets } from './assets';
import { mountChannelPages } from './channel-pages';
import { mountClientsPage } from './clients-page';
import { mountCredentialPages } from './credential-pages';
import { showError } from './error-page';
import { mountEventsPage } from './events-page';
import { mountOverviewPage } from './overview-page';
import { pageHeaders, refuseOtherHosts, refuseOtherSites } from './page-guards';
import { mountWebhookPages } from './webhook-pages';

/** The dashboard: pages for the people who develop against the platform. Who reaches them administers the account. */
export function mountPages(app: Express, context: EmulatorContext): void {
  app.use('/dashboard', pageHeaders, refuseOtherHosts(context.seeds.host), refuseOtherSites, refuseWebhooks);
  mountAssets(app, context.assets);
  mountOverviewPage(app, context);
  mountChannelPages(app, context);
  mountEventsPage(app, context);
  mountWebhookPages(app, context);
  mountCredentialPages(app, context);
  mountClientsPage(app, context);
  app.use('/dashboard', () => {
    throw new HttpError(404, { code: 'not_found', description: 'The dashboard has no such page.' });
  });
  app.use('/dashboard', showError(context.log));
}
