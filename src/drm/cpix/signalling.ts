import { type Checked, decodeBase64, decodeBase64Block, isAmong, refused, swapKeyIdOrder } from '../bytes';
import { attributesOf, keyLinesOf } from '../check/playlist';
import { isUtf16Xml } from '../check/playready';
import { FAIRPLAY_KEY_FORMAT } from '../key-file';
import { checkLicenseUrl } from '../license-url';
import {
  buildPlayReadyObject,
  checkPlayReadyChecksum,
  child,
  decodePlayReadyChecksum,
  type HeaderKey,
  headerAddress,
  headerKeys,
  PLAYREADY_SYSTEM_ID,
  parsePlayReadyObject,
} from '../playready';
import { boxOfSystem, looksLikePsshBox, parsePsshBox } from '../pssh';
import { readWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../widevine';
import { parseXml, type XmlElement } from '../xml';
import type { CpixSystem } from './document';

const unusable = (sentence: string) => refused('cpix_not_usable', sentence);

/** A key's Widevine data, base64 without box: of PSSH, else ContentProtectionData, else the playlist lines. */
export function widevineData(system: CpixSystem): Checked<string | undefined> {
  const read = (what: string, base64: string): Checked<string> => {
    const data = readWidevinePsshData(base64);
    return data.ok
      ? { ok: true, value: data.value.payload }
      : unusable(`has a ${what} for Widevine that ${data.problem.description}`);
  };
  if (system.pssh) return read('PSSH', system.pssh.toString('base64'));
  if (system.contentProtectionData !== undefined) {
    const elements = fragmentElements(system.contentProtectionData, WIDEVINE_SYSTEM_ID, 'Widevine');
    if (!elements.ok) return elements;
    const box = textOf(elements.value, 'pssh');
    if (box !== undefined) return read('ContentProtectionData', box);
  }
  const line = inlineData(system, [`urn:uuid:${WIDEVINE_SYSTEM_ID}`]);
  return line === undefined ? { ok: true, value: undefined } : read('HLSSignalingData', line);
}

export interface PlayReadySignal {
  readonly licenseUrl: string | undefined;
  /** Whether the header has a checksum, and so proves key and key id. */
  readonly isProved: boolean;
  readonly isCbc: boolean;
  readonly isOfOther: boolean;
  /** The first PlayReady object that is for the key. */
  readonly object?: Buffer;
  /** The elements of the header that a key file has no line for. */
  readonly lost?: readonly string[];
}

const WITHOUT_LINE: readonly string[] = ['LUI_URL', 'DS_ID', 'CUSTOMATTRIBUTES', 'DECRYPTORSETUP'];

/**
 * The PlayReady license address that a document has for a key: of PSSH, else of ContentProtectionData, else of the
 * protection header, else of the playlist lines. Each header that is read must be of this key. Key and key id have 16
 * bytes, the key id is big endian.
 * @param isReplaced whether another address is written: this one may be anything then.
 */
export function playReadySignal(
  system: CpixSystem,
  keyId: Buffer,
  contentKey: Buffer,
  isReplaced = false,
): Checked<PlayReadySignal> {
  let [isProved, isCbc, isOfOther] = [false, false, false];
  const lost = new Set<string>();
  let own: Buffer | undefined;
  const signal = (licenseUrl: string | undefined) => ({
    ok: true as const,
    value: {
      licenseUrl,
      isProved,
      isCbc,
      isOfOther,
      ...(own && { object: own }),
      ...(lost.size > 0 && { lost: [...lost] }),
    },
  });
  for (const source of playReadySources(system)) {
    if (!source.ok) return source;
    const { what, object, address } = source.value;
    let licenseUrl = address;
    if (object) {
      const header = readHeader(object, what);
      if (!header.ok) return header;
      const keys = headerKeys(header.value);
      const held = holdKeys(keys, what, keyId, contentKey);
      if (!held.ok) return held;
      isProved ||= held.value.isProved;
      isOfOther ||= held.value.isOfOther;
      if (!held.value.isOfOther)
        own ??= isUtf16Xml(object) ? buildPlayReadyObject([{ type: HEADER_RECORD, value: object }]) : object;
      isCbc ||= keys.some(({ algorithm }) => algorithm === 'AESCBC');
      licenseUrl = headerAddress(header.value);
      for (const { name } of child(header.value, 'DATA')?.children ?? [])
        if (WITHOUT_LINE.includes(name)) lost.add(name);
    }
    // For a header that has line breaks.
    licenseUrl = licenseUrl?.trim() || undefined;
    if (licenseUrl === undefined) continue;
    // A given address may replace one that can't be used.
    if (isReplaced) return signal(licenseUrl);
    const checked = checkLicenseUrl('playready')(licenseUrl);
    if (!checked.ok)
      return unusable(`has a license address in the ${what} that ${checked.problem.description}`);
    return signal(licenseUrl);
  }
  return signal(undefined);
}

interface PlayReadySource {
  readonly what: string;
  readonly object?: Buffer;
  readonly address?: string;
}

function* playReadySources(system: CpixSystem): Generator<Checked<PlayReadySource>> {
  const { pssh, contentProtectionData, protectionHeader } = system;
  if (pssh) yield objectIn('PSSH for PlayReady', pssh);
  if (contentProtectionData !== undefined) {
    const elements = fragmentElements(contentProtectionData, PLAYREADY_SYSTEM_ID, 'PlayReady');
    if (!elements.ok) return yield elements;
    const what = 'ContentProtectionData for PlayReady';
    const text = textOf(elements.value, 'pro') ?? textOf(elements.value, 'pssh');
    if (text !== undefined) yield objectInBase64(what, text);
    const address = addressOf(elements.value);
    if (address !== undefined) yield { ok: true, value: { what, address } };
  }
  if (protectionHeader) yield objectIn('protection header', protectionHeader);
  const line = inlineData(system, ['com.microsoft.playready', `urn:uuid:${PLAYREADY_SYSTEM_ID}`]);
  if (line !== undefined) yield objectInBase64('HLSSignalingData for PlayReady', line);
}

function objectInBase64(what: string, base64: string): Checked<PlayReadySource> {
  const bytes = decodeBase64(base64);
  return bytes.ok ? objectIn(what, bytes.value) : unusable(`has a ${what} that ${bytes.problem.description}`);
}

function objectIn(what: string, bytes: Buffer): Checked<PlayReadySource> {
  if (!looksLikePsshBox(bytes)) return { ok: true, value: { what, object: bytes } };
  const box = parsePsshBox(boxOfSystem(bytes, PLAYREADY_SYSTEM_ID));
  if (!box.ok) return unusable(`has a ${what} that ${box.problem.description}`);
  const { systemId, data } = box.value;
  return systemId === PLAYREADY_SYSTEM_ID
    ? { ok: true, value: { what, object: data } }
    : unusable(`has a ${what} that is a pssh box of system ${systemId}`);
}

const HEADER_RECORD = 1;

function readHeader(object: Buffer, what: string): Checked<XmlElement> {
  let header: Buffer | undefined = isUtf16Xml(object) ? object : undefined;
  if (!header) {
    const records = parsePlayReadyObject(object);
    if (!records.ok) return unusable(`has a ${what} that ${records.problem.description}`);
    header = records.value.find(({ type }) => type === HEADER_RECORD)?.value;
    if (!header) return unusable(`has a ${what} without a header record`);
  }
  const root = parseXml(header.toString('utf16le'));
  if (!root.ok) return unusable(`has a PlayReady header in the ${what} that ${root.problem.description}`);
  return root.value.name === 'WRMHEADER' ? root : unusable(`has a ${what} whose header is not a WRMHEADER`);
}

interface HeldKeys {
  readonly isProved: boolean;
  readonly isOfOther: boolean;
}

/** Compares a header's keys with a key. Another key id is no fault: some servers answer each request with one header. */
function holdKeys(
  keys: readonly HeaderKey[],
  what: string,
  keyId: Buffer,
  contentKey: Buffer,
): Checked<HeldKeys> {
  const of = `a PlayReady header in the ${what}`;
  const read: { keyId: Buffer; checksum: string | undefined }[] = [];
  for (const { value, checksum, algorithm } of keys) {
    const guid = decodeBase64Block(value.trim());
    if (!guid.ok) return unusable(`has ${of} whose KID ${guid.problem.description}`);
    const isOfCtr = algorithm === undefined || algorithm === 'AESCTR';
    read.push({ keyId: swapKeyIdOrder(guid.value), checksum: isOfCtr ? checksum || undefined : undefined });
  }
  const own = read.filter((key) => key.keyId.equals(keyId));
  if (
    own.length === 0 &&
    isAmong(
      swapKeyIdOrder(keyId),
      read.map((key) => key.keyId),
    )
  )
    return unusable(`has ${of} with its KID in big endian; it must be in PlayReady's byte order`);
  const held = own.length > 0 ? own : read;
  const proofs = held.flatMap(({ checksum }) => checksum ?? []);
  for (const checksum of proofs) {
    const decoded = decodePlayReadyChecksum(checksum);
    if (!decoded.ok) return unusable(`has ${of} whose checksum ${decoded.problem.description}`);
  }
  const isOfKey = held.some(
    (key) =>
      key.checksum !== undefined && checkPlayReadyChecksum(key.checksum, key.keyId, contentKey) === 'match',
  );
  if (proofs.length > 0 && proofs.length === held.length && !isOfKey)
    return unusable(`has a PlayReady checksum of another key in the ${what}`);
  const isOfOther = own.length === 0 && keys.length > 0;
  return { ok: true, value: { isProved: isOfKey && !isOfOther, isOfOther } };
}

export function fairPlayAddress(
  system: CpixSystem,
  explicitIv: Buffer | undefined,
): Checked<string | undefined> {
  const found = new Set<string>();
  if (system.uriExtXKey !== undefined) found.add(system.uriExtXKey);
  for (const text of [system.hlsMedia, system.hlsMultivariant]) {
    for (const line of keyLinesOf(text ?? '')) {
      const attributes = attributesOf(line);
      const address = attributes.get('URI');
      if (!address || !isOfFairPlay(attributes)) continue;
      found.add(address);
      const iv = /^0x([0-9a-f]{32})$/i.exec(attributes.get('IV') ?? '')?.[1];
      if (iv !== undefined && explicitIv && !explicitIv.equals(Buffer.from(iv, 'hex')))
        return unusable('has different IVs for FairPlay in HLSSignalingData and explicitIV');
    }
  }
  const [address, ...others] = found;
  if (address === undefined) return { ok: true, value: undefined };
  if (others.length > 0)
    return unusable('has different addresses for FairPlay in URIExtXKey and HLSSignalingData');
  const checked = checkLicenseUrl('fairplay')(address);
  return checked.ok ? checked : unusable(`has an address for FairPlay that ${checked.problem.description}`);
}

function isOfFairPlay(attributes: ReadonlyMap<string, string>): boolean {
  const format = attributes.get('KEYFORMAT');
  return format === undefined ? /^skd:/i.test(attributes.get('URI') ?? '') : format === FAIRPLAY_KEY_FORMAT;
}

function inlineData(
  { hlsMedia, hlsMultivariant }: CpixSystem,
  formats: readonly string[],
): string | undefined {
  for (const line of [hlsMedia, hlsMultivariant].flatMap((text) => keyLinesOf(text ?? ''))) {
    const attributes = attributesOf(line);
    if (!formats.includes(attributes.get('KEYFORMAT')?.toLowerCase() ?? '')) continue;
    const data = /^data:[\w/;=+.-]{0,100}base64,(.*)$/s.exec(attributes.get('URI') ?? '')?.[1];
    if (data !== undefined) return data;
  }
  return undefined;
}

/** All elements but those of other systems. It is a piece of a manifest: several roots, and prefixes bound elsewhere. */
function fragmentElements(fragment: string, systemId: string, called: string): Checked<XmlElement[]> {
  const pieces = fragment.replace(/^\s*<\?xml\s[^>]*\?>/, '');
  const parsed = parseXml(`<MPD>${pieces}</MPD>`);
  if (!parsed.ok)
    return unusable(`has a ContentProtectionData for ${called} that ${parsed.problem.description}`);
  const all: XmlElement[] = [];
  const walk = (element: XmlElement) => {
    const scheme = element.attributes.schemeIdUri?.trim().toLowerCase();
    if (scheme?.startsWith('urn:uuid:') && scheme !== `urn:uuid:${systemId}`) return;
    all.push(element);
    element.children.forEach(walk);
  };
  parsed.value.children.forEach(walk);
  return { ok: true, value: all };
}

function textOf(elements: readonly XmlElement[], name: string): string | undefined {
  const texts = elements
    .filter((element) => localName(element) === name)
    .map(({ text }) => text.replaceAll(/\s/g, ''));
  return texts.find((text) => text !== '');
}

function addressOf(elements: readonly XmlElement[]): string | undefined {
  const addresses = elements
    .filter((element) => localName(element) === 'laurl')
    .map(({ attributes, text }) => attributes.licenseUrl ?? text);
  return addresses.find((address) => address.trim() !== '');
}

function localName({ name }: XmlElement): string {
  const local = name.slice(name.indexOf(':') + 1);
  return /^laurl$/i.test(local) ? 'laurl' : local;
}
