import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import request from 'supertest';
import { createApp, onlyMethods } from '../../../src/http/app';
import { listen } from '../../../src/http/server';
import type { ApiKey } from '../../../src/sidecar/access/api-key';
import { createList, LIST_PATH, type List } from '../../../src/sidecar/listing/list-handler';
import type { ListingsOptions } from '../../../src/sidecar/listing/listings';
import { temporaryFolder } from '../../support/start-sidecar';

export interface ListedFile {
  readonly streamid: string;
  readonly [field: string]: unknown;
}

export interface ListBody {
  readonly keyfiles: readonly ListedFile[];
  readonly cursor: string | null;
}

export interface TestListing {
  readonly folder: string;
  readonly list: List;
  readonly client: ReturnType<typeof request>;
  /** What was logged beside requests. */
  readonly warnings: readonly unknown[];
  /** Asks for a page that must come. */
  page(query: Query, key?: ApiKey): Promise<ListBody>;
  /** All pages from the first to the last, `between` after each but the last. */
  pages(query: Query, key?: ApiKey, between?: () => void): Promise<ListBody[]>;
  /** The stream ids of all pages. */
  streamIds(query?: Query, key?: ApiKey, between?: () => void): Promise<string[]>;
  /** Asks for a page that must be refused, and answers status and body. */
  refusal(query: Query, key?: ApiKey): Promise<[status: number, body: unknown]>;
  /** Lets time pass for the listings. */
  advance(ms: number): void;
  /** How many folders below the key-file folder, itself included, this process holds open. */
  openFolders(): number;
}

export type Query = Readonly<Record<string, string | number>>;

export const ALL: ApiKey = { name: 'ops', scope: 'read', streams: undefined };

let stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops) await stop();
  stops = [];
});

/** Starts the list alone over a folder of its own; the key of a request is handed over in a header. */
export async function startListing(overrides: Partial<ListingsOptions> = {}): Promise<TestListing> {
  const folder = overrides.folder ?? (await temporaryFolder());
  const warnings: unknown[] = [];
  let [time, ids] = [1000, 0];
  const ignore = () => undefined;
  const warn = (message: string, fields?: object) => void warnings.push({ message, ...fields });
  const log = { error: ignore, warn, info: ignore, debug: ignore };
  const newId = () => {
    ids += 1;
    return `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`;
  };
  const now = () => time;
  const list = createList({
    folder,
    checkFolder: () => undefined,
    conflictsOf: () => [],
    log,
    newId,
    now,
    ...overrides,
  });
  const app = createApp({ log, newId, now }, (routes) => {
    routes.use((incoming, response, next) => {
      response.locals.apiKey = JSON.parse(String(incoming.headers['x-test-key']));
      next();
    });
    routes.route(LIST_PATH).get(list.handler).all(onlyMethods('GET', 'HEAD'));
  });
  const { url, stop } = await listen(app, '127.0.0.1', 0);
  stops.push(async () => {
    list.close();
    await stop(0);
  });
  const client = request(url);
  const ask = (query: Query, key: ApiKey) =>
    client.get(LIST_PATH).query(query).set('x-test-key', JSON.stringify(key));
  const listing: TestListing = {
    folder,
    list,
    client,
    warnings,
    page: async (query, key = ALL) => (await ask(query, key).expect(200)).body,
    pages: async (query, key = ALL, between = () => undefined) => {
      const bodies = [await listing.page(query, key)];
      for (let cursor = bodies[0]?.cursor; cursor; cursor = bodies.at(-1)?.cursor) {
        between();
        bodies.push(await listing.page({ ...query, cursor }, key));
      }
      return bodies;
    },
    streamIds: async (query = {}, key = ALL, between = () => undefined) =>
      (await listing.pages(query, key, between)).flatMap(({ keyfiles }) =>
        keyfiles.map(({ streamid }) => streamid),
      ),
    refusal: async (query, key = ALL) => {
      const { status, body } = await ask(query, key);
      return [status, body];
    },
    advance: (ms) => {
      time += ms;
    },
    openFolders: () => openFolders(folder),
  };
  return listing;
}

/** Puts an (almost empty) key file for each stream id into a folder. */
export function place(folder: string, ...streamIds: string[]): void {
  for (const streamId of streamIds) fs.outputFileSync(join(folder, `${streamId}.key`), 'name: value\n');
}

export const EXPIRED = [
  410,
  {
    errors: [
      {
        code: 'cursor_expired',
        description:
          'This cursor is unknown or has expired: a listing is closed after 5 minutes without a request, when too many are open, and when the service stops. Start again without cursor.',
      },
    ],
  },
];

function openFolders(folder: string): number {
  const targets = readdirSync('/proc/self/fd').map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`);
    } catch {
      return '';
    }
  });
  return targets.filter((target) => target === folder || target.startsWith(`${folder}/`)).length;
}
