import { join, sep } from 'node:path';
import type { StreamId } from '../../drm/stream-id';

export interface KeyFilePath {
  /** Absolute. */
  readonly path: string;
  /** The names of the sub-folders on the way to it. */
  readonly subFolders: readonly string[];
  /** The name of the file in the last of them. */
  readonly name: string;
}

/**
 * Where a stream's key file lies under `folder` (absolute).
 * @throws RangeError when the path would leave the folder, whatever the stream id says.
 */
export function keyFilePath(folder: string, streamId: StreamId): KeyFilePath {
  const parts = streamId.split('/');
  const path = `${join(folder, ...parts)}.key`;
  const root = folder.endsWith(sep) ? folder : folder + sep;
  if (!path.startsWith(root) || path.includes('\0'))
    throw new RangeError('A key file must lie in its folder');
  return { path, subFolders: parts.slice(0, -1), name: `${parts.at(-1)}.key` };
}
