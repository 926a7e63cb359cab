import { parseStreamId } from '../../api/stream-id';
import type { KeyFileSummary } from '../../drm/check/key-file-text';
import { count } from '../output';
import { type Finding, someOf, warning } from './finding';
import type { FileKeys } from './key-clashes';

/** `other` is a device, a pipe or a socket. */
export type EntryKind = 'file' | 'link' | 'folder' | 'other';

/** Something in a key folder. */
export interface FolderEntry {
  /** Below the key folder, with slashes. */
  readonly path: string;
  readonly kind: EntryKind;
  readonly size: number;
  readonly mtimeMs: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** What a key file's text says, without its secrets; undefined when it may not be read. */
  readonly summary: KeyFileSummary | undefined;
  /** Undefined when it has none that are well formed, or may not be read. */
  readonly keys: FileKeys | undefined;
}

const KEY = '.key';
const GROUP = /\.smil$|^(?:smil|ngrp):/i;

/** The stream id of a key file's path, or undefined when the path is not that of a key file. */
function streamIdOf({ path }: FolderEntry): string | undefined {
  const isHidden = path.split('/').some((part) => part.startsWith('.'));
  return path.endsWith(KEY) && !isHidden ? path.slice(0, -KEY.length) : undefined;
}

/** The same for what the packager can read there: a file or a link. */
export function keyFileIdOf(entry: FolderEntry): string | undefined {
  return isFileOrLink(entry) ? streamIdOf(entry) : undefined;
}

/** Whether a key file is named after a group of streams: by a form of name that no stream has, or by a known group. */
export function isGroupName(id: string, groups: ReadonlySet<string>, streams: ReadonlySet<string>): boolean {
  return GROUP.test(id) || (groups.has(id) && !streams.has(id));
}

/**
 * Finds files in a key folder that the packager never reads, or the sidecar. `groups` are the names of
 * SMIL documents, `streams` those of streams.
 */
export function checkNames(
  entries: readonly FolderEntry[],
  groups: ReadonlySet<string>,
  streams: ReadonlySet<string>,
): Finding[] {
  const named = entries.filter(isFileOrLink);
  const ids = named.flatMap((entry) => streamIdOf(entry) ?? []);
  const isGroup = (id: string) => isGroupName(id, groups, streams);
  const pathsOf = (found: (entry: FolderEntry) => boolean, among: readonly FolderEntry[] = named) =>
    among.filter(found).map(({ path }) => path);
  return [
    about(ids.filter(isGroup), (names, files) =>
      warning(
        'group_key_file',
        `${files}: named after a group, which the packager never reads: ${names}`,
        'give each member stream a key file (packager-drm apply takes the SMIL), and delete these',
      ),
    ),
    about(pathsOf(isWrongSuffix), (paths, files) =>
      warning(
        'wrong_suffix',
        `${files}: not named <stream>.key, so the packager never reads it: ${paths}`,
        'rename to <stream>.key (small letters, nothing after it), or delete',
      ),
    ),
    about(pathsOf(isTemporary), (paths, files) =>
      warning(
        'temporaries',
        `${files}: temporary of the sidecar, left over unless it is writing now: ${paths}`,
        'restart the sidecar on this folder: it sweeps them at start',
      ),
    ),
    about(
      ids.filter((id) => !isGroup(id) && !parseStreamId(id).ok),
      (names, files) =>
        warning(
          'unmanageable_name',
          `${files}: a name that the sidecar takes for no stream id: ${names}`,
          'name streams with letters, digits and . _ - ~ @ +',
        ),
    ),
    about(
      pathsOf((entry) => entry.kind === 'link' && streamIdOf(entry) !== undefined),
      (paths, files) =>
        warning(
          'link',
          `${files}: a link, which the packager follows and the sidecar does not: ${paths}`,
          'put the file itself there, or provision the stream',
        ),
    ),
    about(
      pathsOf((entry) => !isFileOrLink(entry) && streamIdOf(entry) !== undefined, entries),
      (paths) =>
        warning(
          'not_a_file',
          `In the place of a key file stands a folder or a pipe, so the sidecar refuses to write there: ${paths}`,
          'take it away, or name it otherwise',
        ),
    ),
  ].flat();
}

function about(names: readonly string[], say: (names: string, files: string) => Finding): Finding[] {
  return names.length === 0 ? [] : [say(someOf(names), count(names.length, 'file'))];
}

function isFileOrLink({ kind }: FolderEntry): boolean {
  return kind === 'file' || kind === 'link';
}

function isTemporary({ path }: FolderEntry): boolean {
  return /(?:^|\/)\.packagerdrmapi-[^/]*\.tmp$/.test(path);
}

function isWrongSuffix(entry: FolderEntry): boolean {
  return /\.key[^/]*$/i.test(entry.path) && streamIdOf(entry) === undefined;
}
