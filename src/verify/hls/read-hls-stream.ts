import type { Problem } from '../../drm/finding';
import { type Fetches, fileName, type Limits, shownAddress } from '../fetches';
import { type StreamFinding, streamFinding, THIS } from '../findings';
import type { KeyLine, Rendition, StreamOutline } from '../rendition';
import { type MediaPlaylist, type NamedPlaylist, readPlaylist } from './read-playlist';

export interface HlsOutline extends StreamOutline {
  readonly sessionKeys: readonly KeyLine[];
}

interface HlsSource {
  readonly url: string;
  readonly name: string;
  readonly fetches: Fetches;
  readonly limits: Limits;
  readonly now: Date;
}

interface HlsStream {
  readonly outline: HlsOutline | undefined;
  readonly problems: readonly StreamFinding[];
}

export async function readHlsStream(text: string, source: HlsSource): Promise<HlsStream> {
  const { url, name, fetches, limits } = source;
  const read = readPlaylist(text, url);
  if (!read.ok) return { outline: undefined, problems: [problem(read.problem, url)] };
  const playlist = read.value;
  if (playlist.type === 'media') {
    const own = { url, name: 'media playlist', kind: 'video', codec: undefined } as const;
    return streamOf([{ named: own, playlist, name }], [], [], source);
  }
  const { playlists, sessionKeys, variables } = playlist;
  const problems: StreamFinding[] = [];
  const found: FoundPlaylist[] = [];
  for (const named of playlists.slice(0, limits.renditions)) {
    const fetched = await fetches.take({ url: named.url }, 'manifest');
    if (!fetched.ok) {
      const code = fetched.problem.code === 'not_found' ? 'playlist_not_found' : fetched.problem.code;
      const description = `${fetched.problem.description}; the multivariant playlist names it`;
      problems.push(problem({ code, description }, named.url));
      continue;
    }
    const media = readPlaylist(fetched.body.toString('utf8'), fetched.url, variables);
    if (!media.ok) problems.push(problem(media.problem, fetched.url));
    else if (media.value.type === 'media')
      found.push({ named, playlist: media.value, name: fileName(fetched.url) });
    else problems.push(problem(NOT_MEDIA, fetched.url));
  }
  const left = playlists.length - limits.renditions;
  const untested = `${THIS} has ${left} renditions that were not tested; a test covers ${limits.renditions}`;
  if (left > 0) problems.push(streamFinding('warning', 'cut_short', name, untested));
  return streamOf(found, sessionKeys, problems, source);
}

interface FoundPlaylist {
  readonly named: NamedPlaylist;
  readonly playlist: MediaPlaylist;
  readonly name: string;
}

function streamOf(
  found: readonly FoundPlaylist[],
  sessionKeys: readonly KeyLine[],
  problems: readonly StreamFinding[],
  { now, name }: HlsSource,
): HlsStream {
  const names = new Set<string>();
  const renditions = found.map(({ named, playlist, name: file }): Rendition => {
    const { newest } = playlist.segments;
    const shown = names.has(file) ? `${file} (${named.name})` : file;
    names.add(file);
    return {
      name: named.name,
      kind: named.kind,
      codec: named.codec,
      signalling: { name: shown, text: signallingOf(newest[0]?.keys ?? []) },
      init: newest[0]?.init,
      segments: playlist.segments,
    };
  });
  const started = found.map(({ playlist }) => playlist.started).find((date) => date !== undefined);
  const live = found.some(({ playlist }) => playlist.live);
  return {
    outline: { type: 'hls', live, started: live ? started : undefined, renditions, sessionKeys },
    problems: [
      ...problems,
      ...found.flatMap(({ playlist, name: file }) => stale(file, playlist, now)),
      ...strayedSessionKeys(name, sessionKeys, found),
    ],
  };
}

function signallingOf(keys: readonly KeyLine[]): string {
  return ['#EXTM3U', '#EXT-X-TARGETDURATION:1', ...keys.map(({ line }) => line), ''].join('\n');
}

/** Within this number of target durations, a live playlist must get a new segment. */
const STALE_DURATIONS = 3;
const STALE_SECONDS = 20;

function stale(name: string, { live, ended, targetSeconds }: MediaPlaylist, now: Date): StreamFinding[] {
  if (!live || !ended) return [];
  const behind = (now.getTime() - ended.getTime()) / 1000;
  // The time may be none.
  if (!(behind >= Math.max(STALE_SECONDS, STALE_DURATIONS * targetSeconds))) return [];
  const text = `${THIS} does not advance: by EXT-X-PROGRAM-DATE-TIME its newest segment ended ${Math.round(behind)} seconds ago, and the playlist is not finished (EXT-X-ENDLIST); check whether the encoder still sends, and whether a CDN serves an old playlist`;
  return [streamFinding('warning', 'playlist_not_moving', name, text)];
}

/** By session keys players fetch licenses ahead; one that no media playlist has is fetched in vain. */
function strayedSessionKeys(
  name: string,
  sessionKeys: readonly KeyLine[],
  found: readonly FoundPlaylist[],
): StreamFinding[] {
  const segments = found.flatMap(({ playlist }) => playlist.segments.newest);
  const used = segments.flatMap(({ keys = [] }) => [...keys]);
  const isUsed = (session: KeyLine) =>
    used.some(({ format, uri }) => format === session.format && uri === session.uri);
  if (used.length === 0 || sessionKeys.length === 0 || sessionKeys.some(isUsed)) return [];
  const text = `The session keys (EXT-X-SESSION-KEY) of ${THIS} are in none of its media playlists, so players fetch licenses that they can't use; make all playlists in one run of the packager`;
  return [streamFinding('warning', 'session_key_differs', name, text)];
}

const NOT_MEDIA: Problem = {
  code: 'not_a_media_playlist',
  description: 'is a multivariant playlist, but another playlist names it as a media playlist',
};

function problem({ code, description }: Problem, url: string): StreamFinding {
  return streamFinding('error', code, shownAddress(url), `${THIS} ${description}`);
}
