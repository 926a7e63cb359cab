import type { RequestListener } from 'node:http';
import { createApp, onlyMethods } from '../../http/app';
import type { EmulatorContext } from '../context';
import { refuseWebhooks } from '../webhooks/webhook-agent';
import { mountCredentials } from './credential-routes';
import { mountEncoder } from './encoder-routes';
import { refusePages } from './refuse-pages';
import { mountSnapshot } from './snapshot-routes';
import { mountSwitches } from './switch-routes';

/** The control port: what only tests and developers may do. It is an app of its own, on a port of its own. */
export function createControlApp(context: EmulatorContext): RequestListener {
  return createApp({ ...context, quietPaths: ['/healthz'] }, (app) => {
    app
      .route('/healthz')
      .get((_request, response) => void response.json({ status: 'ok' }))
      .all(onlyMethods('GET'));
    app.use(refusePages, refuseWebhooks);
    mountEncoder(app, context);
    mountSwitches(app, context);
    mountCredentials(app, context);
    mountSnapshot(app, context);
  });
}
