import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Express, Response } from 'express';
import * as z from 'zod';
import { onlyMethods } from '../../http/app';
import { systemCode } from '../../http/errors';
import { parsedOr400, readQuery } from '../../http/faults';
import { packagerError } from './errors';
import { atPresent, joinManifests } from './playlists/dash-manifest';
import { joinMediaPlaylists, masterPlaylist, NoSegments, type PlaylistPart } from './playlists/hls-playlists';
import { ENTRY_FILES, type System } from './shaka-packager';
import type { StreamRecord } from './stream-document';
import type { Streams } from './streams';

const WINDOW = z.strictObject({
  window: z
    .string()
    .regex(/^[1-9]\d{0,6}$/, 'must be a whole number of seconds, from 1 to 9999999')
    .transform(Number)
    .optional(),
});

const TYPES: Readonly<Record<string, string>> = {
  mpd: 'application/dash+xml',
  m3u8: 'application/vnd.apple.mpegurl',
  mp4: 'video/mp4',
  m4s: 'video/iso.segment',
};
const PLAYLIST = /^[a-z0-9-]+\.m3u8$/;
const MEDIA_FILE = /^[a-z0-9-]+_(?:init\.mp4|\d+\.m4s)$/;

interface MediaParts {
  readonly streams: Streams;
  readonly clock: () => Date;
  /** The folder of a stream. */
  readonly folderOf: (id: string) => string;
}

/** What players load: playlists, which are joined from those of the parts, and the files that they name. */
export function mountMedia(app: Express, { streams, clock, folderOf }: MediaParts): void {
  const get = onlyMethods('GET', 'HEAD');

  const recordOf = (id: string): StreamRecord => {
    const stream = streams.find(id);
    if (!stream) throw packagerError('media_not_found');
    return stream.record;
  };

  const kept = new Map<string, KeptPart>();
  /** Only a part that is written still is looked at again: keys that rotate make hundreds in an hour. */
  const readPart = async ({ path, isDone, ...part }: PartPath): Promise<PlaylistPart> => {
    const before = kept.get(path);
    if (before?.isDone) return before.part;
    const state = await stateOf(path);
    if (before?.state === state && !isDone) return before.part;
    const text = (await orAbsent(readFile(path, 'utf8'))) ?? '';
    const read = { state, isDone, part: { ...part, text } };
    if (kept.size >= MAX_KEPT_PARTS) kept.clear();
    kept.set(path, read);
    return read.part;
  };

  const texts = new Map<string, { readonly state: readonly unknown[]; readonly text: string }>();
  /** Joins the parts' playlists when one of them has changed since: that of a day takes the time of many requests. */
  const joined = async (
    record: StreamRecord,
    system: System,
    file: string,
    windowSeconds: number | undefined,
    join: (parts: readonly PlaylistPart[]) => string,
  ): Promise<string> => {
    const paths = listedParts(record, folderOf(record.id), system, file);
    const key = JSON.stringify([record.id, system, file, windowSeconds ?? null]);
    const parts = await Promise.all(paths.map(readPart));
    const state = [record.isEnded, ...parts];
    const found = texts.get(key);
    if (found?.state.length === state.length && state.every((each, index) => each === found.state[index]))
      return found.text;
    if (parts.every(({ text }) => text === '')) throw packagerError('media_not_found');
    const text = orNotFound(() => join(parts));
    if (texts.size >= MAX_KEPT) texts.clear();
    texts.set(key, { state, text });
    return text;
  };

  app
    .route('/media/:id/dash/manifest.mpd')
    .get(async ({ params, query }, response) => {
      const { window: windowSeconds } = parsedOr400(readQuery(WINDOW, query));
      const record = recordOf(params.id);
      const now = clock();
      const text = await joined(record, 'dash', ENTRY_FILES.dash, windowSeconds, (parts) =>
        joinManifests(parts, { ended: record.isEnded, windowSeconds, now, latency: record.latency }),
      );
      sendText(response, 'mpd', atPresent(text, now));
    })
    .all(get);

  app
    .route('/media/:id/hls/:name.m3u8')
    .get(async ({ params, query }, response) => {
      const { window: windowSeconds } = parsedOr400(readQuery(WINDOW, query));
      const record = recordOf(params.id);
      const name = `${params.name}.m3u8`;
      if (!PLAYLIST.test(name)) throw packagerError('media_not_found');
      const text = await joined(record, 'hls', name, windowSeconds, (parts) =>
        name === ENTRY_FILES.hls
          ? masterPlaylist(
              parts.map((part) => part.text),
              windowSeconds,
            )
          : joinMediaPlaylists(parts, { ended: record.isEnded, windowSeconds, latency: record.latency }),
      );
      sendText(response, 'm3u8', text);
    })
    .all(get);

  app
    .route('/media/:id/:system/:part/:file')
    .get((request, response, next) => {
      const { id, system, part, file } = request.params;
      const record = recordOf(id);
      const isKnown = system === 'dash' || system === 'hls';
      if (!isKnown || !MEDIA_FILE.test(file) || !record.parts.some(({ name }) => name === part))
        throw packagerError('media_not_found');
      sendFile(response, join(folderOf(id), part, system), file, next);
    })
    .all(get);
}

interface PartPath extends Pick<PlaylistPart, 'folder' | 'continues'> {
  /** There is no such file where the part has nothing of the system. */
  readonly path: string;
  readonly isDone: boolean;
}

interface KeptPart {
  readonly state: string;
  /** Whether it was complete when it was read: it does not change any more. */
  readonly isDone: boolean;
  readonly part: PlaylistPart;
}

/**
 * Where the parts have a playlist, in their order. A part shows when the one before it is complete: what that one still
 * gets would change where this one begins.
 */
function listedParts(record: StreamRecord, folder: string, system: System, file: string): PartPath[] {
  const open = record.parts.findIndex(({ isDone }) => !isDone);
  const listed = open < 0 ? record.parts : record.parts.slice(0, open + 1);
  return listed.map(({ name, continues, isDone }) => ({
    folder: name,
    continues,
    isDone,
    path: join(folder, name, system, file),
  }));
}

/** Differs once a playlist is another one: each is written to a new file, which takes its place. */
async function stateOf(path: string): Promise<string> {
  const found = await orAbsent(stat(path));
  return found ? [found.ino, found.size, found.mtimeMs].join(' ') : '';
}

async function orAbsent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (thrown) {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
}

/** Some playlists of each of twenty streams. */
const MAX_KEPT = 100;
/** Some hours of keys that rotate every ten seconds; read, a part takes some 20 KB. */
const MAX_KEPT_PARTS = 5000;

/** A stream that has only begun is not there yet. */
function orNotFound(join: () => string): string {
  try {
    return join();
  } catch (thrown) {
    if (thrown instanceof NoSegments) throw packagerError('media_not_found');
    throw thrown;
  }
}

/** A playlist changes with each segment. */
function sendText(response: Response, ending: string, text: string): void {
  setMediaHeaders(response, ending);
  response.set('cache-control', 'no-cache').send(text);
}

function sendFile(response: Response, root: string, file: string, next: (thrown?: unknown) => void): void {
  const ending = file.split('.').at(-1) ?? '';
  setMediaHeaders(response, ending);
  // The initialization is written once more at the end, with the duration; a segment stays as it is.
  response.set('cache-control', ending === 'm4s' ? 'public, max-age=86400, immutable' : 'no-cache');
  const options = { root, cacheControl: false, dotfiles: 'deny' } as const;
  response.sendFile(file, options, (thrown?: Error & { readonly status?: number }) => {
    // A viewer who has gone is nothing that failed.
    if (!thrown || response.closed || systemCode(thrown) === 'ECONNABORTED') return;
    if (response.headersSent) return void response.destroy();
    const { status } = thrown;
    for (const name of ['content-type', 'cache-control', 'etag', 'last-modified'])
      response.removeHeader(name);
    if (status === 416) next(packagerError('range_not_satisfiable'));
    else next(status === 404 ? packagerError('media_not_found') : thrown);
  });
}

/** Players of any page may load it: what protects it is its encryption, and the guard before. */
function setMediaHeaders(response: Response, ending: string): void {
  response.set({
    'content-type': TYPES[ending] ?? 'application/octet-stream',
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'content-length, content-range, date',
    'cross-origin-resource-policy': 'cross-origin',
  });
}
