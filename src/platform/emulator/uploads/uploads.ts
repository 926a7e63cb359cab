import { createHmac } from 'node:crypto';
import type { Readable } from 'node:stream';
import typeIs from 'type-is';
import { HttpError, httpError } from '../../../http/errors';
import { createSemaphore } from '../../../http/semaphore';
import type { Clock } from '../clock';
import type { EmulatorDependencies } from '../dependencies';
import { type Fetched, type FetchSettings, fetchFile } from './fetch-file';
import { FileStore, type FileStoreSettings, type KeptFile, type Received, tooLarge } from './file-store';

interface UploadDependencies extends Pick<EmulatorDependencies, 'log' | 'newResourceId' | 'newSecret'> {
  readonly clock: Clock;
}

interface UploadSettings extends FileStoreSettings, FetchSettings {}

export const UPLOAD_SETTINGS: Pick<UploadSettings, 'stallMs' | 'idleMs'> = {
  stallMs: 60_000,
  idleMs: 30_000,
};

/** How many files are fetched at a time; a client may ask for thousands at once. */
const FETCHES = 16;
const LIFETIME_MS = 24 * 60 * 60 * 1000;
/** How many uploads that are over answer 410 in place of 404; the oldest is forgotten first. */
const REMEMBERED = 10_000;

/** The uploads of every kind that are open or were a while ago, and the files that came. */
export class Uploads {
  readonly files: FileStore;
  readonly #byId = new Map<string, Upload>();
  readonly #overIds = new Set<string>();
  readonly #fetches = createSemaphore(FETCHES);
  #ending = new AbortController();

  constructor(
    private readonly dependencies: UploadDependencies,
    private readonly settings: UploadSettings,
  ) {
    this.files = new FileStore(settings, dependencies.log);
  }

  /** Waits for a file, for a day of the platform's clock. */
  begin(wanted: WantedUpload): Upload {
    const { clock, newResourceId, newSecret } = this.dependencies;
    const created = clock.now();
    const expires = new Date(created.getTime() + LIFETIME_MS);
    const upload = new Upload(newResourceId(), newSecret(), created, expires, wanted, this.files);
    this.#byId.set(upload.id, upload);
    clock.after(LIFETIME_MS, () => this.cancel(upload));
    return upload;
  }

  /** @throws HttpError 410 when its time is over. */
  find(id: string): Upload | undefined {
    if (this.#overIds.has(id)) throw uploadEnded();
    return this.#byId.get(id);
  }

  /** Oldest first. */
  list(): readonly Upload[] {
    return [...this.#byId.values()];
  }

  /** Stops waiting for its file, and deletes its parts. A file that was taken stays. */
  cancel(upload: Upload): void {
    if (!this.#byId.delete(upload.id)) return;
    upload.end();
    this.#overIds.add(upload.id);
    const [oldest = ''] = this.#overIds;
    if (this.#overIds.size > REMEMBERED) this.#overIds.delete(oldest);
  }

  /** Fetches from an address of a client, when it is its turn. Never rejects; after a reset, it fails. */
  async fetchFile(
    address: string,
    { signal, maxBytes }: { readonly maxBytes: number; readonly signal: AbortSignal },
  ): Promise<Fetched> {
    const { log } = this.dependencies;
    const ending = AbortSignal.any([this.#ending.signal, signal]);
    const task = { maxBytes, store: this.files, log, signal: ending, settings: this.settings };
    using _turn = await this.#fetches.enter();
    return await fetchFile(address, task);
  }

  /** Forgets every upload, and takes over these files. @returns the paths of those that are there. */
  takeOver(files: readonly KeptFile[]): readonly string[] {
    this.end();
    return this.files.takeOver(files);
  }

  /** Forgets every upload and deletes every file. When it returns, they are gone, and the process can exit. */
  reset(): void {
    this.end();
    this.files.clear();
  }

  /** Forgets every upload, and the process can exit. Files that were taken stay. */
  end(): void {
    for (const upload of this.#byId.values()) upload.end();
    this.#ending.abort();
    this.#ending = new AbortController();
    this.#byId.clear();
    this.#overIds.clear();
  }
}

/** The fields of an answer by which a client sends its file. */
export function uploadFields(upload: Upload, origin: string): Readonly<Record<string, string>> {
  if (upload.method === 'multipart') return { upload_id: upload.id, upload_token: upload.token };
  return { upload_link: `${origin}/uploads/${upload.id}?token=${upload.token}` };
}

export function partLink(upload: Upload, number: number, origin: string): string {
  return `${origin}/uploads/${upload.id}/parts/${number}?token=${partToken(upload, number)}`;
}

/** The secret of one part's link: it can neither send another part nor complete the upload. */
export function partToken({ token }: Pick<Upload, 'token'>, number: number): string {
  return createHmac('sha256', token).update(`part ${number}`).digest('hex');
}

/** How the file comes: as one body, or in parts that are put together. */
export type UploadMethod = 'direct' | 'multipart';

export const MAX_PARTS = 10_000;

/** A complete received file. The taker removes it when it is not needed any more. */
export interface StoredFile extends KeptFile {
  /** The media type that it came with, as it was sent. */
  readonly declaredType: string | undefined;
}

export interface WantedUpload {
  readonly siteId: string;
  readonly method: UploadMethod;
  /** Media types such as `image/*`. A body that is declared as another one is refused; without them, any may come. */
  readonly accept?: readonly string[] | undefined;
  readonly maxBytes: number;
  /** Takes the file, before its sender is answered. If it throws, the sender gets the error and may send it again. */
  done(file: StoredFile): void | Promise<void>;
}

export interface Sent {
  readonly declaredType?: string | undefined;
  /** The announced length, in bytes. */
  readonly length?: number | undefined;
  /** The value of `content-md5`: the base64 of 16 bytes. */
  readonly contentMd5?: string | undefined;
  /** Returns the fault of the received bytes, if any; then nothing is kept. */
  readonly check?: ((received: Received) => Error | undefined) | undefined;
}

/** A file that is to come, until it has come or its time is over. */
export class Upload {
  readonly #parts = new Map<number, KeptFile>();
  /** Parts whose files were deleted or changed by others, until they come again. */
  readonly #lost = new Set<number>();
  readonly #ending = new AbortController();
  #finished: Received | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** @param token the secret of the links, and of calls that list and complete parts. */
  constructor(
    readonly id: string,
    readonly token: string,
    readonly created: Date,
    readonly expires: Date,
    readonly wanted: WantedUpload,
    private readonly store: FileStore,
  ) {}

  get method(): UploadMethod {
    return this.wanted.method;
  }

  get isFinished(): boolean {
    return this.#finished !== undefined;
  }

  get parts(): ReadonlyMap<number, Received> {
    return this.#parts;
  }

  /** @throws HttpError 413 when there is no room for a file of this length. */
  checkLength(length: number): void {
    this.store.check({ maxBytes: this.wanted.maxBytes, length });
  }

  /**
   * Takes the file of a direct upload. The same file again changes nothing, as a client may have lost the answer.
   * @throws HttpError 400, 408, 409, 410, 413, 415; nothing is kept, and the file may come again.
   */
  async receiveFile(source: Readable, sent: Sent): Promise<Received> {
    this.#checkSent(sent);
    const received = await this.#receive(source, sent, this.wanted.maxBytes);
    return this.#enqueue(async () => {
      if (this.#finished) {
        await this.store.remove(received);
        if (this.#finished.md5 !== received.md5) throw uploadFinished();
      } else await this.#finish({ ...received, declaredType: sent.declaredType });
      return received;
    }, received);
  }

  /** Takes a part, in place of an earlier one with the same number. @throws HttpError as `receiveFile` does. */
  async receivePart(number: number, source: Readable, sent: Sent): Promise<Received> {
    this.#checkSent(sent);
    const received = await this.#receive(source, sent, this.wanted.maxBytes - this.#bytesOfOthers(number));
    return this.#enqueue(async () => {
      const earlier = this.#parts.get(number);
      if (this.#finished) {
        await this.store.remove(received);
        if (earlier?.md5 !== received.md5) throw uploadFinished();
        return received;
      }
      this.#parts.set(number, received);
      this.#lost.delete(number);
      if (earlier) await this.store.remove(earlier);
      return received;
    }, received);
  }

  /**
   * Puts the parts together. Once that is done, it changes nothing.
   * @throws HttpError 409 that names the missing parts, 410, 413, or the error of `check`; the parts stay.
   */
  complete(check?: Sent['check']): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#finished) return;
      await this.#dropLost();
      const last = Math.max(0, ...this.#parts.keys(), ...this.#lost);
      const numbers = Array.from({ length: last }, (_, at) => at + 1);
      const files = numbers.flatMap((number) => this.#parts.get(number) ?? []);
      if (files.length === 0 || files.length < last)
        throw partsMissing(numbers.filter((number) => !this.#parts.has(number)));
      if (this.#bytesOfOthers(undefined) > this.wanted.maxBytes) throw tooLarge(this.wanted.maxBytes);
      const whole = await this.store.join(files, this.#ending.signal);
      const wrong = check?.(whole);
      if (wrong) {
        await this.store.remove(whole);
        throw wrong;
      }
      await this.#finish({ ...whole, declaredType: undefined });
      await this.#deleteParts();
    });
  }

  /** Ends it: refuses files on their way, and deletes parts. A file that was taken stays. */
  end(): void {
    this.#ending.abort(uploadEnded());
    void this.#deleteParts();
    this.#parts.clear();
  }

  #checkSent({ declaredType }: Sent): void {
    const { accept } = this.wanted;
    this.#ending.signal.throwIfAborted();
    if (accept === undefined || declaredType === undefined || SAYS_NOTHING.test(declaredType)) return;
    if (typeIs.is(declaredType, [...accept])) return;
    const description = `This upload takes ${accept.join(', ')}. Send the right file, with its content-type.`;
    throw httpError('unsupported_media_type', description);
  }

  async #receive(source: Readable, { length, contentMd5, check }: Sent, maxBytes: number): Promise<KeptFile> {
    const received = await this.store.receive(source, { maxBytes, length }, this.#ending.signal);
    const wrong = faultOf(received, contentMd5) ?? check?.(received);
    if (!wrong) return received;
    await this.store.remove(received);
    throw wrong;
  }

  async #finish(file: StoredFile): Promise<void> {
    try {
      await this.wanted.done(file);
    } catch (thrown) {
      await this.store.remove(file);
      throw thrown;
    }
    this.#finished = { size: file.size, md5: file.md5 };
  }

  /** Makes one change at a time. After the end it makes none, and deletes the received file. */
  #enqueue<Result>(change: () => Promise<Result>, received?: KeptFile): Promise<Result> {
    const changed = this.#turn.then(async () => {
      if (!this.#ending.signal.aborted) return change();
      if (received) await this.store.remove(received);
      throw uploadEnded();
    });
    this.#turn = changed.catch(() => undefined);
    return changed;
  }

  /** Their sizes are no longer counted, and the list shows no entity tag, so that they come again. */
  async #dropLost(): Promise<void> {
    for (const [number, part] of this.#parts) {
      if (await this.store.has(part)) continue;
      this.#lost.add(number);
      this.#parts.delete(number);
      await this.store.remove(part);
    }
  }

  /** Deletes their files, but keeps their records: a client that has lost an answer may ask for them. */
  async #deleteParts(): Promise<void> {
    await Promise.all([...this.#parts.values()].map((part) => this.store.remove(part)));
  }

  #bytesOfOthers(number: number | undefined): number {
    let bytes = 0;
    for (const [other, { size }] of this.#parts) if (other !== number) bytes += size;
    return bytes;
  }
}

/** Types that clients put to any body. */
const SAYS_NOTHING = /^(?:application|binary)\/(?:octet-stream|x-www-form-urlencoded|json)\b|^\s*$/i;

function faultOf({ size, md5 }: Received, contentMd5: string | undefined): HttpError | undefined {
  if (size === 0) return httpError('invalid_body', 'The file is empty. Send its bytes as the body.');
  if (contentMd5 === undefined || Buffer.from(contentMd5, 'base64').toString('hex') === md5) return undefined;
  const description = 'The body does not match the header content-md5. Send it again.';
  return httpError('invalid_body', description);
}

const MAX_NAMED = 20;

function partsMissing(numbers: readonly number[]): HttpError {
  const named = `${numbers.slice(0, MAX_NAMED).join(', ')}${numbers.length > MAX_NAMED ? ', and more' : ''}`;
  const description =
    numbers.length === 0
      ? 'No part has been uploaded. PUT the parts to their upload_link first.'
      : `Parts are missing: ${named}. Upload them, then complete again.`;
  return new HttpError(409, { code: 'parts_missing', description });
}

function uploadFinished(): HttpError {
  const description =
    'The file of this upload has been received already. For another file, ask for a new upload.';
  return new HttpError(409, { code: 'upload_finished', description });
}

function uploadEnded(): HttpError {
  const description =
    'This upload is over: its links are valid for a day, while its resource exists. Ask for a new one.';
  return new HttpError(410, { code: 'upload_expired', description });
}
