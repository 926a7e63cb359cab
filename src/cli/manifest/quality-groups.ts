import { createDistinctKeys } from '../../api/distinct-keys';
import { parseKeyFileRequest } from '../../api/read-key-file-request';
import { isJsonObject, type JsonObject } from '../../drm/bytes';
import {
  COMMON_KEY_FAULT,
  commonKeys,
  type Limits,
  QUALITY,
  qualityFields,
  qualityOf,
  readLimits,
} from '../../drm/quality';
import { readSmilStreams } from '../../drm/smil';
import { checkFields, type ReadText } from '../yaml-fields';
import { type ClaimedGroup, type Faults, type Member, memberName } from './claim-streams';
import { type GroupEntry, qualityEntry } from './manifest-schema';

/** The members of a group that have one quality, as a group of their own with the same keys for all. */
interface QualityGroup {
  readonly quality: string;
  /** Without the group's folder. */
  readonly members: readonly string[];
  readonly streamIds: readonly string[];
  /** What the quality has of its own, and the same with what the group has for all. */
  readonly own: JsonObject;
  readonly fields: GroupEntry;
}

/** Whether a group has keys by quality. */
export function isByQuality({ keys }: GroupEntry): boolean {
  return keys === 'quality' || isJsonObject(keys);
}

/**
 * Divides a group with keys by quality into one for each of its members' qualities.
 * @param contentId what stands for the group's own where it has none.
 */
export function divideByQuality(
  { entry, place, document, streamIds }: ClaimedGroup,
  contentId: string | undefined,
  lineOf: ReadText['lineOf'],
  { tell }: Faults,
): QualityGroup[] {
  const { members, smil: _smil, folder: _folder, keys, heights, bitrates, ...common } = entry;
  const lineAt = (...path: PropertyKey[]) => lineOf([...place.path, ...path], 'name');

  const limitsOf = (name: 'heights' | 'bitrates'): Limits | undefined => {
    const given = entry[name];
    if (!given) return undefined;
    const limits = readLimits(numbersIn(given));
    if (!limits.ok) tell(lineAt(name), `${name} ${limits.problem.description}`);
    else if (document === undefined) tell(lineAt(name), `${name} goes with smil`);
    return limits.ok ? limits.value : undefined;
  };

  const limits = { heights: limitsOf('heights'), bitrates: limitsOf('bitrates') };

  const ofMember = (member: Member): string | undefined => {
    const { streamid, contentId: own, quality } = typeof member === 'object' ? member : { streamid: member };
    if (own)
      tell(place.line, `${streamid} has a contentId; put it into keys, beside the quality that has it`);
    if (!quality) tell(place.line, `${streamid} has no quality; give it as streamid and quality`);
    else if (!QUALITY.pattern.test(quality))
      tell(place.line, `the quality of ${streamid} ${QUALITY.problem.description}`);
    else return quality;
    return undefined;
  };

  const ofDocument = (): (string | undefined)[] => {
    const read = readSmilStreams(document ?? '');
    if (!read.ok) return [];
    return read.value.map((stream) => {
      const told = qualityOf(stream, limits);
      if (!told.ok) tell(place.line, `${stream.name}: ${told.problem.description}`);
      return told.ok ? told.value : undefined;
    });
  };

  const ownOf = (quality: string, streamId: string): JsonObject | undefined => {
    if (!isJsonObject(keys)) return {};
    if (!(quality in keys)) {
      const known = Object.keys(keys).filter((name) => QUALITY.pattern.test(name));
      tell(
        place.line,
        `${streamId} is of the quality ${quality}, and keys has ${known.join(', ') || 'none'}`,
      );
      return undefined;
    }
    const path = [...place.path, 'keys', quality];
    const lineOfOwn: ReadText['lineOf'] = (inner, of) => lineOf([...path, ...inner], of);
    const checked = checkFields(qualityEntry, { value: keys[quality], lineOf: lineOfOwn });
    if ('value' in checked) return checked.value;
    for (const { field, description, ...fault } of checked.faults) {
      const what = field ? `${field} ${description}` : description;
      tell(fault.line, `keys.${quality}: ${what}`, fault.end);
    }
    return undefined;
  };

  const shared = commonKeys(common);
  for (const name of shared) tell(lineAt(name.split('.')[0] ?? ''), `${name} ${COMMON_KEY_FAULT}`);
  if (shared.length > 0) return [];
  const names = members?.map(memberName) ?? namesOf(document);
  const qualities = members ? members.map(ofMember) : ofDocument();
  const groups = new Map<string, { members: string[]; streamIds: string[] }>();
  for (const [index, quality] of qualities.entries()) {
    if (quality === undefined) continue;
    const group = groups.get(quality) ?? { members: [], streamIds: [] };
    group.members.push(names[index] ?? '');
    group.streamIds.push(streamIds[index] ?? '');
    groups.set(quality, group);
  }
  return [...groups].flatMap(([quality, group]) => {
    const own = ownOf(quality, group.streamIds[0] ?? '');
    if (!own) return [];
    const all = { ...common, ...(contentId !== undefined && { contentId }) };
    const fields = qualityFields(quality, own, all) as GroupEntry;
    return [{ quality, ...group, own, fields }];
  });
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

function namesOf(document: string | undefined): readonly string[] {
  const read = readSmilStreams(document ?? '');
  return read.ok ? read.value.map(({ name }) => name) : [];
}

/** Tells qualities of a group that would have one key. */
export function tellSameKeys(
  bodies: readonly (readonly [quality: string, body: JsonObject])[],
  line: number | undefined,
  { tell }: Faults,
): void {
  const takenBy = new Map<string, string>();
  const sameKeyAs = createDistinctKeys();
  for (const [quality, body] of bodies) {
    const { members: _members, folder: _folder, ...fields } = body;
    const chosen = body.cpix === undefined ? undefined : parseKeyFileRequest(fields);
    const same = chosen?.ok ? sameKeyAs(quality, chosen.value) : undefined;
    if (same) tell(line, sameKey(quality, same.what, same.other));
    for (const [what, value] of identitiesOf(body)) {
      const other = takenBy.get(`${what} ${value}`);
      if (other === undefined) takenBy.set(`${what} ${value}`, quality);
      else tell(line, sameKey(quality, what, other));
    }
  }
}

function sameKey(quality: string, what: string, other: string): string {
  return `${quality} has the same ${what} as ${other}; give each quality a key of its own, or the members of both one quality`;
}

function identitiesOf({
  cenc,
  fairplay,
  cpix,
  client,
  contentId,
  kid,
  track,
  period,
}: JsonObject): (readonly [string, string])[] {
  const isSupplied = isJsonObject(cenc) || isJsonObject(fairplay) || cpix !== undefined;
  return [
    ...(isJsonObject(cenc) ? [['key id', String(cenc.keyid)] as const] : []),
    ...(isJsonObject(fairplay) ? [['FairPlay key', String(fairplay.key).toLowerCase()] as const] : []),
    ...(!isSupplied && contentId !== undefined
      ? [['content id', [client, contentId, kid, track, period].map(String).join(' ')] as const]
      : []),
  ];
}
