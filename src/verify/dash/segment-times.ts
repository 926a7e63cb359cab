import type { XmlElement } from '../../drm/xml';

/** A segment of a template or list: its place in the period from 0, and its time in the units of the timescale. */
export interface TimedSegment {
  readonly index: number;
  readonly time: bigint;
  readonly duration: bigint;
}

interface TimedSegments {
  readonly first: TimedSegment | undefined;
  readonly newest: readonly TimedSegment[];
}

/** How far segments go: the end of the period, or, where that is open, the present; both in seconds from its start. */
export interface PeriodSpan {
  readonly timescale: number;
  readonly presentationTimeOffset: number;
  readonly end: number | undefined;
  /** Live only: how much of the period is over; segments that end later do not exist yet. */
  readonly elapsed: number | undefined;
}

/** This number is named, the newest first: a clock may be wrong, or a segment late. */
const NEWEST = 3;

/** The first and newest segments of a SegmentTimeline (ISO/IEC 23009-1 § 5.3.9.6), exact beyond 2^53. Any repeat count. */
export function timelineSegments(entries: readonly XmlElement[], span: PeriodSpan): TimedSegments {
  let first: TimedSegment | undefined;
  let newest: TimedSegment[] = [];
  let count = 0;
  let time = 0n;
  entries.forEach(({ attributes }, at) => {
    const duration = wholeOf(attributes.d);
    time = wholeOf(attributes.t) ?? time;
    if (duration === undefined || duration <= 0n) return;
    const repeat = Number(attributes.r ?? 0);
    const next = wholeOf(entries[at + 1]?.attributes.t);
    const repeats = repeat < 0 ? repeatsUntil(time, duration, next, span) : Math.trunc(repeat) || 0;
    if (repeats < 0 || !Number.isSafeInteger(repeats)) return;
    const start = { index: count, time, duration };
    first ??= start;
    const added = Array.from({ length: Math.min(NEWEST, repeats + 1) }, (_, back) => ({
      index: count + repeats - back,
      time: time + BigInt(repeats - back) * duration,
      duration,
    }));
    newest = [...added, ...newest].slice(0, NEWEST);
    count += repeats + 1;
    time += BigInt(repeats + 1) * duration;
  });
  return { first, newest };
}

function repeatsUntil(
  time: bigint,
  duration: bigint,
  next: bigint | undefined,
  { timescale, presentationTimeOffset, end, elapsed }: PeriodSpan,
): number {
  if (next !== undefined) return Number((next - time) / duration) - 1;
  const until = Math.min(end ?? Infinity, elapsed ?? Infinity);
  if (!Number.isFinite(until)) return 0;
  const left = until * timescale + presentationTimeOffset - Number(time);
  const whole = left / Number(duration);
  // The last one of a period may be shorter; one that is not over yet is not there.
  return (until === end ? Math.ceil(whole - 0.001) : Math.floor(whole)) - 1;
}

export function evenSegments(
  duration: number,
  { timescale, presentationTimeOffset, end, elapsed }: PeriodSpan,
  lastIndex = Infinity,
): TimedSegments {
  const seconds = duration / timescale;
  if (!(seconds > 0)) return { first: undefined, newest: [] };
  const byEnd = end === undefined ? Infinity : Math.ceil(end / seconds - 0.001) - 1;
  const byNow = elapsed === undefined ? Infinity : Math.floor(elapsed / seconds) - 1;
  const last = Math.min(byEnd, byNow, lastIndex);
  const at = (index: number): TimedSegment => ({
    index,
    time: BigInt(Math.round(presentationTimeOffset)) + BigInt(index) * BigInt(Math.round(duration)),
    duration: BigInt(Math.round(duration)),
  });
  // Its end is not given.
  if (!Number.isFinite(last)) return { first: at(0), newest: [at(0)] };
  const newest = [last, last - 1, last - 2].filter((index) => index >= 0).map(at);
  return { first: at(0), newest };
}

export function wholeOf(text: string | undefined): bigint | undefined {
  return text !== undefined && /^\s*\d{1,20}\s*$/.test(text) ? BigInt(text.trim()) : undefined;
}

/** Puts values into a template (ISO/IEC 23009-1 § 5.3.9.4.4): `$Number%05d$`, and `$$` for a dollar sign. */
export function fillTemplate(template: string, values: Readonly<Record<string, string>>): string {
  return template.replaceAll(
    /\$(?:(RepresentationID|Number|Time|Bandwidth|SubNumber)(?:%0(\d{1,2})d)?)?\$/g,
    (whole, name: string | undefined, width: string | undefined) => {
      if (name === undefined) return '$';
      const value = Object.hasOwn(values, name) ? values[name] : undefined;
      return value === undefined ? whole : value.padStart(Number(width ?? 1), '0');
    },
  );
}
