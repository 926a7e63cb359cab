import { type Checked, isJsonObject } from '../drm/bytes';
import { COMMON_KEY_FAULT, commonKeys, QUALITY, qualityFields, qualityOf } from '../drm/quality';
import { readSmilStreams } from '../drm/smil';
import { bodyProblem, type Parsed, type Problem, type SchemaFault, schemaFaults } from '../http/faults';
import {
  atPlace,
  type BatchBody,
  type Claim,
  createClaim,
  divideFields,
  type Fields,
  failed,
  type GroupFields,
  groupEntry,
  invalidBody,
  MAX_STREAMS,
  memberEntry,
  type PlanContext,
  type Planned,
  type PlannedFailure,
  type PlannedOfEntry,
  sizeFault,
  streamEntry,
  TOO_MANY_STREAMS,
  unknownField,
} from './batch';
import { createDistinctKeys } from './distinct-keys';
import { countStreams, planTracks, trackRules } from './plan-tracks';
import { createReadOnce } from './read-cpix-request';
import { type KeyFileRequest, parseKeyFileRequest, type RequestOptions } from './read-key-file-request';
import type { StreamId } from './stream-id';

const NEVER: PlanContext = { pause: () => undefined, yieldNow: () => undefined };

/** Finds out what a batch asks for, stream by stream, without doing any of it. Problems: it asks for too much. */
export async function planBatch(
  { streams, groups }: BatchBody,
  context: PlanContext = NEVER,
): Promise<Parsed<readonly PlannedOfEntry[]>> {
  const { pause, yieldNow } = context;
  const claim = createClaim();
  const plan: PlannedOfEntry[] = [];
  for (const [index, stream] of streams.entries()) {
    const tracks = tracksOf(stream);
    await pause();
    if (plan.length + countStreams(tracks) > MAX_STREAMS) return TOO_MANY_STREAMS;
    for (const planned of await planStream(stream, `streams.${index}`, claim, context))
      plan.push({ index, ...planned });
  }
  for (const [index, group] of groups.entries()) {
    // A SMIL document may take longer than many streams.
    await yieldNow();
    const members = await readGroup(group, `groups.${index}`, claim, context);
    if (!members || plan.length + members.length > MAX_STREAMS) return TOO_MANY_STREAMS;
    for (const member of members) plan.push({ index: streams.length + index, ...member });
  }
  return { ok: true, value: plan };
}

/** The tracks of an entry or a group; undefined for those of one that has none. */
function tracksOf(entry: unknown): unknown {
  return isJsonObject(entry) ? (entry.tracks ?? undefined) : undefined;
}

async function planStream(
  stream: unknown,
  place: string,
  claim: Claim,
  context: PlanContext,
): Promise<readonly Planned[]> {
  if (!isJsonObject(stream)) return [failed(undefined, invalidBody(`${place}: must be an object`))];
  const { own, request, problems } = divideFields(stream, streamEntry);
  if (problems.length > 0) return [failed(undefined, ...atPlace(place, problems))];
  const tracks = tracksOf(own);
  if (tracks !== undefined) return planEntryOfTracks(tracks, own, request, place, claim, context);
  const claimed = claim(own.streamid, place);
  if (claimed.kind === 'failed') return [claimed];
  const { streamId } = claimed;
  const tooLarge = sizeFault(request);
  return [tooLarge ? failed(streamId, tooLarge) : { kind: 'stream', streamId, fields: request }];
}

function planEntryOfTracks(
  tracks: unknown,
  own: Fields,
  request: Fields,
  place: string,
  claim: Claim,
  context: PlanContext,
): readonly Planned[] | Promise<readonly Planned[]> {
  const problems = trackRules(tracks, request, context);
  if ((own.streamid ?? null) !== null)
    problems.push(invalidBody('streamid: tracks names the streams; leave it out'));
  const tooLarge = sizeFault(request);
  if (tooLarge) problems.push(tooLarge);
  if (!isJsonObject(tracks) || problems.length > 0) return [failed(undefined, ...atPlace(place, problems))];
  return planTracks(tracks, request, place, claim, context);
}

interface Member {
  readonly kind: 'member';
  readonly streamId: StreamId;
  /** The content id that a member brings along, as given. */
  readonly contentId: unknown;
  /** The quality that a member brings along, or that its SMIL document gives. */
  readonly quality: Checked<string> | undefined;
}

/** A member as given, or as a SMIL document has it. */
interface GivenMember {
  readonly member: unknown;
  readonly quality?: Checked<string>;
}

/** Finds out what a group asks for each of its members; a group that can't be read is one failure. */
async function readGroup(
  group: unknown,
  place: string,
  claim: Claim,
  context: PlanContext,
): Promise<readonly Planned[] | undefined> {
  if (!isJsonObject(group)) return [failed(undefined, invalidBody(`${place}: must be an object`))];
  const { own, request, problems } = divideFields(group, groupEntry);
  // Before any of them is looked at.
  if (Array.isArray(own.members) && own.members.length > MAX_STREAMS) return undefined;
  if (countStreams(own.tracks) > MAX_STREAMS) return undefined;
  const result = groupEntry.safeParse(own);
  const faults = result.error ? schemaFaults(groupEntry, result.error, own) : [];
  problems.push(
    ...faults.map(bodyProblem),
    ...groupRules(own, request, new Set(faults.map(fieldOf)), context),
  );
  if (!result.success || problems.length > 0) return [failed(undefined, ...atPlace(place, problems))];
  const { folder, keys, tracks } = result.data;
  const inFolder = typeof folder === 'string' ? `${folder}/` : '';
  if (isJsonObject(tracks)) return planTracks(tracks, request, place, claim, context, inFolder);
  const byQuality = isByQuality(keys);
  const given = readMembers(result.data, byQuality);
  if (!given.ok) return [failed(undefined, ...atPlace(place, given.problems))];
  const members: (Member | PlannedFailure)[] = [];
  for (const [index, member] of given.value.entries()) {
    await context.pause();
    members.push(claimMember(member, inFolder, `${place}.members.${index}`, claim));
  }
  if (keys === 'each') return planEach(members, request);
  return byQuality
    ? planByQuality(members, request, keys as KeysByQuality, context)
    : planSame(members, parseKeyFileRequest(request, context));
}

const fieldOf = ({ path: [field] }: SchemaFault) => field;
const isByQuality = (keys: unknown) => keys === 'quality' || isJsonObject(keys);

/** The rules between the fields of a group, reported whatever else is wrong with it. `wrong` are the fields that are. */
function groupRules(
  own: Fields,
  request: Fields,
  wrong: ReadonlySet<PropertyKey | undefined>,
  options: RequestOptions,
): Problem[] {
  const isGiven = (name: string) => (own[name] ?? null) !== null;
  const { keys } = own;
  const byQuality = isByQuality(keys);
  const problems: Problem[] = [];
  const naming = ['members', 'smil', 'tracks'].filter(isGiven);
  if (naming.length === 0)
    problems.push(invalidBody('give its members, or its smil, or with cpix its tracks'));
  if (naming.length > 1)
    problems.push(
      invalidBody(`give its ${naming.join(' or its ')}, not ${naming.length > 2 ? 'all' : 'both'}`),
    );
  if (isGiven('tracks')) problems.push(...trackRules(own.tracks, request, options));
  if (isGiven('tracks') && isGiven('keys'))
    problems.push(invalidBody('keys: tracks chooses the keys; leave it out'));
  if (isJsonObject(keys)) problems.push(...keysFaults(keys));
  for (const name of ['heights', 'bitrates'] as const) {
    if (!isGiven(name) || wrong.has(name) || (byQuality && isGiven('smil'))) continue;
    const what = 'tells qualities of a SMIL document; leave it out without smil and keys by quality';
    problems.push(invalidBody(`${name}: ${what}`));
  }
  if (byQuality) problems.push(...commonKeyFaults(request));
  const tooLarge = sizeFault(request, isJsonObject(keys) ? keys : undefined);
  return tooLarge ? [...problems, tooLarge] : problems;
}

function readMembers(
  { members, smil, heights, bitrates }: GroupFields,
  byQuality: boolean,
): Parsed<readonly GivenMember[]> {
  if (typeof smil !== 'string') return { ok: true, value: (members ?? []).map((member) => ({ member })) };
  const read = readSmilStreams(smil);
  if (!read.ok) return { ok: false, problems: [invalidBody(`smil: ${read.problem.description}`)] };
  const value = read.value.map((stream): GivenMember => {
    const member = stream.name;
    return byQuality ? { member, quality: qualityOf(stream, { heights, bitrates }) } : { member };
  });
  return { ok: true, value };
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
  const other = Object.keys(fields).find((name) => !(name in memberEntry.shape));
  if (other !== undefined) {
    const hint = `Fields of a member: ${Object.keys(memberEntry.shape).join(', ')}.`;
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
    : { ok: false, problem: QUALITY.problem };
}

function planSame(
  members: readonly (Member | PlannedFailure)[],
  request: Parsed<KeyFileRequest>,
): readonly Planned[] {
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

async function planByQuality(
  members: readonly (Member | PlannedFailure)[],
  fields: Fields,
  keys: KeysByQuality,
  context: PlanContext,
): Promise<readonly Planned[]> {
  const requestOf = createRequestOf(keys, fields, context);
  const qualities = members.flatMap((member) =>
    member.kind === 'member' && member.contentId === undefined && member.quality?.ok
      ? member.quality.value
      : [],
  );
  for (const quality of new Set(qualities)) {
    // Each may have a document of its own.
    await context.yieldNow();
    requestOf(quality);
  }
  return members.map((member) => {
    if (member.kind === 'failed') return member;
    const { streamId, contentId, quality } = member;
    if (contentId !== undefined) return failed(streamId, CONTENT_ID_OF_QUALITY);
    if (!quality) return failed(streamId, NO_QUALITY);
    if (!quality.ok) return failed(streamId, invalidBody(`quality: ${quality.problem.description}`));
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
  const isSupplied = (fields.cenc ?? fields.fairplay ?? fields.keyfile ?? fields.cpix ?? null) !== null;
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
  'keys: "each" has the keys provisioned, so cenc, fairplay, keyfile and cpix must be left out; "same" gives these keys to all members.',
);

const DUPLICATE_CONTENT_ID: Problem = {
  code: 'duplicate_content_id',
  description:
    'Another member of this group would have the same content id. Give each its own contentId, or the group keys: "same".',
};

/** Keys by quality: `quality`, each has a content id made of the group's, or the fields of each. */
type KeysByQuality = 'quality' | Readonly<Record<string, Fields>>;

/** Answers what a quality's members ask for, or what is wrong with it. The same quality has the same request object. */
type RequestOf = (quality: string) => Parsed<KeyFileRequest>;

const MAX_QUALITIES = 20;

/** The faults of a group's `keys` that is an object, apart from those of its requests. */
function keysFaults(keys: Fields): Problem[] {
  const names = Object.keys(keys);
  if (names.length === 0 || names.length > MAX_QUALITIES)
    return [invalidBody(`keys: must have 1 to ${MAX_QUALITIES} qualities`)];
  if (!names.every((name) => QUALITY.pattern.test(name)))
    return [invalidBody(`keys: the name of a quality ${QUALITY.problem.description}`)];
  return names.flatMap((name) =>
    isJsonObject(keys[name]) ? [] : [invalidBody(`keys.${name}: must be an object`)],
  );
}

/** The fields next to keys by quality that would give all of them the same key. */
function commonKeyFaults(common: Fields): Problem[] {
  return commonKeys(common).map((name) => invalidBody(`${name}: ${COMMON_KEY_FAULT}.`));
}

/**
 * Makes what answers the requests of a group's qualities. The group's other fields hold for all of them; of a part that
 * both have, a field of the quality's own counts.
 */
function createRequestOf(keys: KeysByQuality, common: Fields, options: RequestOptions): RequestOf {
  const requests = new Map<string, Parsed<KeyFileRequest>>();
  const sameKeyAs = createDistinctKeys();
  const readDocument = createReadOnce();

  const make = (quality: string): Parsed<KeyFileRequest> => {
    const own = keys === 'quality' ? {} : keys[quality];
    if (!own)
      return failure(
        `quality: the group's keys have no ${quality}; they have ${Object.keys(keys).join(', ')}.`,
      );
    const parsed = parseKeyFileRequest(qualityFields(quality, own, common), { ...options, readDocument });
    if (!parsed.ok)
      return keys === 'quality'
        ? parsed
        : { ok: false, problems: atPlace(`keys.${quality}`, parsed.problems) };
    const same = sameKeyAs(quality, parsed.value);
    return same ? sameKey(quality, same.what, same.other) : parsed;
  };

  return (quality) => {
    const made = requests.get(quality) ?? make(quality);
    requests.set(quality, made);
    return made;
  };
}

function sameKey(quality: string, what: string, other: string): Parsed<KeyFileRequest> {
  return {
    ok: false,
    problems: [
      {
        code: 'duplicate_quality',
        description: `${quality} has the same ${what} as ${other}; give each quality a key of its own, or the members of both one quality.`,
      },
    ],
  };
}

function failure(description: string): Parsed<KeyFileRequest> {
  return { ok: false, problems: [invalidBody(description)] };
}
