import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';

/** The least that a durable write is: exclusive temporary, write, datasync, close, rename, sync of the folder. */
export async function writeDurably(folder: string, name: string, bytes: Buffer): Promise<void> {
  const temporary = join(folder, `.${name}.tmp`);
  const file = await open(temporary, 'wx', 0o640);
  await file.write(bytes);
  await file.datasync();
  await file.close();
  await rename(temporary, join(folder, `${name}.key`));
  const directory = await open(folder, 'r');
  await directory.sync();
  await directory.close();
}
