import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Express, Response } from 'express';
import * as z from 'zod';
import { routeAt } from '../../http/app';
import { systemCode } from '../../http/errors';
import { readQuery } from '../../http/faults';
import { packagerError } from './errors';
import { joinManifests } from './playlists/dash-manifest';
import { joinMediaPlaylists, masterPlaylist, type PlaylistPart } from './playlists/hls-playlists';
import { ENTRY_FILES, type System } from './shaka-packager';
import type { PartRecord } from './stream-document';
import type { Stream, Streams } from './streams';

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

interface MediaOptions {
  readonly streams: Streams;
  readonly clock: () => Date;
  /** When more parts than these were read, all are read again. */
  readonly keptParts?: number | undefined;
}

export function mountMedia(app: Express, { streams, clock, keptParts = MAX_KEPT_PARTS }: MediaOptions): void {
  /** By the folder of a part, then by file. */
  const kept = new Map<string, Map<string, PlaylistPart & { readonly isDone: boolean }>>();
  /**
   * A complete part is read once: keys that rotate make hundreds of parts in an hour. A part with the same
   * text stays the same object, which is parsed once: to parse that of a day takes the time of many requests.
   */
  const readPart = async (
    { name, continues, isDone }: PartRecord,
    folder: string,
    file: string,
  ): Promise<PlaylistPart> => {
    const known = kept.get(folder)?.get(file);
    if (known?.isDone) return known;
    const text = await readFile(join(folder, file), 'utf8').catch((thrown: unknown) => {
      if (systemCode(thrown) === 'ENOENT') return '';
      throw thrown;
    });
    if (known?.text === text && !isDone) return known;
    const part = { folder: name, continues, text, isDone };
    if (!kept.has(folder) && kept.size >= keptParts) kept.clear();
    const files = kept.get(folder) ?? new Map();
    kept.set(folder, files.set(file, part));
    return part;
  };

  /** A part shows when the one before it is complete: until then its start may change. */
  const partsOf = async ({ folder, record: { parts } }: Stream, system: System, file: string) => {
    const present = parts.findIndex(({ isDone }) => !isDone);
    const listed = present < 0 ? parts : parts.slice(0, present + 1);
    const read = await Promise.all(
      listed.map((part) => readPart(part, join(folder, part.name), join(system, file))),
    );
    if (read.every(({ text }) => text === '')) throw packagerError('media_not_found');
    return read;
  };

  routeAt(app, '/media/:id/dash/manifest.mpd').get(async ({ params, query }, response) => {
    const { window: windowSeconds } = readQuery(WINDOW, query);
    const stream = streams.get(params.id, 'media_not_found');
    const { isEnded: ended, latency } = stream.record;
    const parts = await partsOf(stream, 'dash', ENTRY_FILES.dash);
    const options = { ended, windowSeconds, now: clock(), latency };
    sendText(response, 'mpd', joinManifests(parts, options));
  });

  routeAt(app, '/media/:id/hls/:name.m3u8').get(async ({ params, query }, response) => {
    const { window: windowSeconds } = readQuery(WINDOW, query);
    const stream = streams.get(params.id, 'media_not_found');
    const name = `${params.name}.m3u8`;
    if (!PLAYLIST.test(name)) throw packagerError('media_not_found');
    const { isEnded: ended, latency } = stream.record;
    const options = { ended, windowSeconds, latency };
    const parts = await partsOf(stream, 'hls', name);
    const texts = parts.map(({ text }) => text);
    const joined =
      name === ENTRY_FILES.hls ? masterPlaylist(texts, windowSeconds) : joinMediaPlaylists(parts, options);
    sendText(response, 'm3u8', joined);
  });

  routeAt(app, '/media/:id/:system/:part/:file').get((request, response, next) => {
    const { id, system, part, file } = request.params;
    const { folder, record } = streams.get(id, 'media_not_found');
    const isKnown = system === 'dash' || system === 'hls';
    if (!isKnown || !MEDIA_FILE.test(file) || !record.parts.some(({ name }) => name === part))
      throw packagerError('media_not_found');
    sendFile(response, join(folder, part, system), file, next);
  });
}

/** Half a day of keys that rotate every ten seconds; read, a part takes some 60 KB. */
const MAX_KEPT_PARTS = 5000;

function sendText(response: Response, ending: string, text: string): void {
  if (text === '') throw packagerError('media_not_found');
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
    // A viewer who has gone is not a failure.
    if (!thrown || response.closed || systemCode(thrown) === 'ECONNABORTED') return;
    if (response.headersSent) return void response.destroy();
    const { status } = thrown;
    for (const name of ['content-type', 'cache-control', 'etag', 'last-modified'])
      response.removeHeader(name);
    if (status === 416) next(packagerError('range_not_satisfiable'));
    else next(status === 404 ? packagerError('media_not_found') : thrown);
  });
}

/** Players of any page may load it: its encryption and the guard before protect it. */
function setMediaHeaders(response: Response, ending: string): void {
  response.set({
    'content-type': TYPES[ending] ?? 'application/octet-stream',
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'content-length, content-range, date',
    'cross-origin-resource-policy': 'cross-origin',
  });
}
