import { sep } from 'node:path';
import type { StreamId } from '../../api/stream-id';

export interface KeyFilePath {
  /** Absolute. */
  readonly path: string;
  /** The names of the sub-folders on the way to it. */
  readonly subFolders: readonly string[];
  /** The name of the file in the last of them. */
  readonly name: string;
}

/** Empty parts, `.` and `..`, and what ends a path. */
const LEADS_ELSEWHERE = /(?:^|\/)\.{0,2}(?:\/|$)|\0/;

/**
 * Where a stream's key file lies under `folder` (absolute).
 * @throws RangeError when the path would leave the folder, whatever passed the stream id.
 */
export function keyFilePath(folder: string, streamId: StreamId): KeyFilePath {
  if (LEADS_ELSEWHERE.test(streamId)) throw new RangeError('A key file must lie in its folder');
  const path = `${folder.endsWith(sep) ? folder : folder + sep}${streamId}.key`;
  const end = streamId.lastIndexOf('/');
  const subFolders = end < 0 ? [] : streamId.slice(0, end).split('/');
  return { path, subFolders, name: `${streamId.slice(end + 1)}.key` };
}
