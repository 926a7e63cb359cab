import * as z from 'zod';
import type { JsonObject } from '../drm/bytes';
import { CPIX_TOO_LARGE, MAX_CPIX_BYTES } from '../drm/cpix/read';
import { sentenceOf } from '../drm/finding';
import { readLimits } from '../drm/quality';
import { nearest, type Parsed, type Problem, printable, readBody } from '../http/faults';
import {
  cpixBody,
  importedBody,
  MAX_BODY_BYTES,
  providerBody,
  sizeOf,
  suppliedBody,
} from './key-file-request';
import type { KeyFileRequest, RequestOptions } from './read-key-file-request';
import { parseStreamId, type StreamId } from './stream-id';

/** How many streams a batch may have, those of its groups counted. */
export const MAX_STREAMS = 10_000;

const SAME_FIELDS = 'These come in addition to the fields of a single request.';

/** Each track is read by itself: one at fault fails alone. */
const tracks = z
  .record(z.string(), z.union([z.string(), z.array(z.string())]))
  .nullish()
  .meta({
    description:
      'With `cpix`, the streams of each track: `{"SD": "news_sd", "HD": ["news_720p", "news_1080p"]}`. Each gets the keys of its track, as `track` chooses them; the document is read once.',
  });

/** The fields of a stream's entry in addition to those of a key-file request. */
export const streamEntry = z
  .looseObject({
    streamid: z.string().nullish().meta({ description: 'The stream id; slashes as they are.' }),
    tracks,
  })
  .meta({
    description: SAME_FIELDS,
    anyOf: ['streamid', 'tracks'].map((name) => ({ required: [name] })),
  });

/** A member of a group, when it is more than its stream id. */
export const memberEntry = z.object({
  streamid: z.string().meta({ description: 'The stream id of the member.' }),
  contentId: z.string().nullish().meta({ description: 'Its own content id, with `"keys": "each"`.' }),
  quality: z.string().nullish().meta({
    description: 'Its quality, with keys by quality: `SD`, `HD`, `UHD`, `AUDIO` or another name.',
  }),
});

const limits = (what: string, standard: string) =>
  z
    .unknown()
    .transform((value, context) => {
      if (value === undefined || value === null) return undefined;
      const read = readLimits(value);
      if (read.ok) return read.value;
      context.addIssue({ code: 'custom', message: read.problem.description });
      return z.NEVER;
    })
    .optional()
    .meta({
      type: ['object', 'null'],
      additionalProperties: { type: 'integer', exclusiveMinimum: 0 },
      description: `With \`smil\` and keys by quality: the most that each quality has of ${what}. Left out: ${standard}.`,
    });

/** The fields of a group in addition to those of a key-file request. A member that is at fault fails alone. */
export const groupEntry = z
  .looseObject({
    members: z
      // Not by `min`: that takes a text for a list, and an empty one for both faults.
      .array(z.unknown(), 'must be a list')
      .refine((members) => members.length > 0, 'is empty')
      .meta({ minItems: 1 })
      .nullish()
      .meta({ description: 'The member streams. Either these, `smil` or `tracks`.' }),
    tracks: z
      .unknown()
      .optional()
      .meta(tracks.meta() ?? {}),
    smil: z.string('must be a string, the text of the document').nullish().meta({
      description:
        'The text of a SMIL document, whose `video` and `audio` name the members: 1 MiB and 1000 members at most, no DOCTYPE.',
    }),
    keys: z
      .union(
        [z.enum(['same', 'each', 'quality']), z.record(z.string(), z.unknown().meta({ type: 'object' }))],
        'must be "same", "each", "quality", or the keys of each quality',
      )
      .nullish()
      .meta({
        description:
          '`same`: all members have the same keys. `each`: each has a content id of its own, `contentId-streamid` where it has none. `quality`: the members of each quality have one, `contentId-quality` in lower case. An object: the fields of a single request for each quality, keys or a content id, beside the fields of the group. Left out: `same`.',
      }),
    heights: limits('lines (the smaller side of the picture)', '`{"SD": 576, "HD": 1080, "UHD": 4320}`'),
    bitrates: limits('bits a second, for videos without a height', 'none: such a video is refused'),
    folder: z
      .string('must be a string')
      .refine(
        (folder) => parseStreamId(folder).ok,
        'must be the first parts of a stream id, without a slash at either end',
      )
      .nullish()
      .meta({ description: 'Put before each member, with a slash.' }),
  })
  .meta({ description: SAME_FIELDS });

export type GroupFields = z.output<typeof groupEntry>;

const list = (item: z.ZodType) => z.array(item, 'must be a list').nullish();

/** The body of a batch, as far as it must be right for anything to be done: an entry that is at fault fails alone. */
const batchBody = z.strictObject(
  { streams: list(z.unknown()), groups: list(z.unknown()) },
  'The body must be a JSON object.',
);

const problem = z.object({
  code: z.string().meta({ description: 'For programs.' }),
  description: z.string().meta({ description: 'For a person.' }),
});

/** The result of one stream. Without a stream id: of an entry that names none, or of a group that cannot be read. */
export const batchResult = z.object({
  index: z.int().nonnegative().meta({
    description:
      'The entry of the request that it is a result of, counted from 0 over `streams` and then `groups`. The members of a group, and the streams of `tracks`, have the index of their entry.',
  }),
  streamid: z.string().nullable().meta({
    description: 'The stream id; `null` for an entry that names none, or a group that cannot be read.',
  }),
  result: z
    .enum(['created', 'changed', 'unchanged', 'failed'])
    .meta({ description: 'What became of the file; of a dry run, what would.' }),
  etag: z.string().optional().meta({ description: 'The entity tag of the file, quotes included.' }),
  lines: z
    .array(
      z.object({
        name: z.string().meta({ description: 'The name of the line.' }),
        value: z.string().meta({ description: 'Its value.' }),
        change: z.enum(['added', 'changed', 'removed']).meta({ description: 'What happens to the line.' }),
        former: z.string().optional().meta({ description: 'The present value of a line that would change.' }),
      }),
    )
    .optional()
    .meta({
      description: 'Of a dry run: the lines that would not stay as they are, key material as `********`.',
    }),
  warnings: z
    .array(problem)
    .optional()
    .meta({ description: 'Warnings about the keys, which are written nevertheless.' }),
  errors: z.array(problem).optional().meta({
    description:
      'Why it failed: the errors of a single request, and `duplicate_stream`, `duplicate_content_id`, `duplicate_quality`, `stopping`.',
  }),
});

export const batchSummary = z.object({
  created: z.int().meta({ description: 'New files.' }),
  changed: z.int().meta({ description: 'Files that are others now.' }),
  unchanged: z.int().meta({ description: 'Files that were so already; they are not written.' }),
  failed: z.int().meta({ description: 'Streams whose files are as they were.' }),
});

/** The answer of a batch: the streams in the order of the request, then the groups' members. */
export const batchAnswer = z.object({
  results: z
    .array(batchResult)
    .meta({ description: 'One for each stream, in the order of the request, groups after streams.' }),
  summary: batchSummary.meta({ description: 'How many there are of each result.' }),
});

export type BatchResult = z.output<typeof batchResult>;
export type BatchSummary = z.output<typeof batchSummary>;

export interface BatchBody {
  readonly streams: readonly unknown[];
  readonly groups: readonly unknown[];
}

/** Reads the body as a whole. */
export function readBatchBody(body: unknown): Parsed<BatchBody> {
  const parsed = readBody(batchBody, body);
  if (!parsed.ok) return parsed;
  const { streams, groups } = parsed.value;
  if (!streams && !groups) return { ok: false, problems: [refusal('Give streams, groups, or both.')] };
  if ((streams?.length ?? 0) + (groups?.length ?? 0) > MAX_STREAMS) return TOO_MANY_STREAMS;
  return { ok: true, value: { streams: streams ?? [], groups: groups ?? [] } };
}

function refusal(description: string): Problem {
  return { code: 'invalid_body', description: `${description} Nothing was written.` };
}

export const TOO_MANY_STREAMS: { ok: false; problems: Problem[] } = {
  ok: false,
  problems: [
    refusal(`A batch has ${MAX_STREAMS} streams at most, its groups' counted. Send several batches.`),
  ],
};

/** How requests are read, and how other requests are served during long work. */
export interface PlanContext extends RequestOptions {
  /** Awaited at each step; it yields at some of them. */
  readonly pause: () => Promise<void> | undefined;
  readonly yieldNow: () => Promise<void> | undefined;
}

export type Fields = JsonObject;

const REQUEST_FIELDS = [
  ...new Set([suppliedBody, cpixBody, providerBody, importedBody].flatMap(({ shape }) => Object.keys(shape))),
];

/** An entry of more fields is nonsense, and no time is spent on their names. */
const MAX_FIELDS = 50;

/**
 * Divides an entry into the fields of its own and those of the key-file request in it, and finds those that most
 * likely are one of its own, misspelt: the request's reader knows only its own names.
 */
export function divideFields(entry: Fields, schema: z.ZodObject) {
  const own = Object.keys(schema.shape);
  const problems: Problem[] = [];
  const mine: [string, unknown][] = [];
  const request: [string, unknown][] = [];
  const names = Object.keys(entry);
  if (names.length > MAX_FIELDS) problems.push(tooManyFields(names.length));
  for (const name of names.slice(0, MAX_FIELDS)) {
    if (own.includes(name)) {
      mine.push([name, entry[name]]);
      continue;
    }
    const near = REQUEST_FIELDS.includes(name) ? name : nearest(name, [...own, ...REQUEST_FIELDS]);
    if (near === undefined || !own.includes(near)) request.push([name, entry[name]]);
    else problems.push(unknownField(name, `Did you mean ${near}?`));
  }
  // Built from entries, so that a field called `__proto__` stays a field and is refused by its name.
  return {
    own: Object.fromEntries(mine) as Fields,
    request: Object.fromEntries(request) as Fields,
    problems,
  };
}

function tooManyFields(count: number): Problem {
  return { code: 'invalid_body', description: `has ${count} fields, far more than there are` };
}

export function unknownField(name: string, hint: string): Problem {
  return {
    code: 'unknown_field',
    description: `${printable(name)} is not a field of this request. ${hint}`,
  };
}

/** An entry of a batch may be as large as the body of a single POST. */
export function sizeFault(fields: Fields, ofQualities: Fields = {}): Problem | undefined {
  const sizes = [sizeOf(fields), ...Object.values(ofQualities).map(sizeOf)];
  if (sizes.some(({ document }) => document > MAX_CPIX_BYTES)) return DOCUMENT_TOO_LARGE;
  const size = sizes.reduce((sum, each) => sum + each.fields, 0);
  return size > MAX_BODY_BYTES ? TOO_LARGE : undefined;
}

const TOO_LARGE: Problem = {
  code: 'body_too_large',
  description: `The fields have more than ${MAX_BODY_BYTES / 1024} KiB, the most that a request for one stream may have.`,
};

const DOCUMENT_TOO_LARGE: Problem = {
  code: 'body_too_large',
  description: `cpix ${CPIX_TOO_LARGE}.`,
};

/** The plan for one stream of a batch. */
export type Planned = PlannedStream | PlannedMember | PlannedFailure;

/** A plan for a stream, and the entry that it is of: its number over `streams` and then `groups`, from 0. */
export type PlannedOfEntry = Planned & { readonly index: number };

/** A stream with keys of its own. Its fields are read when its turn comes. */
export interface PlannedStream {
  readonly kind: 'stream';
  readonly streamId: StreamId;
  readonly fields: Fields;
}

/** A stream whose keys are read already. All those of one request object have the same. */
export interface PlannedMember {
  readonly kind: 'member';
  readonly streamId: StreamId;
  readonly request: KeyFileRequest;
}

/** An entry that can't be done. Without a stream id the problems name its place. */
export interface PlannedFailure {
  readonly kind: 'failed';
  readonly streamId: StreamId | undefined;
  readonly problems: readonly Problem[];
}

/** Checks a stream id, and that none before was the same. `place` says where it stands. */
export type Claim = (
  given: unknown,
  place: string,
) => { readonly kind: 'claimed'; readonly streamId: StreamId } | PlannedFailure;

export function createClaim(): Claim {
  const claimed = new Set<StreamId>();
  return (given, place) => {
    if (given === undefined || given === null)
      return failed(undefined, invalidBody(`${place}: streamid is missing`));
    if (typeof given !== 'string')
      return failed(undefined, invalidBody(`${place}: streamid must be a string`));
    const parsed = parseStreamId(given);
    if (!parsed.ok) {
      return failed(undefined, {
        code: 'invalid_stream_id',
        description: `${place}: ${sentenceOf(parsed.problem)}`,
      });
    }
    if (claimed.has(parsed.value)) return failed(parsed.value, DUPLICATE);
    claimed.add(parsed.value);
    return { kind: 'claimed', streamId: parsed.value };
  };
}

const DUPLICATE: Problem = {
  code: 'duplicate_stream',
  description: 'The batch has named this stream before; the first of its entries is the one that counts.',
};

export function failed(streamId: StreamId | undefined, ...problems: readonly Problem[]): PlannedFailure {
  return { kind: 'failed', streamId, problems };
}

export function invalidBody(description: string): Problem {
  return { code: 'invalid_body', description };
}

/** Says where problems lie that no stream id says it of. */
export function atPlace(place: string, problems: readonly Problem[]): Problem[] {
  return problems.map(({ code, description }) => ({ code, description: `${place}: ${description}` }));
}
