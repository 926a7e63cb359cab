import { createHash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  lstatSync,
  readdirSync,
  rmSync,
  type WriteStream,
} from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import fs from 'fs-extra';
import { describeThrown, HttpError, httpError, systemCode } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { receiveBody } from '../../../http/receive-body';
import { leftOverFolders, makeOwnFolder } from '../own-folders';

export const MB = 1024 * 1024;
const KIND = 'uploads';

export interface Received {
  readonly size: number;
  /** Lower-case hex. */
  readonly md5: string;
}

export interface KeptFile extends Received {
  readonly path: string;
}

export interface FileStoreSettings {
  /** Where the store makes a folder of its own when the first file comes. */
  readonly folder: string;
  /** The folder of the store, whose files stay when the process ends; without it, it makes one. */
  readonly ownFolder?: string | undefined;
  readonly maxBytes: number;
  /** How long a sender may send nothing, in milliseconds of real time. */
  readonly stallMs: number;
}

interface Expected {
  readonly maxBytes: number;
  readonly length?: number | undefined;
  /** The most bytes of all files with it; by default the store's limit. */
  readonly total?: number;
}

/** The files of one run, from one reset to the next. */
interface Run {
  folder: string | undefined;
  used: number;
  begun: number;
  readonly sizes: Map<string, number>;
}

/** Keeps files in a folder of its own until they are removed, up to a limit for all together. */
export class FileStore {
  #run: Run;

  constructor(
    private readonly settings: FileStoreSettings,
    private readonly log: Log,
  ) {
    this.#run = newRun(settings.ownFolder);
  }

  get maxBytes(): number {
    return this.settings.maxBytes;
  }

  /** Bytes that are kept, and those of files on their way that have come. */
  get usedBytes(): number {
    return this.#run.used;
  }

  /** @throws HttpError 413 when there is no room for a file of the announced length. */
  check({ length = 0, ...expected }: Expected): void {
    this.#requireRoom(this.#run, expected, length);
  }

  /**
   * Writes a stream to a file. After a failure it drains the rest of `source`, so that the sender can be answered.
   * @param signal ends it with its reason.
   * @throws HttpError 413 at once when the announced length is too much; the system's error. Nothing is kept then.
   */
  async receive(source: Readable, expected: Expected, signal?: AbortSignal): Promise<KeptFile> {
    this.check(expected);
    return this.#write(source, expected, signal);
  }

  /** Whether a file is on the disk as it was received. */
  async has({ path, size }: KeptFile): Promise<boolean> {
    return (await stat(path).catch(unlessAbsent))?.size === size;
  }

  /** Puts files together as a new one, in this order. The bytes of both are on the disk until a removal. */
  async join(files: readonly KeptFile[], signal: AbortSignal): Promise<KeptFile> {
    const source = Readable.from(chunksOf(files), { objectMode: false });
    // The parts are about to go: there was room for them.
    const expected = { maxBytes: Number.POSITIVE_INFINITY, total: Number.POSITIVE_INFINITY };
    return this.#write(source, expected, signal).finally(() => source.destroy());
  }

  /** Deletes a file of this store; another one is left alone. Never rejects. */
  async remove({ path }: Pick<KeptFile, 'path'>): Promise<void> {
    const size = this.#run.sizes.get(path);
    if (size === undefined) return;
    this.#run.sizes.delete(path);
    this.#run.used -= size;
    await rm(path, { force: true }).catch((thrown: unknown) => {
      this.log.warn('upload not deleted', { cause: describeThrown(thrown) });
    });
  }

  /**
   * Takes over files that were kept before, and deletes others that a killed process left. Files of this run
   * stay, as a former state may name them; those of other stores are used where they are, and stay theirs.
   * @returns the paths of those that are there.
   */
  takeOver(files: readonly KeptFile[]): readonly string[] {
    const run = this.#run;
    const { folder, begun, sizes } = run;
    const there = files.filter(({ path, size }) => {
      const [parent, name] = [dirname(path), basename(path)];
      if (!NAME.test(name) || !isFile(path)) return false;
      if (parent !== folder)
        return dirname(parent) === this.settings.folder && basename(parent).startsWith(`emulator-${KIND}-`);
      // One that was deleted is on the disk a little longer.
      if (begun > 0 || sizes.has(path)) return sizes.has(path);
      run.used += size;
      sizes.set(path, size);
      run.begun = Math.max(run.begun, Number(name));
      return true;
    });
    for (const path of folder === undefined || begun > 0 ? [] : filesIn(folder))
      if (!sizes.has(path)) rmSync(path, { force: true });
    return there.map(({ path }) => path);
  }

  /** Deletes every file, those on their way too. When it returns, they are gone. */
  clear(): void {
    const { folder } = this.#run;
    this.#run = newRun(this.settings.ownFolder);
    if (folder === undefined) return;
    try {
      fs.removeSync(folder);
    } catch (thrown) {
      this.log.warn('uploads not deleted', { cause: describeThrown(thrown) });
    }
  }

  /** Drains the source instead of destroying it, as a request has to be answered. */
  async #write(source: Readable, expected: Expected, signal: AbortSignal | undefined): Promise<KeptFile> {
    const run = this.#run;
    const hash = createHash('md5');
    const stalling = new AbortController();
    const stall = () => stalling.abort(httpError('request_timeout', STALLED));
    const stalled = setTimeout(stall, this.settings.stallMs);
    const ending = AbortSignal.any([stalling.signal, ...(signal ? [signal] : [])]);
    let target: WriteStream | undefined;
    let size = 0;
    const count = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        stalled.refresh();
        try {
          // Announced bytes take no room.
          this.#requireRoom(run, expected, chunk.length, size);
        } catch (thrown) {
          done(thrown as Error);
          return;
        }
        size += chunk.length;
        run.used += chunk.length;
        hash.update(chunk);
        done(null, chunk);
      },
    });
    try {
      const path = newPath(run, this.settings.folder);
      target = createWriteStream(path, { flags: 'wx', mode: 0o600 });
      await receiveBody(source, count, target, ending);
      run.sizes.set(path, size);
      return { path, size, md5: hash.digest('hex') };
    } catch (thrown) {
      if (target) await discard(target);
      run.used -= size;
      throw ending.aborted ? ending.reason : failureOf(thrown);
    } finally {
      clearTimeout(stalled);
    }
  }

  /** @param size the present size of the file. @throws HttpError 413 when there is no room for so many bytes more. */
  #requireRoom({ used }: Run, { maxBytes, total = this.maxBytes }: Expected, bytes: number, size = 0): void {
    if (size + bytes > maxBytes) throw tooLarge(maxBytes);
    const free = total - used;
    if (bytes <= free) return;
    const most = `at most ${megabytes(total)} of uploads (EMULATOR_UPLOADSMAXMB)`;
    const description = `The emulator keeps ${most}, and ${megabytes(free)} are free. Delete media, or reset the emulator.`;
    throw new HttpError(413, { code: 'uploads_full', description });
  }
}

const NAME = /^\d{8}$/;

function isFile(path: string): boolean {
  try {
    return lstatSync(path).isFile();
  } catch {
    return false;
  }
}

function filesIn(folder: string): string[] {
  try {
    const paths = readdirSync(folder).map((name) => join(folder, name));
    return paths.filter((path) => NAME.test(basename(path)) && isFile(path));
  } catch {
    return [];
  }
}

function unlessAbsent(thrown: unknown): undefined {
  if (systemCode(thrown) !== 'ENOENT') throw thrown;
}

/** Deletes a file that is not written to its end. One that is still being opened would come back. */
async function discard(target: WriteStream): Promise<void> {
  if (!target.destroy().closed) await new Promise<void>((resolve) => target.once('close', resolve));
  await rm(target.path, { force: true }).catch(() => undefined);
}

function newRun(folder: string | undefined): Run {
  return { folder, used: 0, begun: 0, sizes: new Map() };
}

/** The path of a new file. Creates the folder again if a cleanup of temporary folders has removed it. */
function newPath(run: Run, parent: string): string {
  if (run.folder === undefined) {
    fs.ensureDirSync(parent);
    sweep(parent);
    run.folder = makeOwnFolder(parent, KIND);
  } else fs.ensureDirSync(run.folder, 0o700);
  run.begun += 1;
  return join(run.folder, String(run.begun).padStart(8, '0'));
}

/** Deletes the folders of processes of this machine that have ended without doing so. */
function sweep(parent: string): void {
  for (const path of leftOverFolders(parent, KIND)) {
    try {
      fs.removeSync(path);
    } catch {
      // The folder of another user, with the same name.
    }
  }
}

async function* chunksOf(files: readonly KeptFile[]): AsyncGenerator<Buffer> {
  for (const { path } of files) yield* createReadStream(path);
}

export function tooLarge(maxBytes: number): HttpError {
  return httpError('body_too_large', `The file is larger than this upload may be: ${megabytes(maxBytes)}.`);
}

function megabytes(bytes: number): string {
  if (bytes < MB) return `${Math.max(bytes, 0)} bytes`;
  return `${Math.floor(bytes / (MB / 10)) / 10} MB`;
}

const STALLED = 'The upload stopped: nothing came for too long. Send the file again.';

function failureOf(thrown: unknown): unknown {
  const code = systemCode(thrown);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const description =
      'The disk of the uploads is full. Make room, or choose another EMULATOR_UPLOADSFOLDER.';
    return new HttpError(507, { code: 'insufficient_storage', description }, { cause: thrown });
  }
  return thrown;
}
