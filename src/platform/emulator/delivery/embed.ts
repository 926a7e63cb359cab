import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Express } from 'express';
import helmet, { type HelmetOptions } from 'helmet';
import { onlyMethods } from '../../../http/app';
import { etagOf } from '../../../http/etag';
import { html } from '../../../http/html';
import { originOf } from '../addresses';
import type { EmulatorContext } from '../context';
import { breakable } from '../dashboard/elements';
import { once } from '../resources/resource-calls';
import { openToAll } from './answers';

/** An hour: long enough for a page with many visits, short enough for a new version to arrive the same day. */
const SCRIPT_SECONDS = 3600;
/** A package's file changes with a new version of the package alone. */
const PACKAGE_SECONDS = 7 * 86_400;

/** What pages of any origin load, and what shows it at work: a page for a channel, and one for a media. */
export function mountEmbed(app: Express, context: EmulatorContext): void {
  const { newId, assets } = context;
  const { embedStyle: style } = assets;
  app.use('/embed', openToAll);

  serveScript(
    app,
    '/embed/channel.js',
    SCRIPT_SECONDS,
    once(() => Buffer.from(assets.embedScript)),
  );
  serveScript(
    app,
    '/embed/player.js',
    SCRIPT_SECONDS,
    once(() => Buffer.from(assets.embedPlayer)),
  );
  serveScript(
    app,
    '/embed/page.js',
    SCRIPT_SECONDS,
    once(() => Buffer.from(assets.embedPageScript)),
  );
  const shakaPlayer = join(assets.folder, 'shaka-player.compiled.js');
  serveScript(
    app,
    '/embed/shaka-player.js',
    PACKAGE_SECONDS,
    once(() => readFileSync(shakaPlayer)),
  );

  for (const page of [CHANNEL_PAGE, MEDIA_PAGE]) {
    app
      .route(page.path)
      .get((request, response) => {
        const nonce = newId();
        const asked = (name: string) => {
          const value = request.query[name];
          return typeof value === 'string' && value !== '' ? value : undefined;
        };
        const shown = page.read(asked, originOf(request));
        response.removeHeader('x-frame-options');
        helmet(pageOptions(nonce))(request, response, () => undefined);
        response
          .set('cache-control', 'no-store')
          .type('html')
          .send(embedPage({ page, shown, format: asked('format'), origin: originOf(request), nonce, style }));
      })
      .all(onlyMethods('GET'));
  }
}

function serveScript(app: Express, path: string, seconds: number, read: () => Buffer): void {
  const tagged = once(() => ({ bytes: read(), etag: etagOf(read()) }));
  app
    .route(path)
    .get((_request, response) => {
      const { bytes, etag } = tagged();
      // Express answers 304 by itself to who has this version already.
      response.set({ etag, 'cache-control': `public, max-age=${seconds}` });
      response.type('text/javascript').send(bytes);
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

/** What a page plays: the options of the embed's setup function beside `element`. */
interface Shown {
  readonly name: string;
  /** How the address names it. */
  readonly query: Readonly<Record<string, string>>;
  readonly options: object;
}

/** A page that plays what its address names. */
interface Page {
  readonly path: string;
  readonly title: string;
  readonly intro: string;
  readonly field: { readonly name: string; readonly label: string };
  read(asked: (name: string) => string | undefined, origin: string): Shown | undefined;
}

const CHANNEL_PAGE: Page = {
  path: '/embed/channel.html',
  title: 'Channel embed',
  intro: 'Shows a live channel as viewers see it.',
  field: { name: 'channelId', label: 'Channel id' },
  read(asked) {
    const channelId = asked('channelId');
    return channelId === undefined
      ? undefined
      : { name: `Channel ${channelId}`, query: { channelId }, options: { channelId } };
  },
};

const MEDIA_PAGE: Page = {
  path: '/embed/media.html',
  title: 'Player',
  intro: 'Plays one media as viewers see it: a replay, a media of the library, or an event that is on.',
  field: { name: 'mediaId', label: 'Media id' },
  read(asked, origin) {
    const preview = asked('preview');
    if (preview !== undefined) {
      return { name: 'Preview', query: { preview }, options: { item: previewItem(preview, origin) } };
    }
    const mediaId = asked('mediaId');
    return mediaId === undefined
      ? undefined
      : { name: `Media ${mediaId}`, query: { mediaId }, options: { mediaId } };
  },
};

/** An item of a playlist for who holds the token of a preview: the platform shows it no document. */
function previewItem(token: string, origin: string): object {
  const file = `${origin}/live/previews/${encodeURIComponent(token)}`;
  const drm = { clearkey: { url: `${origin}/keyprovider/clearkey` } };
  return {
    title: 'Preview',
    sources: [
      { file: `${file}.mpd`, drm },
      { file: `${file}.m3u8`, drm },
    ],
  };
}

interface EmbedPage {
  readonly page: Page;
  /** Undefined when the address names nothing to play. */
  readonly shown: Shown | undefined;
  readonly format: string | undefined;
  readonly origin: string;
  /** Allows the page's own scripts and style, and nothing else. */
  readonly nonce: string;
  readonly style: string;
}

/** A page that does what a publisher's page does: loads the embed script and calls its setup function. */
function embedPage({ page, shown, format, origin, nonce, style }: EmbedPage): string {
  const script = `${origin}/embed/channel.js`;
  const { field } = page;
  const options = shown && {
    ...shown.options,
    ...(isFormat(format) && { format }),
    element: '#stage',
  };
  const example = [
    '<div id="stage"></div>\n<script src="',
    html`<span>${breakable(script)}</span>`,
    `"></script>\n<script>channelEmbed.setup(${asWritten(options ?? { [field.name]: 'ID', element: '#stage' })})</script>`,
  ];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${shown?.name ?? page.title}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${style}</style>
</head>
<body>
<main>
<h1>${page.title}</h1>
${shown && options ? stage(shown, format, options, nonce) : form(page)}
<h2>On your own page</h2>
<pre><code>${example}</code></pre>
</main>
</body>
</html>
`.toString();
}

/** Options as a person writes them in a script. */
function asWritten(options: object): string {
  const written = Object.entries(options).map(([name, value]) => {
    const json = JSON.stringify(value);
    return `${name}: ${/^"[^"'\\]*"$/.test(json) ? `'${json.slice(1, -1)}'` : json}`;
  });
  return `{ ${written.join(', ')} }`;
}

function form({ intro, field }: Page) {
  return html`<p>${intro}</p>
<form>
<label for="id">${field.label}</label>
<input id="id" name="${field.name}" required autocomplete="off" spellcheck="false" placeholder="8 letters and digits">
<button>Show</button>
</form>`;
}

const FORMATS = { dash: 'DASH', hls: 'HLS' } as const;

function isFormat(text: string | undefined): text is keyof typeof FORMATS {
  return text !== undefined && Object.hasOwn(FORMATS, text);
}

function stage({ name, query }: Shown, format: string | undefined, options: object, nonce: string) {
  const formats = Object.entries(FORMATS).map(
    ([each, label]) =>
      html`<a href="?${String(new URLSearchParams({ ...query, format: each }))}"${each === format && html` aria-current="page"`}>${label}</a>`,
  );
  return html`<p>${name}, as viewers see it.</p>
<div id="stage" data-options="${JSON.stringify(options)}"></div>
<div class="below"><p class="note" id="playback"></p><nav aria-label="Format">${formats}</nav></div>
<script nonce="${nonce}" src="channel.js"></script>
<script nonce="${nonce}" src="page.js"></script>`;
}
