import {
  BYTE_ORDER_SUSPECTED,
  containsBytes,
  decodeBase64Block,
  decodeHexBlock,
  HEX_TEXT,
  isAmong,
  isHexText,
  isZero,
  looksSwapped,
  swapKeyIdOrder,
  ZERO_KEY_ID,
} from './bytes';
import { error, type Finding, warning } from './finding';
import { addressFindings, type KeyFile } from './key-file';
import { checkPlayReadyChecksum, playReadyChecksum } from './playready';
import {
  PROTECTION_SCHEMES,
  readWidevinePsshData,
  schemeName,
  type WidevinePsshData,
  widevineFindings,
} from './widevine';

export const REQUEST_NAMES = {
  'cenc.keyid': 'cenc.keyid',
  'cenc.contentkey': 'cenc.contentkey',
  'widevine.psshdata': 'widevine.psshdata',
  'playready.laurl': 'playready.laurl',
  'playready.checksum': 'playready.checksum',
  'fairplay.laurl': 'fairplay.laurl',
  'fairplay.key': 'fairplay.key',
  'fairplay.iv': 'fairplay.iv',
  'aes.url': 'aes.url',
  'aes.key': 'aes.key',
  'aes.iv': 'aes.iv',
} as const;

export type ValueNames = Readonly<Record<keyof typeof REQUEST_NAMES, string>>;

/**
 * Checks the values of a well-formed key file by themselves, against each other, and against a known content
 * id: the gate before every write. Descriptions name fields as the key-file API does, and quote no value. A
 * computed PlayReady checksum (`isChecksumComputed`) proves nothing.
 */
export function crossCheck(
  keyFile: KeyFile,
  contentId: string | undefined,
  { isChecksumComputed = false }: { readonly isChecksumComputed?: boolean } = {},
): Finding[] {
  const values = valuesOf(keyFile, isChecksumComputed);
  const { widevine } = values;
  return [
    ...checkValues(values, { contentId, scheme: 'cenc', names: REQUEST_NAMES }),
    ...(widevine ? widevineFindings(widevine, 'widevine.psshdata') : []),
    ...(['playready', 'fairplay'] as const).flatMap((system) =>
      addressFindings(system, keyFile[system]?.licenseUrl ?? '', `${system}.laurl`),
    ),
    ...addressFindings('aes', keyFile.aes?.url ?? '', 'aes.url'),
    ...systemFindings(keyFile),
  ];
}

export interface KeyValues {
  /** 16 bytes, big endian. */
  readonly keyId?: Buffer | undefined;
  readonly contentKey?: Buffer | undefined;
  /** Base64 of 8 bytes. */
  readonly checksum?: string | undefined;
  readonly widevine?: WidevinePsshData | undefined;
  readonly playReadyUrl?: string | undefined;
  readonly fairplay?: HlsValues | undefined;
  readonly aes?: HlsValues | undefined;
}

interface HlsValues {
  readonly url?: string | undefined;
  readonly key?: Buffer | undefined;
  readonly iv?: Buffer | undefined;
}

export interface ValuesContext {
  readonly contentId?: string | undefined;
  /** The scheme that lines say: `cbcs` is in some existing key files alone. */
  readonly scheme: 'cenc' | 'cbcs' | undefined;
  readonly names: ValueNames;
}

export function checkValues(values: KeyValues, context: ValuesContext): Finding[] {
  const { names } = context;
  const swapped = exchangedFindings(values, names);
  const ofKeyId =
    swapped.length > 0
      ? swapped
      : [
          ...equalKeyFindings(values, names),
          ...checksumFindings(values, names),
          ...keyIdFindings(values, names),
        ];
  const isExplained = ofKeyId.some(({ code }) => code === 'key_id_byte_order') || swapped.length > 0;
  return [
    ...blockFindings(values, names),
    ...ofKeyId,
    ...schemeFindings(values, context),
    ...contentIdFindings(values, context),
    ...ivFindings(values, names),
    ...keyIdAsIvFindings(values, names),
    ...keyInAddressFindings(values, names),
    ...(isExplained ? [] : suspectedFindings(values, names)),
  ];
}

function valuesOf(
  { cenc, playready, widevine, fairplay, aes }: KeyFile,
  isChecksumComputed: boolean,
): KeyValues {
  const read = widevine && readWidevinePsshData(widevine.psshData);
  return {
    keyId: blockOf(cenc?.keyId, decodeBase64Block),
    contentKey: blockOf(cenc?.contentKey, decodeBase64Block),
    checksum: isChecksumComputed ? undefined : playready?.checksum,
    widevine: read?.ok ? read.value.data : undefined,
    playReadyUrl: playready?.licenseUrl,
    fairplay: fairplay && hlsValues(fairplay, fairplay.licenseUrl),
    aes: aes && hlsValues(aes, aes.url),
  };
}

function hlsValues({ key, iv }: { readonly key: string; readonly iv?: string }, url: string): HlsValues {
  return { url, key: blockOf(key, decodeHexBlock), iv: blockOf(iv, decodeHexBlock) };
}

function blockOf(text: string | undefined, decode: typeof decodeBase64Block): Buffer | undefined {
  const read = text === undefined ? undefined : decode(text);
  return read?.ok ? read.value : undefined;
}

const ZERO_KEY = 'is all zeros; send the real key';
const ZERO_IV = 'is all zeros, which license servers rarely use; check it';

function blockFindings({ keyId, contentKey, fairplay, aes }: KeyValues, names: ValueNames): Finding[] {
  const blocks = [
    { bytes: keyId, at: 'cenc.keyid', ofZero: error, sentence: ZERO_KEY_ID },
    { bytes: contentKey, at: 'cenc.contentkey', ofZero: error, sentence: ZERO_KEY },
    { bytes: fairplay?.key, at: 'fairplay.key', ofZero: error, sentence: ZERO_KEY },
    { bytes: fairplay?.iv, at: 'fairplay.iv', ofZero: warning, sentence: ZERO_IV },
    { bytes: aes?.key, at: 'aes.key', ofZero: error, sentence: ZERO_KEY },
    { bytes: aes?.iv, at: 'aes.iv', ofZero: warning, sentence: ZERO_IV },
  ] as const;
  return blocks.flatMap(({ bytes, at, ofZero, sentence }) => {
    if (bytes && isZero(bytes)) return [ofZero('all_zero', names[at], sentence)];
    return bytes && isHexText(bytes) ? [warning('hex_text', names[at], HEX_TEXT)] : [];
  });
}

/** Key and key id are swapped, as the other values show: the key would be in every manifest. */
function exchangedFindings(values: KeyValues, names: ValueNames): Finding[] {
  const { keyId, contentKey, checksum, widevine } = values;
  if (!keyId || !contentKey || keyId.equals(contentKey)) return [];
  const isExchanged =
    checksum === playReadyChecksum(contentKey, keyId) ||
    (widevine !== undefined && isAmong(contentKey, widevine.keyIds));
  if (!isExchanged) return [];
  const sentence =
    `and ${names['cenc.contentkey']} are swapped, as the other values show; swap them back, and use a new key if a ` +
    'stream has used them swapped';
  return [error('key_and_key_id_swapped', names['cenc.keyid'], sentence)];
}

function equalKeyFindings({ keyId, contentKey }: KeyValues, names: ValueNames): Finding[] {
  if (!keyId || !contentKey?.equals(keyId)) return [];
  const sentence = `equals ${names['cenc.keyid']}, which is in every manifest`;
  return [warning('content_key_is_key_id', names['cenc.contentkey'], sentence)];
}

function checksumFindings({ keyId, contentKey, checksum }: KeyValues, names: ValueNames): Finding[] {
  if (checksum === undefined || !keyId || !contentKey) return [];
  const verdict = checkPlayReadyChecksum(checksum, keyId, contentKey);
  if (verdict === 'match') return [];
  if (verdict === 'key_id_byte_order') {
    const sentence =
      `belongs to this key with its key id in the other byte order: ${names['cenc.keyid']} must be big endian (as in a ` +
      'UUID); send it with bytes 0-3, 4-5 and 6-7 reversed';
    return [error(verdict, names['playready.checksum'], sentence)];
  }
  const sentence =
    `is not the checksum of ${names['cenc.keyid']} and ${names['cenc.contentkey']}; leave it out to have it computed, or ` +
    'send the three of one key';
  return [error('checksum_mismatch', names['playready.checksum'], sentence)];
}

function keyIdFindings({ keyId, widevine }: KeyValues, names: ValueNames): Finding[] {
  if (!keyId || !widevine || widevine.keyIds.length === 0) return [];
  if (isAmong(keyId, widevine.keyIds)) return [];
  const field = names['widevine.psshdata'];
  if (!isAmong(swapKeyIdOrder(keyId), widevine.keyIds))
    return [warning('key_id_mismatch', field, `names another key id than ${names['cenc.keyid']}`)];
  const sentence = `names ${names['cenc.keyid']} in the other byte order; both must be big endian (as in a UUID)`;
  return [error('key_id_byte_order', field, sentence)];
}

function schemeFindings({ widevine }: KeyValues, { scheme, names }: ValuesContext): Finding[] {
  const named = widevine?.protectionScheme;
  if (named === undefined || scheme === undefined || named === PROTECTION_SCHEMES[scheme]) return [];
  const algorithm = scheme === 'cenc' ? 'AESCTR (cenc)' : 'AESCBC (cbcs)';
  const sentence = `says ${schemeName(named) ?? 'an unknown scheme'}, but the algorithm is ${algorithm}; make them agree`;
  return [warning('scheme_mismatch', names['widevine.psshdata'], sentence)];
}

function contentIdFindings(
  { keyId, widevine, fairplay }: KeyValues,
  { contentId, names }: ValuesContext,
): Finding[] {
  const licenseUrl = fairplay?.url;
  const named = widevine?.contentId?.toString('utf8');
  const mismatch = (at: keyof ValueNames, sentence: string) =>
    warning('content_id_mismatch', names[at], sentence);
  const isByKeyId = licenseUrl !== undefined && namesKeyId(licenseUrl, keyId);
  if (contentId === undefined) {
    if (!named || licenseUrl === undefined || isByKeyId || namesContent(licenseUrl, named)) return [];
    const sentence = `does not name the content id of ${names['widevine.psshdata']}; check whether the two are of one content`;
    return [mismatch('fairplay.laurl', sentence)];
  }
  const findings: Finding[] = [];
  if (named !== undefined && named !== contentId && named !== Buffer.from(contentId).toString('base64'))
    findings.push(mismatch('widevine.psshdata', 'names another content id than contentId'));
  if (licenseUrl !== undefined && !isByKeyId && !namesContent(licenseUrl, contentId))
    findings.push(mismatch('fairplay.laurl', 'does not name contentId'));
  return findings;
}

function namesContent(licenseUrl: string, contentId: string): boolean {
  const base64 = Buffer.from(contentId, 'utf8').toString('base64').replace(/=+$/, '');
  const parts = licenseUrl.split(/[/?&=#;:]/);
  const isNamed = [contentId, encodeURIComponent(contentId)].some((name) => parts.includes(name));
  return isNamed || licenseUrl.includes(base64);
}

/**
 * An address that names FairPlay's own key, whose id no line of a key file has: a UUID or 32 hex digits, behind `skd://` or
 * behind a semicolon as EZDRM writes it, with the IV that some providers put behind it; or base64 of 16 bytes, as DoveRunner
 * writes it. A UUID elsewhere may be a content id.
 */
const OF_A_KEY_ID =
  /^skd:\/\/(?:[^;]*;)?\{?(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?(?::[0-9a-f]{32})?\/?$/i;
const OF_A_KEY_ID_IN_BASE64 = /^skd:\/\/(?:[\w+/-]|%2[bf]){22}(?:==|%3d%3d)$/i;

function namesKeyId(licenseUrl: string, keyId: Buffer | undefined): boolean {
  if (OF_A_KEY_ID.test(licenseUrl) || OF_A_KEY_ID_IN_BASE64.test(licenseUrl)) return true;
  return keyId !== undefined && containsBytes(licenseUrl, keyId);
}

function ivFindings(values: KeyValues, names: ValueNames): Finding[] {
  return (['fairplay', 'aes'] as const).flatMap((part) => {
    const { key, iv } = values[part] ?? {};
    if (!key || !iv?.equals(key)) return [];
    const sentence = `equals ${names[`${part}.key`]}; check whether one was copied twice`;
    return [warning('key_is_iv', names[`${part}.iv`], sentence)];
  });
}

/** EZDRM sends the key id as IV. A provider may write the IV itself behind a colon in the address. */
function keyIdAsIvFindings({ keyId, fairplay }: KeyValues, names: ValueNames): Finding[] {
  const { iv, url = '' } = fairplay ?? {};
  if (!iv || isZero(iv)) return [];
  if (!keyId?.equals(iv) && !containsBytes(url.replace(/:[^:/]*$/, ''), iv)) return [];
  return [warning('iv_is_key_id', names['fairplay.iv'], IV_IS_KEY_ID)];
}

export const IV_IS_KEY_ID =
  'is the key id, which is no secret; it plays, but the key provider should send a random IV';

/** A manifest would give the key to all its readers. A key that equals its key id has a finding of its own. */
function keyInAddressFindings(
  { keyId, contentKey, playReadyUrl = '', fairplay, aes }: KeyValues,
  names: ValueNames,
): Finding[] {
  const keys = [contentKey, fairplay?.key, aes?.key].filter(
    (key) => key && !keyId?.equals(key) && !isZero(key),
  );
  const addresses = [
    ['playready.laurl', playReadyUrl],
    ['fairplay.laurl', fairplay?.url ?? ''],
    ['aes.url', aes?.url ?? ''],
  ] as const;
  const sentence =
    'contains the content key, so that manifests and logs would give it to everyone; remove it, and use a new key';
  return addresses
    .filter(([, address]) => keys.some((key) => key && containsBytes(address, key)))
    .map(([at]) => error('content_key_in_address', names[at], sentence));
}

/** With a checksum of its own, the key id's byte order is proved. */
function suspectedFindings({ keyId, checksum }: KeyValues, names: ValueNames): Finding[] {
  if (!keyId || checksum !== undefined || !looksSwapped(keyId)) return [];
  return [warning('key_id_byte_order_suspected', names['cenc.keyid'], BYTE_ORDER_SUSPECTED)];
}

function systemFindings({ cenc, playready, widevine, fairplay }: KeyFile): Finding[] {
  if (!cenc || playready || widevine || fairplay) return [];
  return [warning('no_drm_system', { called: 'The key file' }, NO_SYSTEM)];
}

export const NO_SYSTEM =
  'has a key and no DRM system, so players cannot request a license; add Widevine, PlayReady or FairPlay, unless ' +
  'players get the key by other means (ClearKey)';

export const BOX_FOR_DATA = 'is a whole pssh box instead of its data; the key-file API unwraps it';
