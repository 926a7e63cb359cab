import type { Express } from 'express';
import type { EmulatorContext } from '../context';
import { V1Error } from './errors';
import { mountCall, mountRest } from './v1-api';

const ROUTES = [{ route: '/v1/status' }, { route: '/v1/videos/list' }, { route: '/v1/accounts/tags/list' }];

/** Management API v1: every route of the mapping to v2. */
export function mountV1(app: Express, context: EmulatorContext): void {
  for (const { route } of ROUTES) {
    mountCall(app, context, route, () => {
      throw new V1Error('NotSupported', `${route} has no counterpart.`);
    });
  }
  mountRest(
    app,
    context,
    ROUTES.map(({ route }) => route),
  );
}
