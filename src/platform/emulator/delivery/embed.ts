import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Express } from 'express';
import helmet from 'helmet';
import { routeAt } from '../../../http/app';
import { html } from '../../../http/html';
import { serveCached } from '../../../http/page';
import { originOf } from '../addresses';
import { breakable } from '../dashboard/elements';
import type { Packaging } from '../packaging/packaging';
import { openToAll } from './answers';

/** An hour: long enough for a page with many visits, short enough for a new version to arrive the same day. */
const SCRIPT_SECONDS = 3600;
/** A package's file changes with a new version of the package alone. */
const PACKAGE_SECONDS = 7 * 86_400;

const FILES = {
  'channel.js': ['channel-embed.js', SCRIPT_SECONDS],
  'player.js': ['embed-player.js', SCRIPT_SECONDS],
  'page.js': ['embed-page.js', SCRIPT_SECONDS],
  'page.css': ['embed-page.css', SCRIPT_SECONDS],
  'shaka-player.js': ['shaka-player.compiled.js', PACKAGE_SECONDS],
} as const;

interface EmbedParts {
  readonly publicFolder: string;
  readonly packaging: Pick<Packaging, 'client'>;
}

export function mountEmbed(app: Express, { publicFolder: root, packaging }: EmbedParts): void {
  app.use('/embed', openToAll);
  for (const [path, [name, seconds]] of Object.entries(FILES))
    serveCached(app, `/embed/${path}`, extname(name), () => readFile(join(root, name)), {
      'cache-control': `public, max-age=${seconds}`,
    });

  for (const page of [CHANNEL_PAGE, MEDIA_PAGE]) {
    routeAt(app, page.path).get(pageHeaders, (request, response) => {
      const asked = (name: string) => {
        const value = request.query[name];
        return typeof value === 'string' && value !== '' ? value : undefined;
      };
      const origin = originOf(request);
      response.removeHeader('x-frame-options');
      response.set('cache-control', 'no-store').type('html');
      const shown = shownOn(page, asked, origin);
      const format = Object.keys(FORMATS).find((each) => each === asked('format'));
      response.send(embedPage(page, shown, origin, format, packaging.client !== undefined));
    });
  }
}

/** The page loads the emulator's own files, calls delivery, and any page may frame it: it contains no secret. */
const pageHeaders = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      baseUri: ["'none'"],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      frameAncestors: ['*'],
      imgSrc: ["'self'", 'data:'],
      mediaSrc: ["'self'", 'blob:', 'data:'],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
    },
  },
  crossOriginResourcePolicy: { policy: 'cross-origin' },
  strictTransportSecurity: false,
  xFrameOptions: false,
});

/** The options of the embed's setup function without `element`. */
interface Shown {
  readonly name: string;
  readonly query: Readonly<Record<string, string>>;
  readonly options: object;
}

/** `field` is the parameter that names the content, which is an option of the embed as well. */
const CHANNEL_PAGE = {
  path: '/embed/channel.html',
  title: 'Channel embed',
  intro: 'Shows a live channel as viewers see it.',
  field: { name: 'channelId', label: 'Channel id' },
  noun: 'Channel',
} as const;

const MEDIA_PAGE = {
  path: '/embed/media.html',
  title: 'Player',
  intro: 'Plays one media as viewers see it: a replay, a media of the library, or an event that is on.',
  field: { name: 'mediaId', label: 'Media id' },
  noun: 'Media',
} as const;

type Page = typeof CHANNEL_PAGE | typeof MEDIA_PAGE;

function shownOn(page: Page, asked: (name: string) => string | undefined, origin: string): Shown | undefined {
  const preview = page === MEDIA_PAGE ? asked('preview') : undefined;
  if (preview !== undefined)
    return { name: 'Preview', query: { preview }, options: { item: previewItem(preview, origin) } };
  const id = asked(page.field.name);
  const query = { [page.field.name]: id ?? '' };
  return id === undefined ? undefined : { name: `${page.noun} ${id}`, query, options: query };
}

function isPreview({ query }: Shown): boolean {
  return 'preview' in query;
}

/** The item of a preview, which has no document: its token is in the address. */
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

/** A page like that of a publisher. @param shown undefined when the address names nothing to play. */
function embedPage(
  page: Page,
  shown: Shown | undefined,
  origin: string,
  format: string | undefined,
  isPackaging: boolean,
): string {
  const { field } = page;
  const options = shown && { ...shown.options, ...(format !== undefined && { format }), element: '#stage' };
  const example = [
    '<div id="stage"></div>\n<script src="',
    breakable(`${origin}/embed/channel.js`),
    `"></script>\n<script>channelEmbed.setup(${asWritten(options ?? { [field.name]: 'ID', element: '#stage' })})</script>`,
  ];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${shown?.name ?? page.title}</title>
<link rel="icon" href="../docs/icon.svg">
<link rel="stylesheet" href="../docs/oat.min.css">
<link rel="stylesheet" href="../docs/style.css">
<link rel="stylesheet" href="page.css">
</head>
<body>
<main>
<h1>${page.title}</h1>
${shown && options ? stage(shown, options, format, isPackaging) : form(page)}
${shown && isPreview(shown) ? '' : html`<h2>On your own page</h2><pre><code>${example}</code></pre>`}
</main>
</body>
</html>
`.toString();
}

function asWritten(options: object): string {
  const written = Object.entries(options).map(([name, value]) => {
    const json = JSON.stringify(value);
    return `${name}: ${/^"[^"'\\]*"$/.test(json) ? `'${json.slice(1, -1)}'` : json}`;
  });
  return `{ ${written.join(', ')} }`;
}

function form({ intro, field }: Page) {
  return html`<p>${intro}</p>
<form class="field-row">
<label for="id">${field.label}</label>
<input id="id" name="${field.name}" required autocomplete="off" spellcheck="false" placeholder="8 letters and digits">
<button>Show</button>
</form>`;
}

const FORMATS = { dash: 'DASH', hls: 'HLS' } as const;

const NO_PACKAGER =
  'This emulator has no packager, so there is no picture. npm run demo starts one; an emulator of your own needs EMULATOR_PACKAGERURL.';

function stage(shown: Shown, options: object, format: string | undefined, isPackaging: boolean) {
  const { name, query } = shown;
  const formats = Object.entries(FORMATS).map(
    ([each, label]) =>
      html`<a href="?${String(new URLSearchParams({ ...query, format: each }))}"${each === format && html` aria-current="page"`}>${label}</a>`,
  );
  const texts = html` data-pictureless="${isPackaging ? 'The packager has no segment of it yet.' : NO_PACKAGER}" data-unavailable="${isPreview(shown) ? 'Correct this; the stream will then start automatically.' : 'The dashboard says why.'}"`;
  return html`<p>${name}, ${isPreview(shown) ? 'for the owner of the channel' : 'as viewers see it'}.</p>
<div id="stage" data-options="${JSON.stringify(options)}"></div>
<div class="below"><p class="note" id="playback"${texts}></p><nav aria-label="Format">${formats}</nav></div>
<script src="channel.js"></script>
<script src="page.js"></script>`;
}
