import { type Checked, isJsonObject, refused, refusedAs } from '../../drm/bytes';
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
  wholeOf,
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

const QUALIFIED_NAME = /^[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?$/;

/** The library's XML parser writes names that it does not take on the console. */
function hasQualifiedNames({ name, attributes, children }: XmlElement): boolean {
  return (
    [name, ...Object.keys(attributes)].every((each) => QUALIFIED_NAME.test(each)) &&
    children.every(hasQualifiedNames)
  );
}

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
  if (!hasQualifiedNames(root))
    return unreadable('has an element or attribute whose name is not valid in XML');
  const parts = ['Period', 'AdaptationSet', 'Representation'];
  const tooMany = parts.find((part) => countOf(root, part) > MAX_PARTS);
  if (tooMany !== undefined)
    return tooLarge(`has more than ${MAX_PARTS} elements ${tooMany}; no player reads it`);
  let inherited: InheritedRepresentation[];
  try {
    inherited = inheritedRepresentations(text, root, { url, now });
  } catch {
    // The library throws its own errors for unreadable manifests.
    return unreadable('has no Period that can be read; check it with a DASH validator');
  }
  if (inherited.some(({ segmentInfo }) => JSON.stringify(segmentInfo.template ?? {}).length > MAX_TEMPLATE))
    return tooLarge(`has an address template of more than ${MAX_TEMPLATE} characters`);
  const live = root.attributes.type === 'dynamic';
  const spanOf = spansOf(inherited, live, now);
  // Tracks other than video, audio and text have no samples: thumbnails, for example.
  const readable = inherited.filter((each) => kindOf(each) !== 'other' && spanOf(each).elapsed !== 0);
  const [before = -1, newest = before] = [...new Set(readable.map((each) => each.periodIndex))].slice(-2);
  // A period that has just begun has no segment yet.
  const isEmpty = (each: InheritedRepresentation) => {
    const { segments } = addressesOf(each, spanOf(each));
    return kindOf(each) !== 'text' && 'newest' in segments && segments.newest.length === 0;
  };
  const ofNewest = readable.filter(({ periodIndex }) => periodIndex === newest).slice(0, limits.renditions);
  const last = live && ofNewest.some(isEmpty) ? before : newest;
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
      codec: textOf(each.attributes.codecs),
      signalling: { name, text: protectionText(root, each) },
      ...addressesOf(each, spanOf(each)),
    };
  });
  const { availabilityStartTime, periodStart } = taken[0]?.attributes ?? {};
  const begun = (numberOf(availabilityStartTime) ?? 0) + (numberOf(periodStart) ?? 0);
  const started = live ? new Date(begun * 1000) : undefined;
  const outline = { type: 'dash', live, started, renditions } as const;
  return { ok: true, value: { outline, left: (live ? chosen : readable).length - taken.length } };
}

function countOf({ name, children }: XmlElement, part: string): number {
  return children.reduce((sum, child) => sum + countOf(child, part), name === part ? 1 : 0);
}

function kindOf({ attributes }: InheritedRepresentation): MediaKind {
  const mime = textOf(attributes.mimeType) ?? '';
  const codecs = textOf(attributes.codecs) ?? '';
  const content = textOf(attributes.contentType) ?? mime.split('/')[0] ?? '';
  if (/^(?:stpp|wvtt|tx3g)/.test(codecs) || /vtt|ttml/.test(mime)) return 'text';
  if (content === 'video' || content === 'audio' || content === 'text') return content;
  return 'other';
}

function nameOf(each: InheritedRepresentation, withPeriod: boolean): string {
  const { attributes, period, periodIndex } = each;
  const bandwidth = numberOf(attributes.bandwidth);
  const size = attributes.width && attributes.height ? `${attributes.width}x${attributes.height}` : undefined;
  const ofPeriod = withPeriod ? `period ${period.attributes.id ?? periodIndex + 1}` : undefined;
  const rate = bandwidth === undefined ? undefined : `${Math.round(bandwidth / 1000)} kb/s`;
  const parts = [ofPeriod, kindOf(each), size, textOf(attributes.lang), rate];
  const shown = parts.filter((part) => part !== undefined);
  return shown.join(' ').slice(0, 80);
}

function spansOf(all: readonly InheritedRepresentation[], live: boolean, now: Date) {
  const starts = new Map<number, number>();
  for (const { periodIndex, attributes } of all)
    starts.set(periodIndex, numberOf(attributes.periodStart) ?? 0);
  return ({ periodIndex, attributes, segmentInfo }: InheritedRepresentation): PeriodSpan => {
    const start = starts.get(periodIndex) ?? 0;
    const next = [...starts].find(([index]) => index > periodIndex)?.[1];
    const whole = numberOf(attributes.mediaPresentationDuration);
    const end =
      numberOf(attributes.periodDuration) ??
      (next === undefined ? (whole === undefined ? undefined : whole - start) : next - start);
    const since = now.getTime() / 1000 - (numberOf(attributes.availabilityStartTime) ?? 0) - start;
    const own = { ...segmentInfo.list, ...segmentInfo.template };
    return {
      timescale: numberOf(own.timescale) || 1,
      presentationTimeOffset: numberOf(own.presentationTimeOffset) ?? 0,
      end,
      elapsed: live ? Math.max(0, since) : undefined,
    };
  };
}

type Addresses = Pick<Rendition, 'init' | 'segments'>;
function addressesOf(each: InheritedRepresentation, span: PeriodSpan): Addresses {
  const { segmentInfo, attributes } = each;
  const base = textOf(attributes.baseUrl) ?? '';
  if (segmentInfo.template) return ofTemplate(each, segmentInfo.template, base, span);
  if (segmentInfo.list) return ofList(each, segmentInfo.list, base, span);
  // Subtitles that are a text are one segment.
  if (kindOf(each) === 'text' && !/mp4/.test(textOf(attributes.mimeType) ?? '')) {
    const whole = { url: base, seconds: undefined, number: undefined };
    return { init: undefined, segments: { first: whole, newest: [whole] } };
  }
  return ofFile(segmentInfo.base ?? {}, base);
}

function ofTemplate(
  each: InheritedRepresentation,
  template: Attributes,
  base: string,
  span: PeriodSpan,
): Addresses {
  const values = {
    RepresentationID: textOf(each.attributes.id) ?? '',
    Bandwidth: String(numberOf(each.attributes.bandwidth) ?? 0),
  };
  const startNumber = numberOf(template.startNumber) ?? 1;
  const endNumber = wholeOf(textOf(template.endNumber));
  const media = textOf(template.media) ?? '';
  // The window of a live stream moves on in time, and often without a new startNumber.
  const isTimed = media.includes('$Time');
  const sourceOf = ({ index, time, duration }: TimedSegment): SegmentSource => {
    const number = startNumber + index;
    const address = fillTemplate(media, { ...values, Number: String(number), Time: String(time) });
    const seconds = Number(duration) / span.timescale;
    const end = (Number(time + duration) - span.presentationTimeOffset) / span.timescale;
    const secondsOver = span.end === undefined ? undefined : span.elapsed && span.elapsed - end;
    return { ...resourceOf(address, base), seconds, number: isTimed ? Number(time) : number, secondsOver };
  };
  const lastIndex = endNumber === undefined ? undefined : Number(endNumber) - startNumber;
  // With neither a timeline nor a duration, it is one segment.
  const only = { index: 0, time: 0n, duration: 0n };
  const { first, newest } = timesOf(each, template, span, lastIndex) ?? { first: only, newest: [only] };
  return {
    init: initOf(template.initialization, base, values),
    segments: { first: first && sourceOf(first), newest: newest.map(sourceOf) },
  };
}

function timesOf(
  each: InheritedRepresentation,
  of: Attributes,
  span: PeriodSpan,
  lastIndex: number | undefined,
) {
  const timeline = nearest(each, ['SegmentTemplate', 'SegmentList'], 'SegmentTimeline');
  const entries = timeline.flatMap((element) => childrenOf(element, 'S'));
  if (timeline.length > 0) return timelineSegments(entries, span);
  const duration = numberOf(of.duration);
  return duration ? evenSegments(duration, span, lastIndex) : undefined;
}

function ofList(each: InheritedRepresentation, list: Attributes, base: string, span: PeriodSpan): Addresses {
  const urls = nearest(each, ['SegmentList'], 'SegmentURL');
  const startNumber = numberOf(list.startNumber) ?? 1;
  const seconds = numberOf(list.duration);
  const segments = urls.map(
    ({ attributes }, index): SegmentSource => ({
      ...resourceOf(attributes.media ?? '', base, attributes.mediaRange),
      seconds: seconds === undefined ? undefined : seconds / span.timescale,
      number: startNumber + index,
    }),
  );
  return {
    init: initOf(list.initialization, base),
    segments: { first: segments[0], newest: segments.slice(-3).reverse() },
  };
}

function ofFile(own: Attributes, base: string): Addresses & { segments: IndexedFile } {
  const file = resourceOf('', base);
  const index = textOf(own.indexRange);
  const indexed = index === undefined ? undefined : resourceOf('', base, index);
  const ahead =
    indexed?.range && indexed.range.first > 0 ? { first: 0, last: indexed.range.first - 1 } : undefined;
  const init = initOf(own.initialization, base) ?? (ahead && { url: file.url, range: ahead });
  return { init, segments: { file, index: indexed?.range ? indexed : undefined } };
}

function initOf(of: unknown, base: string, values?: Readonly<Record<string, string>>): Resource | undefined {
  if (!isJsonObject(of)) return undefined;
  const [source, range] = [textOf(of.sourceURL), textOf(of.range)];
  if (source === undefined && range === undefined) return undefined;
  return resourceOf(values ? fillTemplate(source ?? '', values) : (source ?? ''), base, range);
}

/** Elements below the segment information that counts: that of the Representation, else of its parents. */
function nearest(each: InheritedRepresentation, names: readonly string[], child: string): XmlElement[] {
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

function protectionText(root: XmlElement, each: InheritedRepresentation): string {
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

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined;
}

/**
 * The used part of mpd-parser: inherited attributes, base addresses, starts of periods. Its lists of segments
 * write out every repeat (one `r` may be a billion), take times for doubles, and join periods with the
 * protection of the first; and it knows no ContentProtection of a Representation.
 */
interface MpdLibrary {
  stringToMpdXml(text: string): MpdNode;
  inheritAttributes(
    mpd: MpdNode,
    options: { readonly manifestUri: string; readonly NOW: number },
  ): { readonly representationInfo: readonly RepresentationInfo[] };
}

interface MpdNode {
  readonly tagName?: string;
  readonly childNodes: ArrayLike<MpdNode>;
  removeChild(child: MpdNode): void;
}

/** Numbers are numbers, durations seconds, dates seconds since 1970; unknown attributes are texts. */
type Attributes = Readonly<Record<string, unknown>>;

interface RepresentationInfo {
  readonly attributes: Attributes;
  readonly segmentInfo: { readonly [Kind in 'template' | 'list' | 'base']?: Attributes };
}

const library: MpdLibrary = require('mpd-parser');

interface Elements {
  readonly period: XmlElement;
  readonly periodIndex: number;
  readonly adaptationSet: XmlElement;
  readonly representation: XmlElement;
}

interface InheritedRepresentation extends Elements, RepresentationInfo {}

/** The Representations of well-formed XML, `root` being its elements. @throws the library's errors. */
function inheritedRepresentations(
  text: string,
  root: XmlElement,
  { url, now }: { readonly url: string; readonly now: Date },
): InheritedRepresentation[] {
  const mpd = library.stringToMpdXml(text);
  removeUnread(mpd);
  const { representationInfo } = library.inheritAttributes(mpd, { manifestUri: url, NOW: now.getTime() });
  const elements = childrenOf(root, 'Period').flatMap((period, periodIndex) =>
    childrenOf(period, 'AdaptationSet').flatMap((adaptationSet) =>
      childrenOf(adaptationSet, 'Representation').map((representation): Elements => {
        return { period, periodIndex, adaptationSet, representation };
      }),
    ),
  );
  // The library has them in the same order.
  return elements.flatMap((element, index) => {
    const inherited = representationInfo[index];
    return inherited ? [{ ...element, ...inherited }] : [];
  });
}

/** The library copies the segments of a Period or AdaptationSet to each Representation in it, and throws on a broken box or a Label with elements. */
const NOT_FOR_THE_LIBRARY = ['SegmentTimeline', 'SegmentURL', 'ContentProtection', 'Label'];

/** It makes each Representation once for each combination of all BaseURL elements above it, so that the first of each parent stays. */
function removeUnread(node: MpdNode): void {
  let hasBaseUrl = false;
  for (const child of Array.from(node.childNodes)) {
    if (child.tagName === undefined) continue;
    const isBaseUrl = child.tagName === 'BaseURL';
    if ((isBaseUrl && hasBaseUrl) || NOT_FOR_THE_LIBRARY.includes(child.tagName)) node.removeChild(child);
    else removeUnread(child);
    hasBaseUrl ||= isBaseUrl;
  }
}

function childrenOf({ children }: XmlElement, name: string): XmlElement[] {
  return children.filter((child) => child.name === name);
}
