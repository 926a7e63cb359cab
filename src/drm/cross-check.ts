import { decodeBase64Block } from './bytes';
import type { KeyFile } from './key-file';
import { checkPlayReadyChecksum } from './playready';
import { PROTECTION_SCHEMES, readWidevinePsshData, schemeName } from './widevine';

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
  return [
    ...equalKeyFindings(keyFile),
    ...checksumFindings(keyFile),
    ...widevineFindings(keyFile, contentId),
    ...fairplayFindings(keyFile, contentId),
  ];
}

function equalKeyFindings({ cenc }: KeyFile): Finding[] {
  if (!cenc || cenc.keyId !== cenc.contentKey) return [];
  return [warning('content_key_is_key_id', 'cenc.contentkey equals cenc.keyid, which every manifest tells')];
}

function checksumFindings({ cenc, playready }: KeyFile): Finding[] {
  const keyId = decodeBase64Block(cenc?.keyId ?? '');
  const contentKey = decodeBase64Block(cenc?.contentKey ?? '');
  if (!playready || !keyId.ok || !contentKey.ok) return [];
  switch (checkPlayReadyChecksum(playready.checksum, keyId.value, contentKey.value)) {
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

function widevineFindings({ cenc, widevine }: KeyFile, contentId: string | undefined): Finding[] {
  const read = widevine ? readWidevinePsshData(widevine.psshData) : undefined;
  if (!read?.ok) return [];
  const { keyIds, protectionScheme, contentId: named } = read.value.data;
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
  const keyId = decodeBase64Block(cenc?.keyId ?? '');
  if (keyId.ok && keyIds.length > 0 && !keyIds.some((id) => id.equals(keyId.value))) {
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
  if (!fairplay || contentId === undefined || namesContent(fairplay.licenseUrl, contentId)) return [];
  return [warning('content_id_mismatch', 'fairplay.laurl does not name contentId')];
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
