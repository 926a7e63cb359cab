import { isAmong, parseUuid } from '../bytes';
import type { Subject } from '../finding';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { unescapeXml } from '../xml';
import { describeBoxList, foreignSystemOf, systemName } from './boxes';
import { describePlayReadyObject } from './playready';
import {
  cipherOf,
  compareBoxes,
  describeProtections,
  type KeySignallingAt,
  type Protection,
} from './protection';
import type { Report } from './report';
import { checkAddress, readByteText } from './values';

/** `<cenc:pssh>`, `<mspr:pro>`, and `<ProtectionHeader>` of Smooth Streaming, with any prefix. */
const ELEMENT =
  /<(?:[\w-]{1,20}:)?(pssh|pro|ProtectionHeader)(?:\s[^<>]{0,500})?>([^<>]*)<\/(?:[\w-]{1,20}:)?\1\s*>/g;
const DEFAULT_KEY_ID = /\bdefault_KID\s*=\s*["']([^"'<>]{0,100})["']/g;
/** The scheme stands in the same element as the key ids: `value="cbcs"`. */
const PROTECTION = /<(?:[\w-]{1,20}:)?ContentProtection\b[^<>]{0,2000}>/g;
const MAX_PROTECTIONS = 100;
const THE_MANIFEST: Subject = { called: 'The manifest' };

const ROOT = /^[^<]*(?:<\?[^<>]*>\s*)*<(?:[\w-]{1,20}:)?(MPD|SmoothStreamingMedia)[\s>/]/;
const ROOTS: Readonly<Record<string, string>> = {
  MPD: 'DASH MPD',
  SmoothStreamingMedia: 'Smooth Streaming manifest',
};

export function looksLikeManifest(xml: string): boolean {
  return rootOf(xml) !== undefined || xml.search(ELEMENT) >= 0 || xml.search(PROTECTION) >= 0;
}

function rootOf(xml: string): string | undefined {
  return ROOTS[ROOT.exec(withoutComments(xml.slice(0, 10_000)))?.[1] ?? ''];
}

export function describeManifest(report: Report, manifest: string): void {
  const root = rootOf(manifest);
  const xml = withoutComments(manifest);
  report.field('type', root);
  const protections = readProtections(report, xml);
  const { named } = describeElements(report, xml, '', THE_MANIFEST);
  compareBoxes(report, named, protections);
  describeProtections(report, protections, named, { rotates: false, hasAllBoxes: false });
  const elements = systemElements(xml);
  describeLicenseAddresses(report, elements);
  const ofScheme = protectionsOfScheme(xml);
  for (const element of ofScheme) {
    const scheme = /\bvalue\s*=\s*["']([^"'<>]*)/.exec(element)?.[1];
    if (scheme === undefined) report.warning('no_scheme', THE_MANIFEST, NO_SCHEME);
    else if (!cipherOf(scheme)) report.warning('unknown_scheme', THE_MANIFEST, UNKNOWN_SCHEME);
  }
  checkSystems(report, elements);
  // The elements of a period are for those that refer to them.
  const sets = xml.split(PERIOD).flatMap((period) => period.split(SET).slice(1));
  if (root !== undefined && sets.some(hasSeveralKeyIds))
    report.error('key_id_mismatch', THE_MANIFEST, SEVERAL_KEY_IDS);
  if (named.length + protections.length > 0) {
    if (ofScheme.some((element) => !/\bdefault_KID\s*=/.test(element)))
      report.warning('no_default_kid', THE_MANIFEST, NO_DEFAULT_KID);
    return;
  }
  // ISO/IEC 23009-4: whole segments, without a DRM system.
  const hasEncryptedSegments = /<(?:[\w-]{1,20}:)?SegmentEncryption\b/.test(xml);
  if (xml.search(PROTECTION) < 0) {
    report.claim({ of: 'clear', at: 'manifest' });
    report.warning('not_protected', THE_MANIFEST, 'has no ContentProtection element: it is not protected');
  } else if (hasEncryptedSegments)
    report.field('protection', 'segment encryption', 'CryptoPeriod has the address of the key');
  else report.warning('names_nothing', THE_MANIFEST, NAMES_NOTHING);
}

const NAMES_NOTHING =
  'has no pssh or pro element and no default_KID here; the init or media segments must have them';

/** Shows boxes and PlayReady objects in elements, each once. Fields begin with `at`; `subject` has the elements. */
export function describeElements(
  report: Report,
  xml: string,
  at: string,
  subject: Subject,
): { readonly boxes: readonly Buffer[]; readonly named: readonly KeySignallingAt[] } {
  const texts = new Map<string, string>();
  for (const [, name = '', text = ''] of xml.matchAll(ELEMENT)) texts.set(text.replaceAll(/\s+/g, ''), name);
  const boxes: Buffer[] = [];
  const objects: Buffer[] = [];
  for (const [text, name] of texts) {
    const bytes = readByteText(text)?.bytes;
    if (!bytes) report.error('not_base64', subject, `has a ${name} element that is not base64`);
    else (name === 'pssh' ? boxes : objects).push(bytes);
  }
  const ofObjects = objects.map((object, index): KeySignallingAt => {
    const called = `${at}${objects.length > 1 ? `pro[${index}]` : 'pro'}`;
    return { at: called, ...describePlayReadyObject(report, `${called}.`, object) };
  });
  return { boxes, named: [...describeBoxList(report, boxes, `${at}box`), ...ofObjects] };
}

function readProtections(report: Report, xml: string): Protection[] {
  const found = new Map<string, Protection>();
  for (const [element] of xml.matchAll(PROTECTION)) {
    const scheme = /mp4protection/.test(element)
      ? /\bvalue\s*=\s*["'](\w{4})["']/.exec(element)?.[1]
      : undefined;
    for (const [, text = ''] of element.matchAll(DEFAULT_KEY_ID)) {
      // Several key ids may stand there, with blanks between them.
      for (const id of text.split(/\s+/).filter(Boolean)) {
        const keyId = parseUuid(id);
        if (keyId.ok) found.set(`${scheme} ${id.toLowerCase()}`, { scheme, keyId: keyId.value });
        else report.error('not_uuid', THE_MANIFEST, `has a default_KID that ${keyId.problem.description}`);
      }
    }
  }
  const all = [...found.values()].slice(0, MAX_PROTECTIONS);
  // The same key id stands in the element of the scheme and, with some packagers, in each system's.
  const ofSchemes = all.flatMap(({ scheme, keyId }) => (scheme !== undefined && keyId ? [keyId] : []));
  return all.filter(({ scheme, keyId }) => scheme !== undefined || (keyId && !isAmong(keyId, ofSchemes)));
}

/** A pattern would search for the end of each unclosed comment again. */
function withoutComments(xml: string): string {
  const [before = '', ...comments] = xml.split('<!--');
  return before + comments.map((comment) => comment.split('-->').slice(1).join('-->')).join('');
}

const MAX_ADDRESSES = 50;

/** `<dashif:Laurl>…</dashif:Laurl>`, `<ms:laurl licenseUrl="…"/>` and their like. */
const LAURL = /<(?:[\w-]{1,20}:)?laurl\b([^<>]{0,3000})>([^<]{0,3000})/gi;

/** `systemId` is of `schemeIdUri`, in lower case; empty if that is no UUID. */
function systemElements(xml: string) {
  return xml
    .split(/<(?:[\w-]{1,20}:)?ContentProtection\b/)
    .slice(1)
    .flatMap((element) => {
      const start = element.indexOf('>');
      const attributes = element.slice(0, Math.max(start, 0));
      const end = element.search(/<\/(?:[\w-]{1,20}:)?ContentProtection\s*>/);
      if (attributes.endsWith('/') || end < 0) return [];
      const systemId = /urn:uuid:([0-9a-f-]{36})/i.exec(attributes)?.[1]?.toLowerCase() ?? '';
      return [{ systemId, inner: element.slice(start + 1, end) }];
    });
}

/** Players look in each element for the box of its own system. */
function checkSystems(report: Report, elements: ReturnType<typeof systemElements>): void {
  for (const { systemId, inner } of elements) {
    if (systemId === '') continue;
    for (const [, name, text = ''] of inner.matchAll(ELEMENT)) {
      const box = name === 'pssh' ? readByteText(text.replaceAll(/\s+/g, ''))?.bytes : undefined;
      const other = box && foreignSystemOf(box, systemId);
      const sentence = `has a box of ${other} in the ContentProtection element of ${systemName(systemId) ?? systemId}; put it in that of its own system`;
      if (other !== undefined) report.error('system_mismatch', THE_MANIFEST, sentence);
    }
  }
}

/** The start tags of the elements that name the scheme of the samples. One with `ref` has the attributes of another. */
function protectionsOfScheme(xml: string): string[] {
  return [...xml.matchAll(PROTECTION)].flatMap(([element]) =>
    /mp4protection/.test(element) && !/\sref\s*=/.test(element) ? [element] : [],
  );
}

const PERIOD = /<(?:[\w-]{1,20}:)?Period\b/;
const SET = /<(?:[\w-]{1,20}:)?(?:AdaptationSet|Representation)\b/;
const SEVERAL_KEY_IDS =
  'has ContentProtection elements with different default_KID in one AdaptationSet or Representation; players refuse it';

function hasSeveralKeyIds(set: string): boolean {
  return new Set([...set.matchAll(DEFAULT_KEY_ID)].map(([, text = '']) => text.toLowerCase())).size > 1;
}

const OF_SCHEME = 'has a ContentProtection element of mp4protection';
const NO_SCHEME = `${OF_SCHEME} without value; write value="cenc" or value="cbcs", as the samples are encrypted`;
const UNKNOWN_SCHEME = `${OF_SCHEME} whose value is not one of cenc, cens, cbc1, cbcs`;
const NO_DEFAULT_KID = `${OF_SCHEME} without default_KID, by which players choose the key`;

function describeLicenseAddresses(report: Report, elements: ReturnType<typeof systemElements>): void {
  const found = new Map<string, { systemId: string; address: string }>();
  for (const { systemId, inner } of elements) {
    for (const [, own = '', text = ''] of inner.matchAll(LAURL)) {
      const address = unescapeXml((/\blicenseUrl\s*=\s*["']([^"']*)["']/i.exec(own)?.[1] ?? text).trim());
      if (address !== '') found.set(`${systemId} ${address}`, { systemId, address });
    }
  }
  [...found.values()].slice(0, MAX_ADDRESSES).forEach(({ systemId, address }, index) => {
    const name = found.size > 1 ? `laurl[${index}]` : 'laurl';
    checkAddress(report, name, 'playready', address, systemName(systemId));
    if (systemId === PLAYREADY_SYSTEM_ID)
      report.claim({ of: 'address', at: name, system: 'playready', address });
  });
}
