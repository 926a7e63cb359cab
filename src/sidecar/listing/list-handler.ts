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

const listedFault = z.object({
  severity: z.enum(['error', 'warning']).meta({
    description: '`error`: viewers see a black screen. `warning`: it may be meant so.',
  }),
  code: z.string().meta({ description: 'For programs.' }),
  description: z.string().meta({ description: 'For a person.' }),
});

const listedKeyFile = z.object({
  streamid: z.string().meta({ description: 'The stream id.' }),
  modified: z.iso.datetime().meta({ description: 'When the file was written.' }),
  size: z.int().meta({ description: 'In bytes.' }),
  parts: z.array(z.string()).meta({
    description: 'What the file has lines for: `cenc`, `widevine`, `playready`, `fairplay`, `cmaf`.',
  }),
  key_id: z.string().nullable().meta({ description: 'The CENC key id as a UUID.' }),
  content_id: z
    .string()
    .nullable()
    .meta({ description: 'The content id that its Widevine data or its FairPlay address names.' }),
  faults: z.array(listedFault).meta({
    description:
      'What is wrong with the file, up to 20; the codes are those of a check, and `unreadable`, `too_large`, `not_utf8`.',
  }),
});

/** The answer of `GET /api/keyfiles`. */
export const listAnswer = z.object({
  keyfiles: z.array(listedKeyFile).meta({
    description:
      'The key files of this page, in no order. It may hold fewer than `limit`, or none, and yet not be the last.',
  }),
  cursor: z
    .string()
    .nullable()
    .meta({ description: 'What the next page is asked for with; `null` after the last one.' }),
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
