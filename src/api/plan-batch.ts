import { type Checked, isGiven, isJsonObject, type JsonObject } from '../drm/bytes';
import { COMMON_KEY_FAULT, commonKeys, QUALITY, qualityFields, qualityOf } from '../drm/quality';
import { readSmil } from '../drm/smil';
import { bodyProblem, type Parsed, type Problem, type SchemaFault, schemaFaults } from '../http/faults';
import { type BatchBody, type GroupFields, groupEntry, memberEntry, streamEntry } from './batch';
import { SUPPLYING } from './key-file-request';
import {
  type Claim,
  createClaim,
  createReadDistinct,
  divideFields,
  invalidBody,
  type Planned,
  planTracks,
  refuse,
  refuseAt,
  type StreamPlan,
  sizeFault,
  trackRules,
  unknownField,
} from './plan-entry';
import { type KeyFileRequest, parseKeyFileRequest, type RequestOptions } from './read-key-file-request';
import type { StreamId } from './stream-id';

/** A step may take some milliseconds: it reads a document, or chooses a key in it. */
export function* planBatch(
  { streams, groups }: BatchBody,
  options: RequestOptions = {},
): Generator<Planned, void, undefined> {
  const claim = createClaim();
  for (const [index, entry] of streams.entries())
    for (const stream of planStream(entry, `streams.${index}`, claim, options)) yield { index, ...stream };
  for (const [at, entry] of groups.entries()) {
    const index = streams.length + at;
    for (const stream of planGroup(entry, `groups.${at}`, claim, options)) yield { index, ...stream };
  }
}

function* planStream(
  entry: unknown,
  place: string,
  claim: Claim,
  options: RequestOptions,
): Generator<StreamPlan> {
  if (!isJsonObject(entry)) return yield refuseAt(place, invalidBody('must be an object'));
  const { own, request, problems } = divideFields(entry, streamEntry);
  if (problems.length > 0) return yield refuseAt(place, ...problems);
  const tooLarge = sizeFault(request);
  const { streamid, tracks } = own;
  if (!isGiven(tracks)) {
    const claimed = claim(streamid, place);
    if (typeof claimed !== 'string') yield claimed;
    else if (tooLarge) yield refuse(claimed, tooLarge);
    else yield { streamId: claimed, request: parseKeyFileRequest(request, options) };
    return;
  }
  problems.push(...trackRules(tracks, request, options));
  if (isGiven(streamid)) problems.push(invalidBody('streamid: tracks names the streams; leave it out'));
  if (tooLarge) problems.push(tooLarge);
  if (!isJsonObject(tracks) || problems.length > 0) yield refuseAt(place, ...problems);
  else yield* planTracks(tracks, request, '', place, claim, options);
}

/** A group that can't be read is one failure. */
function* planGroup(
  entry: unknown,
  place: string,
  claim: Claim,
  options: RequestOptions,
): Generator<StreamPlan> {
  if (!isJsonObject(entry)) return yield refuseAt(place, invalidBody('must be an object'));
  const { own, request, problems } = divideFields(entry, groupEntry);
  const result = groupEntry.safeParse(own);
  const faults = result.error ? schemaFaults(groupEntry, result.error, own) : [];
  problems.push(
    ...faults.map(bodyProblem),
    ...groupRules(own, request, new Set(faults.map(fieldOf)), options),
  );
  if (!result.success || problems.length > 0) return yield refuseAt(place, ...problems);
  const { folder, keys, tracks } = result.data;
  const inFolder = typeof folder === 'string' ? `${folder}/` : '';
  if (isJsonObject(tracks)) return yield* planTracks(tracks, request, inFolder, place, claim, options);
  const given = readMembers(result.data);
  if (!given.ok) return yield refuseAt(place, ...given.problems);
  const members = given.value.map((member, at) =>
    claimMember(member, inFolder, `${place}.members.${at}`, claim),
  );
  const requestOf =
    keys === 'each'
      ? requestsOfEach(members, request, options)
      : isByQuality(keys)
        ? requestsOfQualities(keys, request, options)
        : requestOfAll(request, options);
  for (const member of members)
    yield 'request' in member ? member : { streamId: member.streamId, request: requestOf(member) };
}

const fieldOf = ({ path: [field] }: SchemaFault) => field;

/** Checked also if other fields are wrong, which `wrong` names. */
function groupRules(
  own: JsonObject,
  request: JsonObject,
  wrong: ReadonlySet<PropertyKey | undefined>,
  options: RequestOptions,
): Problem[] {
  const { keys, smil, tracks } = own;
  const problems: Problem[] = [];
  const naming = ['members', 'smil', 'tracks'].filter((name) => isGiven(own[name]));
  if (naming.length === 0)
    problems.push(invalidBody('give its members, or its smil, or with cpix its tracks'));
  if (naming.length > 1)
    problems.push(
      invalidBody(`give its ${naming.join(' or its ')}, not ${naming.length > 2 ? 'all' : 'both'}`),
    );
  if (isGiven(tracks)) problems.push(...trackRules(tracks, request, options));
  if (isGiven(tracks) && isGiven(keys))
    problems.push(invalidBody('keys: tracks chooses the keys; leave it out'));
  if (isJsonObject(keys)) problems.push(...keysFaults(keys));
  for (const name of ['heights', 'bitrates'] as const) {
    if (!isGiven(own[name]) || wrong.has(name) || (isByQuality(keys) && isGiven(smil))) continue;
    const what = 'is for the qualities of a SMIL document; leave it out without smil and keys by quality';
    problems.push(invalidBody(`${name}: ${what}`));
  }
  // Next to keys by quality they would give all of them the same key.
  if (isByQuality(keys))
    problems.push(...commonKeys(request).map((name) => invalidBody(`${name}: ${COMMON_KEY_FAULT}.`)));
  const tooLarge = sizeFault(request, isJsonObject(keys) ? keys : undefined);
  return tooLarge ? [...problems, tooLarge] : problems;
}

interface GivenMember {
  readonly member: unknown;
  readonly quality?: Checked<string>;
}

function readMembers({
  members,
  smil,
  heights,
  bitrates,
  keys,
}: GroupFields): Parsed<readonly GivenMember[]> {
  if (typeof smil !== 'string') return { ok: true, value: (members ?? []).map((member) => ({ member })) };
  const read = readSmil(smil);
  if (!read.ok) return { ok: false, problems: [invalidBody(`smil: ${read.problem.description}`)] };
  const value = read.value.map((stream): GivenMember => {
    const member = stream.name;
    return isByQuality(keys) ? { member, quality: qualityOf(stream, { heights, bitrates }) } : { member };
  });
  return { ok: true, value };
}

interface Member {
  readonly streamId: StreamId;
  readonly contentId: unknown;
  /** As given, or from the SMIL document. */
  readonly quality: Checked<string> | undefined;
}

function claimMember(
  { member, quality: ofDocument }: GivenMember,
  folder: string,
  place: string,
  claim: Claim,
): Member | StreamPlan {
  const fields = typeof member === 'string' ? { streamid: member } : member;
  if (!isJsonObject(fields)) {
    const rule = 'must be a stream id, or an object with streamid and contentId or quality';
    return refuseAt(place, invalidBody(rule));
  }
  const other = Object.keys(fields).find((name) => !Object.hasOwn(memberEntry.shape, name));
  if (other !== undefined) {
    const hint = `Fields of a member: ${Object.keys(memberEntry.shape).join(', ')}.`;
    return refuseAt(place, unknownField(other, hint));
  }
  const { streamid, contentId, quality } = fields;
  const claimed = claim(typeof streamid === 'string' ? folder + streamid : streamid, place);
  if (typeof claimed !== 'string') return claimed;
  return {
    streamId: claimed,
    contentId: contentId ?? undefined,
    quality: isGiven(quality) ? readQuality(quality) : ofDocument,
  };
}

function readQuality(quality: unknown): Checked<string> {
  return typeof quality === 'string' && QUALITY.pattern.test(quality)
    ? { ok: true, value: quality }
    : { ok: false, problem: QUALITY.problem };
}

type RequestOf = (member: Member) => Parsed<KeyFileRequest>;

function fault(description: string): Parsed<KeyFileRequest> {
  return { ok: false, problems: [invalidBody(description)] };
}

function requestOfAll(fields: JsonObject, options: RequestOptions): RequestOf {
  const request = parseKeyFileRequest(fields, options);
  return ({ contentId, quality }) => {
    if (!request.ok) return request;
    if (contentId !== undefined) return CONTENT_ID_OF_SAME;
    return quality ? QUALITY_OF_OTHERS : request;
  };
}

const QUALITY_OF_OTHERS = fault(
  'quality: this group has no keys by quality; leave it out, or give the group keys: "quality" or the keys of each quality.',
);
const CONTENT_ID_OF_SAME = fault(
  'contentId: the members of this group have the same keys; leave it out, or give the group keys: "each".',
);

function requestsOfEach(
  members: readonly (Member | StreamPlan)[],
  fields: JsonObject,
  options: RequestOptions,
): RequestOf {
  const isSupplied = [...SUPPLYING, 'keyfile', 'cpix'].some((name) => isGiven(fields[name]));
  const uses = new Map<unknown, number>();
  for (const member of members) {
    if ('request' in member) continue;
    const contentId = contentIdOf(member, fields.contentId);
    uses.set(contentId, (uses.get(contentId) ?? 0) + 1);
  }
  return (member) => {
    if (member.quality) return QUALITY_OF_OTHERS;
    if (isSupplied) return EACH_OF_SUPPLIED;
    const contentId = contentIdOf(member, fields.contentId);
    if (typeof contentId === 'string' && uses.get(contentId) !== 1)
      return { ok: false, problems: [DUPLICATE_CONTENT_ID] };
    return parseKeyFileRequest({ ...fields, contentId }, options);
  };
}

/** A content id takes fewer characters than a stream id does. */
function contentIdOf({ streamId, contentId }: Member, ofGroup: unknown): unknown {
  if (contentId !== undefined) return contentId;
  return typeof ofGroup === 'string' ? `${ofGroup}-${streamId.replaceAll(/[/~@+]/g, '_')}` : ofGroup;
}

const EACH_OF_SUPPLIED = fault(
  'keys: "each" has the keys provisioned, so cenc, fairplay, aes, keyfile and cpix must be left out; "same" gives these keys to all members.',
);
const DUPLICATE_CONTENT_ID: Problem = {
  code: 'duplicate_content_id',
  description:
    'Another member of this group would have the same content id. Give each its own contentId, or the group keys: "same".',
};

/** `quality`: each has a content id made of the group's. */
type KeysByQuality = 'quality' | Readonly<Record<string, JsonObject>>;

function isByQuality(keys: unknown): keys is KeysByQuality {
  return keys === 'quality' || isJsonObject(keys);
}

const MAX_QUALITIES = 20;

/** Faults of the requests in `keys` are found later. */
function keysFaults(keys: JsonObject): Problem[] {
  const names = Object.keys(keys);
  if (names.length === 0 || names.length > MAX_QUALITIES)
    return [invalidBody(`keys: must have 1 to ${MAX_QUALITIES} qualities`)];
  if (!names.every((name) => QUALITY.pattern.test(name)))
    return [invalidBody(`keys: the name of a quality ${QUALITY.problem.description}`)];
  return names.flatMap((name) =>
    isJsonObject(keys[name]) ? [] : [invalidBody(`keys.${name}: must be an object`)],
  );
}

/**
 * The group's other fields hold for all qualities; of a part that both have, the quality's own fields count.
 */
function requestsOfQualities(keys: KeysByQuality, common: JsonObject, options: RequestOptions): RequestOf {
  const read = createReadDistinct(options);
  return ({ contentId, quality }) => {
    if (contentId !== undefined) return CONTENT_ID_OF_QUALITY;
    if (!quality) return NO_QUALITY;
    if (!quality.ok) return fault(`quality: ${quality.problem.description}`);
    const name = quality.value;
    const own = keys === 'quality' ? {} : Object.hasOwn(keys, name) && keys[name];
    if (!own)
      return fault(`quality: the group's keys have no ${name}; they have ${Object.keys(keys).join(', ')}.`);
    const place = keys === 'quality' ? undefined : `keys.${name}`;
    return read(name, qualityFields(name, own, common), sameKeyOfQuality, place);
  };
}

function sameKeyOfQuality(quality: string, what: string, other: string): string {
  return `${quality} has the same ${what} as ${other}; give each quality its own key, or put the members of both in one quality.`;
}

const NO_QUALITY = fault(
  'quality: is missing; this group has keys by quality, so give the member as {"streamid", "quality"}.',
);
const CONTENT_ID_OF_QUALITY = fault(
  'contentId: this group has keys by quality; put the content id in keys, under its quality.',
);
