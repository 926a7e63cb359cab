import { createHash } from 'node:crypto';
import type { Express } from 'express';
import type { HelmetOptions } from 'helmet';
import { onlyMethods } from '../../http/app';
import { securityHeaders } from '../../http/security-headers';
import type { EmulatorContext } from '../context';
import { originOf } from '../origin';
import { embedPage } from './embed-page';
import { openToAll } from './open-to-all';

/** An hour: long enough for a page with many visits, short enough for a new version to arrive the same day. */
const SCRIPT_SECONDS = 3600;

/** The channel embed: its script, which any page may load, and a page that shows it at work. */
export function mountEmbed(app: Express, { newId, assets }: EmulatorContext): void {
  const { embedScript, embedStyle } = assets;
  const etag = `"${createHash('sha256').update(embedScript).digest('base64url')}"`;
  app.use('/embed', openToAll);

  app
    .route('/embed/channel.js')
    .get((_request, response) => {
      // Express answers 304 by itself to who has this version already.
      response.set({ etag, 'cache-control': `public, max-age=${SCRIPT_SECONDS}` });
      response.type('text/javascript').send(embedScript);
    })
    .all(onlyMethods('GET'));

  app
    .route('/embed/channel.html')
    .get((request, response) => {
      const { channelId } = request.query;
      const nonce = newId();
      const page = embedPage({
        channelId: typeof channelId === 'string' && channelId !== '' ? channelId : undefined,
        origin: originOf(request),
        nonce,
        style: embedStyle,
      });
      response.removeHeader('x-frame-options');
      response.set(Object.fromEntries(securityHeaders(pageOptions(nonce))));
      response.set('cache-control', 'no-store').type('html').send(page);
    })
    .all(onlyMethods('GET'));
}

/** The page may hold its own scripts and style, talk to delivery, and be framed by anybody: it knows no secret. */
function pageOptions(nonce: string): HelmetOptions {
  const own = [`'nonce-${nonce}'`];
  const directives = {
    defaultSrc: ["'none'"],
    baseUri: ["'none'"],
    connectSrc: ["'self'"],
    formAction: ["'self'"],
    frameAncestors: ['*'],
    imgSrc: ["'self'", 'data:'],
    mediaSrc: ["'self'", 'blob:'],
    scriptSrc: own,
    styleSrc: own,
  };
  return {
    contentSecurityPolicy: { useDefaults: false, directives },
    crossOriginResourcePolicy: { policy: 'cross-origin' },
    strictTransportSecurity: false,
    xFrameOptions: false,
  };
}
