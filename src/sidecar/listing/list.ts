import { statSync } from 'node:fs';
import type { RequestHandler } from 'express';
import type { ListAnswer, ListedKeyFile } from '../../api/answers';
import { listQuery } from '../../api/list';
import { parseStreamId } from '../../api/stream-id';
import { summariseKeyFile } from '../../drm/check/key-file-text';
import { keysIn } from '../../drm/key-file';
import { readQuery } from '../../http/faults';
import type { Log } from '../../http/log';
import { yieldToEventLoop } from '../../http/semaphore';
import { type ApiKey, callerOf, mayRead } from '../api-key';
import { apiError } from '../errors';
import { indexedKeysIn, type KeyIndex, keyConflictFindings } from '../key-files/changes';
import { toStorageError } from '../storage/open-file';
import { describeKeyFile, listStreamIds } from './folder';

export const LIST_PATH = '/api/keyfiles';

export interface ListOptions {
  readonly folder: string;
  /** Throws when the folder can't be used: an empty mount point must not pass for an empty list. */
  readonly checkFolder: () => void;
  readonly index: KeyIndex;
  readonly log: Log;
}

/** Pages are sorted by stream id. A key file that is there from the first page to the last is on one of them, once. */
export function createList({ folder, checkFolder, index, log }: ListOptions): RequestHandler {
  const onUnreadable = (subFolder: string, code: string) =>
    log.warn('a sub-folder of the key files cannot be listed', { subFolder, code });

  const pageOf = async (
    key: ApiKey,
    { prefix, after = '' }: Position,
    limit: number,
  ): Promise<ListAnswer> => {
    const wanted = (await listStreamIds(folder, onUnreadable)).filter(
      (streamId) => streamId.startsWith(prefix) && streamId > after && mayRead(key, streamId),
    );
    const keyfiles: ListedKeyFile[] = [];
    for (const streamId of wanted) {
      if (keyfiles.length === limit) break;
      await yieldToEventLoop();
      const entry = describeKeyFile(folder, streamId, (text) => {
        const { faults, ...summary } = summariseKeyFile(text);
        const conflicts = keyConflictFindings(index, streamId, indexedKeysIn(keysIn(text)), key);
        return { ...summary, faults: [...faults, ...conflicts] };
      });
      if (entry) keyfiles.push(entry);
    }
    // A folder that has vanished must not count as one without key files.
    statSync(`${folder}/.`);
    const last = keyfiles.at(-1)?.streamid;
    const isEnd = last === undefined || keyfiles.length < limit || last === wanted.at(-1);
    return { keyfiles, cursor: isEnd ? null : cursorOf({ prefix, after: last }) };
  };

  return async (request, response) => {
    const { prefix, limit, cursor } = readQuery(listQuery, request.query);
    const apiKey = callerOf(response);
    response.setHeader('cache-control', 'no-store');
    if (request.method === 'HEAD') {
      response.type('json').end();
      return;
    }
    const position = cursor === undefined ? { prefix: prefix ?? '' } : positionOf(cursor);
    if (prefix !== undefined && prefix !== position.prefix) throw apiError('invalid_query', ANOTHER_PREFIX);
    checkFolder();
    const page = await pageOf(apiKey, position, limit).catch((thrown: unknown) => {
      throw toStorageError('read', thrown);
    });
    response.locals.logFields = { prefix, keyFiles: page.keyfiles.length };
    response.json(page);
  };
}

interface Position {
  readonly prefix: string;
  readonly after?: string | undefined;
}

function cursorOf({ prefix, after }: Position): string {
  return Buffer.from(`${prefix} ${after}`).toString('base64url');
}

/** @throws HttpError 410. */
function positionOf(cursor: string): Position {
  const [prefix = '', after = ''] = Buffer.from(cursor, 'base64url').toString().split(' ');
  if (!parseStreamId(after).ok || !after.startsWith(prefix)) throw apiError('cursor_expired');
  return { prefix, after };
}

const ANOTHER_PREFIX =
  'prefix: differs from the one that this cursor started with; leave it out, or start again without cursor.';
