import { count } from '../../terminal/text';
import { type Check, error, ok, someOf, warning } from './finding';

export interface NamedStreams {
  readonly groups: readonly { readonly file: string; readonly members: readonly string[] }[];
  /** From `.stream` files; the packager knows such a stream by the file's whole name. */
  readonly streamFiles: readonly string[];
}

export function groupNames({ groups }: NamedStreams): Set<string> {
  return new Set(groups.map(({ file }) => (file.split('/').at(-1) ?? '').replace(/\.smil$/i, '')));
}

export function streamNames({ groups, streamFiles }: NamedStreams): Set<string> {
  return new Set([...groups.flatMap(({ members }) => members), ...streamFiles]);
}

export function* checkNamedStreams(named: NamedStreams, ids: ReadonlySet<string>): Generator<Check> {
  const streams = streamNames(named);
  for (const { file, members } of named.groups) {
    const missing = members.filter((member) => !ids.has(member));
    const names = someOf(missing.map((member) => withHint(member, ids)));
    if (missing.length > 0 && missing.length < members.length)
      yield error(
        'group_partly_keyed',
        `${file}: no key file for ${names}, so part of the group plays in the clear`,
        'provision these streams: each rendition needs its own file',
      );
    else if (missing.length > 0)
      yield warning(
        'group_without_keys',
        `${file}: no stream of it has a key file (${names})`,
        'provision them, if this content should be protected',
      );
  }
  const bare = named.streamFiles.filter((name) => !ids.has(name));
  if (bare.length > 0)
    yield warning(
      'stream_without_key',
      `No key file for ${someOf(bare.map((name) => withHint(name, ids)))}, which a .stream file names`,
      'provision them, if these streams should be protected',
    );
  if (streams.size > 0 && [...streams].every((name) => ids.has(name)))
    yield ok('streams', `The packager's files name ${count(streams.size, 'stream')}, each with a key file`);
}

export function checkGivenStreams(given: readonly string[], ids: ReadonlySet<string>): Check[] {
  const missing = given.filter((name) => !ids.has(name));
  if (missing.length === 0)
    return [ok('given_streams', `${count(given.length, 'stream')}, each with a key file`)];
  const named = someOf(missing.map((name) => withHint(name, ids)));
  return [
    error(
      'key_file_missing',
      `No key file for ${named}`,
      'provision them with packager-drm put, or a manifest with packager-drm apply',
    ),
  ];
}

function withHint(name: string, ids: ReadonlySet<string>): string {
  const bare = name.replace(/\.(?:mp4|m4v|mov|m4a|smil|stream)$/i, '');
  return bare !== name && ids.has(bare)
    ? `${name} (there is ${bare}.key, but the name keeps its ending: ${name}.key)`
    : name;
}
