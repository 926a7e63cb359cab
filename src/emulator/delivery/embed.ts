import { createHash } from 'node:crypto';
import type { Express } from 'express';
import type { HelmetOptions } from 'helmet';
import { onlyMethods } from '../../http/app';
import { html } from '../../http/html';
import { securityHeaders } from '../../http/shell';
import { originOf } from '../addresses';
import type { EmulatorContext } from '../context';
import { breakable } from '../dashboard/elements';
import { openToAll } from './delivery';

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

interface EmbedPage {
  /** Undefined when the address names no channel. */
  readonly channelId: string | undefined;
  readonly origin: string;
  /** Allows the page's own scripts and style, and nothing else. */
  readonly nonce: string;
  readonly style: string;
}

/** A page that does what a publisher's page does: loads the embed script and calls its setup function. */
function embedPage({ channelId, origin, nonce, style }: EmbedPage): string {
  const script = `${origin}/embed/channel.js`;
  const example = [
    '<div id="stage"></div>\n<script src="',
    html`<span>${breakable(script)}</span>`,
    `"></script>\n<script>channelEmbed.setup({ channelId: '${channelId ?? 'CHANNEL_ID'}', element: '#stage' })</script>`,
  ];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Channel ${channelId ?? 'embed'}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${style}</style>
</head>
<body>
<main>
<h1>Channel embed</h1>
${channelId === undefined ? form() : stage(channelId, nonce)}
<h2>On your own page</h2>
<pre><code>${example}</code></pre>
</main>
</body>
</html>
`.toString();
}

function form() {
  return html`<p>Shows a live channel as viewers see it.</p>
<form>
<label for="channel">Channel id</label>
<input id="channel" name="channelId" required autocomplete="off" spellcheck="false" placeholder="8 letters and digits">
<button>Show</button>
</form>`;
}

function stage(channelId: string, nonce: string) {
  return html`<p>Channel ${channelId}, as viewers see it.</p>
<div id="stage" data-channel="${channelId}"></div>
<p class="note">The emulator packages no media: its playlists are valid and empty, and a player stays without a picture.</p>
<script nonce="${nonce}" src="channel.js"></script>
<script nonce="${nonce}">channelEmbed.setup({ channelId: document.getElementById('stage').dataset.channel, element: '#stage' })</script>`;
}
