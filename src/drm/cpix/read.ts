import { isAscii, isUtf8 } from 'node:buffer';
import { type Checked, decodeBase64, decodeBase64Block, formatUuid, isZero, refusedAs } from '../bytes';
import { looksLikePlayReadyObject } from '../check/playready';
import { looksLikePsshBox } from '../pssh';
import { PROTECTION_SCHEMES, type ProtectionScheme } from '../widevine';
import { parseXml, type XmlElement } from '../xml';
import {
  CPIX_NAMESPACE,
  type CpixCipher,
  type CpixDelivery,
  type CpixDocument,
  type CpixKey,
  type CpixRule,
  type CpixSignal,
  type CpixSystem,
  type CpixValue,
  cpixSystemOf,
  ENCRYPTION_NAMESPACE,
  HLS_METHODS,
  LIMIT_ATTRIBUTES,
  PERIOD_ATTRIBUTES,
  PSKC_NAMESPACE,
  SIGNATURE_NAMESPACE,
  SPEKE_NAMESPACE,
} from './document';
import { checked, refuse as refuseAs } from './fault';

const invalid = refusedAs('invalid_cpix');

/** Maximum size of a document; 200 keys with three systems each have as much. */
export const MAX_CPIX_BYTES = 256 * 1024;

export const CPIX_TOO_LARGE = `has more than ${MAX_CPIX_BYTES / 1024} KiB, the most that a CPIX document may have`;

function refuse(sentence: string): never {
  return refuseAs('invalid_cpix', sentence);
}

/** Whether a text is most likely a CPIX document, well formed or not. An error page that quotes one is none. */
export function looksLikeCpix(text: string): boolean {
  return /^\ufeff?\s*<(?:[^\s<>:/]{1,100}:)?CPIX[\s/>]/.test(text.slice(0, HEAD).replace(BEFORE_ROOT, ''));
}

/** The root element starts within this number of bytes. */
const HEAD = 8 * 1024;
/** Parts that may look like elements: comments, instructions, a DOCTYPE. */
const BEFORE_ROOT = /<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!DOCTYPE[^[>]*(?:\[[\s\S]*?\]\s*)?>/g;

export function looksLikeCpixBytes(bytes: Buffer): boolean {
  const head = bytes.subarray(0, HEAD);
  const text = decodeXml(head);
  return looksLikeCpix(text.ok ? text.value : head.toString('utf8'));
}

/** Frequent mistakes: the path of a document, its base64, or another file. */
const NOT_XML = 'is not XML; it must be the text of the document, which begins with <';

/**
 * Reads a CPIX document: its bytes in UTF-8 or UTF-16, or its text. No part may name a key that is not in its
 * list. Elements that are not used here are ignored, and signatures are not checked. The fault goes on after
 * the name of the document, and quotes no value but key ids. SPEKE (`isSpeke`) ignores `dependsOnKey`.
 */
export function readCpix(
  input: Buffer | string,
  { isSpeke = false }: { readonly isSpeke?: boolean } = {},
): Checked<CpixDocument> {
  return checked(() => readRoot(readXml(input), isSpeke));
}

function readXml(input: Buffer | string): XmlElement {
  const text = typeof input === 'string' ? input : required(decodeXml(input));
  if (text.length > MAX_CPIX_BYTES) refuse(CPIX_TOO_LARGE);
  if (/^\ufeff?\s*[^\ufeff\s<]/.test(text)) refuse(NOT_XML);
  return required(parseXml(text, { characters: MAX_CPIX_BYTES, namespaces: true }));
}

function required<Value>(read: Checked<Value>): Value {
  return read.ok ? read.value : refuse(read.problem.description);
}

/** The text of an XML document, which says its encoding by its mark, its first zero byte or its declaration. */
export function decodeXml(bytes: Buffer): Checked<string> {
  if (bytes.length > MAX_CPIX_BYTES) return invalid(CPIX_TOO_LARGE);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return invalid('is compressed by gzip; unpack it first');
  const order = utf16Order(bytes);
  if (order !== undefined && bytes.length % 2 === 1)
    return invalid('ends inside a character of UTF-16; it was cut short');
  if (order === 'little') return { ok: true, value: bytes.toString('utf16le') };
  if (order === 'big') return { ok: true, value: Buffer.from(bytes).swap16().toString('utf16le') };
  if (!isUtf8(bytes)) return invalid('is neither UTF-8 nor UTF-16; save it as UTF-8');
  const text = bytes.toString('utf8');
  const named =
    /^\ufeff?<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.-]{1,40})["']/i.exec(text)?.[1] ?? 'utf-8';
  // Programs that write strings of UTF-16 name it, whatever the file then has.
  if (/^utf-?(?:8|16)$/i.test(named) || isAscii(bytes)) return { ok: true, value: text };
  return invalid('names an encoding other than UTF-8 and UTF-16; save it as UTF-8');
}

/** The first character is a byte order mark, `<` or white space: in UTF-16 one of its bytes is zero. */
function utf16Order([first, second]: Buffer): 'little' | 'big' | undefined {
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return 'little';
  return (first === 0xfe && second === 0xff) || (first === 0 && second !== 0) ? 'big' : undefined;
}

const LISTS = {
  DeliveryDataList: 'DeliveryData',
  ContentKeyList: 'ContentKey',
  DRMSystemList: 'DRMSystem',
  ContentKeyPeriodList: 'ContentKeyPeriod',
  ContentKeyUsageRuleList: 'ContentKeyUsageRule',
} as const;

function readRoot(root: XmlElement, isSpeke: boolean): CpixDocument {
  if (root.name === 'MPD') refuse('is a DASH manifest, which has no content keys; send a CPIX document');
  if (root.name !== 'CPIX') refuse('is not a CPIX document: its root element is another');
  if (root.namespace !== CPIX_NAMESPACE) refuse(`must have the namespace ${CPIX_NAMESPACE}`);
  for (const list of Object.keys(LISTS)) if (ofCpix(root, list).length > 1) refuse(`has ${list} twice`);
  const members = (list: keyof typeof LISTS) => ofCpix(ofCpix(root, list)[0], LISTS[list]);
  const keys = members('ContentKeyList').map((key) => readKey(key, isSpeke));
  const seen = new Set<string>();
  const requireNew = (what: string) => {
    if (seen.has(what)) refuse(`has ${what} twice`);
    seen.add(what);
  };
  for (const { keyId } of keys) requireNew(`the key id ${formatUuid(keyId)}`);
  const requireKnown = (keyId: Buffer, what: string) => {
    if (!seen.has(`the key id ${formatUuid(keyId)}`))
      refuse(`has a ${what} of the key id ${formatUuid(keyId)}, which is not in its list of keys`);
  };
  const systems = members('DRMSystemList').map(readSystem);
  for (const { systemId, keyId } of systems) {
    requireKnown(keyId, 'DRMSystem');
    requireNew(`the DRM system ${systemId} for the key id ${formatUuid(keyId)}`);
  }
  const rules = members('ContentKeyUsageRuleList').map(readRule);
  for (const { keyId } of rules) requireKnown(keyId, 'ContentKeyUsageRule');
  return {
    id: root.attributes.id,
    contentId: root.attributes.contentId,
    version: root.attributes.version,
    isSigned: all(root, 'Signature', [SIGNATURE_NAMESPACE]).length > 0,
    deliveries: members('DeliveryDataList').map(readDelivery),
    keys,
    systems,
    periods: members('ContentKeyPeriodList').map(({ attributes }) => pick(attributes, PERIOD_ATTRIBUTES)),
    rules,
  };
}

/** Documents disagree about which elements inside a key belong to PSKC and which to CPIX. */
const OF_KEYS = [CPIX_NAMESPACE, PSKC_NAMESPACE];

function named(parent: XmlElement | undefined, name: string): XmlElement[] {
  return (parent?.children ?? []).filter((child) => child.name === name);
}

function all(parent: XmlElement | undefined, name: string, namespaces = [CPIX_NAMESPACE]): XmlElement[] {
  return named(parent, name).filter(({ namespace }) => namespaces.some((known) => known === namespace));
}

/** All children of a name; one in another namespace would be passed over, and with it keys. */
function ofCpix(parent: XmlElement | undefined, name: string, namespaces = [CPIX_NAMESPACE]): XmlElement[] {
  const found = all(parent, name, namespaces);
  if (found.length < named(parent, name).length)
    refuse(`has a ${name} in another namespace than ${namespaces.join(' or ')}`);
  return found;
}

function only(parent: XmlElement | undefined, name: string, namespaces?: string[]): XmlElement | undefined {
  const found = namespaces ? all(parent, name, namespaces) : ofCpix(parent, name);
  return theOne(found, parent);
}

function ofKey(parent: XmlElement | undefined, name: string): XmlElement | undefined {
  return theOne(ofCpix(parent, name, OF_KEYS), parent);
}

function theOne([found, ...more]: readonly XmlElement[], parent: XmlElement | undefined) {
  if (more.length > 0) refuse(`has ${found?.name} twice in one ${parent?.name}`);
  return found;
}

const KEY_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function readKeyId(text: string | undefined, what: string): Buffer {
  const trimmed = text?.trim() ?? '';
  if (KEY_ID.test(trimmed)) return Buffer.from(trimmed.replaceAll('-', ''), 'hex');
  if (text === undefined) return refuse(`has a ${what} without kid`);
  const braces = /^\{.*\}$/s.test(trimmed) ? ', without braces' : '';
  return refuse(`has a ${what} whose kid is not a UUID (8-4-4-4-12 hex digits${braces})`);
}

const SCHEMES = Object.keys(PROTECTION_SCHEMES) as ProtectionScheme[];
const SCHEME_NAMES: ReadonlyMap<string, ProtectionScheme> = new Map([
  ...SCHEMES.map((name) => [name, name] as const),
  ...Object.entries(HLS_METHODS).map(([name, method]) => [method, name as ProtectionScheme] as const),
]);

function readKey(element: XmlElement, isSpeke: boolean): CpixKey {
  const { kid, explicitIV, commonEncryptionScheme, dependsOnKey } = element.attributes;
  const keyId = readKeyId(kid, 'ContentKey');
  const of = `the key ${formatUuid(keyId)}`;
  if (dependsOnKey !== undefined && !isSpeke)
    refuse(`says that ${of} depends on another (dependsOnKey); key hierarchies are not supported`);
  const named = commonEncryptionScheme?.trim() || undefined;
  const scheme = SCHEME_NAMES.get(named ?? '');
  if (named !== undefined && !scheme)
    refuse(`names a scheme for ${of} that is not one of ${[...SCHEME_NAMES.keys()].join(', ')}`);
  const iv = decodeBase64Block(explicitIV?.replaceAll(/\s/g, '') ?? '');
  const explicitIv = iv.ok ? iv.value : undefined;
  const ivFault = iv.ok || !explicitIV?.trim() ? undefined : iv.problem.description;
  const key = { keyId, value: readValue(element, of), explicitIv, ...(ivFault && { ivFault }), scheme };
  return named === scheme ? key : { ...key, method: named };
}

function readValue(key: XmlElement, of: string): CpixValue | undefined {
  const secret = ofKey(ofKey(key, 'Data'), 'Secret');
  const [plain, encrypted] = [ofKey(secret, 'PlainValue'), ofKey(secret, 'EncryptedValue')];
  if (plain && encrypted) refuse(`has a plain value and an encrypted one of ${of}`);
  const cipher = encrypted && readCipher(encrypted, `encrypted value of ${of}`);
  if (cipher)
    return { kind: 'encrypted', mac: bytesIn(ofKey(secret, 'ValueMAC'), `ValueMAC of ${of}`), ...cipher };
  const bytes = bytesIn(plain, `value of ${of}`, decodeBase64Block);
  if (!bytes) return undefined;
  if (isZero(bytes)) refuse(`has a value of ${of} that is all zeros`);
  return { kind: 'plain', bytes };
}

/** `EncryptedData` of XML Encryption; undefined when it holds no value. */
function readCipher(element: XmlElement | undefined, what: string): CpixCipher | undefined {
  const namespaces = [ENCRYPTION_NAMESPACE];
  const value = only(only(element, 'CipherData', namespaces), 'CipherValue', namespaces);
  const cipher = bytesIn(value, what);
  if (!cipher) return undefined;
  const method = only(element, 'EncryptionMethod', namespaces);
  const digest = only(method, 'DigestMethod', [SIGNATURE_NAMESPACE])?.attributes.Algorithm;
  return { algorithm: method?.attributes.Algorithm ?? '', ...(digest !== undefined && { digest }), cipher };
}

function readDelivery(element: XmlElement): CpixDelivery {
  const x509 = only(only(element, 'DeliveryKey'), 'X509Data', [SIGNATURE_NAMESPACE]);
  const certificates = all(x509, 'X509Certificate', [SIGNATURE_NAMESPACE]);
  const mac = ofKey(element, 'MACMethod');
  // The key of the MAC is called Key by most, and MACKey by PSKC's schema.
  const macKey = ofKey(mac, 'Key') ?? ofKey(mac, 'MACKey');
  return {
    // The first is the recipient's own, those of its authorities follow.
    certificate: bytesIn(certificates[0], 'X509Certificate'),
    documentKeys: all(element, 'DocumentKey').map((key) => ({
      algorithm: key.attributes.Algorithm ?? '',
      value: readCipher(ofKey(ofKey(ofKey(key, 'Data'), 'Secret'), 'EncryptedValue'), 'DocumentKey'),
      keyIds: (key.attributes.encryptsKey?.match(/[^\s,]+/g) ?? []).map((kid) =>
        readKeyId(kid, 'DocumentKey'),
      ),
    })),
    mac: mac && {
      algorithm: mac.attributes.Algorithm ?? '',
      key: readCipher(macKey, 'MAC key') ?? readCipher(ofKey(macKey, 'EncryptedValue'), 'MAC key'),
    },
  };
}

function readSystem(element: XmlElement): CpixSystem {
  const keyId = readKeyId(element.attributes.kid, 'DRMSystem');
  const systemId = (element.attributes.systemId ?? '').trim().toLowerCase();
  if (!KEY_ID.test(systemId))
    refuse('has a DRMSystem whose systemId is missing or not a UUID (8-4-4-4-12 hex digits)');
  if (!cpixSystemOf(systemId)) return { systemId, keyId, asked: [] };
  const of = `the DRM system ${systemId}`;
  const asked: CpixSignal[] = [];
  const bytes = (signal: CpixSignal, found: XmlElement | undefined) => {
    const read = bytesIn(found, `${found?.name} of ${of}`);
    if (found && !read) asked.push(signal);
    return read;
  };
  const text = (signal: CpixSignal, found: XmlElement | undefined) =>
    plainText(found) ?? textOf(bytes(signal, found), `${found?.name} of ${of}`);
  const ofPlaylist = (kind: 'media' | 'multivariant') => {
    const found = ofCpix(element, 'HLSSignalingData').filter((data) => playlistOf(data, of) === kind);
    if (found.length > 1) refuse(`has HLSSignalingData twice for one playlist in ${of}`);
    return found[0];
  };
  const headers = [
    only(element, 'SmoothStreamingProtectionHeaderData'),
    only(element, 'ProtectionHeader', [SPEKE_NAMESPACE]),
  ].flatMap((header) => header ?? []);
  const header = headers.find((each) => each.text.trim() !== '') ?? headers[0];
  const pssh = bytes('pssh', only(element, 'PSSH'));
  const protection = only(element, 'ContentProtectionData');
  const data = bytes('contentProtectionData', protection);
  // Some key servers have a PlayReady object or a box there (DoveRunner, "CPIX API Guide"), which is no XML.
  const isBox = data !== undefined && data[0] === 0 && looksLikePsshBox(data);
  const isObject = data !== undefined && looksLikePlayReadyObject(data);
  return {
    systemId,
    keyId,
    pssh: pssh ?? (isBox ? data : undefined),
    contentProtectionData: isBox || isObject ? undefined : textOf(data, `ContentProtectionData of ${of}`),
    uriExtXKey: text('uriExtXKey', only(element, 'URIExtXKey')),
    hlsMedia: text('hlsMedia', ofPlaylist('media')),
    hlsMultivariant: text('hlsMultivariant', ofPlaylist('multivariant')),
    protectionHeader: bytes('protectionHeader', header) ?? (isObject ? data : undefined),
    asked,
  };
}

/** Versions call the two kinds of playlist by other names. Without a name it is the one with the segments. */
const PLAYLISTS: ReadonlyMap<string, 'media' | 'multivariant'> = new Map([
  ['media', 'media'],
  ['variant', 'media'],
  ['master', 'multivariant'],
  ['multivariant', 'multivariant'],
]);

function playlistOf({ attributes: { playlist = 'media' } }: XmlElement, of: string) {
  const kind = PLAYLISTS.get(playlist.trim().toLowerCase());
  const other = `has HLSSignalingData in ${of} for a playlist other than media, master and multiVariant`;
  return kind ?? refuse(other);
}

function readRule(element: XmlElement): CpixRule {
  const filters = (name: string) => all(element, name);
  const unknown = element.children.filter(
    ({ name, namespace }) => namespace !== CPIX_NAMESPACE || !FILTERS.includes(name),
  );
  return {
    keyId: readKeyId(element.attributes.kid, 'ContentKeyUsageRule'),
    intendedTrackType: element.attributes.intendedTrackType?.trim() || undefined,
    periods: filters('KeyPeriodFilter').map(({ attributes: { periodId } }) => periodId ?? ''),
    labels: filters('LabelFilter').map(({ attributes: { label } }) => label ?? ''),
    video: filters('VideoFilter').map(({ attributes }) => pick(attributes, LIMIT_ATTRIBUTES)),
    audio: filters('AudioFilter').map(({ attributes }) => pick(attributes, LIMIT_ATTRIBUTES)),
    isOfBitrates: filters('BitrateFilter').length > 0,
    unknownFilters: unknown.map(({ name }) => name),
  };
}

function pick<Name extends string>(
  attributes: XmlElement['attributes'],
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const there = names.flatMap((name) => (attributes[name] === undefined ? [] : [[name, attributes[name]]]));
  return Object.fromEntries(there);
}

const FILTERS = ['KeyPeriodFilter', 'LabelFilter', 'VideoFilter', 'AudioFilter', 'BitrateFilter'];

function bytesIn(element: XmlElement | undefined, what: string, decode = decodeBase64): Buffer | undefined {
  if (element && element.children.length > 0)
    refuse(`has a ${what} that holds elements where base64 belongs`);
  const base64 = element?.text.replaceAll(/\s/g, '') ?? '';
  if (base64 === '') return undefined;
  const decoded = decode(base64);
  return decoded.ok
    ? decoded.value
    : refuse(`has ${/^e/.test(what) ? 'an' : 'a'} ${what} that ${decoded.problem.description}`);
}

/** A text that should be base64 and is quoted from the document as it is: no base64 has these characters. */
function plainText(element: XmlElement | undefined): string | undefined {
  const text = element?.text.trim() ?? '';
  return /^(?:skd:\/\/|https?:\/\/|data:|#EXT)/i.test(text) ? text : undefined;
}

function textOf(bytes: Buffer | undefined, what: string): string | undefined {
  if (!bytes) return undefined;
  if (!isUtf8(bytes)) refuse(`has a ${what} that is not UTF-8 text`);
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  return text.trim() === '' ? undefined : text;
}
