import { readSmil } from '../../drm/smil';
import { parseStreamId } from '../../drm/stream-id';
import type { FileFault, ReadText } from '../yaml-text';
import type { LineUp, LineUpItem } from './lineup';
import type { Defaults, GroupEntry, LineUpFile, StreamEntry } from './lineup-wire';
import { isPerStream, mergeDefaults, missingFields } from './merge-defaults';
import { valueFaults } from './value-faults';

/** What a line-up takes from elsewhere; each answers undefined when it isn't there. */
export interface Sources {
  readText(path: string): string | undefined;
  variable(name: string): string | undefined;
}

interface Entry {
  readonly path: readonly [section: string, index: number];
  readonly line: number | undefined;
}

type KeyFields = Pick<Defaults, 'clientApiKey' | 'clientApiKeyFile' | 'clientApiKeyEnv'>;

/** Makes the requests of a line-up file's entries, or says every fault that they have together. */
export function buildLineUp(
  file: LineUpFile,
  lineOf: ReadText['lineOf'],
  sources: Sources,
): { readonly lineUp: LineUp; readonly faults: readonly FileFault[] } {
  const faults: FileFault[] = [];
  const told = new Set<string>();
  // A fault of the defaults would be told with every stream that takes them.
  const tell = (line: number | undefined, description: string) => {
    const sentence = `${line} ${description}`;
    if (!told.has(sentence)) faults.push({ line, description });
    told.add(sentence);
  };
  const defaults = file.defaults ?? {};
  const seen = new Map<string, number | undefined>();

  const apiKeyOf = (fields: KeyFields, path: readonly PropertyKey[]): string | undefined => {
    const given = (['clientApiKey', 'clientApiKeyFile', 'clientApiKeyEnv'] as const).filter(
      (name) => fields[name],
    );
    const [name] = given;
    if (name === undefined) return undefined;
    const line = lineOf([...path, name], 'name');
    if (given.length > 1) tell(line, `${given.join(' and ')}: give one of them`);
    const { clientApiKey, clientApiKeyFile, clientApiKeyEnv } = fields;
    if (clientApiKey) return clientApiKey;
    const read = clientApiKeyFile
      ? sources.readText(clientApiKeyFile)?.replace(/\r?\n$/, '')
      : sources.variable(clientApiKeyEnv ?? '');
    if (!read) {
      const what = clientApiKeyFile
        ? 'names a file that is empty, no UTF-8 or can’t be read'
        : 'names a variable that is not set';
      tell(line, `${name} ${what}`);
    }
    return read || undefined;
  };
  const defaultKey = apiKeyOf(defaults, ['defaults']);

  const claim = (streamId: string, line: number | undefined) => {
    const parsed = parseStreamId(streamId);
    if (!parsed.ok) {
      tell(line, parsed.fault.replace(/\.$/, ''));
      return;
    }
    if (seen.has(streamId)) {
      const before = seen.get(streamId);
      const where = before === undefined ? '' : ` on line ${before}`;
      tell(line, `${streamId} is given before${where}; give each stream once`);
    }
    seen.set(streamId, line);
  };

  const bodyOf = (
    own: Omit<StreamEntry, 'streamid'> | GroupEntry,
    { path, line }: Entry,
    name: string,
    streamId?: string,
  ) => {
    const key = apiKeyOf(own, path) ?? defaultKey;
    const body = mergeDefaults(own, defaults, key, streamId);
    const isGroup = streamId === undefined;
    // The members of a group may bring their own, which the sidecar looks at.
    const missing = missingFields(body).filter((field) => !(isGroup && field === 'contentId'));
    if (missing.length > 0) {
      const description = `${name} lacks ${listed(missing)}; give it here or in defaults, or supply the keys by cenc or fairplay`;
      tell(line, description);
    }
    return body;
  };

  const checkValues = (body: Readonly<Record<string, unknown>>, own: object, path: Entry['path']) => {
    for (const { path: field, fault } of valueFaults(body)) {
      const [name = ''] = field;
      const given = [name, ...(name === 'clientApiKey' ? ['clientApiKeyFile', 'clientApiKeyEnv'] : [])];
      const here = given.find((known) => Reflect.get(own, known));
      const source = here === undefined ? ['defaults', ...field] : [...path, here, ...field.slice(1)];
      tell(lineOf(source, 'name'), `${field.join('.')} ${fault}`);
    }
  };

  const streams = (file.streams ?? []).map((entry, index): LineUpItem => {
    const place: Entry = { path: ['streams', index], line: lineOf(['streams', index]) };
    const { streamid } = entry;
    claim(streamid, place.line);
    const name = parseStreamId(streamid).ok ? streamid : 'the stream';
    const body = { streamid, ...bodyOf(entry, place, name, streamid) };
    checkValues(body, entry, place.path);
    return { name: streamid, line: place.line, streamIds: [streamid], body };
  });

  const namesOfSmil = (document: string | undefined, { path }: Entry): readonly string[] => {
    const read = document === undefined ? undefined : readSmil(document);
    if (read?.ok) return read.value;
    tell(
      lineOf([...path, 'smil'], 'name'),
      `smil ${read ? read.fault : 'names a file that can’t be read, or is not UTF-8'}`,
    );
    return [];
  };

  const groups = (file.groups ?? []).map((entry, index): LineUpItem => {
    const place: Entry = { path: ['groups', index], line: lineOf(['groups', index]) };
    const { members, smil, keys } = entry;
    const folder = entry.folder?.replace(/\/$/, '');
    const name = smil
      ? `the group of ${smil}`
      : members?.[0]
        ? `the group of ${nameOf(members[0])}`
        : 'the group';
    if (Boolean(members) === Boolean(smil)) {
      tell(place.line, 'a group has either members or smil');
    }
    if (folder && !parseStreamId(folder).ok) {
      const line = lineOf([...place.path, 'folder'], 'name');
      tell(line, 'folder must be the first parts of a stream id, without a slash before it');
    }
    const document = smil ? sources.readText(smil) : undefined;
    const names = members?.map(nameOf) ?? (smil ? namesOfSmil(document, place) : []);
    const streamIds = names.map((name) => `${folder ? `${folder}/` : ''}${name}`);
    for (const streamId of streamIds) claim(streamId, place.line);
    const perStream = isPerStream(defaults.contentId);
    const { contentId, ...others } = bodyOf(entry, place, name);
    const ownContentId = entry.contentId ?? (perStream ? undefined : contentId);
    const body = {
      ...(members && {
        members:
          keys === 'each' && perStream && !entry.contentId
            ? members.map((member) => withContentId(member, defaults))
            : members,
      }),
      ...(document !== undefined && { smil: document }),
      ...(folder && { folder }),
      ...(keys && { keys }),
      ...others,
      ...(ownContentId !== undefined && { contentId: ownContentId }),
    };
    checkValues(body, entry, place.path);
    for (const member of body.members ?? []) {
      if (typeof member === 'object') checkValues({ contentId: member.contentId }, member, place.path);
    }
    return { name, line: place.line, streamIds, body };
  });

  if (streams.length + groups.length === 0)
    faults.push({ description: 'the file names no streams and no groups' });
  return { lineUp: { streams, groups }, faults };
}

type Member = NonNullable<GroupEntry['members']>[number];

function nameOf(member: Member): string {
  return typeof member === 'object' ? member.streamid : member;
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

function withContentId(member: Member, defaults: Defaults): Member {
  if (typeof member === 'object' && member.contentId) return member;
  const streamid = nameOf(member);
  const { contentId } = mergeDefaults({}, { contentId: defaults.contentId }, undefined, streamid);
  return typeof contentId === 'string' ? { streamid, contentId } : member;
}
