import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../src/http/config';
import {
  type StoredFile,
  type Upload,
  uploadFields,
  type WantedUpload,
} from '../../src/platform/emulator/uploads/uploads';
import { temporaryFolder } from './after-test';
import { startEmulator, type TestEmulator } from './start-emulator';

export interface TestUploads extends TestEmulator {
  /** The files that were taken, in their order. */
  readonly taken: readonly StoredFile[];
  /** Begins an upload for the first site, whose file is taken without a word. */
  begin(wanted?: Partial<WantedUpload>): Upload;
  /** Begins a direct upload; answers the path of its link. */
  beginDirect(wanted?: Partial<WantedUpload>): string;
  /** Every file below the uploads' folder, by its size. */
  sizesOnDisk(): number[];
}

/** An emulator whose uploads are kept in a folder of the test's own. */
export async function startUploads(env: Environment = {}): Promise<TestUploads> {
  const folder = await temporaryFolder();
  const emulator = await startEmulator({ EMULATOR_UPLOADSFOLDER: folder, ...env });
  const taken: StoredFile[] = [];
  const begin = (wanted: Partial<WantedUpload> = {}) =>
    emulator.context.uploads.begin({
      siteId: emulator.siteId,
      method: 'direct',
      maxBytes: 2 ** 30,
      done: (file) => void taken.push(file),
      ...wanted,
    });
  return {
    ...emulator,
    taken,
    begin,
    beginDirect: (wanted) => uploadFields(begin(wanted), '').upload_link ?? '',
    sizesOnDisk: () =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.parentPath.includes('emulator-uploads-'))
        // It may be deleted just now.
        .flatMap(
          ({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? [],
        ),
  };
}
