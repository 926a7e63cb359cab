import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import fs from 'fs-extra';

const ROOT = resolve(__dirname, '../..');

const folders = new Map<string, string>();

afterAll(async () => {
  for (const folder of folders.values()) await fs.remove(folder);
});

/** The files of a program for browsers, as a build lays them together. */
export function publicFolder(house: 'sidecar' | 'emulator'): string {
  const made = folders.get(house);
  if (made !== undefined) return made;
  const folder = fs.mkdtempSync(join(tmpdir(), 'packager-drm-public-'));
  folders.set(house, folder);
  fs.copySync(join(ROOT, 'src/http/public'), folder);
  const own = join(ROOT, house === 'emulator' ? 'src/platform/emulator/public' : 'src/sidecar/public');
  if (fs.existsSync(own)) fs.copySync(own, folder);
  for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js'])
    fs.symlinkSync(join(ROOT, 'node_modules/swagger-ui-dist', name), join(folder, name));
  const player = 'shaka-player.compiled.js';
  if (house === 'emulator')
    fs.symlinkSync(join(ROOT, 'node_modules/shaka-player/dist', player), join(folder, player));
  return folder;
}
