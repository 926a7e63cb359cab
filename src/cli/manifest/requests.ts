import { parseStreamId } from '../../api/stream-id';
import type { Checked } from '../../drm/bytes';
import { keyIdOf } from '../cpix-document';
import type { FileFault, ReadText } from '../yaml-fields';
import {
  type ClaimedGroup,
  claimStreams,
  createFaults,
  type Member,
  memberName,
  type Place,
} from './claim-streams';
import {
  type Defaults,
  type GroupEntry,
  type ManifestFile,
  requestFaults,
  type StreamEntry,
} from './manifest-schema';
import { divideByQuality, isByQuality, tellSameKeys } from './quality-groups';
import type { Manifest, ManifestItem } from './read-manifest';

/** What a manifest takes from elsewhere. */
interface Sources {
  /** Answers undefined when it isn't there. */
  readText(path: string): string | undefined;
  /** The key that a variable or a file holds; a fault goes on after the field's name. */
  readonly secrets: {
    ofVariable(name: string): Checked<string>;
    ofFile(path: string): Checked<string>;
    ofDocument(path: string): Checked<string>;
  };
}

type KeyFields = Pick<Defaults, 'clientApiKey' | 'clientApiKeyFile' | 'clientApiKeyEnv'>;

/**
 * Makes the requests of a manifest file's entries, or says every fault that they have together.
 * @param mayLack fields that a request need not have yet; `all` when some of the file could not be read.
 */
export function buildManifest(
  file: ManifestFile,
  lineOf: ReadText['lineOf'],
  sources: Sources,
  mayLack: readonly string[] | 'all' = [],
): { readonly manifest: Manifest; readonly faults: readonly FileFault[] } {
  const collected = createFaults();
  const { tell } = collected;
  const defaults = file.defaults ?? {};

  const apiKeyOf = (fields: KeyFields, path: readonly PropertyKey[]): Checked<string> | undefined => {
    const given = (['clientApiKey', 'clientApiKeyFile', 'clientApiKeyEnv'] as const).filter(
      (name) => fields[name],
    );
    const [name] = given;
    if (name === undefined) return undefined;
    const line = lineOf([...path, name], 'name');
    if (given.length > 1) tell(line, `${given.join(' and ')}: give one of them`);
    const { clientApiKey, clientApiKeyFile, clientApiKeyEnv } = fields;
    if (clientApiKey) return { ok: true, value: clientApiKey };
    const read = clientApiKeyFile
      ? sources.secrets.ofFile(clientApiKeyFile)
      : sources.secrets.ofVariable(clientApiKeyEnv ?? '');
    if (!read.ok) tell(line, `${name} ${read.problem.description}`);
    return read;
  };
  const defaultKey = apiKeyOf(defaults, ['defaults']);
  /** The text of an entry's CPIX document; empty where it can't be had, which is told, and undefined where there is none. */
  const documentOf = (own: Fields, path: readonly PropertyKey[]): string | undefined => {
    const lineAt = (name: string) => lineOf([...path, name], 'name');
    if (!own.cpix) {
      // Of a content, too, where the key provider answers a document: that is the sidecar's to know.
      const isOfContent = !own.cenc && !own.fairplay && (own.contentId ?? defaults.contentId) != null;
      const [stray] = isOfContent ? [] : CHOOSING.filter((name) => own[name]);
      if (stray !== undefined) tell(lineAt(stray), `${stray} chooses in a CPIX document; name one by cpix`);
      return undefined;
    }
    const [other] = (
      ['cenc', 'fairplay', 'client', 'clientApiKey', 'clientApiKeyFile', 'clientApiKeyEnv'] as const
    ).filter((name) => own[name]);
    if (other !== undefined)
      tell(lineAt(other), `${other} does not go with cpix, whose document holds the keys`);
    const read = sources.secrets.ofDocument(own.cpix);
    if (!read.ok) tell(lineAt('cpix'), `cpix ${read.problem.description}`);
    return read.ok ? read.value : '';
  };

  const claimed = claimStreams(file, lineOf, sources.readText, collected);

  const bodyOf = (
    own: Omit<StreamEntry, 'streamid'> | GroupEntry,
    { path, line }: Place,
    name: string,
    streamId?: string,
    mayBringContentId = false,
  ) => {
    const document = documentOf(own, path);
    if (document !== undefined) return documentBody(own, defaults, document);
    const key = apiKeyOf(own, path) ?? defaultKey;
    const body = mergeDefaults(own, defaults, key?.ok ? key.value : undefined, streamId);
    // The members of a group may bring their own content id, which the sidecar looks at. Of a key that can't be had it
    // is told why.
    const excused = [
      ...(mayBringContentId ? ['contentId'] : []),
      ...(key?.ok === false ? ['clientApiKey'] : []),
    ];
    // Which of them a content needs depends on the protocol of the key provider, which the sidecar knows. A key without
    // a client is a mistake by any.
    const isNamed = body.contentId !== undefined || mayLack.includes('contentId');
    const isOfAnyProtocol = isNamed && key === undefined;
    const missing = missingFields(body).filter(
      (field) =>
        mayLack !== 'all' &&
        ![...excused, ...mayLack].includes(field) &&
        (field === 'contentId' || !isOfAnyProtocol),
    );
    if (missing.length > 0) {
      const description = `${name} lacks ${listed(missing)}; give it here or in defaults, or supply the keys by cenc, fairplay or cpix`;
      tell(line, description);
    }
    return body;
  };

  const checkValues = (
    body: Readonly<Record<string, unknown>>,
    own: object,
    path: readonly PropertyKey[],
  ) => {
    for (const { path: field, fault } of requestFaults(body)) {
      const name = String(field[0]);
      const given = [name, ...(name === 'clientApiKey' ? ['clientApiKeyFile', 'clientApiKeyEnv'] : [])];
      const here = given.find((known) => Reflect.get(own, known));
      const source = here === undefined ? ['defaults', ...field] : [...path, here, ...field.slice(1)];
      tell(lineOf(source, 'name'), `${field.join('.')} ${fault}`);
    }
  };

  const streams = claimed.streams.map(({ entry, place }): ManifestItem => {
    const { streamid } = entry;
    const name = parseStreamId(streamid).ok ? streamid : 'the stream';
    const body = { streamid, ...bodyOf(entry, place, name, streamid) };
    checkValues(body, entry, place.path);
    return { kind: 'streams', name: streamid, line: place.line, streamIds: [streamid], body };
  });

  const tellTracks = (entry: GroupEntry, { path, line }: Place) => {
    if (!entry.cpix) tell(line, 'tracks are those of a CPIX document; name one by cpix');
    for (const name of ['track', 'kid', 'keys'] as const)
      if (entry[name])
        tell(lineOf([...path, name], 'name'), `${name} does not go with tracks, which choose the keys`);
  };

  const qualityGroups = (group: ClaimedGroup): ManifestItem[] => {
    const { entry, place, name, folder } = group;
    const perStream = isPerStream(defaults.contentId);
    const common = entry.contentId ?? (perStream || entry.cpix ? undefined : defaults.contentId) ?? undefined;
    const items = divideByQuality(group, common, lineOf, collected).map(
      ({ quality, members, streamIds, own, fields }) => {
        const itsName = `${name}, ${quality}`;
        const { contentId, ...others } = bodyOf(fields, place, itsName);
        const ownContentId = fields.contentId ?? (perStream ? undefined : contentId);
        const isLacking = missingFields({ ...others, contentId: ownContentId }).includes('contentId');
        if (perStream && isLacking && mayLack !== 'all' && !mayLack.includes('contentId')) {
          tell(place.line, `${itsName} lacks contentId; that of defaults is for single streams`);
        }
        const body = {
          members,
          ...(folder && { folder }),
          ...others,
          ...(ownContentId !== undefined && { contentId: ownContentId }),
        };
        const isOwn = Object.keys(own).length > 0;
        checkValues(body, isOwn ? own : entry, isOwn ? [...place.path, 'keys', quality] : place.path);
        const item: ManifestItem = { kind: 'groups', name: itsName, line: place.line, streamIds, body };
        return { quality, item };
      },
    );
    tellSameKeys(
      items.map(({ quality, item }) => [quality, item.body]),
      place.line,
      collected,
    );
    return items.map(({ item }) => item);
  };

  const groups = claimed.groups.flatMap((group): ManifestItem[] => {
    const { entry, place, name, folder, document, streamIds } = group;
    if (isByQuality(entry)) return qualityGroups(group);
    const { members, keys, tracks } = entry;
    if (tracks) tellTracks(entry, place);
    for (const field of ['heights', 'bitrates'] as const) {
      if (entry[field]) tell(lineOf([...place.path, field], 'name'), `${field} goes with keys by quality`);
    }
    for (const member of members ?? []) {
      if (typeof member === 'object' && member.quality)
        tell(place.line, `${member.streamid} has a quality, and the group no keys by quality`);
    }
    const perStream = isPerStream(defaults.contentId);
    const { contentId, ...others } = bodyOf(entry, place, name, undefined, true);
    const ownContentId = entry.contentId ?? (perStream ? undefined : contentId);
    const body = {
      ...(members && {
        members:
          keys === 'each' && perStream && !entry.contentId
            ? members.map((member) => withContentId(member, defaults))
            : members,
      }),
      ...(document !== undefined && { smil: document }),
      ...(tracks && { tracks }),
      ...(folder && { folder }),
      ...(keys && { keys }),
      ...others,
      ...(ownContentId !== undefined && { contentId: ownContentId }),
    };
    checkValues(body, entry, place.path);
    for (const member of body.members ?? []) {
      if (typeof member === 'object') checkValues({ contentId: member.contentId }, member, place.path);
    }
    return [{ kind: 'groups', name, line: place.line, streamIds, body }];
  });

  return { manifest: [...streams, ...groups], faults: collected.all };
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

function withContentId(member: Member, defaults: Defaults): Member {
  if (typeof member === 'object' && member.contentId) return member;
  const streamid = memberName(member);
  const { contentId } = mergeDefaults({}, { contentId: defaults.contentId }, undefined, streamid);
  return typeof contentId === 'string' ? { streamid, contentId } : member;
}

type Fields = Omit<StreamEntry, 'streamid'> | GroupEntry;

/** What placeholders in defaults stand for. */
interface Placeholders {
  readonly streamid?: string | undefined;
  readonly contentId?: string | undefined;
}

const NEEDED = ['client', 'clientApiKey', 'contentId'] as const;

/**
 * The fields of a request: an entry's own, and of the defaults those that its kind of keys takes. An entry turns a
 * default part off by `null`. `clientApiKey` is what was read for the entry.
 */
function mergeDefaults(
  own: Fields,
  defaults: Defaults,
  clientApiKey: string | undefined,
  streamid?: string,
): Record<string, unknown> {
  const contentId = own.contentId ?? fill(defaults.contentId, { streamid });
  const names = { streamid, contentId };
  const cmaf = own.cmaf ?? defaults.cmaf ?? undefined;
  const common = { ...(contentId !== undefined && { contentId }), ...(cmaf !== undefined && { cmaf }) };
  if (!own.cenc && !own.fairplay) {
    const client = own.client ?? defaults.client ?? undefined;
    return {
      ...common,
      ...(client !== undefined && { client }),
      ...(clientApiKey !== undefined && { clientApiKey }),
      ...choiceOf({ ...own, systems: own.systems ?? defaults.systems }),
      ...(own.playready && { playready: own.playready }),
      ...(own.widevine && { widevine: own.widevine }),
    };
  }
  const { cenc, fairplay } = own;
  const playready = own.playready ?? (cenc && own.playready === undefined ? defaults.playready : undefined);
  const widevine = own.widevine ?? (cenc && own.widevine === undefined ? defaults.widevine : undefined);
  return {
    ...common,
    ...(cenc && { cenc }),
    ...(playready && { playready: withAddress(playready, defaults.playready?.laurl, names) }),
    ...(widevine && { widevine }),
    ...(fairplay && { fairplay: withAddress(fairplay, defaults.fairplay?.laurl, names) }),
  };
}

/** What chooses among the keys of a document. */
const CHOOSING = ['track', 'kid', 'period', 'systems'] as const;

function choiceOf({ track, kid, period, systems }: Pick<Fields, (typeof CHOOSING)[number]>) {
  return {
    ...(track && { track }),
    ...(kid && { kid: keyIdOf(kid) }),
    ...(period && { period }),
    ...(systems && { systems }),
  };
}

/** The fields of a request with a document. Of the defaults it takes the CMAF lines alone: it has its own addresses. */
function documentBody(own: Fields, defaults: Defaults, document: string): Record<string, unknown> {
  const { playready, contentId } = own;
  const cmaf = own.cmaf ?? defaults.cmaf ?? undefined;
  return {
    cpix: document,
    ...choiceOf(own),
    ...(playready && { playready }),
    ...(contentId && { contentId }),
    ...(cmaf !== undefined && { cmaf }),
  };
}

/** The fields that a request to the key provider still lacks; none for one that supplies its keys. */
function missingFields(body: Readonly<Record<string, unknown>>): string[] {
  if (body.cenc !== undefined || body.fairplay !== undefined || body.cpix !== undefined) return [];
  return NEEDED.filter((name) => body[name] === undefined);
}

function withAddress(
  part: Readonly<Record<string, unknown>>,
  standard: string | undefined,
  names: Placeholders,
): Record<string, unknown> {
  // A default's own address is filled in as well: it is the default itself that came here.
  const own = part.laurl === standard ? undefined : part.laurl;
  const laurl = own ?? fill(standard, names);
  return { ...part, ...(laurl !== undefined && { laurl }) };
}

/** Puts names in the place of `{streamid}`, `{name}` (its last part) and `{contentId}`. One that isn't known stays. */
function fill(text: string | null | undefined, { streamid, contentId }: Placeholders): string | undefined {
  const values = { streamid, name: streamid?.split('/').at(-1), contentId };
  return text?.replaceAll(
    /\{(streamid|name|contentId)\}/g,
    (whole, name: keyof typeof values) => values[name] ?? whole,
  );
}

/** Whether a text has a place that a stream's own name fills. */
function isPerStream(text: string | null | undefined): boolean {
  return /\{(?:streamid|name)\}/.test(text ?? '');
}
