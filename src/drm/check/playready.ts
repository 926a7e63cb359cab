import { isZero, swapKeyIdOrder, utf16Text } from '../bytes';
import { finding } from '../finding';
import { child, type HeaderKey, headerKeys, parsePlayReadyObject } from '../playready';
import { parseXml, type XmlElement } from '../xml';
import { type Cipher, joinSignalling, type KeySignalling, NO_SIGNALLING } from './protection';
import { type Report, wholeOf } from './report';
import { checkAddress, keyIdField, readBlock, readChecksum, suspectByteOrder } from './values';

export const HEADER_RECORD = 1;
const LICENSE_STORE_RECORD = 3;
const MAX_BYTES = 15 * 1024;

/** Whether bytes are a PlayReady object: they start with their own length, or with a record that holds a header. */
export function looksLikePlayReadyObject(bytes: Buffer): boolean {
  if (bytes.length < 10) return false;
  return (
    bytes.readUInt32LE(0) === bytes.length ||
    (bytes.readUInt16LE(6) === HEADER_RECORD && isUtf16Xml(bytes.subarray(10)))
  );
}

/** Whether bytes are a PlayReady header by itself, in UTF-16LE. */
export function isUtf16Xml(bytes: Buffer): boolean {
  const start = bytes.length > 1 && bytes.readUInt16LE(0) === 0xfeff ? 2 : 0;
  return bytes.length > start + 3 && bytes.readUInt16LE(start) === 0x3c && bytes.readUInt8(start + 3) === 0;
}

export function describePlayReadyObject(report: Report, at: string, bytes: Buffer): KeySignalling {
  const object = wholeOf(at, 'The object');
  if (isUtf16Xml(bytes)) {
    const sentence = 'is a PlayReady header without its object; write the whole object';
    report.error('header_for_object', object, sentence);
    return describeHeaderBytes(report, at, bytes);
  }
  const records = parsePlayReadyObject(bytes);
  if (!records.ok) {
    report.problem(object, records.problem);
    return NO_SIGNALLING;
  }
  report.field(`${at}records`, String(records.value.length));
  if (bytes.length > MAX_BYTES)
    report.warning('too_long', object, 'is longer than the 15 KB that PlayReady asks for');
  const headers = records.value.filter(({ type }) => type === HEADER_RECORD);
  if (headers.length !== 1)
    report.error('header_count', object, `has ${headers.length} header records (type 1); it must have one`);
  if (records.value.some(({ type }) => type !== HEADER_RECORD && type !== LICENSE_STORE_RECORD))
    report.warning('unknown_record', object, 'has a record of a type other than 1 (header) and 3 (licenses)');
  return joinSignalling(headers.map(({ value }) => describeHeaderBytes(report, `${at}header.`, value)));
}

export function describeHeaderBytes(report: Report, at: string, bytes: Buffer): KeySignalling {
  const header = wholeOf(at, 'The header');
  if (isUtf16Xml(bytes)) {
    if (bytes.length % 2 === 1)
      report.error('cut_short', header, 'ends inside a character of UTF-16; it was cut short');
    return describePlayReadyHeader(report, at, utf16Text(bytes));
  }
  report.error('not_utf16', header, 'must be UTF-16LE; encode its XML that way');
  const text = bytes.toString('utf8');
  return /^\ufeff?\s*</.test(text) ? describePlayReadyHeader(report, at, text) : NO_SIGNALLING;
}

const NAMESPACE = 'http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader';

/** Shows a PlayReady header and its faults (Microsoft, "PlayReady Header Specification"). Returns the keys. */
export function describePlayReadyHeader(report: Report, at: string, xml: string): KeySignalling {
  const header = wholeOf(at, 'The header');
  const parsed = parseXml(xml);
  if (!parsed.ok) {
    report.problem(header, parsed.problem);
    return NO_SIGNALLING;
  }
  const root = parsed.value;
  if (root.name !== 'WRMHEADER') {
    report.error('not_a_header', header, 'must have the root element WRMHEADER (upper case)');
    return NO_SIGNALLING;
  }
  const { version } = root.attributes;
  report.field(`${at}version`, version);
  const keys = headerKeys(root);
  for (const [code, sentence] of Object.entries(faultsOf(root, xml, keys)))
    if (sentence) report.add(finding(WARNINGS.has(code) ? 'warning' : 'error', code, header, sentence));
  // With ONDEMAND, the headers in the segments have the key ids.
  const isOnDemand = child(child(root, 'DATA'), 'DECRYPTORSETUP')?.text.trim() === 'ONDEMAND';
  if (keys.length === 0 && version !== '4.0.0.0' && !isOnDemand)
    report.warning('key_count', header, "names no key id, so a player can't request a license with it");
  const keyIds = keys.flatMap((key, index) => describeKey(report, `${at}key[${index}].`, key));
  describeAddresses(report, at, root);
  const ciphers = keys.flatMap(({ algorithm }) => (isCipher(algorithm) ? [algorithm] : []));
  return { keyIds, ciphers };
}

function isCipher(algorithm: string | undefined): algorithm is Cipher {
  return algorithm === 'AESCTR' || algorithm === 'AESCBC';
}

function describeKey(report: Report, at: string, key: HeaderKey): Buffer[] {
  const name = `${at}kid`;
  const value = key.value.trim();
  if (value !== key.value) report.warning('white_space', name, 'has white space around it; remove it');
  const guid = readBlock(report, name, value, { wanted: 'base64' });
  if (guid) {
    report.field(name, value, "as the header has it: base64 in PlayReady's byte order");
    keyIdField(report, `${at}key_id`, swapKeyIdOrder(guid));
    report.claim({ of: 'box', at: `${at}key_id`, keyId: swapKeyIdOrder(guid) });
    if (!isZero(guid)) suspectByteOrder(report, name, swapKeyIdOrder(guid));
  }
  report.field(`${at}algorithm`, key.algorithm);
  if (isCipher(key.algorithm)) report.claim({ of: 'cipher', at: `${at}algorithm`, cipher: key.algorithm });
  if (key.checksum !== undefined && key.algorithm !== 'COCKTAIL') {
    const checksum = readChecksum(report, `${at}checksum`, key.checksum);
    if (checksum) report.field(`${at}checksum`, checksum);
    if (checksum && guid)
      report.claim({ of: 'checksum', at: `${at}checksum`, keyId: swapKeyIdOrder(guid), checksum });
  }
  return guid ? [swapKeyIdOrder(guid)] : [];
}

function describeAddresses(report: Report, at: string, root: XmlElement): void {
  const data = child(root, 'DATA');
  for (const tag of ['LA_URL', 'LUI_URL']) {
    const element = child(data, tag);
    const name = `${at}${tag.toLowerCase()}`;
    if (!element) continue;
    const address = element.text.trim();
    if (element.text !== address)
      report.warning('white_space', name, 'has white space around it; remove it, players may send it');
    checkAddress(report, name, 'playready', address);
    if (tag === 'LA_URL') report.claim({ of: 'address', at: name, system: 'playready', address });
  }
  const domain = child(data, 'DS_ID')?.text.trim();
  if (domain) report.field(`${at}ds_id`, domain.slice(0, 100));
  const setup = child(data, 'DECRYPTORSETUP')?.text.trim();
  if (setup) report.field(`${at}decryptorsetup`, setup.slice(0, 100));
  if (child(data, 'CUSTOMATTRIBUTES')) report.field(`${at}customattributes`, 'present');
}

const PLACES: Readonly<Record<string, HeaderKey['place']>> = {
  '4.0.0.0': 'DATA/KID',
  '4.1.0.0': 'PROTECTINFO/KID',
  '4.2.0.0': 'PROTECTINFO/KIDS/KID',
  '4.3.0.0': 'PROTECTINFO/KIDS/KID',
};

const WARNINGS = new Set(['xml_declaration', 'self_closing_element', 'old_algorithm', 'attribute_order']);

function faultsOf(root: XmlElement, xml: string, keys: readonly HeaderKey[]): Record<string, string | false> {
  const { version } = root.attributes;
  const place = version !== undefined && Object.hasOwn(PLACES, version) ? PLACES[version] : undefined;
  const algorithms = new Set(keys.map(({ algorithm }) => algorithm));
  const attributes = [Object.keys(root.attributes), ...keys.map((key) => key.attributes)];
  const info = child(child(root, 'DATA'), 'PROTECTINFO');
  const textOf = (name: string) => child(info, name)?.text.trim();
  const isOldAes = version === '4.0.0.0' && textOf('ALGID') === 'AESCTR';
  return {
    wrong_namespace: root.attributes.xmlns !== NAMESPACE && `must have xmlns="${NAMESPACE}"`,
    xml_declaration:
      /^\s*<\?xml/.test(xml) && 'starts with an XML declaration; leave it out, players refuse it',
    self_closing_element:
      /\/\s*>/.test(xml.replaceAll(/"[^"]*"/g, '')) &&
      'has an element that closes itself (<X/>); write an end tag, PlayReady asks for one',
    version_missing: version === undefined && 'has no version attribute; add version="4.0.0.0"',
    unknown_version: version !== undefined && !place && 'has an unknown version; write 4.0.0.0 to 4.3.0.0',
    version_against_layout:
      place !== undefined &&
      keys.some((key) => key.place !== place) &&
      `has a key id outside ${place}, its place in this version; move it, or change the version`,
    key_count: countFault(version, keys.length),
    algorithm_missing:
      version !== '4.3.0.0' && algorithms.has(undefined) && 'has a key id without ALGID; add AESCTR',
    algorithm_against_version:
      version !== '4.3.0.0' &&
      algorithms.has('AESCBC') &&
      'says AESCBC (cbcs), which needs version 4.3.0.0; change the version or the algorithm',
    checksum_with_aescbc:
      keys.some(({ algorithm, checksum }) => algorithm === 'AESCBC' && checksum !== undefined) &&
      'has a CHECKSUM with AESCBC, which has none; leave it out',
    old_algorithm:
      algorithms.has('COCKTAIL') &&
      'says COCKTAIL, an algorithm of Windows Media DRM; write AESCTR or AESCBC',
    unknown_algorithm:
      [...algorithms].some((name) => !ALGORITHMS.includes(name)) &&
      'says an unknown algorithm; write AESCTR or AESCBC',
    algorithms_differ: algorithms.size > 1 && 'names more than one algorithm; its keys must have the same',
    attribute_order:
      !attributes.every(isSorted) &&
      'has attributes out of order; PlayReady asks for namespaces first, then the alphabet',
    key_length: isOldAes && textOf('KEYLEN') !== '16' && 'must say KEYLEN 16 with AESCTR',
  };
}

const ALGORITHMS: readonly (string | undefined)[] = [undefined, 'AESCTR', 'AESCBC', 'COCKTAIL'];

function countFault(version: string | undefined, count: number): string | false {
  if (version === '4.0.0.0' && count !== 1)
    return `names ${count} key ids; version 4.0.0.0 must name exactly one (4.2.0.0 and 4.3.0.0 take several)`;
  if (version === '4.1.0.0' && count > 1)
    return `names ${count} key ids; version 4.1.0.0 takes one (4.2.0.0 and 4.3.0.0 take several)`;
  return false;
}

function isSorted(names: readonly string[]): boolean {
  const rank = (name: string) => `${name.startsWith('xmlns') ? 0 : 1}${name}`;
  return names.every((name, index) => index === 0 || rank(names[index - 1] ?? '') <= rank(name));
}
