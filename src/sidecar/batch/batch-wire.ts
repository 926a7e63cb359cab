import { z } from 'zod';
import type { JsonObject } from '../../drm/bytes';
import { HttpError, type Problem } from '../../http/errors';
import { nearest } from '../../http/nearest';
import { parseBody, printable } from '../../http/parse';

/** How many streams a batch may have, those of its groups counted. */
export const MAX_STREAMS = 10_000;

const list = z.array(z.unknown(), 'must be a list').nullish();

/** The body of `POST /api/keyfiles`, as far as it must be right for anything to be done. */
export const batchBody = z.strictObject({ streams: list, groups: list }, 'The body must be a JSON object.');

const problem = z.object({ code: z.string(), description: z.string() });

/** What became of one stream. Without a stream id: of an entry that names none, or of a group that can't be read. */
export const batchResult = z.object({
  streamid: z.string().nullable(),
  result: z.enum(['created', 'changed', 'unchanged', 'failed']),
  etag: z.string().optional(),
  /** Of a dry run: the lines that would not stay as they are. */
  lines: z
    .array(
      z.object({
        name: z.string(),
        value: z.string(),
        change: z.enum(['added', 'changed', 'removed']),
        former: z.string().optional(),
      }),
    )
    .optional(),
  warnings: z.array(problem).optional(),
  errors: z.array(problem).optional(),
});

export const batchSummary = z.object({
  created: z.int(),
  changed: z.int(),
  unchanged: z.int(),
  failed: z.int(),
});

/** The answer of `POST /api/keyfiles`: the streams in the order of the request, then the groups' members. */
export const batchAnswer = z.object({ results: z.array(batchResult), summary: batchSummary });

export type BatchResult = z.output<typeof batchResult>;
export type BatchSummary = z.output<typeof batchSummary>;

export interface BatchBody {
  readonly streams: readonly unknown[];
  readonly groups: readonly unknown[];
}

/** Reads the body as a whole. @throws HttpError 400. */
export function readBatchBody(body: unknown): BatchBody {
  const parsed = parseBody(batchBody, body, Object.keys(batchBody.shape));
  if (!parsed.ok) throw new HttpError(400, parsed.problems);
  const { streams, groups } = parsed.value;
  if (!streams && !groups) throw invalid('Give streams, groups, or both.');
  if ((streams?.length ?? 0) + (groups?.length ?? 0) > MAX_STREAMS) throw tooManyStreams();
  return { streams: streams ?? [], groups: groups ?? [] };
}

export function tooManyStreams(): HttpError {
  return invalid(`A batch has ${MAX_STREAMS} streams at most, its groups' counted. Send several batches.`);
}

function invalid(description: string): HttpError {
  return new HttpError(400, { code: 'invalid_body', description: `${description} Nothing was written.` });
}

/** What a stream's entry and a group have beside the fields of a key-file request. */
export const STREAM_FIELDS = ['streamid'];
export const GROUP_FIELDS = ['members', 'smil', 'folder', 'keys', 'heights', 'bitrates'];
export const MEMBER_FIELDS = ['streamid', 'contentId', 'quality'];

const REQUEST_FIELDS = [
  ...['cenc', 'playready', 'widevine', 'fairplay', 'cmaf'],
  ...['client', 'clientApiKey', 'contentId', 'keyfile', 'keepunknown', 'drmjson', 'drmJson'],
];

export type Fields = JsonObject;

/** An entry of more fields is nonsense, and no time is spent on their names. */
const MAX_FIELDS = 50;

/**
 * Divides an entry into the fields of its own and those of the key-file request in it, and finds those that most
 * likely are one of its own, misspelt: the request's reader knows only its own names.
 */
export function divideFields(entry: Fields, own: readonly string[]) {
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
