import { formatUuid } from '../bytes';
import { crossCheck } from '../cross-check';
import type { KeyFile } from '../key-file';
import { playReadyChecksum } from '../playready';
import { buildWidevinePsshData, PROTECTION_SCHEMES, schemeName } from '../widevine';
import { suspectByteOrder } from './block';
import type { PartsContext, PartValues } from './part-values';
import type { Report } from './report';

/** Checks values against each other: what `crossCheck` finds, and why, where a known slip explains it. */
export function checkTogether(report: Report, values: PartValues, context: PartsContext): void {
  const { keyId } = values;
  const isSwapped = checkSwap(report, values);
  const findings = isSwapped ? [] : crossCheck(keyFileOf(values), context.contentId);
  for (const { severity, code, description } of findings) {
    const { field } = fieldOf(description);
    const isTold = report.faults.some((fault) => fault.code === code && fault.field === field);
    if (!isTold) report.fault({ severity, code, ...fieldOf(description), description: `${description}.` });
  }
  checkScheme(report, values, context);
  if (context.contentId === undefined) checkContentIds(report, values);
  const isExplained = findings.some(({ code }) => code === 'key_id_byte_order') || isSwapped;
  if (keyId && !isExplained && values.checksum === undefined) suspectByteOrder(report, 'cenc.keyid', keyId);
}

/** The field that a finding speaks of first. */
function fieldOf(description: string): { field?: string } {
  const field = /^(?:cenc|widevine|playready|fairplay)\.[a-z]+/.exec(description)?.[0];
  return field === undefined ? {} : { field };
}

/** Key and key id in each other's place: then what looks like the key id is the key, and must not be shown. */
function checkSwap(report: Report, { keyId, contentKey, checksum, widevine }: PartValues): boolean {
  if (!keyId || !contentKey || keyId.equals(contentKey)) return false;
  const isSwapped =
    checksum === playReadyChecksum(contentKey, keyId) ||
    widevine?.keyIds.some((named) => named.equals(contentKey)) === true;
  if (!isSwapped) return false;
  report.secrets.add(keyId.toString('base64'));
  report.error(
    'key_and_key_id_swapped',
    'cenc.keyid',
    "and cenc.contentkey stand in each other's place, as the other values tell; swap them, and take a new key if they were in use so",
  );
  return true;
}

function keyFileOf({ keyId, contentKey, checksum, widevine, fairplay }: PartValues): KeyFile {
  return {
    ...(keyId && {
      cenc: { keyId: keyId.toString('base64'), contentKey: contentKey?.toString('base64') ?? '' },
    }),
    // The scheme is checked here, against the algorithm that goes with it.
    ...(widevine && {
      widevine: {
        psshData: buildWidevinePsshData({ ...widevine, protectionScheme: PROTECTION_SCHEMES.cenc }).toString(
          'base64',
        ),
      },
    }),
    ...(checksum !== undefined && { playready: { licenseUrl: '', checksum } }),
    ...(fairplay && { fairplay: { licenseUrl: fairplay.licenseUrl, key: '', iv: '' } }),
  };
}

function checkScheme(report: Report, { widevine }: PartValues, { scheme }: PartsContext): void {
  const named = widevine?.protectionScheme;
  if (named === undefined || scheme === undefined || named === PROTECTION_SCHEMES[scheme]) return;
  const algorithm = scheme === 'cenc' ? 'AESCTR (cenc)' : 'AESCBC (cbcs)';
  const sentence = `says ${schemeName(named) ?? 'an unknown scheme'}, but the algorithm is ${algorithm}; make them agree`;
  report.warning('scheme_mismatch', 'widevine.psshdata', sentence);
}

/** Without a content id of its own, a key file's Widevine data and FairPlay address tell whether they mean the same. */
function checkContentIds(report: Report, { keyId, widevine, fairplay }: PartValues): void {
  const contentId = widevine?.contentId?.toString('utf8');
  if (!contentId || !fairplay) return;
  const address = fairplay.licenseUrl.toLowerCase();
  const byKeyId = keyId && [formatUuid(keyId), keyId.toString('hex')].some((form) => address.includes(form));
  if (byKeyId || crossCheck({ fairplay: { ...fairplay, key: '', iv: '' } }, contentId).length === 0) return;
  const sentence =
    'does not name the content id of widevine.psshdata; look whether the two are of one content';
  report.warning('content_id_mismatch', 'fairplay.laurl', sentence);
}
