import * as z from 'zod';
import { isJsonObject } from '../drm/bytes';
import { readLimits } from '../drm/quality';
import { type Parsed, type Problem, readBody } from '../http/faults';
import { parseStreamId } from './stream-id';

/** Streams of a batch, with those of its groups. */
export const MAX_STREAMS = 10_000;

const SAME_FIELDS = 'These come in addition to the fields of a single request.';

/** Each track is read by itself: a faulty one fails alone. */
const tracks = z
  .record(z.string(), z.union([z.string(), z.array(z.string())]))
  .nullish()
  .describe(
    'The streams of each track of `cpix`, or of a content whose provider takes `track`: `{"SD": "news_sd", "HD": ["news_720p", "news_1080p"]}`. Each gets the keys of its track, as `track` chooses them; the document is read once, or asked for once.',
  );

/** In addition to the fields of a key-file request. */
export const streamEntry = z
  .looseObject({
    streamid: z.string().nullish().describe('The stream id; slashes as they are.'),
    tracks,
  })
  .meta({
    description: SAME_FIELDS,
    anyOf: ['streamid', 'tracks'].map((name) => ({ required: [name] })),
  });

export const memberEntry = z.object({
  streamid: z.string().describe('The stream id of the member.'),
  contentId: z.string().nullish().describe('Its own content id, with `"keys": "each"`.'),
  quality: z
    .string()
    .nullish()
    .describe('Its quality, with keys by quality: `SD`, `HD`, `UHD`, `AUDIO` or another name.'),
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
      description: `With \`smil\` and keys by quality: the maximum of each quality, in ${what}. Left out: ${standard}.`,
    });

/** In addition to the fields of a key-file request. A faulty member fails alone. */
export const groupEntry = z
  .looseObject({
    members: z
      // Not by `min`: it accepts a text as a list, and reports two faults for an empty one.
      .array(z.unknown(), 'must be a list')
      .refine((members) => members.length > 0, 'is empty')
      .meta({ minItems: 1 })
      .nullish()
      .describe('The member streams. Either these, `smil` or `tracks`.'),
    tracks: z
      .unknown()
      .optional()
      .meta(tracks.meta() ?? {}),
    smil: z
      .string('must be a string, the text of the document')
      .nullish()
      .describe(
        'The text of a SMIL document, whose `video` and `audio` name the members: 1 MiB and 1000 members at most, no DOCTYPE.',
      ),
    keys: z
      .union(
        [z.enum(['same', 'each', 'quality']), z.record(z.string(), z.unknown().meta({ type: 'object' }))],
        'must be "same", "each", "quality", or the keys of each quality',
      )
      .nullish()
      .describe(
        '`same`: all members have the same keys. `each`: each has its own content id, by default `contentId-streamid`. `quality`: the members of each quality share one, `contentId-quality` in lower case. An object: the fields of a single request for each quality, keys or a content id, next to the fields of the group. Left out: `same`.',
      ),
    heights: limits('lines (the smaller side of the picture)', '`{"SD": 576, "HD": 1080, "UHD": 4320}`'),
    bitrates: limits('bits per second, for videos without a height', 'none: such a video is refused'),
    folder: z
      .string('must be a string')
      .refine(
        (folder) => parseStreamId(folder).ok,
        'must be the first parts of a stream id, without a slash at either end',
      )
      .nullish()
      .describe('Put before each member, with a slash.'),
  })
  .meta({ description: SAME_FIELDS });

export type GroupFields = z.output<typeof groupEntry>;

const list = (item: z.ZodType) => z.array(item, 'must be a list').nullish();

/** Checked only as a whole: a faulty entry fails alone. */
const batchBody = z.strictObject(
  { streams: list(z.unknown()), groups: list(z.unknown()) },
  'The body must be a JSON object.',
);

export interface BatchBody {
  readonly streams: readonly unknown[];
  readonly groups: readonly unknown[];
}

/** The members of a SMIL document are not counted yet. */
export function readBatchBody(body: unknown, mostStreams = MAX_STREAMS): Parsed<BatchBody> {
  const parsed = readBody(batchBody, body);
  if (!parsed.ok) return parsed;
  const { streams, groups } = parsed.value;
  if (!streams && !groups) return { ok: false, problems: [refusal('Give streams, groups, or both.')] };
  const value = { streams: streams ?? [], groups: groups ?? [] };
  const count = [...value.streams, ...value.groups].reduce<number>((sum, each) => sum + countOf(each), 0);
  return count > mostStreams ? tooManyStreams(mostStreams) : { ok: true, value };
}

/** Unreadable streams are counted, too. */
function countOf(entry: unknown): number {
  const { tracks, members } = isJsonObject(entry) ? entry : {};
  const lists = isJsonObject(tracks) ? Object.values(tracks) : [members];
  return lists.reduce<number>((count, each) => count + (Array.isArray(each) ? each.length : 1), 0);
}

export function tooManyStreams(most: number): Parsed<never> {
  const description = `A batch has ${most} streams at most, its groups' counted. Send several batches.`;
  return { ok: false, problems: [refusal(description)] };
}

function refusal(description: string): Problem {
  return { code: 'invalid_body', description: `${description} Nothing was written.` };
}
