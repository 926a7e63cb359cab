import type { Express } from 'express';
import { mountPage, prepared, serveKept } from './page';

interface ApiPageOptions {
  /** Makes the OpenAPI document. It is asked for it once. */
  readonly document: () => Promise<object>;
  /** The folder of the page and of what it loads. */
  readonly publicFolder: string;
}

/** The files below `/docs`. Other pages load the icon, the style sheet that all share (`style.css`) and its ground, too. */
const PAGE_FILES = [
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
  mountPage(app, { path: '/docs', folder: publicFolder, html: 'docs.html', files: PAGE_FILES });
}
