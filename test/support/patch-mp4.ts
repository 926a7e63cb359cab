import { join } from 'node:path';
import fs from 'fs-extra';

/** Changes bytes of a box in each file of a packaged stream that has one: `box` has its body, behind size and type. */
export async function patchBox(
  folder: string,
  files: RegExp,
  type: string,
  patch: (box: Buffer, whole: Buffer) => void,
): Promise<void> {
  let found = 0;
  for (const name of await fs.readdir(folder)) {
    if (!files.test(name)) continue;
    const path = join(folder, name);
    const bytes = await fs.readFile(path);
    for (let at = bytes.indexOf(type); at >= 4; at = bytes.indexOf(type, at + 4)) {
      const end = at - 4 + bytes.readUInt32BE(at - 4);
      if (end > bytes.length || end < at + 4) continue;
      found += 1;
      patch(bytes.subarray(at + 4, end), bytes.subarray(at - 4, end));
    }
    await fs.writeFile(path, bytes);
  }
  if (found === 0) throw new Error(`No file has a box ${type}`);
}

/** Renames a box, so that readers pass over it. */
export const hideBox = (folder: string, files: RegExp, type: string): Promise<void> =>
  patchBox(folder, files, type, (_box, whole) => whole.write('free', 4, 'latin1'));
