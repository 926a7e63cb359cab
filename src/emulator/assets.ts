import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The style sheets and browser scripts that the emulator serves, as text. */
export interface Assets {
  readonly dashboardStyle: string;
  readonly dashboardScript: string;
  readonly embedStyle: string;
  readonly embedScript: string;
}

/** Reads the assets from the folder that holds them. @throws the file system's error when one is missing. */
export function readAssets(folder: string): Assets {
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  return {
    dashboardStyle: read('dashboard.css'),
    dashboardScript: read('dashboard.js'),
    embedStyle: read('embed-page.css'),
    embedScript: read('channel-embed.js'),
  };
}
