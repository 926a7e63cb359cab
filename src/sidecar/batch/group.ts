import { parseStreamId, type StreamId } from '../../api/stream-id';
import { type Checked, isJsonObject } from '../../drm/bytes';
import { QUALITY, type QualityLimits, qualityOf, readLimits } from '../../drm/quality';
import { readSmilStreams } from '../../drm/smil';
import type { Problem } from '../../http/errors';
import { parseKeyFileRequest } from '../key-files/key-file-request';
import {
  divideFields,
  type Fields,
  GROUP_FIELDS,
  MAX_STREAMS,
  MEMBER_FIELDS,
  tooManyStreams,
  unknownField,
} from './batch-wire';
import { sizeFault } from './entry-size';
import { atPlace, type Claim, failed, invalidBody, type Planned, type PlannedFailure } from './planned';
import { commonKeyFaults, createRequestOf, type KeysByQuality, keysFaults } from './quality-keys';

interface Member {
  readonly kind: 'member';
  readonly streamId: StreamId;
  /** The content id that a member brings along, as given. */
  readonly contentId: unknown;
  /** The quality that a member brings along, or that its SMIL document tells. */
  readonly quality: Checked<string> | undefined;
}

/** A member as given, or as a SMIL document has it. */
interface GivenMember {
  readonly member: unknown;
  readonly quality?: Checked<string>;
}

/**
 * Finds out what a group asks for each of its members; a group that can't be read is one failure.
 * @throws HttpError 400 when it has more members than a batch has streams.
 */
export async function readGroup(
  group: unknown,
  place: string,
  claim: Claim,
  pause: () => Promise<void> | undefined,
): Promise<readonly Planned[]> {
  if (!isJsonObject(group)) return [failed(undefined, invalidBody(`${place}: must be an object`))];
  const { own, request, problems } = divideFields(group, GROUP_FIELDS);
  const { folder = null } = own;
  const keys = readKeys(own.keys ?? 'same');
  const byQuality = keys.value !== 'same' && keys.value !== 'each';
  const limits = readQualityLimits(own, byQuality);
  const given = readMembers(own, byQuality ? limits.value : undefined);
  problems.push(...given.problems, ...keys.problems, ...limits.problems);
  if (byQuality) problems.push(...commonKeyFaults(request));
  const folderFault = checkFolder(folder);
  if (folderFault !== undefined) problems.push(invalidBody(`folder: ${folderFault}`));
  const tooLarge = sizeFault(typeof keys.value === 'object' ? { ...request, ...keys.value } : request);
  if (tooLarge) problems.push(tooLarge);
  if (problems.length > 0) return [failed(undefined, ...atPlace(place, problems))];
  const members: (Member | PlannedFailure)[] = [];
  for (const [index, member] of given.members.entries()) {
    await pause();
    const inFolder = folder === null ? '' : `${folder}/`;
    members.push(claimMember(member, inFolder, `${place}.members.${index}`, claim));
  }
  if (keys.value === 'same') return planSame(members, request);
  return keys.value === 'each' ? planEach(members, request) : planByQuality(members, request, keys.value);
}

function readKeys(keys: unknown): { value: 'same' | 'each' | KeysByQuality; problems: Problem[] } {
  if (keys === 'same' || keys === 'each' || keys === 'quality') return { value: keys, problems: [] };
  if (!isJsonObject(keys)) {
    const fault = invalidBody('keys: must be "same", "each", "quality", or the keys of each quality');
    return { value: 'same', problems: [fault] };
  }
  const problems = keysFaults(keys);
  return { value: problems.length > 0 ? 'quality' : (keys as KeysByQuality), problems };
}

function readQualityLimits(
  { smil = null, heights = null, bitrates = null }: Fields,
  byQuality: boolean,
): { value: QualityLimits; problems: Problem[] } {
  const problems: Problem[] = [];
  const read = (name: string, value: unknown) => {
    if (value === null) return undefined;
    const limits = readLimits(value);
    if (limits.ok && smil !== null && byQuality) return limits.value;
    const misplaced = 'tells qualities of a SMIL document; leave it out without smil and keys by quality';
    problems.push(invalidBody(`${name}: ${limits.ok ? misplaced : limits.fault.sentence}`));
    return undefined;
  };
  return { value: { heights: read('heights', heights), bitrates: read('bitrates', bitrates) }, problems };
}

function readMembers(
  { members = null, smil = null }: Fields,
  limits: QualityLimits | undefined,
): { members: readonly GivenMember[]; problems: Problem[] } {
  const wrong = (description: string) => ({ members: [], problems: [invalidBody(description)] });
  if (members === null && smil === null) return wrong('give its members, or its smil');
  if (members !== null && smil !== null) return wrong('give its members or its smil, not both');
  if (smil === null) {
    if (!Array.isArray(members)) return wrong('members: must be a list');
    if (members.length > MAX_STREAMS) throw tooManyStreams();
    if (members.length === 0) return wrong('members: is empty');
    return { members: members.map((member) => ({ member })), problems: [] };
  }
  if (typeof smil !== 'string') return wrong('smil: must be a string, the text of the document');
  const read = readSmilStreams(smil);
  if (!read.ok) return wrong(`smil: ${read.fault.sentence}`);
  const found = read.value.map((stream): GivenMember => {
    const member = stream.name;
    return limits ? { member, quality: qualityOf(stream, limits) } : { member };
  });
  return { members: found, problems: [] };
}

function checkFolder(folder: unknown): string | undefined {
  if (folder === null) return undefined;
  if (typeof folder !== 'string') return 'must be a string';
  const parsed = parseStreamId(folder);
  return parsed.ok ? undefined : 'must be the first parts of a stream id, without a slash at either end';
}

function claimMember(
  { member, quality: told }: GivenMember,
  folder: string,
  place: string,
  claim: Claim,
): Member | PlannedFailure {
  const fields = typeof member === 'string' ? { streamid: member } : member;
  if (!isJsonObject(fields)) {
    return failed(
      undefined,
      invalidBody(`${place}: must be a stream id, or an object with streamid and contentId or quality`),
    );
  }
  const other = Object.keys(fields).find((name) => !MEMBER_FIELDS.includes(name));
  if (other !== undefined) {
    const hint = `Fields of a member: ${MEMBER_FIELDS.join(', ')}.`;
    return failed(undefined, ...atPlace(place, [unknownField(other, hint)]));
  }
  const { streamid, contentId, quality } = fields;
  const claimed = claim(typeof streamid === 'string' ? folder + streamid : streamid, place);
  return claimed.kind === 'failed'
    ? claimed
    : {
        kind: 'member',
        streamId: claimed.streamId,
        contentId: contentId ?? undefined,
        quality: (quality ?? null) === null ? told : readQuality(quality),
      };
}

function readQuality(quality: unknown): Checked<string> {
  return typeof quality === 'string' && QUALITY.pattern.test(quality)
    ? { ok: true, value: quality }
    : { ok: false, fault: QUALITY.fault };
}

function planSame(members: readonly (Member | PlannedFailure)[], fields: Fields): readonly Planned[] {
  const request = parseKeyFileRequest(fields);
  return members.map((member) => {
    if (member.kind === 'failed') return member;
    if (!request.ok) return failed(member.streamId, ...request.problems);
    if (member.contentId !== undefined) return failed(member.streamId, CONTENT_ID_OF_SAME);
    if (member.quality) return failed(member.streamId, QUALITY_OF_OTHERS);
    return { kind: 'member', streamId: member.streamId, request: request.value };
  });
}

const QUALITY_OF_OTHERS = invalidBody(
  'quality: this group has no keys by quality; leave it out, or give the group keys: "quality" or the keys of each quality.',
);

const CONTENT_ID_OF_SAME = invalidBody(
  'contentId: the members of this group have the same keys; leave it out, or give the group keys: "each".',
);

function planByQuality(
  members: readonly (Member | PlannedFailure)[],
  fields: Fields,
  keys: KeysByQuality,
): readonly Planned[] {
  const requestOf = createRequestOf(keys, fields);
  return members.map((member) => {
    if (member.kind === 'failed') return member;
    const { streamId, contentId, quality } = member;
    if (contentId !== undefined) return failed(streamId, CONTENT_ID_OF_QUALITY);
    if (!quality) return failed(streamId, NO_QUALITY);
    if (!quality.ok) return failed(streamId, invalidBody(`quality: ${quality.fault.sentence}`));
    const request = requestOf(quality.value);
    if (!request.ok) return failed(streamId, ...request.problems);
    return { kind: 'member', streamId, request: request.value };
  });
}

const NO_QUALITY = invalidBody(
  'quality: is missing; this group has keys by quality, so give the member as {"streamid", "quality"}.',
);

const CONTENT_ID_OF_QUALITY = invalidBody(
  'contentId: this group has keys by quality; put the content id into keys, beside the quality that has it.',
);

function planEach(members: readonly (Member | PlannedFailure)[], fields: Fields): readonly Planned[] {
  const isSupplied = (fields.cenc ?? fields.fairplay ?? fields.keyfile ?? null) !== null;
  const uses = new Map<unknown, number>();
  for (const member of members) {
    if (member.kind === 'failed') continue;
    const contentId = contentIdOf(member, fields.contentId);
    uses.set(contentId, (uses.get(contentId) ?? 0) + 1);
  }
  return members.map((member) => {
    if (member.kind === 'failed') return member;
    const { streamId } = member;
    if (member.quality) return failed(streamId, QUALITY_OF_OTHERS);
    if (isSupplied) return failed(streamId, EACH_OF_SUPPLIED);
    const contentId = contentIdOf(member, fields.contentId);
    const isShared = typeof contentId === 'string' && uses.get(contentId) !== 1;
    if (isShared) return failed(streamId, DUPLICATE_CONTENT_ID);
    return { kind: 'stream', streamId, fields: { ...fields, contentId } };
  });
}

/** A content id takes fewer characters than a stream id does. */
function contentIdOf({ streamId, contentId }: Member, ofGroup: unknown): unknown {
  if (contentId !== undefined) return contentId;
  return typeof ofGroup === 'string' ? `${ofGroup}-${streamId.replaceAll(/[/~@+]/g, '_')}` : ofGroup;
}

const EACH_OF_SUPPLIED = invalidBody(
  'keys: "each" has the keys provisioned, so cenc, fairplay and keyfile must be left out; "same" gives these keys to all members.',
);

const DUPLICATE_CONTENT_ID: Problem = {
  code: 'duplicate_content_id',
  description:
    'Another member of this group would have the same content id. Give each its own contentId, or the group keys: "same".',
};
