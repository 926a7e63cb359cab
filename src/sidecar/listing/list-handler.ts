import type { RequestHandler } from 'express';
import * as z from 'zod';
import { say } from '../../drm/bytes';
import { parsedOr400 } from '../../http/errors';
import { readQuery } from '../../http/faults';
import { callerOf } from '../access/api-key';
import type { KeyFileEntry } from './entry';
import { createListings, type ListingsOptions } from './listings';
import { checkPrefix } from './search';

export const LIST_PATH = '/api/keyfiles';

/** `GET /api/keyfiles`: pages of the key files that an API key reaches. */
export interface List {
  /** It stands behind the guard. */
  readonly handler: RequestHandler;
  /** Closes the listings that clients are in the midst of. */
  close(): void;
}

export function createList(options: ListingsOptions): List {
  const listings = createListings(options);
  return {
    handler: async (request, response) => {
      const { prefix, limit, cursor } = parsedOr400(readQuery(listQuery, request.query));
      const apiKey = callerOf(response);
      response.setHeader('cache-control', 'no-store');
      if (request.method === 'HEAD') {
        // A page that nobody reads need not be made, nor a listing opened for it.
        response.type('json').end();
        return;
      }
      const page =
        cursor === undefined
          ? await listings.first(apiKey, prefix ?? '', limit)
          : await listings.next(apiKey, cursor, prefix, limit);
      response.locals.logFields = { prefix, keyFiles: page.entries.length };
      response.json(renderList(page.entries, page.cursor));
    },
    close: listings.close,
  };
}

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
const listQuery = z.strictObject({
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

function renderList(
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
