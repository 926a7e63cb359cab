import { readdirSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Environment } from '../../src/http/config';
import { createClock } from '../../src/platform/emulator/clock';
import {
  type StoredFile,
  UPLOAD_SETTINGS,
  Uploads,
  uploadFields,
  type WantedUpload,
} from '../../src/platform/emulator/uploads/uploads';
import { temporaryFolder } from './after-test';
import { recordedLog } from './recorded-log';
import { startEmulator } from './start-emulator';

export type TestUploads = Awaited<ReturnType<typeof startUploads>>;

/** An emulator whose uploads are kept in a folder of the test's own. */
export async function startUploads(env: Environment = {}) {
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
    /** The files that were taken, in their order. */
    taken,
    /** Begins an upload for the first site, whose file is taken without a word. */
    begin,
    /** Begins a direct upload; answers the path of its link. */
    beginDirect: (wanted?: Partial<WantedUpload>) => uploadFields(begin(wanted), '').upload_link ?? '',
    /** Every file below the uploads' folder, by its size. */
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

/** The uploads without an emulator, of a MiB in all unless the settings say otherwise. */
export function uploadsAlone(
  folder: string,
  settings: Partial<typeof UPLOAD_SETTINGS & { maxBytes: number }>,
) {
  const { log } = recordedLog();
  let made = 0;
  const next = () => `made${made++}`;
  return new Uploads(
    { clock: createClock(() => new Date(0)), log, newResourceId: next, newSecret: next },
    { ...UPLOAD_SETTINGS, folder, maxBytes: 2 ** 20, allowHttp: false, ...settings },
  );
}
