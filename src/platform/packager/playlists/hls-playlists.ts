import { attributesOf } from '../../../drm/check/playlist';

export const LATENCIES = ['default', 'low'] as const;
export type Latency = (typeof LATENCIES)[number];

/** The length that is aimed at. A segment ends at the next key frame; players keep three before them. */
export const SEGMENT_SECONDS: Readonly<Record<Latency, number>> = { default: 2, low: 1 };

export interface PlaylistPart {
  /** The folder of its files, below that of the joined playlist. */
  readonly folder: string;
  /** Its media playlist or MPD with every segment that it has; empty while there is none. */
  readonly text: string;
  /** Whether its times go on from those of the part before, and only its keys are others. */
  readonly continues?: boolean;
}

export interface PlaylistOptions {
  /** Whether no segment will follow: a static manifest, whose periods follow each other without gaps. */
  readonly ended: boolean;
  /** How much of the end is listed; all of it if undefined. */
  readonly windowSeconds: number | undefined;
  readonly latency?: Latency;
}

interface Segment {
  /** The number of discontinuities before it. */
  readonly part: number;
  readonly seconds: number;
  readonly extinf: string;
  readonly uri: string;
  /** The lines of the keys and the initialization section that apply to it. */
  readonly keys: string;
  readonly map: string;
}

/** A server may not shorten a live playlist below this (RFC 8216 § 6.2.2). */
const LEAST_TARGET_DURATIONS = 3;
const NO_KEY = '#EXT-X-KEY:METHOD=NONE';

/**
 * Joins the media playlists of one rendition, one a part, in their order. Segments and discontinuities are
 * counted from the first part on, also outside the window. So their numbers are the same in every playlist of
 * a stream, as long as each gets the same parts (with an empty text for one that it is not in).
 */
export function joinMediaPlaylists(parts: readonly PlaylistPart[], options: PlaylistOptions): string {
  const { ended, windowSeconds, latency = 'default' } = options;
  // Of times that go on, only the keys are new: that is no discontinuity (RFC 8216 § 4.3.2.3).
  let discontinuities = 0;
  const segments = parts.flatMap((part, index) => {
    if (index > 0 && !part.continues) discontinuities += 1;
    const known = readParts.get(part);
    const read = known?.[0]?.part === discontinuities ? known : segmentsOf(part, discontinuities);
    readParts.set(part, read);
    return read;
  });
  // It must not change while a player listens: it includes segments outside the window, and is at least the target.
  const target = largest([SEGMENT_SECONDS[latency], ...segments.map(({ seconds }) => Math.round(seconds))]);
  const first = windowSeconds === undefined ? 0 : firstInWindow(segments, target, windowSeconds);
  const listed = segments.slice(first);
  let part = listed[0]?.part ?? 0;
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:6',
    `#EXT-X-TARGETDURATION:${target}`,
    `#EXT-X-MEDIA-SEQUENCE:${first}`,
    ...(part > 0 ? [`#EXT-X-DISCONTINUITY-SEQUENCE:${part}`] : []),
    ...(windowSeconds === undefined ? [`#EXT-X-PLAYLIST-TYPE:${ended ? 'VOD' : 'EVENT'}`] : []),
  ];
  let keys = '';
  let map = '';
  for (const segment of listed) {
    const isNewPart = segment.part > part;
    // One for each part, also without a segment here: another playlist may have segments of a part between.
    for (; part < segment.part; part += 1) lines.push('#EXT-X-DISCONTINUITY');
    if (isNewPart || segment.keys !== keys) lines.push(segment.keys || (keys && NO_KEY));
    if (isNewPart || segment.map !== map) lines.push(segment.map);
    ({ keys, map } = segment);
    lines.push(segment.extinf, segment.uri);
  }
  if (ended) lines.push('#EXT-X-ENDLIST');
  return `${lines.filter((line) => line !== '').join('\n')}\n`;
}

const readParts = new WeakMap<PlaylistPart, Segment[]>();

function segmentsOf({ folder, text }: PlaylistPart, part: number): Segment[] {
  const segments: Segment[] = [];
  let keys: string[] = [];
  let keysAreUsed = false;
  let map = '';
  let extinf = '';
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#EXT-X-KEY:')) {
      // Several in a row apply together; one behind a segment replaces them.
      if (keysAreUsed) keys = [];
      keysAreUsed = false;
      const attributes = attributesOf(line);
      const format = attributes.get('KEYFORMAT') ?? 'identity';
      if (attributes.get('METHOD') === 'NONE') keys = [];
      // shaka-packager repeats the FairPlay address as that of a file with the key in it, which it is not.
      else if (format !== 'identity') keys.push(line);
    } else if (line.startsWith('#EXT-X-MAP:')) {
      map = withUri(line, (uri) => `${folder}/${uri}`);
    } else if (line.startsWith('#EXTINF:')) {
      extinf = line;
    } else if (line !== '' && !line.startsWith('#')) {
      const seconds = Number.parseFloat(extinf.slice('#EXTINF:'.length));
      if (Number.isNaN(seconds))
        throw new Error(`the media playlist of ${folder} has ${line} without #EXTINF`);
      segments.push({ part, seconds, extinf, uri: `${folder}/${line}`, keys: keys.join('\n'), map });
      extinf = '';
      keysAreUsed = true;
    }
  }
  return segments;
}

export function secondsOfPlaylist(text: string): number {
  return segmentsOf({ folder: 'the stream', text }, 0).reduce((sum, { seconds }) => sum + seconds, 0);
}

function firstInWindow(segments: readonly Segment[], target: number, windowSeconds: number): number {
  const least = Math.max(windowSeconds, LEAST_TARGET_DURATIONS * target);
  let seconds = 0;
  for (let index = segments.length - 1; index >= 0; index -= 1) {
    seconds += segments[index]?.seconds ?? 0;
    if (seconds >= least) return index;
  }
  return 0;
}

/**
 * Makes the multivariant playlist of a stream from those of its parts, oldest first. The newest lists the
 * tracks; bandwidths are the highest of all, because a player plans with them for the older parts too.
 * Addresses carry the window on as `?window=`. The text is empty while no part lists a stream.
 */
export function masterPlaylist(masters: readonly string[], windowSeconds: number | undefined): string {
  const read = masters.filter((text) => text.includes('#EXT-X-STREAM-INF:')).map(readMaster);
  // Before the first picture is written, a playlist has the bandwidth of the sound only, and no frame rate.
  const newest = read.findLast(({ streams }) => streams.every(({ line }) => isWhole(line))) ?? read.at(-1);
  if (!newest) return '';
  const withWindow = (uri: string) => (windowSeconds === undefined ? uri : `${uri}?window=${windowSeconds}`);
  // They are the sounds of one group.
  const media = newest.media.map((line, index) =>
    withUri(index === 0 ? line.replace(/\bDEFAULT=NO\b/, 'DEFAULT=YES') : line, withWindow),
  );
  const streams = newest.streams.flatMap(({ line, uri }) => {
    const same = read.flatMap((master) => master.streams.filter((stream) => stream.uri === uri));
    const bandwidth = (name: string) =>
      largest(same.map((stream) => Number(attributesOf(stream.line).get(name) ?? 0)));
    const updated = line
      .replace(/([:,])BANDWIDTH=\d+/, `$1BANDWIDTH=${bandwidth('BANDWIDTH')}`)
      .replace(/,AVERAGE-BANDWIDTH=\d+/, `,AVERAGE-BANDWIDTH=${bandwidth('AVERAGE-BANDWIDTH')}`);
    return [updated, withWindow(uri)];
  });
  const lines = ['#EXTM3U', '#EXT-X-VERSION:6', '#EXT-X-INDEPENDENT-SEGMENTS', ...media, ...streams];
  return `${lines.join('\n')}\n`;
}

function readMaster(text: string) {
  const lines = text.split(/\r?\n/).filter((line) => line !== '');
  return {
    media: lines.filter((line) => line.startsWith('#EXT-X-MEDIA:')),
    streams: lines.flatMap((line, index) =>
      line.startsWith('#EXT-X-STREAM-INF:') ? { line, uri: lines[index + 1] ?? '' } : [],
    ),
  };
}

function isWhole(line: string): boolean {
  const attributes = attributesOf(line);
  return !attributes.has('RESOLUTION') || attributes.has('FRAME-RATE');
}

export function mediaPlaylistsOf(master: string): string[] {
  const { media, streams } = readMaster(master);
  const sounds = media.flatMap((line) => attributesOf(line).get('URI') ?? []);
  return [...new Set([...streams.map(({ uri }) => uri), ...sounds])];
}

function withUri(line: string, change: (uri: string) => string): string {
  return line.replace(/([:,]URI=")([^"]*)"/, (_, start: string, uri: string) => `${start}${change(uri)}"`);
}

/** Not `Math.max(...)`: a day has more segments than a call may have arguments. */
export function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
