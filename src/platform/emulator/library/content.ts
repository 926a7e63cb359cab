import type { EmulatorContext } from '../context';
import type { ItemStore } from '../listing/item-store';
import type { GivenUpload } from '../resources/resource';
import type { StoredFile, Upload } from '../uploads/upload';
import { uploadFields } from '../uploads/uploads';

export type ContentStatus = 'created' | 'processing' | 'updating' | 'ready' | 'failed';

/** What something has whose content comes from outside. */
export interface Content {
  readonly id: string;
  readonly siteId: string;
  status: ContentStatus;
  errorMessage: string | null;
  /** What was begun last, until its file is there. */
  upload: Upload | undefined;
  /** What the file came by. Its sender may have lost the answer, and sends it again. */
  arrivedBy: Upload | undefined;
  /** What ends the fetch that was begun last. */
  fetching: AbortController | undefined;
  /** What was uploaded, or fetched. */
  file: StoredFile | undefined;
}

/** What a content begins with. */
export function noContent(): Omit<Content, 'id' | 'siteId'> {
  return {
    status: 'created',
    errorMessage: null,
    upload: undefined,
    arrivedBy: undefined,
    fetching: undefined,
    file: undefined,
  };
}

/** The most that a file of a media may have: 5 GB. */
export const MAX_FILE_BYTES = 5 * 1024 ** 3;

interface Arrival {
  /** Media types such as `image/*`. */
  readonly accept?: readonly string[];
  readonly maxBytes: number;
  /** The file is there; it is the content's already. Its sender is answered afterwards. */
  readonly arrived: (file: StoredFile) => void | Promise<void>;
  /** Whether an earlier file is still worked on, so that a failed fetch leaves the status alone. */
  readonly isBusy?: () => boolean;
}

/** Begins to take a content: by an upload that the caller is told of, or by fetching it. What was begun before ends. */
export function takeContent<Item extends Content>(
  { uploads, state, clock }: Pick<EmulatorContext, 'uploads' | 'state' | 'clock'>,
  store: Pick<ItemStore<Item>, 'find' | 'changed'>,
  content: Item,
  { method, download_url, source_url, mime_type }: GivenUpload,
  { accept, maxBytes, arrived, isBusy }: Arrival,
): void {
  const { siteId } = content;
  endComing(uploads, content);
  const take = async (file: StoredFile) => {
    const before = content.file;
    content.file = mime_type ? { ...file, declaredType: mime_type } : file;
    content.arrivedBy = content.upload;
    content.upload = undefined;
    content.fetching = undefined;
    content.errorMessage = null;
    state.usage.count(siteId, clock.now(), 'uploadedBytes', file.size);
    await arrived(content.file);
    if (before) await uploads.remove(before);
  };
  if (method !== 'fetch') {
    const wanted = { siteId, method: method === 'multipart' ? method : 'direct', accept, maxBytes } as const;
    content.upload = uploads.begin({ ...wanted, done: take });
    return;
  }
  const fetching = new AbortController();
  content.fetching = fetching;
  content.status = statusUnderWay(content);
  store.changed(content);
  const { signal } = fetching;
  void uploads.fetchFile(download_url ?? source_url ?? '', { maxBytes, signal }).then((fetched) => {
    // It may have been deleted, or given another content, meanwhile.
    if (content.fetching !== fetching || store.find(content.id) !== content) {
      if (fetched.ok) void uploads.remove(fetched.file);
      return undefined;
    }
    if (fetched.ok) return take(fetched.file);
    content.fetching = undefined;
    content.errorMessage = fetched.problem;
    // What viewers have already stays.
    if (!isBusy?.()) content.status = isWatchable(content) ? 'ready' : 'failed';
    store.changed(content);
    return undefined;
  });
}

/** Whether viewers have a content, the one before while it gets another. */
function isWatchable({ status }: Pick<Content, 'status'>): boolean {
  return status === 'ready' || status === 'updating';
}

/** The status while a content is made ready. */
export function statusUnderWay(content: Pick<Content, 'status'>): 'updating' | 'processing' {
  return isWatchable(content) ? 'updating' : 'processing';
}

/** An upload that is over holds its content no longer, and its link says so. */
function endComing(uploads: EmulatorContext['uploads'], content: Content): void {
  for (const upload of [content.upload, content.arrivedBy]) if (upload) uploads.cancel(upload);
  content.fetching?.abort();
  content.upload = undefined;
  content.arrivedBy = undefined;
  content.fetching = undefined;
}

/** Gives back what a content holds: its file, and what was begun. */
export function dropContent({ uploads }: Pick<EmulatorContext, 'uploads'>, content: Content): void {
  endComing(uploads, content);
  if (content.file) void uploads.remove(content.file);
  content.file = undefined;
}

type Linked = (content: Pick<Content, 'upload'>, view: { readonly origin: string }) => string | undefined;

const linkOf =
  (name: string): Linked =>
  ({ upload }, { origin }) =>
    upload && uploadFields(upload, origin)[name];

/** Where what was begun is to be sent, for the answer of the call that began it. */
export const UPLOAD_LINKS = {
  upload_link: linkOf('upload_link'),
  upload_id: linkOf('upload_id'),
  upload_token: linkOf('upload_token'),
};
