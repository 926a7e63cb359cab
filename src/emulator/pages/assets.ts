import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import type { Assets } from '../assets';

/** The dashboard's one style sheet and its one script; the pages work without the latter. */
export function mountAssets(app: Express, { dashboardStyle, dashboardScript }: Assets): void {
  for (const [path, type, text] of [
    ['/dashboard/style.css', 'css', dashboardStyle],
    ['/dashboard/script.js', 'js', dashboardScript],
  ] as const) {
    app
      .route(path)
      .get((_request, response) => void response.type(type).send(text))
      .all(onlyMethods('GET'));
  }
}
