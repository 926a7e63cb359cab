import { join, sep } from 'node:path';
import { type Checked, fault } from '../../drm/bytes';

const MOST_CHARACTERS = 200;
/** How many parts a stream id can have, and so how deep its key file can lie. */
export const MOST_PARTS = 8;
const PART = /^[A-Za-z0-9_\-~@+][A-Za-z0-9._\-~@+]*$/;

/**
 * A stream id as the packager names its stream: 1 to 200 letters, digits and `. _ - ~ @ +`, in up to 8 parts divided
 * by `/` (sub-folders), none starting with a dot. This is the first fence against path tricks; `keyFilePath` is the
 * second.
 */
export type StreamId = string & { readonly brand: 'StreamId' };

export function parseStreamId(text: string): Checked<StreamId> {
  if (text.length === 0) return fault('The stream id is empty.');
  if (text.length > MOST_CHARACTERS) {
    return fault(`The stream id has ${text.length} characters; ${MOST_CHARACTERS} are allowed.`);
  }
  const parts = text.split('/');
  if (parts.length > MOST_PARTS) {
    return fault(`The stream id has ${parts.length} parts; ${MOST_PARTS} are allowed.`);
  }
  if (parts.some((part) => part === '')) return fault('A part of the stream id is empty.');
  if (parts.some((part) => part.startsWith('.')))
    return fault('No part of a stream id may start with a dot.');
  if (!parts.every((part) => PART.test(part))) {
    return fault('A stream id takes letters, digits and . _ - ~ @ + (and %2F between sub-folders).');
  }
  return { ok: true, value: text as StreamId };
}

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
