import type { StoredFile } from './upload';

/** What a file says of itself. */
export interface FileFacts {
  readonly mimeType?: string;
  readonly mediaType?: 'video' | 'audio';
  /** Seconds. */
  readonly duration?: number;
  /** Pixels. */
  readonly width?: number;
  readonly height?: number;
}

export function probe(_file: StoredFile): Promise<FileFacts | undefined> {
  return Promise.resolve(undefined);
}
