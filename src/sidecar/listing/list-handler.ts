import type { RequestHandler } from 'express';
import type * as z from 'zod';
import { type listAnswer, listQuery } from '../../api/list';
import { parsedOr400 } from '../../http/errors';
import { readQuery } from '../../http/faults';
import { callerOf } from '../access/api-key';
import type { KeyFileEntry } from './entry';
import { createListings, type ListingsOptions } from './listings';

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
