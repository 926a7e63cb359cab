import { isZero, swapKeyIdOrder } from '../bytes';
import { parseXml, type XmlElement } from '../xml';
import { keyIdField, readBlock, readChecksum, suspectByteOrder } from './block';
import { checkAddress } from './license-address';
import { type Cipher, type Named, NOTHING_NAMED } from './named';
import { checkHeaderLayout, type HeaderKey } from './playready-layout';
import type { Report } from './report';

const NAMESPACE = 'http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader';

/**
 * Shows what a PlayReady header says and what is wrong with it by itself (Microsoft, "PlayReady Header Specification").
 * Answers its key ids and algorithms.
 */
export function describePlayReadyHeader(report: Report, at: string, xml: string): Named {
  const header = at === '' ? 'The header' : at.slice(0, -1);
  const parsed = parseXml(xml);
  if (!parsed.ok) {
    report.error('malformed_xml', header, parsed.fault);
    return NOTHING_NAMED;
  }
  const root = parsed.value;
  if (root.name !== 'WRMHEADER') {
    report.error('not_a_header', header, 'has another root element than WRMHEADER (upper case)');
    return NOTHING_NAMED;
  }
  checkSyntax(report, header, root, xml);
  const version = root.attributes.version;
  if (version === undefined)
    report.error('version_missing', header, 'has no version attribute; add version="4.0.0.0"');
  else report.field(`${at}version`, version);
  const keys = readKeys(root);
  checkHeaderLayout(report, header, version, root, keys);
  const keyIds = keys.flatMap((key, index) => describeKey(report, `${at}key[${index}].`, key));
  describeAddresses(report, at, root);
  const ciphers = keys.flatMap(({ algorithm }) => (isCipher(algorithm) ? [algorithm] : []));
  return { keyIds, ciphers };
}

function isCipher(algorithm: string | undefined): algorithm is Cipher {
  return algorithm === 'AESCTR' || algorithm === 'AESCBC';
}

function checkSyntax(report: Report, header: string, root: XmlElement, xml: string): void {
  if (root.attributes.xmlns !== NAMESPACE) {
    report.error('wrong_namespace', header, `must have xmlns="${NAMESPACE}"`);
  }
  if (/^\s*<\?xml/.test(xml)) {
    report.warning(
      'xml_declaration',
      header,
      'starts with an XML declaration; leave it out, players may refuse it',
    );
  }
  if (/\/\s*>/.test(xml.replaceAll(/"[^"]*"/g, ''))) {
    const sentence = 'has an element that closes itself (<X/>); write an end tag, PlayReady asks for one';
    report.warning('self_closing_element', header, sentence);
  }
}

/** The keys that a header names, wherever its version puts them. */
function readKeys(root: XmlElement): HeaderKey[] {
  const data = child(root, 'DATA');
  const info = child(data, 'PROTECTINFO');
  const old = children(data, 'KID').map((kid) => ({
    place: 'DATA/KID' as const,
    value: kid.text,
    algorithm: child(info, 'ALGID')?.text.trim(),
    checksum: child(data, 'CHECKSUM')?.text.trim(),
    attributes: [],
  }));
  const place = (kids: XmlElement[], where: HeaderKey['place']) =>
    kids.map(({ attributes }) => ({
      place: where,
      value: attributes.VALUE ?? '',
      algorithm: attributes.ALGID,
      checksum: attributes.CHECKSUM,
      attributes: Object.keys(attributes),
    }));
  return [
    ...old,
    ...place(children(info, 'KID'), 'PROTECTINFO/KID'),
    ...place(children(child(info, 'KIDS'), 'KID'), 'PROTECTINFO/KIDS/KID'),
  ];
}

function describeKey(report: Report, at: string, key: HeaderKey): Buffer[] {
  const name = `${at}kid`;
  const value = key.value.trim();
  if (value !== key.value) report.warning('white_space', name, 'has white space around it; take it off');
  const guid = readBlock(report, name, value, { wanted: 'base64' });
  if (guid) {
    report.field(name, value, "as the header has it: base64 in PlayReady's byte order");
    keyIdField(report, `${at}key_id`, swapKeyIdOrder(guid));
    report.claim({ of: 'box', at: `${at}key_id`, keyId: swapKeyIdOrder(guid) });
    if (!isZero(guid)) suspectByteOrder(report, name, swapKeyIdOrder(guid));
  }
  if (key.algorithm !== undefined) report.field(`${at}algorithm`, key.algorithm);
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
    if (element.text !== element.text.trim()) {
      report.warning(
        'white_space',
        name,
        'has white space around it; take it off, a player may call it as it is',
      );
    }
    const address = element.text.trim();
    checkAddress(report, name, 'playready', address);
    if (tag === 'LA_URL') report.claim({ of: 'address', at: name, system: 'playready', address });
  }
  const domain = child(data, 'DS_ID')?.text.trim();
  if (domain) report.field(`${at}ds_id`, domain.slice(0, 100));
  const setup = child(data, 'DECRYPTORSETUP')?.text.trim();
  if (setup) report.field(`${at}decryptorsetup`, setup.slice(0, 100));
  if (child(data, 'CUSTOMATTRIBUTES')) report.field(`${at}customattributes`, 'present');
}

function child(element: XmlElement | undefined, name: string): XmlElement | undefined {
  return element?.children.find((candidate) => candidate.name === name);
}

function children(element: XmlElement | undefined, name: string): XmlElement[] {
  return element?.children.filter((candidate) => candidate.name === name) ?? [];
}
