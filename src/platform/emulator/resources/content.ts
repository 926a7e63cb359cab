import * as z from 'zod';
import type { ItemStore } from '../listing/item-store';
import { type StoredFile, type Upload, type Uploads, uploadFields } from '../uploads/uploads';
import { Choice, KeptFile, MediaType, row, type ShownFields, Text, WebAddress } from './fields';
import type { GivenUpload, Platform } from './resource';

const shownOnce = (says: string) => row(z.string(), says, { once: true });

const STATUS = ['created', 'processing', 'updating', 'ready', 'failed'] as const;

export const STATE_FIELDS = {
  status: row(
    Choice(STATUS),
    '`created` until its file is there, `processing` or `updating` until it can be played, then `ready`, or `failed`.',
    { filter: 'text' },
  ),
  error_message: row(z.string().nullable(), 'Why it failed.'),
} as const satisfies ShownFields;

/** The fields of every resource with a content. Only the answer that starts an upload has its addresses. */
export const CONTENT_FIELDS = {
  ...STATE_FIELDS,
  upload_link: shownOnce('Where to PUT the file, for the method `direct`.'),
  upload_id: shownOnce('The upload whose parts to send, for the method `multipart`.'),
  upload_token: shownOnce('The bearer token of this upload, for the method `multipart`.'),
} as const satisfies ShownFields;

export const uploadBy = (...methods: readonly [string, ...string[]]) =>
  ({
    method: row(
      Choice(methods),
      'How the file comes: sent to a link, sent in parts, fetched from an address, or left where it is.',
      { default: 'direct' },
    ),
    mime_type: row(MediaType, 'The media type of the file.'),
    download_url: row(WebAddress, 'Where to fetch the file from, for the method `fetch`.'),
  }) as const;

export type ContentStatus = (typeof STATUS)[number];

export const CONTENT_KEPT = {
  status: Choice(STATUS).default('created'),
  errorMessage: Text.nullable().default(null),
  file: KeptFile.optional(),
};

export interface Content extends z.output<z.ZodObject<typeof CONTENT_KEPT>> {
  readonly id: string;
  readonly siteId: string;
  /** The latest upload, until its file has arrived. */
  upload?: Upload | undefined;
  /** The upload of the file. Its sender may have lost the answer, and sends it again. */
  arrivedBy?: Upload | undefined;
  fetching?: AbortController | undefined;
}

export const MAX_FILE_BYTES = 5 * 1024 ** 3;

interface Arrival {
  readonly accept?: readonly string[];
  readonly maxBytes: number;
  /** The file is there; it is the content's already. Its sender is answered afterwards. */
  readonly arrived: (file: StoredFile) => void | Promise<void>;
}

/** Starts to take a content: by an upload whose addresses the caller gets, or by a fetch. It ends an earlier one. */
export function takeContent<Item extends Content>(
  { uploads, state, clock }: Platform,
  store: Pick<ItemStore<Item>, 'find' | 'change'>,
  content: Item,
  { method, download_url, source_url, mime_type }: GivenUpload,
  { accept, maxBytes, arrived }: Arrival,
): void {
  const { siteId } = content;
  cancelArrival(uploads, content);
  const take = async (file: StoredFile) => {
    const before = content.file;
    content.file = mime_type ? { ...file, declaredType: mime_type } : file;
    content.arrivedBy = content.upload;
    content.upload = undefined;
    content.errorMessage = null;
    state.usage.count(siteId, clock.now(), 'uploaded_bytes', file.size);
    await arrived(content.file);
    if (before) await uploads.files.remove(before);
  };
  if (method !== 'fetch') {
    const wanted = { siteId, method: method === 'multipart' ? method : 'direct', accept, maxBytes } as const;
    content.upload = uploads.begin({ ...wanted, done: take });
    return;
  }
  const fetching = new AbortController();
  content.fetching = fetching;
  store.change(content, { status: statusUnderWay(content) } as Partial<Item>);
  const { signal } = fetching;
  void uploads.fetchFile(download_url ?? source_url ?? '', { maxBytes, signal }).then((fetched) => {
    // It may have been deleted, or given another content, meanwhile.
    if (content.fetching !== fetching || store.find(content.id) !== content) {
      if (fetched.ok) void uploads.files.remove(fetched.file);
      return undefined;
    }
    if (fetched.ok) return take(fetched.file);
    // Viewers keep the former content.
    const status = isWatchable(content) ? 'ready' : 'failed';
    store.change(content, { errorMessage: fetched.problem, status } as Partial<Item>);
    return undefined;
  });
}

/** Whether viewers have a content, the one before while it gets another. */
function isWatchable({ status }: Pick<Content, 'status'>): boolean {
  return status === 'ready' || status === 'updating';
}

export function statusUnderWay(content: Pick<Content, 'status'>): 'updating' | 'processing' {
  return isWatchable(content) ? 'updating' : 'processing';
}

/** The link of an ended upload answers that it is over. */
function cancelArrival(uploads: Uploads, content: Content): void {
  for (const upload of [content.upload, content.arrivedBy]) if (upload) uploads.cancel(upload);
  content.fetching?.abort();
  Object.assign(content, { upload: undefined, arrivedBy: undefined, fetching: undefined });
}

/** Ends the upload or fetch that was under way when the state was saved: nothing continues it. */
export function resumeContent(content: Content): void {
  if (content.status !== 'processing' && content.status !== 'updating') return;
  content.status = content.file || content.status === 'updating' ? 'ready' : 'failed';
  if (!content.file)
    content.errorMessage = 'The emulator was stopped before all of it was there. Send it again.';
}

export function dropContent({ uploads }: Pick<Platform, 'uploads'>, content: Content): void {
  cancelArrival(uploads, content);
  if (content.file) void uploads.files.remove(content.file);
  content.file = undefined;
}

export function dropAll<Item extends Content>(
  parts: Pick<Platform, 'uploads'>,
  store: ItemStore<Item>,
  items: readonly Item[],
): void {
  for (const item of items) {
    dropContent(parts, item);
    store.remove(item);
  }
}

const linkOf =
  (name: string) =>
  ({ upload }: Pick<Content, 'upload'>, { origin }: { readonly origin: string }) =>
    upload && uploadFields(upload, origin)[name];

export const CONTENT_VALUES = {
  upload_link: linkOf('upload_link'),
  upload_id: linkOf('upload_id'),
  upload_token: linkOf('upload_token'),
};
