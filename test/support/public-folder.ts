import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import fs from 'fs-extra';

const ROOT = resolve(__dirname, '../..');

let folder: string | undefined;

afterAll(async () => {
  if (folder !== undefined) await fs.remove(folder);
});

/** The sidecar's files for browsers, as a build lays them together. */
export function publicFolder(): string {
  if (folder !== undefined) return folder;
  folder = fs.mkdtempSync(join(tmpdir(), 'packager-drm-public-'));
  fs.copySync(join(ROOT, 'src/sidecar/public'), folder);
  for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js'])
    fs.symlinkSync(join(ROOT, 'node_modules/swagger-ui-dist', name), join(folder, name));
  return folder;
}
