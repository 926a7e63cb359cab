import { createHmac } from 'node:crypto';
import type { Log } from '../../../http/log';
import { createSemaphore } from '../../../http/semaphore';
import type { Clock } from '../clock';
import { type Fetched, type FetchSettings, fetchFile } from './fetch-file';
import { FileStore, type FileStoreSettings, type KeptFile } from './file-store';
import { over, Upload, type WantedUpload } from './upload';

interface UploadSurroundings {
  readonly clock: Clock;
  readonly log: Log;
  /** A new id of 8 letters and digits. */
  readonly newResourceId: () => string;
  /** A new secret of 32 bytes or more. */
  readonly newSecret: () => string;
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

/** The uploads that are open or were a while ago, whatever they are for, and the files that came. */
export class Uploads {
  /** Those that came, whatever they were sent for. */
  readonly files: FileStore;
  /** Oldest first. */
  readonly #byId = new Map<string, Upload>();
  /** Of uploads that are over. */
  readonly #overIds = new Set<string>();
  readonly #fetches = createSemaphore(FETCHES);
  #ending = new AbortController();

  constructor(
    private readonly surroundings: UploadSurroundings,
    private readonly settings: UploadSettings,
  ) {
    this.files = new FileStore(settings, surroundings.log);
  }

  /** Waits for a file, for a day. */
  begin(wanted: WantedUpload): Upload {
    const { clock, newResourceId, newSecret } = this.surroundings;
    const created = clock.now();
    const expires = new Date(created.getTime() + LIFETIME_MS);
    const upload = new Upload(newResourceId(), newSecret(), created, expires, wanted, this.files);
    this.#byId.set(upload.id, upload);
    clock.after(LIFETIME_MS, () => this.cancel(upload));
    return upload;
  }

  /** @throws HttpError 410 when its time is over. */
  find(id: string): Upload | undefined {
    if (this.#overIds.has(id)) throw over();
    return this.#byId.get(id);
  }

  /** Oldest first. */
  list(): readonly Upload[] {
    return [...this.#byId.values()];
  }

  /** Waits no longer for its file. What came of it is deleted, but for a file that was taken. */
  cancel(upload: Upload): void {
    if (!this.#byId.delete(upload.id)) return;
    upload.end();
    this.#overIds.add(upload.id);
    const [oldest = ''] = this.#overIds;
    if (this.#overIds.size > REMEMBERED) this.#overIds.delete(oldest);
  }

  /**
   * Fetches a file from an address that a client gave, when it is its turn. Never rejects; after a reset, it fails.
   * @param wanted the most bytes, and what may end it.
   */
  async fetchFile(
    address: string,
    { signal, maxBytes }: { readonly maxBytes: number; readonly signal?: AbortSignal },
  ): Promise<Fetched> {
    const { log } = this.surroundings;
    const ending = AbortSignal.any([this.#ending.signal, ...(signal ? [signal] : [])]);
    const task = { maxBytes, store: this.files, log, signal: ending, settings: this.settings };
    const leave = await this.#fetches.enter();
    try {
      return await fetchFile(address, task);
    } finally {
      leave();
    }
  }

  /** Forgets every upload, and deletes every file but these. @returns the paths of those that are there. */
  keepOnly(files: readonly KeptFile[]): readonly string[] {
    this.end();
    return this.files.keepOnly(files);
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

/** The fields of a reply that tell a client where its file goes. */
export function uploadFields(upload: Upload, origin: string): Readonly<Record<string, string>> {
  if (upload.method === 'multipart') return { upload_id: upload.id, upload_token: upload.token };
  return { upload_link: `${origin}/uploads/${upload.id}?token=${upload.token}` };
}

export function partLink(upload: Upload, number: number, origin: string): string {
  return `${origin}/uploads/${upload.id}/parts/${number}?token=${partToken(upload, number)}`;
}

/** The secret of one part's link: who has it can send neither another part nor complete the upload. */
export function partToken({ token }: Pick<Upload, 'token'>, number: number): string {
  return createHmac('sha256', token).update(`part ${number}`).digest('hex');
}
