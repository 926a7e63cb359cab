import { HttpError, type Problem } from '../../http/errors';
import type { EmulatorContext } from '../context';
import type { StoredFile, Upload } from '../uploads/upload';
import { uploadFields } from '../uploads/uploads';

export type ContentStatus = 'created' | 'processing' | 'updating' | 'ready' | 'failed';

/** What something has whose content comes from outside. */
export interface Content {
  status: ContentStatus;
  errorMessage: string | null;
  /** What was begun last, until its file is there. */
  upload: Upload | undefined;
  /** Ends what is being fetched. */
  fetching?: AbortController | undefined;
  /** What was uploaded, or fetched. */
  file: StoredFile | undefined;
}

/** How a content is to come, as a call gives it. */
export interface GivenUpload {
  readonly method?: string | null | undefined;
  readonly mime_type?: string | null | undefined;
  readonly download_url?: string | null | undefined;
  readonly source_url?: string | null | undefined;
  readonly trim_in_point?: string | null | undefined;
  readonly trim_out_point?: string | null | undefined;
}

/** The fields that go with one method alone. */
const BELONGS = { download_url: 'fetch', source_url: 'external' } as const;

/**
 * The method of an upload, when its fields fit together.
 * @throws HttpError 400 `invalid_body` with every problem at once.
 */
export function methodOf(given: GivenUpload): 'direct' | 'multipart' | 'fetch' | 'external' {
  const method = (given.method ?? 'direct') as 'direct' | 'multipart' | 'fetch' | 'external';
  const problems: Problem[] = [];
  const refuse = (description: string) => problems.push({ code: 'invalid_body', description });
  for (const [name, goesWith] of Object.entries(BELONGS)) {
    const isGiven = typeof given[name as keyof typeof BELONGS] === 'string';
    if (method === goesWith && !isGiven) refuse(`upload.${name}: is missing; the method ${method} needs it`);
    if (method !== goesWith && isGiven)
      refuse(`upload.${name}: goes with the method ${goesWith}, not with ${method}`);
  }
  const { trim_in_point: begin, trim_out_point: end } = given;
  if (method === 'external' && (begin || end)) {
    refuse('upload.trim_in_point and trim_out_point: cannot be set for the method external');
  } else if (begin && end && begin >= end) {
    refuse('upload.trim_out_point: must be after trim_in_point');
  }
  if (problems.length > 0) throw new HttpError(400, problems);
  return method;
}

interface Arrival {
  /** Media types such as `image/*`. */
  readonly accept?: readonly string[];
  readonly maxBytes: number;
  /** The file is there; it is the content's already. */
  readonly arrived: (file: StoredFile) => void;
  /** It could not be fetched; the content says so already. */
  readonly failed?: () => void;
}

/**
 * Begins to take a content: by an upload that the caller is told of, or by fetching it. Call it when everything else of
 * the request is known to be right.
 */
export function takeContent(
  { uploads }: Pick<EmulatorContext, 'uploads'>,
  content: Content & { readonly siteId: string },
  { method, download_url, mime_type }: GivenUpload,
  { accept, maxBytes, arrived, failed }: Arrival,
): void {
  endBegun({ uploads }, content);
  const take = (file: StoredFile) => {
    if (content.file) uploads.remove(content.file);
    content.file = mime_type ? { ...file, declaredType: mime_type } : file;
    content.upload = undefined;
    content.errorMessage = null;
    arrived(content.file);
  };
  if (method !== 'fetch') {
    const { siteId } = content;
    const wanted = { siteId, method: method === 'multipart' ? method : 'direct', accept, maxBytes } as const;
    content.upload = uploads.begin({ ...wanted, done: take });
    return;
  }
  const before = content.status;
  content.status = before === 'ready' ? 'updating' : 'processing';
  const fetching = new AbortController();
  content.fetching = fetching;
  void uploads.fetchFile(download_url ?? '', { maxBytes, signal: fetching.signal }).then((fetched) => {
    if (content.fetching === fetching) content.fetching = undefined;
    if (fetched.ok) {
      take(fetched.file);
      return;
    }
    if (fetched.ended) return;
    // What viewers have already stays.
    content.status = before === 'ready' ? 'ready' : 'failed';
    content.errorMessage = fetched.problem;
    failed?.();
  });
}

/** Gives back what a content holds: its file, and what was begun. */
export function dropContent({ uploads }: Pick<EmulatorContext, 'uploads'>, content: Content): void {
  endBegun({ uploads }, content);
  if (content.file) uploads.remove(content.file);
  content.file = undefined;
}

function endBegun({ uploads }: Pick<EmulatorContext, 'uploads'>, content: Content): void {
  if (content.upload) uploads.cancel(content.upload);
  content.fetching?.abort();
  content.upload = undefined;
  content.fetching = undefined;
}

type Linked = (content: Content, view: { readonly origin: string }) => string | undefined;

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
