import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Express, RequestHandler } from 'express';
import { onlyMethods } from '../../http/app';
import { etagOf } from '../key-files/etag';

export interface OpenApiOptions {
  /** The version of the service. */
  readonly version: string;
  /** The folder of the page and of what it loads. */
  readonly publicFolder: string;
}

const compress = promisify(gzip);

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
export function openApiRoutes(app: Express, { version, publicFolder }: OpenApiOptions): void {
  const holdTo = createHoldTo();
  const serve = (path: string, prepare: () => Promise<Prepared>) =>
    app.route(path).get(answer(prepare, holdTo)).all(onlyMethods('GET', 'HEAD'));
  const file = async (name: string, headers = {}) => {
    const bytes = await readFile(join(publicFolder, name));
    const type = { 'content-type': MEDIA_TYPES[extname(name)] ?? '' };
    if (bytes.length <= LARGE_BYTES) return prepared(bytes, { ...type, ...headers });
    // Every browser takes it compressed, and what clients do not read takes a quarter of the memory.
    return prepared(await compress(bytes), { ...type, ...headers, 'content-encoding': 'gzip' });
  };
  serve('/openapi.json', async () => {
    // None of it is loaded at the start: it takes as long as a third of that.
    const { openApiDocument } = await import('./document');
    const bytes = Buffer.from(JSON.stringify(openApiDocument(version)));
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

function answer(prepare: () => Promise<Prepared>, holdTo: (socket: Socket) => void): RequestHandler {
  // Of hundreds that ask at once, one reads the file.
  let kept: Promise<Prepared> | undefined;
  return async (request, response) => {
    kept ??= prepare().catch((thrown: unknown) => {
      kept = undefined;
      throw thrown;
    });
    const { bytes, etag, headers } = await kept;
    if (bytes.length > LARGE_BYTES) holdTo(request.socket);
    // Answers 304 to who has this entity tag.
    response.set({ ...headers, etag, 'cache-control': 'no-cache' }).send(bytes);
  };
}

/** An answer of more bytes is one that must not be sent to hundreds of clients that do not read. */
const LARGE_BYTES = 256 * 1024;
const MAX_LARGE = 8;

/**
 * Bounds the connections that have been sent a large answer and are still open. The system takes megabytes of an answer
 * at once, and holds them as long as the client does not read: of too many connections, the oldest is reset, which
 * drops what it holds. A client that has read its answer connects again.
 */
function createHoldTo(): (socket: Socket) => void {
  const held = new Set<Socket>();
  return (socket) => {
    if (!held.delete(socket)) socket.once('close', () => held.delete(socket));
    held.add(socket);
    const [oldest] = held;
    if (held.size <= MAX_LARGE || !oldest) return;
    held.delete(oldest);
    if (!('encrypted' in oldest)) oldest.resetAndDestroy();
    // The reset alone would wait for what is still to be sent.
    oldest.destroy();
  };
}

function prepared(bytes: Buffer, headers: Readonly<Record<string, string>>): Prepared {
  return { bytes, etag: etagOf(bytes), headers };
}
