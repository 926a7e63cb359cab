import { CPIX_SYSTEM_IDS, type CpixDocument, type CpixSystemName } from '../../src/drm/cpix/document';
import { documentOf } from './cpix';

export const toBase64 = (value: string | Uint8Array) => Buffer.from(value as string).toString('base64');

/** Key ids and content keys that differ by a digit. */
export const kidOf = (digit: number | string): string =>
  [8, 4, 4, 4, 12].map((length) => String(digit).repeat(length)).join('-');
export const keyIdOf = (digit: number | string): Buffer =>
  Buffer.from(kidOf(digit).replaceAll('-', ''), 'hex');
export const contentKeyOf = (digit: number): Buffer => Buffer.alloc(16, 0xa0 + digit);
export const ivOf = (digit: number): Buffer => Buffer.alloc(16, 0xc0 + digit);

export const FAIRPLAY_ADDRESS = 'skd://license.example/1';

interface KeyText {
  readonly kid: string;
  /** An element of its own; undefined for a content key in plain. */
  readonly data?: string;
  readonly attributes?: string;
}

/** The text of a key; its attributes as they are in the document. */
export function key(digit: number, attributes = '', data?: string): KeyText {
  return { kid: kidOf(digit), attributes, data: data ?? plain(contentKeyOf(digit)) };
}

export function plain(bytes: Uint8Array | string): string {
  const value = typeof bytes === 'string' ? bytes : toBase64(bytes);
  return `<Data><pskc:Secret><pskc:PlainValue>${value}</pskc:PlainValue></pskc:Secret></Data>`;
}

/** A DRM system for keys: by default one without signalling, for FairPlay with an address. */
export function system(name: CpixSystemName, digits: readonly number[], content?: string): string {
  const inside =
    content ?? (name === 'fairplay' ? `<URIExtXKey>${toBase64(FAIRPLAY_ADDRESS)}</URIExtXKey>` : '<PSSH/>');
  return digits
    .map(
      (digit) => `<DRMSystem kid="${kidOf(digit)}" systemId="${CPIX_SYSTEM_IDS[name]}">${inside}</DRMSystem>`,
    )
    .join('');
}

/** A usage rule: its track type, and its filters as they are in the document. */
export function rule(digit: number, trackType?: string, filters = ''): string {
  const type = trackType === undefined ? '' : ` intendedTrackType="${trackType}"`;
  return `<ContentKeyUsageRule kid="${kidOf(digit)}"${type}>${filters}</ContentKeyUsageRule>`;
}

interface DocumentText {
  readonly keys: readonly KeyText[];
  readonly systems?: string;
  readonly rules?: string;
  /** Ids of periods, with the index after a slash. */
  readonly periods?: readonly string[];
  readonly attributes?: string;
  readonly before?: string;
  readonly after?: string;
}

/** The text of a CPIX document of these parts. */
export function cpixText({ keys, systems = '', rules = '', periods = [], ...rest }: DocumentText): string {
  const listed = keys.map(
    ({ kid, attributes = '', data = '' }) => `<ContentKey kid="${kid}" ${attributes}>${data}</ContentKey>`,
  );
  const ofPeriods = periods.map((period) => {
    const [id = '', index] = period.split('/');
    return `<ContentKeyPeriod${id === '' ? '' : ` id="${id}"`}${index === undefined ? '' : ` index="${index}"`}/>`;
  });
  return [
    `<CPIX xmlns="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc"${rest.attributes ?? ''}>`,
    rest.before ?? '',
    list('ContentKeyList', listed.join('')),
    list('DRMSystemList', systems),
    list('ContentKeyPeriodList', ofPeriods.join('')),
    list('ContentKeyUsageRuleList', rules),
    rest.after ?? '',
    '</CPIX>',
  ].join('');
}

function list(name: string, members: string): string {
  return members === '' ? '' : `<${name}>${members}</${name}>`;
}

/** The same as it is read. */
export function cpixDocument(text: DocumentText): CpixDocument {
  return documentOf(cpixText(text));
}
