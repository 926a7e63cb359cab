import { type Checked, refused, refusedAs } from '../../drm/bytes';
import { parseXml, writeXml, type XmlElement } from '../../drm/xml';
import { absoluteAddress, type Limits, type Resource } from '../fetches';
import type { MediaKind } from '../media/judgement';
import type { IndexedFile, Rendition, SegmentSource, StreamOutline } from '../rendition';
import {
  evenSegments,
  fillTemplate,
  type PeriodSpan,
  type TimedSegment,
  timelineSegments,
} from './segment-times';

/** No manifest of a day with one entry for each segment has as many. */
const MAX_ELEMENTS = 400_000;
/** Of periods, adaptation sets and representations, each. */
const MAX_PARTS = 2000;
/** Characters. */
const MAX_TEMPLATE = 4000;

interface MpdSource {
  /** Its final address: relative ones start there. */
  readonly url: string;
  readonly name: string;
  readonly now: Date;
  readonly limits: Limits;
}

const unreadable = refusedAs('manifest_unreadable');
const tooLarge = refusedAs('manifest_too_large');

/** Reads a DASH manifest (ISO/IEC 23009-1). Of a live one the newest period is taken; `left` renditions are not. */
export function readMpd(
  text: string,
  { url, name, now, limits }: MpdSource,
): Checked<{ outline: StreamOutline; left: number }> {
  const parsed = parseXml(text, { characters: limits.manifestBytes, elements: MAX_ELEMENTS });
  if (!parsed.ok) return unreadable(parsed.problem.description);
  const root = parsed.value;
  if (root.name !== 'MPD') {
    const sentence = `is XML with the root ${root.name.slice(0, 50)}, not a DASH manifest, whose root is MPD`;
    return refused('not_a_manifest', sentence);
  }
  const parts = ['Period', 'AdaptationSet', 'Representation'];
  const tooMany = parts.find((part) => countOf(root, part) > MAX_PARTS);
  if (tooMany !== undefined)
    return tooLarge(`has more than ${MAX_PARTS} elements ${tooMany}; no player reads it`);
  const all = representationsIn(root, url);
  if (childrenOf(root, 'Period').length === 0)
    return unreadable('has no Period that can be read; check it with a DASH validator');
  if (all.some((each) => JSON.stringify(segmentInfo(each, 'SegmentTemplate') ?? {}).length > MAX_TEMPLATE))
    return tooLarge(`has an address template of more than ${MAX_TEMPLATE} characters`);
  const live = root.attributes.type === 'dynamic';
  const spanOf = (each: Representation) => periodSpan(each, all, live ? now : undefined);
  // Tracks other than video, audio and text have no samples: thumbnails, for example.
  const readable = all.filter((each) => kindOf(each) !== 'other' && spanOf(each).elapsed !== 0);
  const last = Math.max(...readable.map(({ periodIndex }) => periodIndex));
  const chosen = readable.filter(({ periodIndex }) =>
    live ? periodIndex === last : periodIndex > last - limits.periods,
  );
  const taken = chosen.slice(0, limits.renditions);
  const names = new Map<string, number>();
  const renditions = taken.map((each): Rendition => {
    const called = nameOf(each, !live && last > 0);
    const before = names.get(called) ?? 0;
    names.set(called, before + 1);
    return {
      name: before === 0 ? called : `${called} (${before + 1})`,
      kind: kindOf(each),
      codec: each.attributes.codecs,
      signalling: { name, text: protectionText(root, each) },
      ...addressesOf(each, spanOf(each)),
    };
  });
  const [first] = taken;
  const startedAt = timeOf(root.attributes.availabilityStartTime);
  const started =
    live && first && startedAt !== undefined ? new Date((startedAt + first.start) * 1000) : undefined;
  const outline = { type: 'dash', live, started, renditions } as const;
  return { ok: true, value: { outline, left: (live ? chosen : readable).length - taken.length } };
}

function countOf({ name, children }: XmlElement, part: string): number {
  return children.reduce((sum, child) => sum + countOf(child, part), name === part ? 1 : 0);
}

function kindOf({ attributes }: Representation): MediaKind {
  const { mimeType: mime = '', codecs = '', contentType: content = mime.split('/')[0] } = attributes;
  if (/^(?:stpp|wvtt|tx3g)/.test(codecs) || /vtt|ttml/.test(mime)) return 'text';
  if (content === 'video' || content === 'audio' || content === 'text') return content;
  return 'other';
}

function nameOf(each: Representation, withPeriod: boolean): string {
  const { attributes, period, periodIndex } = each;
  const [bandwidth, width, height] = ['bandwidth', 'width', 'height'].map((name) =>
    wholeOf(attributes[name]),
  );
  const size = width && height ? `${width}x${height}` : undefined;
  const ofPeriod = withPeriod ? `period ${period.attributes.id ?? periodIndex + 1}` : undefined;
  const rate = bandwidth === undefined ? undefined : `${Math.round(bandwidth / 1000)} kb/s`;
  const parts = [ofPeriod, kindOf(each), size, attributes.lang, rate];
  const shown = parts.filter((part) => part !== undefined);
  return shown.join(' ').slice(0, 80);
}

/** Of a live stream with the time that it is. */
function periodSpan(each: Representation, all: readonly Representation[], now: Date | undefined): PeriodSpan {
  const { start, duration, attributes } = each;
  const next = all.find(({ periodIndex }) => periodIndex > each.periodIndex)?.start;
  const until = next ?? secondsOf(attributes.mediaPresentationDuration);
  const since = (now?.getTime() ?? 0) / 1000 - (timeOf(attributes.availabilityStartTime) ?? 0) - start;
  const own = { ...segmentInfo(each, 'SegmentList'), ...segmentInfo(each, 'SegmentTemplate') };
  return {
    timescale: wholeOf(own.timescale) || 1,
    presentationTimeOffset: wholeOf(own.presentationTimeOffset) ?? 0,
    end: duration ?? (until === undefined ? undefined : until - start),
    elapsed: now && Math.max(0, since),
  };
}

type Addresses = Pick<Rendition, 'init' | 'segments'>;
function addressesOf(each: Representation, span: PeriodSpan): Addresses {
  const template = segmentInfo(each, 'SegmentTemplate');
  if (template) return ofTemplate(each, template, span);
  const list = segmentInfo(each, 'SegmentList');
  return list ? ofList(each, list, span) : ofFile(segmentInfo(each, 'SegmentBase') ?? {}, each.base);
}

function ofTemplate(each: Representation, template: Attributes, span: PeriodSpan): Addresses {
  const { base, attributes } = each;
  const values = {
    RepresentationID: attributes.id ?? '',
    Bandwidth: String(wholeOf(attributes.bandwidth) ?? 0),
  };
  const startNumber = wholeOf(template.startNumber) ?? 1;
  const endNumber = Number(template.endNumber ?? Number.NaN);
  const { media = '' } = template;
  // The window of a live stream moves on in time, and often without a new startNumber.
  const isTimed = media.includes('$Time');
  const sourceOf = ({ index, time, duration }: TimedSegment): SegmentSource => {
    const number = startNumber + index;
    const address = fillTemplate(media, { ...values, Number: String(number), Time: String(time) });
    const seconds = Number(duration) / span.timescale;
    return { ...resourceOf(address, base), seconds, number: isTimed ? Number(time) : number };
  };
  const lastIndex = Number.isNaN(endNumber) ? undefined : endNumber - startNumber;
  // With neither a timeline nor a duration, it is one segment.
  const only = { index: 0, time: 0n, duration: 0n };
  const { first, newest } = timesOf(each, template, span, lastIndex) ?? { first: only, newest: [only] };
  return {
    init: initOf(template, base, values),
    segments: { first: first && sourceOf(first), newest: newest.map(sourceOf) },
  };
}

function timesOf(each: Representation, of: Attributes, span: PeriodSpan, lastIndex: number | undefined) {
  const timeline = nearest(each, ['SegmentTemplate', 'SegmentList'], 'SegmentTimeline');
  const entries = timeline.flatMap((element) => childrenOf(element, 'S'));
  if (timeline.length > 0) return timelineSegments(entries, span);
  const duration = wholeOf(of.duration);
  return duration ? evenSegments(duration, span, lastIndex) : undefined;
}

function ofList(each: Representation, list: Attributes, span: PeriodSpan): Addresses {
  const { base } = each;
  const urls = nearest(each, ['SegmentList'], 'SegmentURL');
  const startNumber = wholeOf(list.startNumber) ?? 1;
  const seconds = wholeOf(list.duration);
  const segments = urls.map(
    ({ attributes }, index): SegmentSource => ({
      ...resourceOf(attributes.media ?? '', base, attributes.mediaRange),
      seconds: seconds === undefined ? undefined : seconds / span.timescale,
      number: startNumber + index,
    }),
  );
  return {
    init: initOf(list, base),
    segments: { first: segments[0], newest: segments.slice(-3).reverse() },
  };
}

function ofFile(own: Attributes, base: string): Addresses & { segments: IndexedFile } {
  const file = resourceOf('', base);
  const indexed = resourceOf('', base, own.indexRange);
  const ahead =
    indexed.range && indexed.range.first > 0 ? { first: 0, last: indexed.range.first - 1 } : undefined;
  const init = initOf(own, base) ?? (ahead && { url: file.url, range: ahead });
  return { init, segments: { file, index: indexed.range ? indexed : undefined } };
}

function initOf(
  { sourceURL, range }: Attributes,
  base: string,
  values?: Readonly<Record<string, string>>,
): Resource | undefined {
  if (sourceURL === undefined && range === undefined) return undefined;
  return resourceOf(values ? fillTemplate(sourceURL ?? '', values) : (sourceURL ?? ''), base, range);
}

/** Elements below the segment information that counts: that of the Representation, else of its parents. */
function nearest(each: Representation, names: readonly string[], child: string): XmlElement[] {
  for (const level of [each.representation, each.adaptationSet, each.period]) {
    const found = level.children
      .filter(({ name }) => names.includes(name))
      .flatMap((element) => childrenOf(element, child));
    if (found.length > 0) return found;
  }
  return [];
}

function resourceOf(address: string, base: string, range?: string): Resource {
  const url = absoluteAddress(address, base);
  const [, first, last] = /^\s*(\d{1,15})-(\d{1,15})?\s*$/.exec(range ?? '') ?? [];
  if (first === undefined) return { url };
  return { url, range: { first: Number(first), last: last === undefined ? undefined : Number(last) } };
}

function protectionText(root: XmlElement, each: Representation): string {
  const named = new Map<string, XmlElement>();
  const inRoot = childrenOf(root, 'ContentProtection');
  const own = [root, each.period, each.adaptationSet, each.representation].flatMap((level) =>
    childrenOf(level, 'ContentProtection'),
  );
  for (const element of own) if (element.attributes.refId) named.set(element.attributes.refId, element);
  const meant = own
    .filter((element) => !inRoot.includes(element))
    .map((element) => named.get(element.attributes.ref ?? '') ?? element);
  const ofRoot = inRoot.filter(({ attributes }) => !attributes.refId);
  return `<MPD>${[...ofRoot, ...meant].map((each) => writeXml(each)).join('')}</MPD>`;
}

type Attributes = Readonly<Record<string, string | undefined>>;

interface Representation {
  readonly period: XmlElement;
  readonly periodIndex: number;
  readonly adaptationSet: XmlElement;
  readonly representation: XmlElement;
  /** Its own, then those of the AdaptationSet, then those of the MPD. */
  readonly attributes: Attributes;
  /** The address that relative ones start from. Of several BaseURL elements on one level, the first counts. */
  readonly base: string;
  /** Of the period, in seconds. */
  readonly start: number;
  readonly duration: number | undefined;
}

function representationsIn(root: XmlElement, url: string): Representation[] {
  // Where a period does not say its start, it is the end of the one before; the first of a static manifest starts at 0.
  let end = (root.attributes.type || 'static') === 'static' ? 0 : undefined;
  return childrenOf(root, 'Period').flatMap((period, periodIndex) => {
    const start = secondsOf(period.attributes.start) ?? end;
    const duration = secondsOf(period.attributes.duration);
    end = start === undefined || duration === undefined ? undefined : start + duration;
    return childrenOf(period, 'AdaptationSet').flatMap((adaptationSet) =>
      childrenOf(adaptationSet, 'Representation').map((representation): Representation => {
        const levels = [root, period, adaptationSet, representation];
        const bases = levels.flatMap((level) => childrenOf(level, 'BaseURL').slice(0, 1));
        return {
          ...{ period, periodIndex, adaptationSet, representation, start: start ?? 0, duration },
          attributes: { ...root.attributes, ...adaptationSet.attributes, ...representation.attributes },
          base: bases.reduce((base, { text }) => absoluteAddress(text.trim(), base), url),
        };
      }),
    );
  });
}

/** The attributes of SegmentTemplate, SegmentList or SegmentBase, and of the Initialization in it: the nearest count. */
function segmentInfo({ period, adaptationSet, representation }: Representation, name: string) {
  const own = [period, adaptationSet, representation].flatMap((level) => childrenOf(level, name).slice(0, 1));
  const levels = own.map((element): Attributes => {
    const { initialization: sourceURL, ...attributes } = element.attributes;
    const init = childrenOf(element, 'Initialization')[0]?.attributes;
    return { ...attributes, ...(init ?? (sourceURL && { sourceURL })) };
  });
  return levels.length === 0 ? undefined : (Object.assign({}, ...levels) as Attributes);
}

function wholeOf(text: string | undefined): number | undefined {
  const number = Number.parseInt(text ?? '', 10);
  return Number.isFinite(number) ? number : undefined;
}

const DURATION =
  /^\s*P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d*)?)S)?)?\s*$/;
const UNITS = [365 * 86_400, 30 * 86_400, 86_400, 3600, 60, 1];

/** An ISO 8601 duration, as `PT1H2.5S`. */
function secondsOf(text = ''): number | undefined {
  const [whole, ...parts] = DURATION.exec(text) ?? [];
  if (whole === undefined) return undefined;
  return UNITS.reduce((sum, unit, at) => sum + unit * Number.parseFloat(parts[at] ?? '0'), 0);
}

/** Seconds since 1970 of a time, which is UTC unless it says its zone. */
function timeOf(text = ''): number | undefined {
  const time = Date.parse(/^\d+-\d+-\d+T\d+:\d+:\d+(?:\.\d+)?$/.test(text) ? `${text}Z` : text) / 1000;
  return Number.isFinite(time) ? time : undefined;
}

function childrenOf({ children }: XmlElement, name: string): XmlElement[] {
  return children.filter((child) => child.name === name);
}
