import type { Express } from 'express';
import { mountPage } from '../../http/page';

/** What the page loads, from below `/fleet`. */
const PAGE_FILES = ['fleet.css', 'fleet.js', 'fleet-parts.js', 'fleet-plot.js', 'fleet-words.js'];

/**
 * `/fleet`, the page of the fleet. It asks for an API key, and then `/api/fleet` with it. It is there without a fleet,
 * too, and says so: whoever looks for it learns what to set.
 */
export function mountFleetPage(app: Express, publicFolder: string): void {
  mountPage(app, { path: '/fleet', folder: publicFolder, html: 'fleet.html', files: PAGE_FILES });
}
