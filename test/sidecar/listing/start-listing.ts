import { join } from 'node:path';
import fs from 'fs-extra';
import request from 'supertest';
import { createApp, routeAt } from '../../../src/http/app';
import { listen } from '../../../src/http/server';
import type { ApiKey } from '../../../src/sidecar/api-key';
import { createKeyIndex } from '../../../src/sidecar/key-files/changes';
import { createList, LIST_PATH } from '../../../src/sidecar/listing/list';
import { afterTest, temporaryFolder } from '../../support/after-test';
import { recordedLog } from '../../support/recorded-log';

interface ListBody {
  readonly keyfiles: readonly { readonly streamid: string; readonly [field: string]: unknown }[];
  readonly cursor: string | null;
}

type Query = Readonly<Record<string, string | number>>;

export const ALL: ApiKey = { name: 'ops', scope: 'read', streams: undefined };

/** Starts the list alone over a folder of its own; the key of a request is handed over in a header. */
export async function startListing() {
  const folder = await temporaryFolder();
  const { log, lines: logged } = recordedLog();
  const list = createList({ folder, checkFolder: () => undefined, index: createKeyIndex(), log });
  const app = createApp({ log, newId: () => 'id', now: () => 0 }, (routes) => {
    routes.use((incoming, response, next) => {
      response.locals.apiKey = JSON.parse(String(incoming.headers['x-test-key']));
      next();
    });
    routeAt(routes, LIST_PATH).get(list);
  });
  const { url, stop } = await listen(app, '127.0.0.1', 0);
  afterTest(() => stop(0));
  const client = request(url);
  const ask = (query: Query, key: ApiKey) =>
    client.get(LIST_PATH).query(query).set('x-test-key', JSON.stringify(key));
  /** Asks for a page that must come. */
  const page = async (query: Query, key = ALL): Promise<ListBody> => (await ask(query, key).expect(200)).body;
  /** All pages from the first to the last, `between` after each but the last. */
  const pages = async (query: Query, key = ALL, between = () => {}): Promise<ListBody[]> => {
    const bodies = [await page(query, key)];
    for (let cursor = bodies[0]?.cursor; cursor; cursor = bodies.at(-1)?.cursor) {
      between();
      bodies.push(await page({ ...query, cursor }, key));
    }
    return bodies;
  };
  return {
    folder,
    client,
    page,
    pages,
    /** The warnings, without requests. */
    warnings: () =>
      logged.filter(([level]) => level === 'warn').map(([, message, fields]) => ({ message, fields })),
    /** The stream ids of all pages. */
    streamIds: async (query: Query = {}, key = ALL, between = () => {}) =>
      (await pages(query, key, between)).flatMap(({ keyfiles }) => keyfiles.map(({ streamid }) => streamid)),
    /** Asks for a page that must be refused, and returns status and body. */
    refusal: async (query: Query, key = ALL): Promise<[status: number, body: unknown]> => {
      const { status, body } = await ask(query, key);
      return [status, body];
    },
  };
}

/** Puts an (almost empty) key file for each stream id into a folder. */
export function place(folder: string, ...streamIds: string[]): void {
  for (const streamId of streamIds) fs.outputFileSync(join(folder, `${streamId}.key`), 'name: value\n');
}
