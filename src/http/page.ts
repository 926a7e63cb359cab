import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Express, RequestHandler } from 'express';
import { onlyMethods } from './app';
import { kept } from './cached';
import { etagOf } from './etag';

interface Page {
  /** Where it is served; its files are below it. */
  readonly path: `/${string}`;
  /** The folder of the page and of what it loads. */
  readonly folder: string;
  readonly html: string;
  readonly files: readonly string[];
}

/** What a route answers, as it is sent. */
interface Prepared {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Lets a page use its own files and call its own service; Swagger UI has small images in its style sheet. */
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

/**
 * A page with its files, without a key. All are read when they are first asked for, and kept: a slow
 * client holds no file open.
 */
export function mountPage(app: Express, { path, folder, html, files }: Page): void {
  const file = async (name: string, headers = {}) => {
    const bytes = await readFile(join(folder, name));
    return prepared(bytes, { 'content-type': MEDIA_TYPES[extname(name)] ?? '', ...headers });
  };
  app.get(path, (request, response, next) => {
    // The addresses in the page are relative, so that a proxy may put a prefix before them.
    if (request.path.endsWith('/')) response.redirect(308, `..${path}`);
    else next();
  });
  serveKept(app, path, () => file(html, { 'content-security-policy': PAGE_POLICY }));
  for (const name of files) serveKept(app, `${path}/${name}`, () => file(name));
}

interface ApiPageOptions {
  /** Makes the OpenAPI document. It is asked for it once. */
  readonly document: () => Promise<object>;
  /** The folder of the page and of what it loads. */
  readonly publicFolder: string;
}

/** The files below `/docs`. Other pages load the icon, the style sheet that all share (`style.css`) and its ground, too. */
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

/** `/openapi.json` and `/docs`, the page that shows it. */
export function mountApiPage(app: Express, { document, publicFolder }: ApiPageOptions): void {
  serveKept(app, '/openapi.json', async () => {
    const bytes = Buffer.from(JSON.stringify(await document()));
    return prepared(bytes, { 'content-type': 'application/json; charset=utf-8' });
  });
  mountPage(app, { path: '/docs', folder: publicFolder, html: 'docs.html', files: API_PAGE_FILES });
}

/** Makes an answer with the first of many simultaneous requests, and keeps it. */
function serveKept(app: Express, path: string, prepare: () => Promise<Prepared>): void {
  const file = kept(prepare);
  const answer: RequestHandler = async (_request, response) => {
    const { bytes, etag, headers } = await file();
    // Answers 304 to a client that has this entity tag.
    response.set({ ...headers, etag, 'cache-control': 'no-cache' }).send(bytes);
  };
  app.route(path).get(answer).all(onlyMethods('GET', 'HEAD'));
}

function prepared(bytes: Buffer, headers: Readonly<Record<string, string>>): Prepared {
  return { bytes, etag: etagOf(bytes), headers };
}
