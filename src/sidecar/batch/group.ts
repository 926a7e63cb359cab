import { isJsonObject } from '../../drm/json-object';
import { readSmil } from '../../drm/smil';
import { parseStreamId, type StreamId } from '../../drm/stream-id';
import type { Problem } from '../../kernel/errors';
import { parseKeyFileRequest } from '../key-files/key-file-request';
import {
  divideFields,
  type Fields,
  GROUP_FIELDS,
  MEMBER_FIELDS,
  MOST_STREAMS,
  tooManyStreams,
  unknownField,
} from './batch-wire';
import { sizeFault } from './entry-size';
import { atPlace, type Claim, failed, invalidBody, type Planned, type PlannedFailure } from './planned';

interface Member {
  readonly kind: 'member';
  readonly streamId: StreamId;
  /** The content id that a member brings along, as given. */
  readonly contentId: unknown;
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
  const { keys = null, folder = null } = own;
  const given = readMembers(own);
  problems.push(...given.problems);
  if (keys !== null && keys !== 'same' && keys !== 'each') {
    problems.push(invalidBody('keys: must be "same" or "each"'));
  }
  const folderFault = checkFolder(folder);
  if (folderFault !== undefined) problems.push(invalidBody(`folder: ${folderFault}`));
  const tooLarge = sizeFault(request);
  if (tooLarge) problems.push(tooLarge);
  if (problems.length > 0) return [failed(undefined, ...atPlace(place, problems))];
  const members: (Member | PlannedFailure)[] = [];
  for (const [index, member] of given.members.entries()) {
    await pause();
    const inFolder = folder === null ? '' : `${folder}/`;
    members.push(claimMember(member, inFolder, `${place}.members.${index}`, claim));
  }
  return keys === 'each' ? planEach(members, request) : planSame(members, request);
}

function readMembers({ members = null, smil = null }: Fields): {
  members: readonly unknown[];
  problems: Problem[];
} {
  const wrong = (description: string) => ({ members: [], problems: [invalidBody(description)] });
  if (members === null && smil === null) return wrong('give its members, or its smil');
  if (members !== null && smil !== null) return wrong('give its members or its smil, not both');
  if (smil === null) {
    if (!Array.isArray(members)) return wrong('members: must be a list');
    if (members.length > MOST_STREAMS) throw tooManyStreams();
    return members.length === 0 ? wrong('members: is empty') : { members, problems: [] };
  }
  if (typeof smil !== 'string') return wrong('smil: must be a string, the text of the document');
  const read = readSmil(smil);
  return read.ok ? { members: read.value, problems: [] } : wrong(`smil: ${read.fault}`);
}

function checkFolder(folder: unknown): string | undefined {
  if (folder === null) return undefined;
  if (typeof folder !== 'string') return 'must be a string';
  const parsed = parseStreamId(folder);
  return parsed.ok ? undefined : 'must be the first parts of a stream id, without a slash at either end';
}

function claimMember(member: unknown, folder: string, place: string, claim: Claim): Member | PlannedFailure {
  const fields = typeof member === 'string' ? { streamid: member } : member;
  if (!isJsonObject(fields)) {
    return failed(
      undefined,
      invalidBody(`${place}: must be a stream id, or an object with streamid and contentId`),
    );
  }
  const other = Object.keys(fields).find((name) => !MEMBER_FIELDS.includes(name));
  if (other !== undefined) {
    const hint = `Fields of a member: ${MEMBER_FIELDS.join(', ')}.`;
    return failed(undefined, ...atPlace(place, [unknownField(other, hint)]));
  }
  const { streamid, contentId } = fields;
  const claimed = claim(typeof streamid === 'string' ? folder + streamid : streamid, place);
  return claimed.kind === 'failed'
    ? claimed
    : { kind: 'member', streamId: claimed.streamId, contentId: contentId ?? undefined };
}

function planSame(members: readonly (Member | PlannedFailure)[], fields: Fields): readonly Planned[] {
  const request = parseKeyFileRequest(fields);
  return members.map((member) => {
    if (member.kind === 'failed') return member;
    if (!request.ok) return failed(member.streamId, ...request.problems);
    if (member.contentId !== undefined) return failed(member.streamId, CONTENT_ID_OF_SAME);
    return { kind: 'member', streamId: member.streamId, request: request.value };
  });
}

const CONTENT_ID_OF_SAME = invalidBody(
  'contentId: the members of this group have the same keys; leave it out, or give the group keys: "each".',
);

function planEach(members: readonly (Member | PlannedFailure)[], fields: Fields): readonly Planned[] {
  const isSupplied = (fields.cenc ?? fields.fairplay ?? null) !== null;
  const uses = new Map<unknown, number>();
  for (const member of members) {
    if (member.kind === 'failed') continue;
    const contentId = contentIdOf(member, fields.contentId);
    uses.set(contentId, (uses.get(contentId) ?? 0) + 1);
  }
  return members.map((member) => {
    if (member.kind === 'failed') return member;
    const { streamId } = member;
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
  'keys: "each" has the keys provisioned, so cenc and fairplay must be left out; "same" gives these keys to all members.',
);

const DUPLICATE_CONTENT_ID: Problem = {
  code: 'duplicate_content_id',
  description:
    'Another member of this group would have the same content id. Give each its own contentId, or the group keys: "same".',
};
