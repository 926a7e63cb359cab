import type { RequestListener } from 'node:http';
import { createApp, routeAt } from '../../http/app';
import { mountApiPage } from '../../http/page';
import type { EmulatorContext } from './context';
import { injectFaults, routesOf } from './control/faults';
import { keepJournal } from './control/journal';
import { mountDashboard } from './dashboard/dashboard';
import { mountDelivery } from './delivery/delivery';
import { mountEmbed } from './delivery/embed';
import { limitRate } from './rate-limit';
import { mountLibrary } from './resources/library';
import { setDateHeader } from './seeded-source';
import { mountUploads } from './uploads/upload-api';
import { mountClearKeyLicense } from './upstreams/clearkey-license';
import { mountConfigService } from './upstreams/config-service';
import { mountCpixProvider } from './upstreams/cpix-provider';
import { mountKeyProvider } from './upstreams/key-provider';
import { mountV1 } from './v1/v1-api';

/** Paths that probes, embeds, players and open dashboards request every few seconds. */
const QUIET_PATHS = ['/healthz', '/live', '/manifests', '/dashboard'];

export function createEmulatorApp(context: EmulatorContext): RequestListener {
  const platform = createApp({ ...context, quietPaths: QUIET_PATHS }, (app) => {
    setDateHeader(app, context);
    routeAt(app, '/healthz').get((_request, response) => void response.json({ status: 'ok' }));
    app.get('/', (_request, response) => response.redirect('/dashboard'));
    mountApiPage(app, { document: () => describe(context), publicFolder: context.publicFolder });
    const faultable = app.router.stack.length;
    app.use(keepJournal(app, context), injectFaults(context));
    // Delivery is under /v2 too, and its calls don't count.
    app.use(['/v2/sites', '/v2/webhooks', '/v2/query_usage'], limitRate(context));
    mountConfigService(app, context);
    mountKeyProvider(app, context);
    mountClearKeyLicense(app, context);
    mountLibrary(app, context);
    mountCpixProvider(app, context);
    mountUploads(app, context);
    mountV1(app, context);
    mountDelivery(app, context);
    mountEmbed(app, context);
    mountDashboard(app, context, (request, response) => platform(request, response));
    context.faults.routes = routesOf(app.router.stack.slice(faultable));
  });
  return platform;
}

/** None of it is loaded at the start: the description costs more than all routes together. */
async function describe({ seeds }: EmulatorContext): Promise<object> {
  const { servedDocument } = await import('./openapi/document');
  return servedDocument({ siteId: seeds.siteIds[0] ?? '', client: seeds.client.name });
}
