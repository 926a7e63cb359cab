import { readdirSync, statSync } from 'node:fs';
import { connect } from 'node:net';
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

/** Announces a body of so many bytes, sends these bytes of it, and keeps the connection open. */
export function sendPart({ port }: TestUploads, path: string, length: number, bytes: Buffer | string) {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  const answer = new Promise<string>((resolve) => socket.on('data', (data) => resolve(String(data))));
  socket.write(`PUT ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${length}\r\n\r\n`);
  socket.write(bytes);
  return { socket, answer };
}
