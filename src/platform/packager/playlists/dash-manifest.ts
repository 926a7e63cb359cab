import { parseXml, writeXml, type XmlElement } from '../../../drm/xml';
import { largest, type PlaylistOptions, type PlaylistPart, SEGMENT_SECONDS } from './hls-playlists';

interface ManifestOptions extends PlaylistOptions {
  /** Given to players as the present, so that a wrong clock of theirs does no harm. */
  readonly now: Date;
}

interface Segment {
  /** In the units of the timescale, as is the duration. */
  readonly time: number;
  readonly duration: number;
}

type Part = NonNullable<ReturnType<typeof readPart>>;

/** A part, and where its period begins and ends, in seconds of the presentation. */
interface Placed extends Part {
  readonly start: number;
  readonly end: number;
}

/** A day of live sound has 40,000 `S`. */
const LIMITS = { characters: 64 * 1024 * 1024, elements: 2_000_000 };
/** Players start so many segments behind the live edge, as those of HLS do. */
const DELAY_SEGMENTS = 3;
/** How exactly shaka-packager says when its time began: in whole seconds, rounded up. */
const CLOCK_SECONDS = 1;

/**
 * Joins the MPDs of a stream's parts, in their order, into one with a period a part. A live period starts
 * where the clock says that it began, and never before the end of the one ahead: only the last part may be
 * incomplete. A part shows when each of its tracks has a segment; the text is empty while none does.
 * @throws an Error that names the part if its text is no MPD of shaka-packager
 */
export function joinManifests(parts: readonly PlaylistPart[], options: ManifestOptions): string {
  const { ended, windowSeconds, now, latency = 'default' } = options;
  // A part that continues one without segments does not continue the part before that.
  let isCut = false;
  const read = parts
    .flatMap((part) => {
      isCut ||= !part.continues;
      if (!readParts.has(part)) readParts.set(part, part.text === '' ? undefined : readPart(part));
      const found = readParts.get(part);
      if (!found) return [];
      const continues = !isCut;
      isCut = false;
      return { ...found, continues };
    })
    .filter((part, index, all) => ended || index < all.length - 1 || !part.isBeginning);
  const placed = placePeriods(read, ended);
  const [first] = placed;
  const last = placed.at(-1);
  if (!first || !last) return '';

  const { end } = last;
  const longest = longestSegment(placed);
  // With fewer key frames than low latency needs, the segments are longer than those that are aimed at.
  const lengths = [...last.tracks.values()].map((track) =>
    Math.round((endOf(track) - startOf(track)) / track.segments.length),
  );
  const target = Math.max(SEGMENT_SECONDS[latency], ...lengths);
  const delay = DELAY_SEGMENTS * Math.min(target, SEGMENT_SECONDS.default);
  const window = windowSeconds === undefined ? undefined : Math.max(windowSeconds, delay + longest);
  const edge = window === undefined ? 0 : end - window;
  const listed = placed.filter((part) => part.end > edge);
  const periods = listed.map((part, index) => periodOf(part, listed[index + 1], edge, ended));
  const shift = ended ? (listed[0]?.start ?? 0) : 0;
  const attributes = Object.entries(last.mpd.attributes).filter(([name]) => !TIMING.includes(name));
  const timing: Record<string, string> = ended
    ? { type: 'static', mediaPresentationDuration: duration(end - shift) }
    : {
        type: 'dynamic',
        availabilityStartTime: new Date(first.available ?? now.getTime()).toISOString(),
        publishTime: now.toISOString(),
        minimumUpdatePeriod: duration(SEGMENT_SECONDS[latency]),
        suggestedPresentationDelay: duration(delay),
        ...(window === undefined ? {} : { timeShiftBufferDepth: duration(window) }),
      };
  const utc = element('UTCTiming', {
    schemeIdUri: 'urn:mpeg:dash:utc:direct:2014',
    value: now.toISOString(),
  });
  const root = element(
    'MPD',
    { ...Object.fromEntries(attributes), ...timing, maxSegmentDuration: duration(longest) },
    [...periods, ...(ended ? [] : [utc])],
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${writeXml(root)}`;
}

const TIMING = [
  'type',
  'publishTime',
  'availabilityStartTime',
  'minimumUpdatePeriod',
  'timeShiftBufferDepth',
  'mediaPresentationDuration',
];

/** The length of each track of an MPD of shaka-packager, 0 without a segment; none for an empty text. */
export function secondsOfManifest(text: string): number[] {
  const part = text === '' ? undefined : readPart({ folder: 'the stream', text });
  if (!part) return [];
  const seconds = [...part.tracks.values()].map((track) => endOf(track) - startOf(track));
  return part.isBeginning ? [...seconds, 0] : seconds;
}

/** By the object of a part, which stays the same while its text does. */
const readParts = new WeakMap<PlaylistPart, Part | undefined>();

/** Reads an MPD; undefined without a segment. Times are in seconds of the media. */
function readPart({ folder, text }: PlaylistPart) {
  const timelines: Segment[][] = [];
  const short = text.replaceAll(/<SegmentTimeline>(.*?)<\/SegmentTimeline>/gs, (_, lines: string) => {
    timelines.push(readTimeline(lines));
    return `<SegmentTimeline index="${timelines.length - 1}"/>`;
  });
  const parsed = parseXml(short, LIMITS);
  if (!parsed.ok) throw new Error(`the MPD of ${folder} ${parsed.problem.description}`);
  const mpd = parsed.value;
  const period = mpd.children.find(({ name }) => name === 'Period');
  if (mpd.name !== 'MPD' || !period) throw new Error(`the MPD of ${folder} has no Period`);
  const tracks = new Map<XmlElement, Track>();
  const templates = descendants(period, 'SegmentTemplate');
  for (const template of templates) {
    const track = readTrack(template, timelines);
    if (track.segments.length > 0) tracks.set(template, track);
  }
  if (tracks.size === 0) return undefined;
  const from = Math.min(...[...tracks.values()].map(startOf));
  const began = Date.parse(mpd.attributes.availabilityStartTime ?? '');
  return {
    ...{ folder, mpd, period, tracks, from },
    to: Math.max(...[...tracks.values()].map(endOf)),
    /** Whether a track has no segment yet: players don't look again whether a period has got more tracks. */
    isBeginning: tracks.size < templates.length,
    /** When the first segment became available, in ms since 1970; undefined if the MPD is static. */
    available: Number.isNaN(began) ? undefined : began + Math.round(from * 1000),
  };
}

/** The elements `S` as shaka-packager writes them; through the reader of XML, those of a day would take a second. */
function readTimeline(lines: string): Segment[] {
  return [...lines.matchAll(/<S t="(\d+)" d="(\d+)"(?: r="(\d+)")?\/>/g)].flatMap(
    ([, time, length, repeated]) =>
      Array.from({ length: Number(repeated ?? 0) + 1 }, (_, index) => ({
        time: Number(time) + index * Number(length),
        duration: Number(length),
      })),
  );
}

type Track = ReturnType<typeof readTrack>;

/** The `SegmentTemplate` of a `Representation`. */
function readTrack({ attributes, children }: XmlElement, timelines: readonly Segment[][]) {
  const timeline = children.find(({ name }) => name === 'SegmentTimeline');
  return {
    timescale: Number(attributes.timescale ?? 1),
    startNumber: Number(attributes.startNumber ?? 1),
    segments: timelines[Number(timeline?.attributes.index)] ?? [],
  };
}

const startOf = ({ segments, timescale }: Track) => (segments[0]?.time ?? 0) / timescale;

function endOf({ segments, timescale }: Track): number {
  const last = segments.at(-1);
  return last ? (last.time + last.duration) / timescale : 0;
}

function placePeriods(parts: readonly (Part & { readonly continues: boolean })[], ended: boolean): Placed[] {
  const origin = parts[0]?.available;
  const placed: Placed[] = [];
  for (const part of parts) {
    const before = placed.at(-1);
    const end = before?.end ?? 0;
    const stated =
      ended || part.available === undefined || origin === undefined ? end : (part.available - origin) / 1000;
    // A cut without a pause; the clock alone would leave a gap or take a little of the end.
    let start = stated < end + CLOCK_SECONDS ? end : stated;
    // The last sound of the part before may end a little behind the cut, and the first one begin there.
    if (part.continues && before) {
      start = before.start + part.from - before.from;
      placed[placed.length - 1] = { ...before, end: start };
    }
    placed.push({ ...part, start, end: start + part.to - part.from });
  }
  return placed;
}

function periodOf(part: Placed, next: Placed | undefined, edge: number, ended: boolean): XmlElement {
  const length = part.end - part.start;
  const hasGapBehind = next !== undefined && next.start - part.start - length > 0.001;
  const { start: _, duration: __, ...attributes } = part.period.attributes;
  return {
    ...part.period,
    attributes: {
      ...attributes,
      id: part.folder,
      ...(ended ? {} : { start: duration(part.start) }),
      ...(ended || hasGapBehind ? { duration: duration(length) } : {}),
    },
    children: part.period.children.flatMap((child) => rewrite(child, part, edge) ?? []),
  };
}

function rewrite(source: XmlElement, part: Placed, edge: number): XmlElement | undefined {
  if (source.name === 'SegmentTemplate') return templateOf(source, part, edge);
  const children = source.children.flatMap((child) => rewrite(child, part, edge) ?? []);
  const needsOne = { AdaptationSet: 'Representation', Representation: 'SegmentTemplate' }[source.name];
  if (needsOne && !children.some(({ name }) => name === needsOne)) return undefined;
  return { ...source, children };
}

function templateOf(source: XmlElement, part: Placed, edge: number): XmlElement | undefined {
  const track = part.tracks.get(source);
  if (!track) return undefined;
  const { timescale, startNumber } = track;
  const endsInside = ({ time, duration: length }: Segment) =>
    part.start + (time + length) / timescale - part.from > edge;
  const dropped = track.segments.findIndex(endsInside);
  if (dropped < 0) return undefined;
  const prefixed = (name: string) => {
    const path = source.attributes[name];
    return path === undefined ? {} : { [name]: `${part.folder}/${path}` };
  };
  const attributes = {
    ...source.attributes,
    presentationTimeOffset: String(Math.round(part.from * timescale)),
    startNumber: String(startNumber + dropped),
    ...prefixed('initialization'),
    ...prefixed('media'),
  };
  return element('SegmentTemplate', attributes, [
    element('SegmentTimeline', {}, timelineOf(track.segments.slice(dropped))),
  ]);
}

function timelineOf(segments: readonly Segment[]): XmlElement[] {
  const runs: { time: number; duration: number; count: number }[] = [];
  for (const { time, duration: length } of segments) {
    const run = runs.at(-1);
    if (run && run.duration === length && run.time + run.count * length === time) run.count += 1;
    else runs.push({ time, duration: length, count: 1 });
  }
  return runs.map(({ time, duration: length, count }) =>
    element('S', { t: String(time), d: String(length), ...(count > 1 ? { r: String(count - 1) } : {}) }),
  );
}

function longestSegment(parts: readonly Part[]): number {
  const tracks = parts.flatMap((part) => [...part.tracks.values()]);
  return largest(
    tracks.map(({ segments, timescale }) => largest(segments.map((each) => each.duration)) / timescale),
  );
}

function descendants(parent: XmlElement, name: string): XmlElement[] {
  return parent.children.flatMap((child) => (child.name === name ? [child] : descendants(child, name)));
}

function element(
  name: string,
  attributes: Readonly<Record<string, string>>,
  children: readonly XmlElement[] = [],
): XmlElement {
  return { name, attributes, children, text: '' };
}

function duration(seconds: number): string {
  return `PT${Number(seconds.toFixed(6))}S`;
}
