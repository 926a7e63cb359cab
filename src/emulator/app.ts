import type { Express } from 'express';
import { createApp, onlyMethods } from '../kernel/app';
import type { EmulatorContext } from './context';
import { mountClearKeyLicense } from './upstreams/clearkey-license';
import { mountConfigService } from './upstreams/config-service';
import { mountKeyProvider } from './upstreams/key-provider';

/** The platform port: every part of the emulator that is reached over HTTP. */
export function createEmulatorApp(context: EmulatorContext): Express {
  return createApp({ ...context, quietPaths: ['/healthz'] }, (app) => {
    app
      .route('/healthz')
      .get((_request, response) => void response.json({ status: 'ok' }))
      .all(onlyMethods('GET'));
    mountConfigService(app, context);
    mountKeyProvider(app, context);
    mountClearKeyLicense(app, context);
  });
}
