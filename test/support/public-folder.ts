import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import fs from 'fs-extra';
import { afterAllTests } from './after-test';

const ROOT = resolve(__dirname, '../..');

const folders = new Map<string, string>();

/** The files of a program for browsers, as a build lays them together. */
export function publicFolder(house: 'sidecar' | 'emulator'): string {
  const made = folders.get(house);
  if (made !== undefined) return made;
  const folder = fs.mkdtempSync(join(tmpdir(), 'packager-drm-public-'));
  folders.set(house, folder);
  afterAllTests(() => fs.remove(folder));
  fs.copySync(join(ROOT, 'src/http/public'), folder);
  const own = join(ROOT, house === 'emulator' ? 'src/platform/emulator/public' : 'src/sidecar/public');
  if (fs.existsSync(own)) fs.copySync(own, folder);
  const ofPackages = [
    'swagger-ui-dist/swagger-ui.css',
    'swagger-ui-dist/swagger-ui-bundle.js',
    '@knadh/oat/oat.min.css',
    ...(house === 'emulator' ? ['shaka-player/dist/shaka-player.compiled.js'] : []),
  ];
  for (const file of ofPackages)
    fs.symlinkSync(join(ROOT, 'node_modules', file), join(folder, basename(file)));
  return folder;
}
