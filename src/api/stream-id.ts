import { type Checked, refusedAs } from '../drm/bytes';
import { type Finding, warning } from '../drm/finding';

const MAX_CHARACTERS = 200;
/** The depth of its key file. */
export const MAX_PARTS = 8;
const PART = /^[A-Za-z0-9_\-~@+][A-Za-z0-9._\-~@+]*$/;

/**
 * 1 to 200 letters, digits and `. _ - ~ @ +`, in up to 8 parts divided by `/` (sub-folders), none starting
 * with a dot. This is the first fence against path tricks; the sidecar's `keyFilePath` is the second.
 */
export type StreamId = string & { readonly brand: 'StreamId' };

const invalid = refusedAs('invalid_stream_id');

/** A fault's sentence is whole, but for its full stop. */
export function parseStreamId(text: string): Checked<StreamId> {
  if (text.length === 0) return invalid('The stream id is empty');
  if (text.length > MAX_CHARACTERS) {
    return invalid(`The stream id has ${text.length} characters; ${MAX_CHARACTERS} are allowed`);
  }
  const parts = text.split('/');
  if (parts.length > MAX_PARTS) {
    return invalid(`The stream id has ${parts.length} parts; ${MAX_PARTS} are allowed`);
  }
  if (parts.some((part) => part === '')) return invalid('A part of the stream id is empty');
  // A key file may have that name: a folder would block it, or reveal that the file exists.
  if (parts.slice(0, -1).some((part) => part.toLowerCase().endsWith('.key')))
    return invalid('No sub-folder of a stream id may end in .key');
  if (parts.some((part) => part.startsWith('.')))
    return invalid('No part of a stream id may start with a dot');
  if (!parts.every((part) => PART.test(part))) {
    return invalid(
      'A stream id may have letters, digits and . _ - ~ @ +, and a / between sub-folders (%2F in an address)',
    );
  }
  return { ok: true, value: text as StreamId };
}

/** For a name of a group of streams: its key file is written, and never read. */
export function groupNameFindings(streamId: string): Finding[] {
  if (!/\.smil$/i.test(streamId)) return [];
  const description =
    'reads no key file of a group (.smil); each of its member streams needs its own, and a group in a batch or in a manifest writes them all';
  return [warning('group_name', { called: 'The packager' }, description)];
}

/** undefined: all stream ids. */
export function isWithinPrefixes(prefixes: readonly string[] | null | undefined, streamId: string): boolean {
  return !prefixes || prefixes.some((prefix) => streamId.startsWith(prefix));
}
