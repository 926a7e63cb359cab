import { type Checked, isJsonObject, refused, refusedAs } from '../../drm/bytes';
import { parseXml, type XmlElement } from '../../drm/xml';
import type { Limits, Resource } from '../fetches';
import type { MediaKind } from '../media/judgement';
import type { IndexedFile, Rendition, SegmentSource, StreamOutline } from '../rendition';
import { childrenOf, type InheritedRepresentation, inheritedRepresentations } from './mpd-library';
import {
  evenSegments,
  fillTemplate,
  type PeriodSpan,
  type TimedSegment,
  timelineSegments,
} from './segment-times';

/** No manifest of a day with one entry for each segment has as many. */
const MAX_ELEMENTS = 400_000;
/** Of each of these elements. */
const MAX_PARTS = 2000;
/** Characters of a SegmentTemplate. */
const MAX_TEMPLATE = 4000;

interface MpdSource {
  /** Where it was in the end: what is relative starts there. */
  readonly url: string;
  readonly name: string;
  readonly now: Date;
  readonly limits: Limits;
}

interface ReadMpd {
  readonly outline: StreamOutline;
  readonly left: number;
}

const unreadable = refusedAs('manifest_unreadable');

const QUALIFIED_NAME = /^[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?$/;

/** The library's XML parser writes names that it does not take on the console. */
function hasQualifiedNames({ name, attributes, children }: XmlElement): boolean {
  return (
    [name, ...Object.keys(attributes)].every((each) => QUALIFIED_NAME.test(each)) &&
    children.every(hasQualifiedNames)
  );
}

/** Reads a DASH manifest (ISO/IEC 23009-1). Of a live one the newest period is taken. */
export function readMpd(text: string, { url, name, now, limits }: MpdSource): Checked<ReadMpd> {
  const parsed = parseXml(text, { characters: limits.manifestBytes, elements: MAX_ELEMENTS });
  if (!parsed.ok) return unreadable(parsed.problem.description);
  const root = parsed.value;
  if (root.name !== 'MPD') {
    const sentence = `is XML with the root ${root.name.slice(0, 50)}, not a DASH manifest, whose root is MPD`;
    return refused('not_a_manifest', sentence);
  }
  if (!hasQualifiedNames(root))
    return unreadable(
      'has an element or attribute whose name is not valid in XML; check it with a validator',
    );
  const parts = ['Period', 'AdaptationSet', 'Representation'];
  const tooMany = parts.find((part) => countOf(root, part) > MAX_PARTS);
  if (tooMany !== undefined)
    return refused(
      'manifest_too_large',
      `has more than ${MAX_PARTS} elements ${tooMany}; no player reads it`,
    );
  let inherited: InheritedRepresentation[];
  try {
    inherited = inheritedRepresentations(text, root, { url, now });
  } catch {
    // The library throws for what it can't read, in words of its own.
    return unreadable('has no Period that can be read; check it with a DASH validator');
  }
  if (inherited.some(({ segmentInfo }) => JSON.stringify(segmentInfo.template ?? {}).length > MAX_TEMPLATE))
    return refused('manifest_too_large', `has an address template of more than ${MAX_TEMPLATE} characters`);
  const live = root.attributes.type === 'dynamic';
  const spanOf = spansOf(inherited, live, now);
  const readable = inherited.filter((each) => isMedia(each) && spanOf(each).elapsed !== 0);
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
      codec: textOf(each.attributes.codecs),
      signalling: { name, text: protectionText(root, each) },
      ...addressesOf(each, spanOf(each)),
    };
  });
  const { availabilityStartTime, periodStart } = taken[0]?.attributes ?? {};
  const startedAt = numberOf(availabilityStartTime);
  const started =
    live && startedAt !== undefined ? new Date((startedAt + (numberOf(periodStart) ?? 0)) * 1000) : undefined;
  const outline = { type: 'dash', live, started, renditions } as const;
  return { ok: true, value: { outline, left: (live ? chosen : readable).length - taken.length } };
}

function countOf({ name, children }: XmlElement, part: string): number {
  return children.reduce((sum, child) => sum + countOf(child, part), name === part ? 1 : 0);
}

/** Tracks other than video, audio and text have no samples: thumbnails, for example. */
function isMedia(each: InheritedRepresentation): boolean {
  return kindOf(each) !== 'other';
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
  const parts = [
    withPeriod ? `period ${period.attributes.id ?? periodIndex + 1}` : undefined,
    kindOf(each),
    size,
    textOf(attributes.lang),
    bandwidth === undefined ? undefined : `${Math.round(bandwidth / 1000)} kb/s`,
  ];
  return parts
    .filter((part) => part !== undefined)
    .join(' ')
    .slice(0, 80);
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
  return ofFile(segmentInfo.base ?? {}, base);
}

function ofTemplate(
  each: InheritedRepresentation,
  template: Readonly<Record<string, unknown>>,
  base: string,
  span: PeriodSpan,
): Addresses {
  const values = {
    RepresentationID: textOf(each.attributes.id) ?? '',
    Bandwidth: String(numberOf(each.attributes.bandwidth) ?? 0),
  };
  const startNumber = numberOf(template.startNumber) ?? 1;
  const endNumber = Number(textOf(template.endNumber) ?? Number.NaN);
  const media = textOf(template.media) ?? '';
  const sourceOf = (segment: TimedSegment): SegmentSource => ({
    ...resourceOf(
      fillTemplate(media, {
        ...values,
        Number: String(startNumber + segment.index),
        Time: String(segment.time),
      }),
      base,
    ),
    seconds: Number(segment.duration) / span.timescale,
    number: startNumber + segment.index,
  });
  const { first, newest } = timesOf(each, template, span, {
    lastIndex: Number.isNaN(endNumber) ? undefined : endNumber - startNumber,
  }) ?? {
    // Neither a timeline nor a duration: one segment.
    first: { index: 0, time: 0n, duration: 0n },
    newest: [{ index: 0, time: 0n, duration: 0n }],
  };
  return {
    init: initOf(template.initialization, base, (text) => fillTemplate(text, values)),
    segments: { first: first && sourceOf(first), newest: newest.map(sourceOf) },
  };
}

function timesOf(
  each: InheritedRepresentation,
  of: Readonly<Record<string, unknown>>,
  span: PeriodSpan,
  { lastIndex }: { readonly lastIndex?: number | undefined },
) {
  const timeline = nearest(each, ['SegmentTemplate', 'SegmentList'], 'SegmentTimeline');
  if (timeline.length > 0)
    return timelineSegments(
      timeline.flatMap((element) => childrenOf(element, 'S')),
      span,
    );
  const duration = numberOf(of.duration);
  return duration ? evenSegments(duration, span, lastIndex) : undefined;
}

function ofList(
  each: InheritedRepresentation,
  list: Readonly<Record<string, unknown>>,
  base: string,
  span: PeriodSpan,
): Addresses {
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

function ofFile(own: Readonly<Record<string, unknown>>, base: string): Addresses & { segments: IndexedFile } {
  const file = resourceOf('', base);
  const index = textOf(own.indexRange);
  const indexed = index === undefined ? undefined : resourceOf('', base, index);
  const ahead =
    indexed?.range && indexed.range.first > 0 ? { first: 0, last: indexed.range.first - 1 } : undefined;
  const init = initOf(own.initialization, base) ?? (ahead && { url: file.url, range: ahead });
  return { init, segments: { file, index: indexed?.range ? indexed : undefined } };
}

function initOf(
  of: unknown,
  base: string,
  fill: (text: string) => string = (text) => text,
): Resource | undefined {
  if (!isJsonObject(of)) return undefined;
  const [source, range] = [textOf(of.sourceURL), textOf(of.range)];
  if (source === undefined && range === undefined) return undefined;
  return resourceOf(fill(source ?? ''), base, range);
}

/** Elements below the segment information that counts: that of the Representation, else of what is around it. */
function nearest(each: InheritedRepresentation, names: readonly string[], child: string): XmlElement[] {
  for (const level of [each.representation, each.adaptationSet, each.period]) {
    const found = level.children
      .filter(({ name }) => names.includes(name))
      .flatMap((element) => childrenOf(element, child));
    if (found.length > 0) return found;
  }
  return [];
}

/** An address that can't be resolved stays as it is, and is refused when it is fetched. */
function resourceOf(address: string, base: string, range?: string): Resource {
  const url = URL.canParse(address, base) ? new URL(address, base).href : address;
  const [, first, last] = /^\s*(\d{1,15})-(\d{1,15})?\s*$/.exec(range ?? '') ?? [];
  if (first === undefined) return { url };
  return { url, range: { first: Number(first), last: last === undefined ? undefined : Number(last) } };
}

function protectionText(root: XmlElement, each: InheritedRepresentation): string {
  const named = new Map<string, XmlElement>();
  const own = [root, each.period, each.adaptationSet, each.representation].flatMap((level) =>
    childrenOf(level, 'ContentProtection'),
  );
  for (const element of own) if (element.attributes.refId) named.set(element.attributes.refId, element);
  const meant = own
    .filter((element) => !childrenOf(root, 'ContentProtection').includes(element))
    .map((element) => named.get(element.attributes.ref ?? '') ?? element);
  const ofRoot = childrenOf(root, 'ContentProtection').filter(({ attributes }) => !attributes.refId);
  return `<MPD>${[...ofRoot, ...meant].map(written).join('\n')}</MPD>`;
}

function written({ name, attributes, children, text }: XmlElement): string {
  const own = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(value)}"`);
  return `<${name}${own.join('')}>${escaped(text)}${children.map(written).join('')}</${name}>`;
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined;
}
