import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import { SCRIPT } from './script';
import { STYLE_BASE } from './style-base';
import { STYLE_PARTS } from './style-parts';

/** The dashboard's one style sheet and its one script; the pages work without the latter. */
export function mountAssets(app: Express): void {
  for (const [path, type, text] of [
    ['/dashboard/style.css', 'css', STYLE_BASE + STYLE_PARTS],
    ['/dashboard/script.js', 'js', SCRIPT],
  ] as const) {
    app
      .route(path)
      .get((_request, response) => void response.type(type).send(text))
      .all(onlyMethods('GET'));
  }
}
