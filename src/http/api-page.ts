import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Express, RequestHandler } from 'express';
import { onlyMethods } from './app';
import { etagOf } from './etag';

interface ApiPageOptions {
  /** Makes the OpenAPI document. It is asked for it once. */
  readonly document: () => Promise<object>;
  /** The folder of the page and of what it loads. */
  readonly publicFolder: string;
}

/** What a route answers, as it is sent. */
interface Prepared {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the page loads, from below `/docs`. */
const PAGE_FILES = ['docs.css', 'docs.js', 'icon.svg', 'swagger-ui.css', 'swagger-ui-bundle.js'];

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Lets the page use its own files and call its own service; Swagger UI has small images in its style sheet. */
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
 * `/openapi.json` and `/docs`, the page that shows it, with the files of the page. Without a key: they tell what the
 * source does. All are made or read when they are first asked for, and kept: nobody holds a file open by taking it slowly.
 */
export function mountApiPage(app: Express, { document, publicFolder }: ApiPageOptions): void {
  const serve = (path: string, prepare: () => Promise<Prepared>) =>
    app.route(path).get(answer(prepare)).all(onlyMethods('GET', 'HEAD'));
  const file = async (name: string, headers = {}) => {
    const bytes = await readFile(join(publicFolder, name));
    return prepared(bytes, { 'content-type': MEDIA_TYPES[extname(name)] ?? '', ...headers });
  };
  serve('/openapi.json', async () => {
    const bytes = Buffer.from(JSON.stringify(await document()));
    return prepared(bytes, { 'content-type': 'application/json; charset=utf-8' });
  });
  app.get('/docs', (request, response, next) => {
    // The addresses in the page are relative, so that a proxy may put a prefix before them.
    if (request.path.endsWith('/')) response.redirect(308, '../docs');
    else next();
  });
  serve('/docs', () => file('docs.html', { 'content-security-policy': PAGE_POLICY }));
  for (const name of PAGE_FILES) serve(`/docs/${name}`, () => file(name));
}

function answer(prepare: () => Promise<Prepared>): RequestHandler {
  // Of hundreds that ask at once, one reads the file.
  let kept: Promise<Prepared> | undefined;
  return async (_request, response) => {
    kept ??= prepare().catch((thrown: unknown) => {
      kept = undefined;
      throw thrown;
    });
    const { bytes, etag, headers } = await kept;
    // Answers 304 to who has this entity tag.
    response.set({ ...headers, etag, 'cache-control': 'no-cache' }).send(bytes);
  };
}

function prepared(bytes: Buffer, headers: Readonly<Record<string, string>>): Prepared {
  return { bytes, etag: etagOf(bytes), headers };
}
