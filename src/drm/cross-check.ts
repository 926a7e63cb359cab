import {
  decodeBase64Block,
  decodeHexBlock,
  formatUuid,
  isZero,
  looksSwapped,
  SUSPECTED,
  swapKeyIdOrder,
  ZERO_KEY_ID,
} from './bytes';
import type { CmafScheme, KeyFile } from './key-file';
import { addressSlips } from './license-url';
import { checkPlayReadyChecksum, playReadyChecksum } from './playready';
import {
  PROTECTION_SCHEMES,
  readWidevinePsshData,
  schemeName,
  type WidevinePsshData,
  widevineSlips,
} from './widevine';

/**
 * Something that is wrong with the values of a key file, or with two of them together. An `error` leaves viewers with a
 * black screen; a `warning` may be meant so: published key files exist that have it and play.
 */
export interface Finding {
  readonly severity: 'error' | 'warning';
  readonly code: string;
  /** The field as the key-file API names it, where it speaks of one. */
  readonly field?: string;
  readonly description: string;
}

export interface CrossCheckOptions {
  /** Whether the PlayReady checksum was made of key id and key, so that it proves nothing. */
  readonly isChecksumComputed?: boolean;
}

/**
 * Checks the values of a well-formed key file, by themselves, against each other, and against the content id when one is
 * known. It is the gate before every write, and finds what a check of the same values finds. Descriptions name fields as
 * the key-file API does and quote no value.
 */
export function crossCheck(
  keyFile: KeyFile,
  contentId: string | undefined,
  { isChecksumComputed = false }: CrossCheckOptions = {},
): Finding[] {
  const values = valuesOf(keyFile, isChecksumComputed);
  return [
    ...checkValues(values, { contentId, scheme: 'cenc' }),
    ...(values.widevine ? widevineFindings(values.widevine) : []),
    ...addressFindings(keyFile),
    ...systemFindings(keyFile),
  ];
}

/** The values of a key file, each as far as it could be read. */
export interface KeyValues {
  /** 16 bytes, big endian. */
  readonly keyId?: Buffer | undefined;
  readonly contentKey?: Buffer | undefined;
  /** Base64 of 8 bytes. */
  readonly checksum?: string | undefined;
  readonly widevine?: WidevinePsshData | undefined;
  readonly fairplay?:
    | {
        readonly licenseUrl?: string | undefined;
        readonly key?: Buffer | undefined;
        readonly iv?: Buffer | undefined;
      }
    | undefined;
}

export interface ValuesContext {
  readonly contentId?: string | undefined;
  /** What the algorithm that is written goes with. */
  readonly scheme: CmafScheme | undefined;
}

/** Checks values against each other, and finds placeholders. */
export function checkValues(values: KeyValues, context: ValuesContext): Finding[] {
  const ofChecksum = checksumFindings(values);
  const swapped = swappedFindings(values, ofChecksum.length > 0);
  const ofKeyId =
    swapped.length > 0 ? swapped : [...equalKeyFindings(values), ...ofChecksum, ...keyIdFindings(values)];
  const isExplained = ofKeyId.some(({ code }) => code === 'key_id_byte_order') || swapped.length > 0;
  return [
    ...zeroFindings(values),
    ...ofKeyId,
    ...schemeFindings(values, context),
    ...contentIdFindings(values, context),
    ...fairplayFindings(values),
    ...(isExplained ? [] : suspectedFindings(values)),
  ];
}

function valuesOf({ cenc, playready, widevine, fairplay }: KeyFile, isChecksumComputed: boolean): KeyValues {
  const read = widevine && readWidevinePsshData(widevine.psshData);
  return {
    keyId: blockOf(cenc?.keyId, decodeBase64Block),
    contentKey: blockOf(cenc?.contentKey, decodeBase64Block),
    checksum: isChecksumComputed ? undefined : playready?.checksum,
    widevine: read?.ok ? read.value.data : undefined,
    fairplay: fairplay && {
      licenseUrl: fairplay.licenseUrl,
      key: blockOf(fairplay.key, decodeHexBlock),
      iv: blockOf(fairplay.iv, decodeHexBlock),
    },
  };
}

function blockOf(text: string | undefined, decode: typeof decodeBase64Block): Buffer | undefined {
  const read = text === undefined ? undefined : decode(text);
  return read?.ok ? read.value : undefined;
}

const ZERO_KEY = 'is all zeros; send the real key';

/** Placeholders that somebody meant to replace. */
function zeroFindings({ keyId, contentKey, fairplay }: KeyValues): Finding[] {
  const findings: Finding[] = [];
  const look = (bytes: Buffer | undefined, of: typeof error, field: string, sentence: string) => {
    if (bytes && isZero(bytes)) findings.push(of('all_zero', field, sentence));
  };
  look(keyId, error, 'cenc.keyid', ZERO_KEY_ID);
  look(contentKey, error, 'cenc.contentkey', ZERO_KEY);
  look(fairplay?.key, error, 'fairplay.key', ZERO_KEY);
  look(fairplay?.iv, warning, 'fairplay.iv', 'is all zeros; the license server rarely has that');
  return findings;
}

/** Key and key id in each other's place, as the other values tell: the key would stand in every manifest. */
function swappedFindings(
  { keyId, contentKey, checksum, widevine }: KeyValues,
  isChecksumWrong: boolean,
): Finding[] {
  if (!keyId || !contentKey || keyId.equals(contentKey)) return [];
  const isSwapped =
    (isChecksumWrong && checksum === playReadyChecksum(contentKey, keyId)) ||
    widevine?.keyIds.some((id) => id.equals(contentKey)) === true;
  if (!isSwapped) return [];
  return [
    error(
      'key_and_key_id_swapped',
      'cenc.keyid',
      "and cenc.contentkey stand in each other's place, as the other values tell; swap them, and take a new key if " +
        'they were in use so',
    ),
  ];
}

function equalKeyFindings({ keyId, contentKey }: KeyValues): Finding[] {
  if (!keyId || !contentKey?.equals(keyId)) return [];
  return [
    warning('content_key_is_key_id', 'cenc.contentkey', 'equals cenc.keyid, which every manifest tells'),
  ];
}

function checksumFindings({ keyId, contentKey, checksum }: KeyValues): Finding[] {
  if (checksum === undefined || !keyId || !contentKey) return [];
  switch (checkPlayReadyChecksum(checksum, keyId, contentKey)) {
    case 'match':
      return [];
    case 'key_id_byte_order':
      return [
        error(
          'key_id_byte_order',
          'playready.checksum',
          'belongs to this key with its key id in the other byte order: cenc.keyid must be big endian (as in a UUID); ' +
            'send it with bytes 0-3, 4-5 and 6-7 reversed',
        ),
      ];
    default:
      return [
        error(
          'checksum_mismatch',
          'playready.checksum',
          'is not the checksum of cenc.keyid and cenc.contentkey; leave it out to have it computed, or send the three ' +
            'of one key',
        ),
      ];
  }
}

/** Holds the key id against those that the Widevine data names. */
function keyIdFindings({ keyId, widevine }: KeyValues): Finding[] {
  if (!keyId || !widevine || widevine.keyIds.length === 0) return [];
  const names = (wanted: Buffer) => widevine.keyIds.some((id) => id.equals(wanted));
  if (names(keyId)) return [];
  if (!names(swapKeyIdOrder(keyId)))
    return [warning('key_id_mismatch', 'widevine.psshdata', 'names another key id than cenc.keyid')];
  return [
    error(
      'key_id_byte_order',
      'widevine.psshdata',
      'names cenc.keyid in the other byte order; both must be big endian (as in a UUID)',
    ),
  ];
}

function schemeFindings({ widevine }: KeyValues, { scheme }: ValuesContext): Finding[] {
  const named = widevine?.protectionScheme;
  if (named === undefined || scheme === undefined || named === PROTECTION_SCHEMES[scheme]) return [];
  const algorithm = scheme === 'cenc' ? 'AESCTR (cenc)' : 'AESCBC (cbcs)';
  const sentence = `says ${schemeName(named) ?? 'an unknown scheme'}, but the algorithm is ${algorithm}; make them agree`;
  return [warning('scheme_mismatch', 'widevine.psshdata', sentence)];
}

/** Without a content id of its own, the Widevine data and the FairPlay address tell whether they mean the same. */
function contentIdFindings(
  { keyId, widevine, fairplay }: KeyValues,
  { contentId }: ValuesContext,
): Finding[] {
  const licenseUrl = fairplay?.licenseUrl;
  const named = widevine?.contentId?.toString('utf8');
  if (contentId === undefined) {
    if (!named || licenseUrl === undefined || namesContent(licenseUrl, named)) return [];
    const address = licenseUrl.toLowerCase();
    if (keyId && [formatUuid(keyId), keyId.toString('hex')].some((form) => address.includes(form))) return [];
    const sentence =
      'does not name the content id of widevine.psshdata; look whether the two are of one content';
    return [warning('content_id_mismatch', 'fairplay.laurl', sentence)];
  }
  const findings: Finding[] = [];
  if (named !== undefined && named !== contentId)
    findings.push(
      warning('content_id_mismatch', 'widevine.psshdata', 'names another content id than contentId'),
    );
  if (licenseUrl !== undefined && !namesContent(licenseUrl, contentId))
    findings.push(warning('content_id_mismatch', 'fairplay.laurl', 'does not name contentId'));
  return findings;
}

/** Whether a license address has the content id as its host, a path part or a query value. */
function namesContent(licenseUrl: string, contentId: string): boolean {
  return licenseUrl.split(/[/?&=#;:]/).includes(encodeURIComponent(contentId));
}

function fairplayFindings({ fairplay }: KeyValues): Finding[] {
  if (!fairplay?.key || !fairplay.iv?.equals(fairplay.key)) return [];
  return [warning('key_is_iv', 'fairplay.iv', 'equals fairplay.key; look whether one was copied twice')];
}

/** With a checksum of its own, the key id's byte order is proved. */
function suspectedFindings({ keyId, checksum }: KeyValues): Finding[] {
  if (!keyId || checksum !== undefined || !looksSwapped(keyId)) return [];
  return [warning('key_id_byte_order_suspected', 'cenc.keyid', SUSPECTED)];
}

function widevineFindings(data: WidevinePsshData): Finding[] {
  return widevineSlips(data).map(({ severity, code, at, sentence }) =>
    finding(severity, code, at === '' ? 'widevine.psshdata' : `widevine.psshdata.${at}`, sentence),
  );
}

function addressFindings({ playready, fairplay }: KeyFile): Finding[] {
  const slips = (system: 'playready' | 'fairplay', address: string | undefined) =>
    addressSlips(system, address ?? '').map(({ severity, code, sentence }) =>
      finding(severity, code, `${system}.laurl`, sentence),
    );
  return [...slips('playready', playready?.licenseUrl), ...slips('fairplay', fairplay?.licenseUrl)];
}

function systemFindings({ cenc, playready, widevine, fairplay }: KeyFile): Finding[] {
  if (!cenc || playready || widevine || fairplay) return [];
  return [{ severity: 'warning', code: 'no_drm_system', description: `The key file ${NO_SYSTEM}` }];
}

/** What is to be said of a key without a DRM system, behind what has it. */
export const NO_SYSTEM =
  'has a key and no DRM system, so players can ask nobody for a license; add Widevine, PlayReady or FairPlay, unless ' +
  'players get the key by other means (ClearKey)';

/** What is to be said, behind its name, of a whole box in a request, where the data alone belongs. */
export const BOX_FOR_DATA = 'is a whole pssh box where its data alone belongs; the key-file API unwraps it';

function finding(severity: Finding['severity'], code: string, field: string, sentence: string): Finding {
  return { severity, code, field, description: `${field} ${sentence}` };
}

function error(code: string, field: string, sentence: string): Finding {
  return finding('error', code, field, sentence);
}

function warning(code: string, field: string, sentence: string): Finding {
  return finding('warning', code, field, sentence);
}
