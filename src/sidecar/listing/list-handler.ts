import type { RequestHandler } from 'express';
import { callerOf } from '../access/api-key';
import type { Listings, ListingsOptions } from './listings';

export const LIST_PATH = '/api/keyfiles';

/** `GET /api/keyfiles`: pages of the key files that an API key reaches. */
export interface List {
  /** It stands behind the guard. */
  readonly handler: RequestHandler;
  /** Closes the listings that clients are in the midst of. */
  close(): void;
}

/** What a list needs is loaded with the first one: the start of the service must not wait for it. */
export function createList(options: ListingsOptions): List {
  let listings: Listings | undefined;
  const open = () => {
    const { createListings }: typeof import('./listings') = require('./listings');
    return createListings(options);
  };
  return {
    handler: async (request, response) => {
      const { readListQuery, renderList }: typeof import('./list-wire') = require('./list-wire');
      const { prefix, limit, cursor } = readListQuery(request.query);
      const apiKey = callerOf(response);
      response.setHeader('cache-control', 'no-store');
      if (request.method === 'HEAD') {
        // A page that nobody reads need not be made, nor a listing opened for it.
        response.type('json').end();
        return;
      }
      listings ??= open();
      const page =
        cursor === undefined
          ? await listings.first(apiKey, prefix ?? '', limit)
          : await listings.next(apiKey, cursor, prefix, limit);
      response.locals.logFields = { prefix, keyFiles: page.entries.length };
      response.json(renderList(page.entries, page.cursor));
    },
    close: () => listings?.close(),
  };
}
