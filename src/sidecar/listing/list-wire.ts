import { z } from 'zod';
import { say } from '../../drm/bytes';
import { HttpError, type Problem } from '../../http/errors';
import { nearest } from '../../http/nearest';
import { printable } from '../../http/parse';
import type { KeyFileEntry } from './entry';
import { checkPrefix } from './search';

const MAX_ENTRIES = 1000;

// A parameter that is given twice arrives as an array.
const text = z.string('is given twice');

const prefix = text.superRefine((value, context) => {
  const checked = checkPrefix(value);
  if (!checked.ok) context.addIssue({ code: 'custom', message: say(checked.fault) });
});

const limit = text
  .regex(/^\d{1,9}$/, { message: `must be a whole number from 1 to ${MAX_ENTRIES}`, abort: true })
  .transform(Number)
  .refine((count) => count >= 1 && count <= MAX_ENTRIES, `must be from 1 to ${MAX_ENTRIES}`);

/** The query of `GET /api/keyfiles`. Without a prefix a cursor goes on with the one it began with. */
export const listQuery = z.strictObject({
  prefix: prefix.optional(),
  limit: limit.default(100),
  cursor: text.optional(),
});

/** The answer of `GET /api/keyfiles`. */
export const listAnswer = z.object({
  keyfiles: z.array(
    z.object({
      streamid: z.string(),
      modified: z.iso.datetime(),
      size: z.int(),
      parts: z.array(z.string()),
      key_id: z.string().nullable(),
      content_id: z.string().nullable(),
      faults: z.array(
        z.object({ severity: z.enum(['error', 'warning']), code: z.string(), description: z.string() }),
      ),
    }),
  ),
  cursor: z.string().nullable(),
});

/** Reads the query. @throws HttpError 400 with everything that is wrong with it. */
export function readListQuery(query: unknown): z.output<typeof listQuery> {
  const result = listQuery.safeParse(query);
  if (result.success) return result.data;
  throw new HttpError(400, result.error.issues.flatMap(problemsOf));
}

export function renderList(
  entries: readonly KeyFileEntry[],
  cursor: string | undefined,
): z.input<typeof listAnswer> {
  return {
    keyfiles: entries.map(({ streamId, modified, size, parts, keyId, contentId, faults }) => ({
      streamid: streamId,
      modified: modified.toISOString(),
      size,
      parts: [...parts],
      key_id: keyId ?? null,
      content_id: contentId ?? null,
      faults: faults.map(({ severity, code, description }) => ({ severity, code, description })),
    })),
    cursor: cursor ?? null,
  };
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  if (issue.code !== 'unrecognized_keys') {
    return [{ code: 'invalid_query', description: `${issue.path.join('.')}: ${issue.message}` }];
  }
  const known = Object.keys(listQuery.shape);
  return issue.keys.slice(0, 10).map((name) => {
    const near = nearest(name, known);
    const hint = near ? `Did you mean ${near}?` : `Parameters: ${known.join(', ')}.`;
    const description = `${printable(name)} is not a parameter of this request. ${hint}`;
    return { code: 'invalid_query', description };
  });
}
