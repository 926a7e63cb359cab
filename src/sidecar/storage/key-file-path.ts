import { join, sep } from 'node:path';
import type { StreamId } from '../../drm/stream-id';

/**
 * The absolute path of a stream's key file under `folder` (absolute), and the sub-folders on the way to it.
 * @throws RangeError when the path would leave the folder, whatever the stream id says.
 */
export function keyFilePath(folder: string, streamId: StreamId): { path: string; subFolders: string[] } {
  const parts = streamId.split('/');
  const path = `${join(folder, ...parts)}.key`;
  const root = folder.endsWith(sep) ? folder : folder + sep;
  if (!path.startsWith(root) || path.includes('\0'))
    throw new RangeError('A key file must lie in its folder');
  const subFolders = parts.slice(0, -1).map((_part, index) => join(folder, ...parts.slice(0, index + 1)));
  return { path, subFolders };
}
