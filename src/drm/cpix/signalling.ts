import { decodeBase64, decodeBase64Block, swapKeyIdOrder, utf16Text } from '../bytes';
import { attributesOf, keyLinesOf } from '../check/playlist';
import { HEADER_RECORD, isUtf16Xml } from '../check/playready';
import { inlineBase64 } from '../check/values';
import { checkLicenseUrl, FAIRPLAY_KEY_FORMAT } from '../key-file';
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
import { boxOfSystem, buildPsshBox, looksLikePsshBox, parsePsshBox } from '../pssh';
import { readWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../widevine';
import { parseXml, type XmlElement } from '../xml';
import {
  CPIX_SYSTEM_IDS,
  type CpixSignal,
  type CpixSystem,
  type CpixSystemName,
  HLS_METHODS,
} from './document';
import { unusable, usable } from './fault';

/** A key's Widevine data, base64 without box: of PSSH, else ContentProtectionData, else the playlist lines. @throws faults */
export function widevineData(system: CpixSystem): string | undefined {
  const read = (what: string, base64: string) =>
    usable(readWidevinePsshData(base64), `has a ${what} for Widevine that`).payload;
  if (system.pssh) return read('PSSH', system.pssh.toString('base64'));
  if (system.contentProtectionData !== undefined) {
    const elements = fragmentElements(system.contentProtectionData, WIDEVINE_SYSTEM_ID, 'Widevine');
    const box = textOf(elements, 'pssh');
    if (box !== undefined) return read('ContentProtectionData', box);
  }
  const line = inlineData(system, [`urn:uuid:${WIDEVINE_SYSTEM_ID}`]);
  return line === undefined ? undefined : read('HLSSignalingData', line);
}

const WITHOUT_LINE: readonly string[] = ['LUI_URL', 'DS_ID', 'CUSTOMATTRIBUTES', 'DECRYPTORSETUP'];

/**
 * The PlayReady license address for a key (key id big endian): of PSSH, else of ContentProtectionData, else
 * of the protection header, else of the playlist lines. Each header that is read must be of this key. With
 * `isReplaced` another address is written, and this one may be anything. @throws faults
 */
export function playReadySignal(system: CpixSystem, keyId: Buffer, contentKey: Buffer, isReplaced = false) {
  const headers = [];
  let licenseUrl: string | undefined;
  for (const { what, object, address } of playReadySources(system)) {
    const header = object && readHeader(object, what);
    if (header) headers.push({ header, object, ...holdKeys(headerKeys(header), what, keyId, contentKey) });
    // For a header that has line breaks.
    licenseUrl = (header ? headerAddress(header) : address)?.trim() || undefined;
    if (licenseUrl === undefined) continue;
    // A given address may replace one that can't be used.
    if (!isReplaced)
      usable(checkLicenseUrl('playready')(licenseUrl), `has a license address in the ${what} that`);
    break;
  }
  const own = headers.find(({ isOfOther }) => !isOfOther)?.object;
  const elements = headers.flatMap(({ header }) => child(header, 'DATA')?.children ?? []);
  const lost = elements.map(({ name }) => name).filter((name) => WITHOUT_LINE.includes(name));
  return {
    licenseUrl,
    /** Whether a header has a checksum, and so proves key and key id. */
    isProved: headers.some(({ isProved }) => isProved),
    isCbc: headers.some(({ isCbc }) => isCbc),
    isOfOther: headers.some(({ isOfOther }) => isOfOther),
    /** The first PlayReady object that is for the key. */
    object: own && isUtf16Xml(own) ? buildPlayReadyObject([{ type: HEADER_RECORD, value: own }]) : own,
    /** The elements of the headers that a key file has no line for. */
    lost: [...new Set(lost)],
  };
}

interface PlayReadySource {
  readonly what: string;
  readonly object?: Buffer;
  readonly address?: string;
}

function* playReadySources(system: CpixSystem): Generator<PlayReadySource> {
  const { pssh, contentProtectionData, protectionHeader } = system;
  if (pssh) yield objectIn('PSSH for PlayReady', pssh);
  if (contentProtectionData !== undefined) {
    const elements = fragmentElements(contentProtectionData, PLAYREADY_SYSTEM_ID, 'PlayReady');
    const what = 'ContentProtectionData for PlayReady';
    const text = textOf(elements, 'pro') ?? textOf(elements, 'pssh');
    if (text !== undefined) yield objectInBase64(what, text);
    const address = addressOf(elements);
    if (address !== undefined) yield { what, address };
  }
  if (protectionHeader) yield objectIn('protection header', protectionHeader);
  const line = inlineData(system, ['com.microsoft.playready', `urn:uuid:${PLAYREADY_SYSTEM_ID}`]);
  if (line !== undefined) yield objectInBase64('HLSSignalingData for PlayReady', line);
}

function objectInBase64(what: string, base64: string): PlayReadySource {
  return objectIn(what, usable(decodeBase64(base64), `has a ${what} that`));
}

function objectIn(what: string, bytes: Buffer): PlayReadySource {
  if (!looksLikePsshBox(bytes)) return { what, object: bytes };
  const box = parsePsshBox(boxOfSystem(bytes, PLAYREADY_SYSTEM_ID));
  const { systemId, data } = usable(box, `has a ${what} that`);
  if (systemId === PLAYREADY_SYSTEM_ID) return { what, object: data };
  return unusable(`has a ${what} that is a pssh box of system ${systemId}`);
}

function readHeader(object: Buffer, what: string): XmlElement {
  const records = () => usable(parsePlayReadyObject(object), `has a ${what} that`);
  const header = isUtf16Xml(object) ? object : records().find(({ type }) => type === HEADER_RECORD)?.value;
  if (!header) return unusable(`has a ${what} without a header record`);
  const root = usable(parseXml(utf16Text(header)), `has a PlayReady header in the ${what} that`);
  return root.name === 'WRMHEADER' ? root : unusable(`has a ${what} whose header is not a WRMHEADER`);
}

/** Compares a header's keys with a key. Another key id is no fault: some servers answer each request with one header. */
function holdKeys(keys: readonly HeaderKey[], what: string, keyId: Buffer, contentKey: Buffer) {
  const of = `a PlayReady header in the ${what}`;
  const read = keys.map(({ value, checksum, algorithm }) => {
    const guid = usable(decodeBase64Block(value.trim()), `has ${of} whose KID`);
    const isOfCtr = algorithm === undefined || algorithm === 'AESCTR';
    return { keyId: swapKeyIdOrder(guid), checksum: isOfCtr ? checksum || undefined : undefined };
  });
  const own = read.filter((key) => key.keyId.equals(keyId));
  const swapped = swapKeyIdOrder(keyId);
  if (own.length === 0 && read.some((key) => key.keyId.equals(swapped)))
    unusable(`has ${of} with its KID in big endian; it must be in PlayReady's byte order`);
  const held = own.length > 0 ? own : read;
  const proofs = held.flatMap(({ checksum }) => checksum ?? []);
  for (const checksum of proofs) usable(decodePlayReadyChecksum(checksum), `has ${of} whose checksum`);
  const isOfKey = held.some(
    (key) =>
      key.checksum !== undefined && checkPlayReadyChecksum(key.checksum, key.keyId, contentKey) === 'match',
  );
  if (proofs.length > 0 && proofs.length === held.length && !isOfKey)
    unusable(`has a PlayReady checksum of another key in the ${what}`);
  const isOfOther = own.length === 0 && keys.length > 0;
  const isCbc = keys.some(({ algorithm }) => algorithm === 'AESCBC');
  return { isProved: isOfKey && !isOfOther, isOfOther, isCbc };
}

/** @throws faults */
export function fairPlayAddress(system: CpixSystem, explicitIv: Buffer | undefined): string | undefined {
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
        unusable('has different IVs for FairPlay in HLSSignalingData and explicitIV');
    }
  }
  const [address, ...others] = found;
  if (address === undefined) return undefined;
  if (others.length > 0) unusable('has different addresses for FairPlay in URIExtXKey and HLSSignalingData');
  return usable(checkLicenseUrl('fairplay')(address), 'has an address for FairPlay that');
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
    const data = inlineBase64(attributes.get('URI') ?? '');
    if (data !== undefined) return data;
  }
  return undefined;
}

/** All elements but those of other systems. It is a piece of a manifest: several roots, and prefixes bound elsewhere. */
function fragmentElements(fragment: string, systemId: string, called: string): XmlElement[] {
  const parsed = parseXml(`<MPD>${fragment.replace(/^\s*<\?xml\s[^>]*\?>/, '')}</MPD>`);
  const { children } = usable(parsed, `has a ContentProtectionData for ${called} that`);
  const withOwn = (element: XmlElement): XmlElement[] => {
    const scheme = element.attributes.schemeIdUri?.trim().toLowerCase();
    const isOfOther = scheme?.startsWith('urn:uuid:') && scheme !== `urn:uuid:${systemId}`;
    return isOfOther ? [] : [element, ...element.children.flatMap(withOwn)];
  };
  return children.flatMap(withOwn);
}

function textOf(elements: readonly XmlElement[], name: string): string | undefined {
  const own = elements.filter((element) => localName(element) === name);
  return own.map(({ text }) => text.replaceAll(/\s/g, '')).find((text) => text !== '');
}

function addressOf(elements: readonly XmlElement[]): string | undefined {
  const own = elements.filter((element) => localName(element) === 'laurl');
  const addresses = own.map(({ attributes, text }) => attributes.licenseUrl ?? text);
  return addresses.find((address) => address.trim() !== '');
}

function localName({ name }: XmlElement): string {
  const local = name.slice(name.indexOf(':') + 1);
  return /^laurl$/i.test(local) ? 'laurl' : local;
}

export type Signals = Readonly<Partial<Pick<CpixSystem, CpixSignal>>>;

type Scheme = 'cenc' | 'cbcs';

/** `data` is that of the box. XML for DASH has one root element without a prefix: Unified's packager takes no other. */
export function widevineSignals(keyId: Buffer, data: Buffer, scheme: Scheme): Signals {
  const pssh = buildPsshBox(WIDEVINE_SYSTEM_ID, data);
  const box = pssh.toString('base64');
  return {
    pssh,
    contentProtectionData: `<pssh xmlns="urn:mpeg:cenc:2013">${box}</pssh>`,
    ...playlistLines(scheme, [
      `URI="data:text/plain;base64,${box}"`,
      `KEYID=0x${keyId.toString('hex').toUpperCase()}`,
      `KEYFORMAT="urn:uuid:${WIDEVINE_SYSTEM_ID}"`,
    ]),
  };
}

export function playReadySignals(object: Buffer, scheme: Scheme): Signals {
  const pssh = buildPsshBox(PLAYREADY_SYSTEM_ID, object);
  const pro = object.toString('base64');
  return {
    pssh,
    contentProtectionData: `<pro xmlns="urn:microsoft:playready">${pro}</pro>`,
    protectionHeader: object,
    ...playlistLines(scheme, [
      `URI="data:text/plain;charset=UTF-16;base64,${pro}"`,
      'KEYFORMAT="com.microsoft.playready"',
    ]),
  };
}

export function fairPlaySignals(licenseUrl: string): Signals {
  return {
    uriExtXKey: licenseUrl,
    ...playlistLines('cbcs', [`URI="${licenseUrl}"`, `KEYFORMAT="${FAIRPLAY_KEY_FORMAT}"`]),
  };
}

function playlistLines(scheme: Scheme, attributes: readonly string[]): Signals {
  const listed = [`METHOD=${HLS_METHODS[scheme]}`, ...attributes, 'KEYFORMATVERSIONS="1"'].join(',');
  return { hlsMedia: `#EXT-X-KEY:${listed}`, hlsMultivariant: `#EXT-X-SESSION-KEY:${listed}` };
}

export function cpixSystem(
  system: CpixSystemName,
  keyId: Buffer,
  signals: Signals,
  asked: readonly CpixSignal[] = Object.keys(signals) as CpixSignal[],
): CpixSystem {
  const given: Signals = Object.fromEntries(asked.map((name) => [name, signals[name]]));
  return { systemId: CPIX_SYSTEM_IDS[system], keyId, ...given, asked: [] };
}
