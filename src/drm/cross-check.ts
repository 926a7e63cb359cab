import { decodeBase64Block, swapKeyIdOrder } from './bytes';
import type { KeyFile } from './key-file';
import { addressSlips } from './license-url';
import { checkPlayReadyChecksum, playReadyChecksum } from './playready';
import { PROTECTION_SCHEMES, readWidevinePsshData, schemeName, type WidevinePsshData } from './widevine';

/**
 * Something that two values of a key file disagree on. An `error` leaves viewers with a black screen; a `warning` may
 * be meant so: published key files exist that have it and play.
 */
export interface Finding {
  readonly severity: 'error' | 'warning';
  readonly code: string;
  readonly description: string;
}

/**
 * Checks the values of a well-formed key file against each other, and against the content id when one is known.
 * Descriptions name fields as the key-file API does and quote no value.
 */
export function crossCheck(keyFile: KeyFile, contentId: string | undefined): Finding[] {
  const values = decoded(keyFile);
  const ofChecksum = checksumFindings(values);
  const swapped = swappedFindings(values, ofChecksum.length > 0);
  return [
    ...zeroFindings(keyFile),
    ...swapped,
    ...(swapped.length > 0 ? [] : [...equalKeyFindings(keyFile), ...ofChecksum]),
    ...(swapped.length > 0 ? [] : widevineFindings(values, contentId)),
    ...fairplayFindings(keyFile, contentId),
    ...addressFindings(keyFile),
  ];
}

/** What the checks compare, each value read once; undefined where it is not there or not well formed. */
interface Decoded {
  readonly keyId: Buffer | undefined;
  readonly contentKey: Buffer | undefined;
  readonly checksum: string | undefined;
  readonly widevine: WidevinePsshData | undefined;
}

function decoded({ cenc, playready, widevine }: KeyFile): Decoded {
  const block = (text: string | undefined) => {
    const read = text === undefined ? undefined : decodeBase64Block(text);
    return read?.ok ? read.value : undefined;
  };
  const read = widevine && readWidevinePsshData(widevine.psshData);
  return {
    keyId: block(cenc?.keyId),
    contentKey: block(cenc?.contentKey),
    checksum: playready?.checksum,
    widevine: read?.ok ? read.value.data : undefined,
  };
}

/** Placeholders that somebody meant to replace. */
function zeroFindings({ cenc, fairplay }: KeyFile): Finding[] {
  const findings: Finding[] = [];
  if (cenc?.keyId === ZERO_BASE64)
    findings.push(error('all_zero', 'cenc.keyid is all zeros; give the key an id of its own'));
  if (cenc?.contentKey === ZERO_BASE64)
    findings.push(error('all_zero', 'cenc.contentkey is all zeros; send the real key'));
  if (fairplay?.key === ZERO_HEX)
    findings.push(error('all_zero', 'fairplay.key is all zeros; send the real key'));
  if (fairplay?.iv === ZERO_HEX)
    findings.push(warning('all_zero', 'fairplay.iv is all zeros; the licence server rarely has that'));
  return findings;
}

const ZERO_BASE64 = Buffer.alloc(16).toString('base64');
const ZERO_HEX = '0'.repeat(32);

/** Key and key id in each other's place, as the other values tell: the key would stand in every manifest. */
function swappedFindings(
  { keyId, contentKey, checksum, widevine }: Decoded,
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
      "cenc.keyid and cenc.contentkey stand in each other's place, as the other values tell; swap them, and take a " +
        'new key if they were in use so',
    ),
  ];
}

function addressFindings({ playready, fairplay }: KeyFile): Finding[] {
  const addresses = [
    ['playready.laurl', playready?.licenseUrl],
    ['fairplay.laurl', fairplay?.licenseUrl],
  ] as const;
  return addresses.flatMap(([name, address]) =>
    addressSlips(address ?? '').map(({ code, sentence }) => error(code, `${name} ${sentence}`)),
  );
}

function equalKeyFindings({ cenc }: KeyFile): Finding[] {
  if (!cenc || cenc.keyId !== cenc.contentKey) return [];
  return [warning('content_key_is_key_id', 'cenc.contentkey equals cenc.keyid, which every manifest tells')];
}

function checksumFindings({ keyId, contentKey, checksum }: Decoded): Finding[] {
  if (checksum === undefined || !keyId || !contentKey) return [];
  switch (checkPlayReadyChecksum(checksum, keyId, contentKey)) {
    case 'match':
      return [];
    case 'key_id_byte_order':
      return [
        error(
          'key_id_byte_order',
          'playready.checksum belongs to this key with its key id in the other byte order: cenc.keyid must be big ' +
            'endian (as in a UUID); send it with bytes 0-3, 4-5 and 6-7 reversed',
        ),
      ];
    default:
      return [
        error(
          'checksum_mismatch',
          'playready.checksum is not the checksum of cenc.keyid and cenc.contentkey; leave it out to have it computed, ' +
            'or send the three of one key',
        ),
      ];
  }
}

function widevineFindings({ keyId, widevine }: Decoded, contentId: string | undefined): Finding[] {
  if (!widevine) return [];
  const { keyIds, protectionScheme, contentId: named } = widevine;
  const findings: Finding[] = [];
  if (protectionScheme !== undefined && protectionScheme !== PROTECTION_SCHEMES.cenc) {
    const name = schemeName(protectionScheme) ?? 'an unknown scheme';
    findings.push(
      warning(
        'scheme_mismatch',
        `widevine.psshdata says ${name}, but the algorithm written is AESCTR (cenc)`,
      ),
    );
  }
  const names = (wanted: Buffer) => keyIds.some((id) => id.equals(wanted));
  if (keyId && keyIds.length > 0 && !names(keyId) && names(swapKeyIdOrder(keyId))) {
    findings.push(
      error(
        'key_id_byte_order',
        'widevine.psshdata names cenc.keyid in the other byte order; both must be big endian (as in a UUID)',
      ),
    );
  } else if (keyId && keyIds.length > 0 && !names(keyId)) {
    findings.push(warning('key_id_mismatch', 'widevine.psshdata names another key id than cenc.keyid'));
  }
  if (contentId !== undefined && named !== undefined && named.toString('utf8') !== contentId) {
    findings.push(
      warning('content_id_mismatch', 'widevine.psshdata names another content id than contentId'),
    );
  }
  return findings;
}

function fairplayFindings({ fairplay }: KeyFile, contentId: string | undefined): Finding[] {
  if (!fairplay) return [];
  const findings: Finding[] = [];
  if (fairplay.key !== '' && fairplay.key.toLowerCase() === fairplay.iv.toLowerCase())
    findings.push(warning('key_is_iv', 'fairplay.iv equals fairplay.key; look whether one was copied twice'));
  if (contentId !== undefined && !namesContent(fairplay.licenseUrl, contentId))
    findings.push(warning('content_id_mismatch', 'fairplay.laurl does not name contentId'));
  return findings;
}

/** Whether a licence address has the content id as its host, a path part or a query value. */
function namesContent(licenseUrl: string, contentId: string): boolean {
  return licenseUrl.split(/[/?&=#;:]/).includes(encodeURIComponent(contentId));
}

function error(code: string, description: string): Finding {
  return { severity: 'error', code, description };
}

function warning(code: string, description: string): Finding {
  return { severity: 'warning', code, description };
}
