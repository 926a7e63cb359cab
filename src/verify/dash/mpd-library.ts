import type { XmlElement } from '../../drm/xml';

/**
 * What is used of mpd-parser: XML to a document, attributes handed down from MPD to Representation, base addresses, the
 * starts of periods. Its lists of segments are not: it writes out every repeat (one `r` may be a billion), takes times
 * for doubles, and joins periods, of whose protection it keeps the first; and it knows no ContentProtection of a
 * Representation.
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
  setAttribute(name: string, value: string): void;
  removeChild(child: MpdNode): void;
}

/** Numbers are numbers, durations seconds, dates seconds since 1970; what it does not know is text. */
type Attributes = Readonly<Record<string, unknown>>;

interface RepresentationInfo {
  readonly attributes: Attributes;
  readonly segmentInfo: {
    readonly template?: Attributes;
    readonly list?: Attributes;
    readonly base?: Attributes;
  };
}

const library: MpdLibrary = require('mpd-parser');

export interface InheritedRepresentation {
  readonly period: XmlElement;
  readonly periodIndex: number;
  readonly adaptationSet: XmlElement;
  readonly representation: XmlElement;
  readonly attributes: Attributes;
  readonly segmentInfo: RepresentationInfo['segmentInfo'];
}

/** By it, what the library answers is found again among the elements. */
const MARK = 'element-of-the-manifest';

/** The Representations of well-formed XML, `root` being its elements. @throws what the library throws. */
export function inheritedRepresentations(
  text: string,
  root: XmlElement,
  { url, now }: { readonly url: string; readonly now: Date },
): InheritedRepresentation[] {
  const mpd = library.stringToMpdXml(text);
  keepFirstBaseUrl(mpd);
  removeSegments(mpd);
  const elements: Pick<
    InheritedRepresentation,
    'period' | 'periodIndex' | 'adaptationSet' | 'representation'
  >[] = [];
  childrenOf(root, 'Period').forEach((period, periodIndex) => {
    const periodNode = nodesOf(mpd, 'Period')[periodIndex];
    childrenOf(period, 'AdaptationSet').forEach((adaptationSet, setIndex) => {
      const setNode = periodNode && nodesOf(periodNode, 'AdaptationSet')[setIndex];
      keepFirstBaseUrl(setNode);
      childrenOf(adaptationSet, 'Representation').forEach((representation, index) => {
        const node = setNode && nodesOf(setNode, 'Representation')[index];
        keepFirstBaseUrl(node);
        node?.setAttribute(MARK, String(elements.length));
        elements.push({ period, periodIndex, adaptationSet, representation });
      });
    });
    keepFirstBaseUrl(periodNode);
  });
  const { representationInfo } = library.inheritAttributes(mpd, { manifestUri: url, NOW: now.getTime() });
  return representationInfo.flatMap(({ attributes, segmentInfo }) => {
    const element = elements[Number(attributes[MARK])];
    return element ? [{ ...element, attributes, segmentInfo }] : [];
  });
}

/** The library makes each Representation once for each combination of all BaseURL elements above it. */
function keepFirstBaseUrl(node: MpdNode | undefined): void {
  for (const other of node ? nodesOf(node, 'BaseURL').slice(1) : []) node?.removeChild(other);
}

/** The library copies the segments of a Period or AdaptationSet to each Representation in it. */
function removeSegments(node: MpdNode): void {
  for (const child of Array.from(node.childNodes)) {
    if (child.tagName === 'SegmentTimeline' || child.tagName === 'SegmentURL') node.removeChild(child);
    else if (child.tagName !== undefined) removeSegments(child);
  }
}

function nodesOf({ childNodes }: MpdNode, name: string): MpdNode[] {
  return Array.from(childNodes).filter(({ tagName }) => tagName === name);
}

export function childrenOf({ children }: XmlElement, name: string): XmlElement[] {
  return children.filter((child) => child.name === name);
}
