import { SUPPLYING } from '../../api/key-file-request';
import { parseStreamId } from '../../api/stream-id';
import { type Checked, isJsonObject, type JsonObject } from '../../drm/bytes';
import { qualityFields } from '../../drm/quality';
import { readSmil } from '../../drm/smil';
import { checkFields, type FileProblem, type ReadText } from '../yaml-fields';
import {
  type Defaults,
  documentBody,
  type Fields,
  fillName,
  type GroupEntry,
  isPerStream,
  type ManifestFile,
  mergeDefaults,
  qualityEntry,
  requestFaults,
} from './manifest-fields';
import type { NamedSecrets } from './secrets';

/** A manifest as it is sent: one entry of a batch each, streams before groups. */
export type Manifest = readonly ManifestItem[];

export interface ManifestItem {
  readonly kind: 'streams' | 'groups';
  /** The stream id, or the name of a group in messages. */
  readonly name: string;
  readonly line: number | undefined;
  readonly streamIds: readonly string[];
  readonly body: JsonObject;
}

export interface ReadFile extends Pick<ReadText, 'lineOf'> {
  readonly file: ManifestFile;
  /** The folder of the file, from which relative paths start. */
  readonly folder: string;
  /** The text of a SMIL file; undefined when it can't be read. */
  readText(path: string): string | undefined;
}

/** Finds the streams that the entries of a manifest name, and adds the faults of the names. */
export function claimStreams({ file, lineOf, readText }: ReadFile, faults: FileProblem[]) {
  const seen = new Map<string, number | undefined>();

  const claim = (streamId: string, line: number | undefined) => {
    const parsed = parseStreamId(streamId);
    const former = seen.get(streamId);
    const where = former === undefined ? 'given twice' : `already on line ${former}`;
    if (!parsed.ok) faults.push({ line, description: parsed.problem.description });
    else if (seen.has(streamId))
      faults.push({ line, description: `${streamId} is ${where}; give each stream once` });
    seen.set(streamId, line);
  };

  const streams = (file.streams ?? []).map((entry, index) => {
    const path = ['streams', index];
    const line = lineOf(path);
    claim(entry.streamid, line);
    return { entry, path, line, name: entry.streamid, streamIds: [entry.streamid] };
  });

  const groups = (file.groups ?? []).map((entry, index) => {
    const path = ['groups', index];
    const line = lineOf(path);
    const { members, smil: smilFile, tracks, folder } = entry;
    if ([members, smilFile, tracks].filter(Boolean).length !== 1)
      faults.push({ line, description: 'a group has either members or smil, or with cpix tracks' });
    const smil = smilFile ? readText(smilFile) : undefined;
    const read = smil === undefined ? undefined : readSmil(smil);
    const named = members?.map(memberName) ?? (tracks && Object.values(tracks).flat());
    if (!named && smilFile && !read?.ok) {
      const why = read ? read.problem.description : "names a file that can't be read, or is not UTF-8";
      faults.push({ line: lineOf([...path, 'smil'], 'name'), description: `smil ${why}` });
    }
    const names = named ?? (read?.ok ? read.value.map((stream) => stream.name) : []);
    const streamIds = names.map((name) => (folder ? `${folder}/${name}` : name));
    for (const streamId of streamIds) claim(streamId, line);
    const first = smilFile ?? names[0];
    const name = first ? `the group of ${first}` : 'the group';
    return { entry, path, line, name, streamIds, names, smil };
  });

  return { streams, groups };
}

type Member = NonNullable<GroupEntry['members']>[number];

function memberName(member: Member): string {
  return typeof member === 'object' ? member.streamid : member;
}

interface Asked {
  readonly own: Fields;
  readonly path: readonly PropertyKey[];
  readonly line: number | undefined;
  readonly label: string;
  readonly streamId?: string;
  readonly base: Defaults;
  readonly isContentIdOptional: boolean;
}

const KEY_FIELDS = ['clientApiKey', 'clientApiKeyFile', 'clientApiKeyEnv'] as const;
const NOT_WITH_CPIX = [...SUPPLYING, 'client', ...KEY_FIELDS] as const;

/** Makes a batch's entries, or all faults. `needsContentId` is false when content ids are given later. */
export function buildManifest(read: ReadFile, secrets: NamedSecrets, needsContentId: boolean) {
  const { file, lineOf } = read;
  const faults: FileProblem[] = [];
  const report = (line: number | undefined, description: string) => faults.push({ line, description });
  const defaults = file.defaults ?? {};
  const perStream = isPerStream(defaults.contentId);
  const groupDefaults = perStream ? { ...defaults, contentId: undefined } : defaults;

  const apiKeyOf = (
    fields: Pick<Defaults, (typeof KEY_FIELDS)[number]>,
    path: readonly PropertyKey[],
  ): Checked<string> | undefined => {
    const given = KEY_FIELDS.filter((name) => fields[name]);
    const [name] = given;
    if (name === undefined) return undefined;
    const line = lineOf([...path, name], 'name');
    if (given.length > 1) report(line, `${given.join(' and ')}: give one of them`);
    if (fields.clientApiKey) return { ok: true, value: fields.clientApiKey };
    const secret = fields.clientApiKeyFile
      ? secrets.ofFile(fields.clientApiKeyFile)
      : secrets.ofVariable(fields.clientApiKeyEnv ?? '');
    if (!secret.ok) report(line, `${name} ${secret.problem.description}`);
    return secret;
  };
  const defaultKey = apiKeyOf(defaults, ['defaults']);

  const documentOf = (own: Fields, path: readonly PropertyKey[], name: string): string => {
    const other = NOT_WITH_CPIX.find((field) => own[field]);
    const refused = `${other} can't be used with cpix, whose document holds the keys`;
    if (other !== undefined) report(lineOf([...path, other], 'name'), refused);
    const text = secrets.ofDocument(name);
    if (!text.ok) report(lineOf([...path, 'cpix'], 'name'), `cpix ${text.problem.description}`);
    return text.ok ? text.value : '';
  };

  const mergedBody = (asked: Asked): JsonObject => {
    const { own, path, line, label, streamId, base, isContentIdOptional } = asked;
    const isSupplied = SUPPLYING.some((name) => own[name]);
    const stray = (['track', 'kid', 'period', 'systems'] as const).find((name) => own[name]);
    if (stray !== undefined && (isSupplied || (own.contentId ?? base.contentId) == null))
      report(lineOf([...path, stray], 'name'), `${stray} chooses in a CPIX document; give one with cpix`);
    const key = apiKeyOf(own, path) ?? defaultKey;
    const body = mergeDefaults(own, base, key?.ok ? key.value : undefined, streamId);
    if (isSupplied) return body;
    // Without a key of its own, a content may need neither client nor key: the protocol of the key provider decides.
    const isNamed = body.contentId !== undefined || isContentIdOptional;
    const needed = [
      ...(isNamed && key === undefined ? [] : ['client', ...(key?.ok === false ? [] : ['clientApiKey'])]),
      ...(isNamed ? [] : ['contentId']),
    ];
    const missing = needed.filter((name) => body[name] === undefined);
    if (missing.length > 0) {
      const names = missing.join(', ').replace(/, (?=\w+$)/, ' and ');
      const description = `${names} missing; give it here or in defaults, or supply the keys with cenc, fairplay, aes or cpix`;
      report(line, `${label}: ${description}`);
    }
    return body;
  };

  const requestOf = (asked: Asked): JsonObject => {
    const { own, path, base } = asked;
    const body = own.cpix ? documentBody(own, base, documentOf(own, path, own.cpix)) : mergedBody(asked);
    const lineOfField: ReadText['lineOf'] = ([field, ...inner], of) => {
      const given = field === 'clientApiKey' ? KEY_FIELDS : [field as keyof Fields];
      const here = given.find((name) => own[name as keyof Fields]);
      return lineOf([...(here === undefined ? ['defaults', field ?? ''] : [...path, here]), ...inner], of);
    };
    faults.push(...requestFaults(body, lineOfField));
    return body;
  };

  const { streams, groups } = claimStreams(read, faults);

  const keysOf = (keys: JsonObject, { entry, ...group }: (typeof groups)[number]): JsonObject => {
    const { members, smil, tracks, folder, keys: _keys, heights, bitrates, ...own } = entry;
    const common = entry.cpix ? own : { ...own, contentId: own.contentId ?? groupDefaults.contentId };
    const requests = Object.entries(keys).map(([quality, value]) => {
      const path = [...group.path, 'keys', quality];
      const checked = checkFields(qualityEntry, {
        value,
        lineOf: (inner, of) => lineOf([...path, ...inner], of),
      });
      if ('faults' in checked) {
        for (const fault of checked.faults)
          faults.push({ ...fault, field: `keys.${quality}: ${fault.field ?? ''}`.trim() });
        return [quality, {}];
      }
      const request = requestOf({
        own: qualityFields(quality, checked.value, common) as Fields,
        path,
        line: group.line,
        label: `${group.name}, ${quality}`,
        base: groupDefaults,
        isContentIdOptional: !needsContentId,
      });
      return [quality, request];
    });
    return Object.fromEntries(requests);
  };

  const ofStreams = streams.map(({ entry, path, line, name, streamIds }): ManifestItem => {
    const label = parseStreamId(name).ok ? name : 'the stream';
    const asked = { own: entry, path, line, label, streamId: name, base: defaults };
    const body = { streamid: name, ...requestOf({ ...asked, isContentIdOptional: !needsContentId }) };
    return { kind: 'streams', name, line, streamIds, body };
  });

  const ofGroups = groups.map((group): ManifestItem => {
    const { entry, path, line, name, streamIds, names, smil } = group;
    const { members, tracks, folder, keys, heights, bitrates } = entry;
    if (tracks && !entry.cpix && (entry.contentId ?? groupDefaults.contentId) == null)
      report(line, 'tracks are for a CPIX document or a content; give cpix or contentId');
    const isContentIdOptional = !needsContentId || keys !== 'quality';
    const isNamedAlone = keys === 'each' && perStream && !entry.contentId && !tracks;
    const named = (members ?? names).map((member) => withContentId(member, defaults));
    const body = {
      ...(isNamedAlone ? { members: named } : { members: members ?? undefined, smil }),
      tracks: tracks ?? undefined,
      folder: folder ?? undefined,
      keys: isJsonObject(keys) ? keysOf(keys, group) : (keys ?? undefined),
      heights: heights ? numbersIn(heights) : undefined,
      bitrates: bitrates ? numbersIn(bitrates) : undefined,
      ...(!isJsonObject(keys) &&
        requestOf({ own: entry, path, line, label: name, base: groupDefaults, isContentIdOptional })),
    };
    return { kind: 'groups', name, line, streamIds, body };
  });

  return { manifest: [...ofStreams, ...ofGroups], faults };
}

function withContentId(member: Member, defaults: Defaults): Member {
  if (typeof member === 'object' && member.contentId) return member;
  const streamid = memberName(member);
  return { streamid, contentId: fillName(defaults.contentId, { streamid }) };
}

/** A manifest is read without numbers: a content id may be 0123. */
function numbersIn(given: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(given).map(([name, most]) => [
      name,
      typeof most === 'string' && /^\d{1,10}$/.test(most) ? Number(most) : most,
    ]),
  );
}

/** Whether rules that only the sidecar knows apply: between a group's fields, or for a member's quality. */
export function hasGroupRules({ kind, body }: ManifestItem): boolean {
  const { members, keys, tracks, heights, bitrates } = body;
  const isMemberOfFields = Array.isArray(members) && members.some(isJsonObject);
  return kind === 'groups' && Boolean(keys || tracks || heights || bitrates || isMemberOfFields);
}
