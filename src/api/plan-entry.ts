import type * as z from 'zod';
import { isGiven, isJsonObject, type JsonObject } from '../drm/bytes';
import { CPIX_TOO_LARGE, MAX_CPIX_BYTES, readCpix } from '../drm/cpix/read';
import { sentenceOf } from '../drm/finding';
import { nearest, type Parsed, type Problem, printable } from '../http/faults';
import {
  cpixBody,
  importedBody,
  MAX_BODY_BYTES,
  providerBody,
  sizeOf,
  suppliedBody,
} from './key-file-request';
import {
  JSON_PROVIDER_RULES,
  type KeyFileRequest,
  parseKeyFileRequest,
  type RequestOptions,
  trackName,
} from './read-key-file-request';
import { parseStreamId, type StreamId } from './stream-id';

/** `index` counts the entries of `streams` and then `groups`, from 0. */
export type Planned = { readonly index: number } & (WithStream | WithoutStream);

/** Streams with the same keys share one request object. */
export interface WithStream {
  readonly streamId: StreamId;
  readonly request: Parsed<KeyFileRequest>;
}

/** The problems name the place of the entry. */
interface WithoutStream {
  readonly streamId: undefined;
  readonly request: Extract<Parsed<KeyFileRequest>, { ok: false }>;
}

export type StreamPlan = WithStream | WithoutStream;

export function refuse(streamId: StreamId, ...problems: Problem[]): StreamPlan {
  return { streamId, request: { ok: false, problems } };
}

export function refuseAt(place: string, ...problems: readonly Problem[]): StreamPlan {
  return { streamId: undefined, request: { ok: false, problems: atPlace(place, problems) } };
}

function atPlace(place: string, problems: readonly Problem[]): Problem[] {
  return problems.map(({ code, description }) => ({ code, description: `${place}: ${description}` }));
}

export function invalidBody(description: string): Problem {
  return { code: 'invalid_body', description };
}

/** Also refuses a stream id that came before. `place` is where it is given. */
export type Claim = (given: unknown, place: string) => StreamId | StreamPlan;

export function createClaim(): Claim {
  const claimed = new Set<StreamId>();
  return (given, place) => {
    if (!isGiven(given)) return refuseAt(place, invalidBody('streamid is missing'));
    if (typeof given !== 'string') return refuseAt(place, invalidBody('streamid must be a string'));
    const parsed = parseStreamId(given);
    if (!parsed.ok)
      return refuseAt(place, { code: 'invalid_stream_id', description: sentenceOf(parsed.problem) });
    if (claimed.has(parsed.value)) return refuse(parsed.value, DUPLICATE);
    claimed.add(parsed.value);
    return parsed.value;
  };
}

const DUPLICATE: Problem = {
  code: 'duplicate_stream',
  description: 'The batch has this stream twice; only the first entry counts.',
};

/** Fields of an entry whose names are read. */
const MAX_FIELDS = 50;
const REQUEST_FIELDS = [
  ...new Set([suppliedBody, cpixBody, providerBody, importedBody].flatMap(({ shape }) => Object.keys(shape))),
];

/**
 * Divides an entry into its own fields and those of the request in it. Fields that most likely are its own, misspelt,
 * are faults here: the request's reader knows only its own names.
 */
export function divideFields(entry: JsonObject, schema: z.ZodObject) {
  const own = Object.keys(schema.shape);
  const problems: Problem[] = [];
  const mine: [string, unknown][] = [];
  const request: [string, unknown][] = [];
  const names = Object.keys(entry);
  if (names.length > MAX_FIELDS)
    problems.push(invalidBody(`has ${names.length} fields, far more than exist`));
  for (const name of names.slice(0, MAX_FIELDS)) {
    const isKnown = own.includes(name) || REQUEST_FIELDS.includes(name);
    const near = isKnown ? name : nearest(name, [...own, ...REQUEST_FIELDS]);
    if (own.includes(name)) mine.push([name, entry[name]]);
    else if (near === undefined || !own.includes(near)) request.push([name, entry[name]]);
    else problems.push(unknownField(name, `Did you mean ${near}?`));
  }
  // Built from entries, so that a field called `__proto__` stays a field and is refused by its name.
  return {
    own: Object.fromEntries(mine) as JsonObject,
    request: Object.fromEntries(request) as JsonObject,
    problems,
  };
}

export function unknownField(name: string, hint: string): Problem {
  return {
    code: 'unknown_field',
    description: `${printable(name)} is not a field of this request. ${hint}`,
  };
}

/** An entry of a batch may be as large as the body of a single POST. */
export function sizeFault(fields: JsonObject, ofQualities: JsonObject = {}): Problem | undefined {
  const sizes = [sizeOf(fields), ...Object.values(ofQualities).map(sizeOf)];
  const tooLarge = (description: string) => ({ code: 'body_too_large', description });
  if (sizes.some(({ document }) => document > MAX_CPIX_BYTES)) return tooLarge(`cpix ${CPIX_TOO_LARGE}.`);
  const size = sizes.reduce((sum, each) => sum + each.fields, 0);
  if (size <= MAX_BODY_BYTES) return undefined;
  return tooLarge(
    `The fields have more than ${MAX_BODY_BYTES / 1024} KiB, the most that a request for one stream may have.`,
  );
}

export function trackRules(
  tracks: unknown,
  request: JsonObject,
  { rules = JSON_PROVIDER_RULES }: RequestOptions,
): Problem[] {
  const problems: Problem[] = [];
  if (!isJsonObject(tracks) || Object.keys(tracks).length === 0)
    problems.push(invalidBody('tracks: must name the streams of each track, such as {"SD": "news_sd"}'));
  const isOfProvider = isGiven(request.contentId) && rules.documentFields.includes('track');
  if (!isGiven(request.cpix) && !isOfProvider)
    problems.push(invalidBody('tracks: needs cpix; give the text of a CPIX document with it'));
  for (const name of ['track', 'kid']) {
    if (isGiven(request[name])) problems.push(invalidBody(`${name}: tracks chooses the keys; leave it out`));
  }
  const { trackTypes } = rules;
  if (trackTypes && isJsonObject(tracks) && Object.keys(tracks).length > MAX_TRACKS)
    problems.push(
      invalidBody(`tracks: has more than ${MAX_TRACKS} tracks, the most that a provider is asked for`),
    );
  return problems;
}

/** Keeps the document of a request small enough for providers. */
const MAX_TRACKS = 20;

/** A track without exactly one key in the document fails; the others do not. */
export function* planTracks(
  tracks: JsonObject,
  request: JsonObject,
  folder: string,
  place: string,
  claim: Claim,
  options: RequestOptions,
): Generator<StreamPlan> {
  const { rules = JSON_PROVIDER_RULES } = options;
  const asked = Object.keys(tracks).flatMap((track) => trackName(track, rules) ?? []);
  const read = createReadDistinct({ ...options, tracks: [...new Set(asked)] });
  const sameKey = (track: string, what: string, other: string) => {
    const [one, first] = [printable(track), printable(other)];
    return `${one} has the same ${what} as ${first}; name the streams of both under ${first}, such as {"${first}": ["news_1", "news_2"]}.`;
  };
  for (const [track, named] of Object.entries(tracks)) {
    const at = `${place}.tracks.${printable(track)}`;
    const names: readonly unknown[] = Array.isArray(named) ? named : [named];
    if (names.length === 0) yield refuseAt(at, invalidBody('is empty'));
    for (const name of names) {
      const stream =
        typeof name === 'string'
          ? claim(folder + name, at)
          : refuseAt(at, invalidBody('must be a stream id, or a list of stream ids'));
      yield typeof stream === 'string'
        ? { streamId: stream, request: read(track, { ...request, track }, sameKey) }
        : stream;
    }
  }
}

/**
 * Each request is read once, and so is a shared document. A request with the key of another is refused with
 * the text of `sameKey`. `place` precedes other problems.
 */
export function createReadDistinct(options: RequestOptions) {
  const documents = new Map<string, ReturnType<typeof readCpix>>();
  const readDocument = (text: string) => {
    const document = documents.get(text) ?? readCpix(text);
    documents.set(text, document);
    return document;
  };
  const requests = new Map<string, Parsed<KeyFileRequest>>();
  const takenBy = new Map<string, string>();
  return (
    name: string,
    fields: JsonObject,
    sameKey: (name: string, what: string, other: string) => string,
    place?: string,
  ): Parsed<KeyFileRequest> => {
    const known = requests.get(name);
    if (known) return known;
    let request = parseKeyFileRequest(fields, { ...options, readDocument });
    if (!request.ok && place !== undefined)
      request = { ok: false, problems: atPlace(place, request.problems) };
    const own = request.ok ? identities(request.value) : [];
    const taken = own.find((identity) => takenBy.has(identity.join(' ')));
    if (taken) {
      const description = sameKey(name, taken[0], takenBy.get(taken.join(' ')) ?? '');
      request = { ok: false, problems: [{ code: 'duplicate_quality', description }] };
    } else for (const identity of own) takenBy.set(identity.join(' '), name);
    requests.set(name, request);
    return request;
  };
}

/** Requests that share one of these would have the same key. */
function identities(request: KeyFileRequest): [what: string, value: string][] {
  if (request.source === 'provider') {
    const { client, contentId, choice: { keyId, track, period } = {} } = request;
    return [['content id', [client, contentId, keyId?.toString('hex'), track, period].join('\n')]];
  }
  const values =
    request.source === 'cpix'
      ? {
          'key id': request.chosen.cenc?.keyId.toString('base64'),
          'FairPlay key id': request.chosen.fairplay?.keyId.toString('base64'),
        }
      : {
          'key id': request.keyFile.cenc?.keyId,
          'FairPlay key': request.keyFile.fairplay?.key.toLowerCase(),
          'AES-128 key': request.keyFile.aes?.key.toLowerCase(),
        };
  return Object.entries(values).flatMap(([what, value]) => (value === undefined ? [] : [[what, value]]));
}
