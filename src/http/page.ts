import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Express, RequestHandler } from 'express';
import { etagOf } from '../drm/bytes';
import { routeAt } from './app';
import { memoized } from './cached';

interface Page {
  readonly path: `/${string}`;
  readonly folder: string;
  readonly html: string;
  readonly files: readonly string[];
}

/** Swagger UI has small images in its style sheet. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join(';');

/** Pages need no API key. */
export function mountPage(app: Express, { path, folder, html, files }: Page): void {
  app.get(path, (request, response, next) => {
    // The addresses in the page are relative, so that a proxy may put a prefix before them.
    if (request.path.endsWith('/')) response.redirect(308, `..${path}`);
    else next();
  });
  const serve = (at: string, name: string, headers = {}) =>
    serveCached(app, at, extname(name), () => readFile(join(folder, name)), headers);
  serve(path, html, { 'content-security-policy': PAGE_POLICY });
  for (const name of files) serve(`${path}/${name}`, name);
}

interface ApiPageOptions {
  readonly document: () => Promise<object>;
  readonly publicFolder: string;
}

/** Other pages load `icon.svg`, `style.css` and `colors.css`, too. */
const API_PAGE_FILES = [
  'colors.css',
  'docs.css',
  'docs.js',
  'icon.svg',
  'oat.min.css',
  'style.css',
  'swagger-ui.css',
  'swagger-ui-bundle.js',
];

export function mountApiPage(app: Express, { document, publicFolder }: ApiPageOptions): void {
  serveCached(app, '/openapi.json', '.json', async () => Buffer.from(JSON.stringify(await document())));
  mountPage(app, { path: '/docs', folder: publicFolder, html: 'docs.html', files: API_PAGE_FILES });
}

/** Keeps the answer of the first of many simultaneous requests: slow clients hold no file open. */
export function serveCached(
  app: Express,
  path: string,
  type: string,
  make: () => Promise<Buffer>,
  headers: Readonly<Record<string, string>> = {},
): void {
  const made = memoized(async () => {
    const bytes = await make();
    return { bytes, etag: etagOf(bytes) };
  });
  const answer: RequestHandler = async (_request, response) => {
    const { bytes, etag } = await made();
    response
      .type(type)
      .set({ etag, 'cache-control': 'no-cache', ...headers })
      .send(bytes);
  };
  routeAt(app, path).get(answer);
}
