import type { Express } from 'express';
import { mountPage } from '../../http/page';

/** The files below `/fleet`. */
const PAGE_FILES = [
  'fleet.css',
  'fleet.js',
  'fleet-findings.js',
  'fleet-parts.js',
  'fleet-plot.js',
  'fleet-tables.js',
  'fleet-words.js',
];

/**
 * Mounts `/fleet`, the page of the fleet. It asks for an API key, and with it for `/api/fleet`. Without a fleet it is
 * served, too, and shows what to set.
 */
export function mountFleetPage(app: Express, publicFolder: string): void {
  mountPage(app, { path: '/fleet', folder: publicFolder, html: 'fleet.html', files: PAGE_FILES });
}
