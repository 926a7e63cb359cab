import { parseStreamId } from '../../api/stream-id';
import { readSmil } from '../../drm/smil';
import type { FileFault, ReadText } from '../yaml-fields';
import type { GroupEntry, ManifestFile, StreamEntry } from './manifest-schema';

/** Where an entry stands in its file. */
export interface Place {
  readonly path: readonly [section: string, index: number];
  readonly line: number | undefined;
}

/** An entry of a manifest with the streams that it means. */
interface ClaimedStream {
  readonly entry: StreamEntry;
  readonly place: Place;
}

export interface ClaimedGroup {
  readonly entry: GroupEntry;
  readonly place: Place;
  /** What the group is known by. */
  readonly name: string;
  /** Without the slash at its end. */
  readonly folder: string | undefined;
  /** The text of its SMIL file. */
  readonly document: string | undefined;
  readonly streamIds: readonly string[];
}

export interface Faults {
  readonly all: readonly FileFault[];
  tell(line: number | undefined, description: string, end?: '?'): void;
}

/** Collects faults; one of the defaults, which is met with every stream that takes them, is told once. */
export function createFaults(): Faults {
  const all: FileFault[] = [];
  const told = new Set<string>();
  return {
    all,
    tell: (line, description, end) => {
      const sentence = `${line} ${description}`;
      if (!told.has(sentence)) all.push({ line, description, end });
      told.add(sentence);
    },
  };
}

/**
 * Finds out which streams the entries of a manifest mean, and tells what is wrong with their names.
 * @param readText answers the text of a SMIL file, undefined when it isn't there.
 */
export function claimStreams(
  file: ManifestFile,
  lineOf: ReadText['lineOf'],
  readText: (path: string) => string | undefined,
  { tell }: Faults,
): { readonly streams: readonly ClaimedStream[]; readonly groups: readonly ClaimedGroup[] } {
  const seen = new Map<string, number | undefined>();

  const claim = (streamId: string, line: number | undefined) => {
    const parsed = parseStreamId(streamId);
    if (!parsed.ok) {
      tell(line, parsed.problem.description);
      return;
    }
    if (seen.has(streamId)) {
      const before = seen.get(streamId);
      const where = before === undefined ? '' : ` on line ${before}`;
      tell(line, `${streamId} is given before${where}; give each stream once`);
    }
    seen.set(streamId, line);
  };

  const namesOfSmil = (document: string | undefined, { path }: Place): readonly string[] => {
    const read = document === undefined ? undefined : readSmil(document);
    if (read?.ok) return read.value;
    tell(
      lineOf([...path, 'smil'], 'name'),
      `smil ${read ? read.problem.description : 'names a file that can’t be read, or is not UTF-8'}`,
    );
    return [];
  };

  const streams = (file.streams ?? []).map((entry, index): ClaimedStream => {
    const place: Place = { path: ['streams', index], line: lineOf(['streams', index]) };
    claim(entry.streamid, place.line);
    return { entry, place };
  });

  const groups = (file.groups ?? []).map((entry, index): ClaimedGroup => {
    const place: Place = { path: ['groups', index], line: lineOf(['groups', index]) };
    const { members, smil, tracks } = entry;
    const ofTracks = tracks ? Object.values(tracks).flat() : undefined;
    const folder = entry.folder?.replace(/\/$/, '');
    const [first] = members ?? ofTracks ?? [];
    const name = smil ? `the group of ${smil}` : first ? `the group of ${memberName(first)}` : 'the group';
    if ([members, smil, tracks].filter(Boolean).length !== 1)
      tell(place.line, 'a group has either members or smil, or with cpix tracks');
    if (folder && !parseStreamId(folder).ok) {
      const line = lineOf([...place.path, 'folder'], 'name');
      tell(line, 'folder must be the first parts of a stream id, without a slash before it');
    }
    const document = smil ? readText(smil) : undefined;
    const names = members?.map(memberName) ?? ofTracks ?? (smil ? namesOfSmil(document, place) : []);
    const streamIds = names.map((member) => `${folder ? `${folder}/` : ''}${member}`);
    for (const streamId of streamIds) claim(streamId, place.line);
    return { entry, place, name, folder, document, streamIds };
  });

  return { streams, groups };
}

export type Member = NonNullable<GroupEntry['members']>[number];

/** The stream id of a group's member, without the group's folder. */
export function memberName(member: Member): string {
  return typeof member === 'object' ? member.streamid : member;
}
