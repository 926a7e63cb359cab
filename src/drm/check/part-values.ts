import { type Checked, decodeBase64 } from '../bytes';
import { BOX_FOR_DATA, checkValues, type KeyValues, NO_SYSTEM, type ValuesContext } from '../cross-check';
import type { Problem, Subject } from '../finding';
import type { AddressOf } from '../key-file';
import { looksLikePsshBox } from '../pssh';
import { parseWidevinePsshData, readWidevinePsshData, type WidevinePsshData } from '../widevine';
import { describeWidevineData } from './boxes';
import { isUtf16Xml, looksLikePlayReadyObject } from './playready';
import type { Report } from './report';
import {
  checkAddress,
  encodingFault,
  readBlock,
  readByteText,
  readChecksum,
  readTwiceEncoded,
  showKeyId,
} from './values';

/** The unchecked values of a request's parts, or of a key file's lines, under the request's names. */
export type Parts = Partial<
  Readonly<Record<'cenc' | 'widevine' | 'playready' | 'fairplay' | 'aes', Readonly<Record<string, unknown>>>>
>;

export interface PartsContext extends ValuesContext {
  readonly source: 'request' | 'key_file';
}

export function checkParts(report: Report, parts: Parts, context: PartsContext): KeyValues {
  const { cenc, widevine, playready, fairplay, aes } = parts;
  const { names } = context;
  const values: KeyValues = {
    ...(cenc && {
      keyId: readKeyId(report, cenc.keyid, context),
      contentKey: readSecretBlock(report, names['cenc.contentkey'], cenc.contentkey, 'base64'),
    }),
    ...(widevine && { widevine: readWidevine(report, widevine.psshdata, context) }),
    ...(playready && {
      playReadyUrl: readAddress(report, names['playready.laurl'], 'playready', playready.laurl),
      checksum: showChecksum(report, names['playready.checksum'], playready.checksum),
    }),
    ...(fairplay && {
      fairplay: {
        key: readSecretBlock(report, names['fairplay.key'], fairplay.key, 'hex'),
        iv: readSecretBlock(report, names['fairplay.iv'], fairplay.iv, 'hex'),
        url: readAddress(report, names['fairplay.laurl'], 'fairplay', fairplay.laurl),
      },
    }),
    ...(aes && {
      aes: {
        url: readAddress(report, names['aes.url'], 'aes', aes.url),
        key: readSecretBlock(report, names['aes.key'], aes.key, 'hex'),
        iv: readSecretBlock(report, names['aes.iv'], aes.iv, 'hex'),
      },
    }),
  };
  const findings = checkValues(values, context);
  // Then the apparent key id is the key, and must not be shown.
  if (values.keyId && findings.some(({ code }) => code === 'key_and_key_id_swapped'))
    report.secrets.add(values.keyId.toString('base64'));
  if (findings.some(({ code }) => code === 'iv_is_key_id')) showKeyIdOfIv(report, fairplay?.iv, values);
  report.add(...findings);
  claimParts(report, parts, values, context);
  return values;
}

/** A key id is not hidden in any place, unless it is a key, too. */
function showKeyIdOfIv(report: Report, text: unknown, { contentKey, fairplay }: KeyValues): void {
  const isKey = [contentKey, fairplay?.key].some((key) => key && fairplay?.iv?.equals(key));
  if (typeof text === 'string' && !isKey) report.secrets.delete(text);
}

/** Key and key id alone encrypt a stream that no player can ask a license for. */
export function reportNoSystem(report: Report, subject: Subject): void {
  report.warning('no_drm_system', subject, NO_SYSTEM);
}

function claimParts(report: Report, parts: Parts, values: KeyValues, { scheme, names }: PartsContext): void {
  const { keyId, contentKey, playReadyUrl, fairplay } = values;
  if (keyId) report.claim({ of: 'key', at: names['cenc.keyid'], keyId, contentKey });
  if (parts.cenc && scheme) report.claim({ of: 'scheme', at: names['cenc.keyid'], scheme });
  if (playReadyUrl !== undefined)
    report.claim({ of: 'address', at: names['playready.laurl'], system: 'playready', address: playReadyUrl });
  if (!fairplay) return;
  const { key, url, iv } = fairplay;
  report.claim({ of: 'fairplay', at: names['fairplay.laurl'], key });
  if (url !== undefined)
    report.claim({ of: 'address', at: names['fairplay.laurl'], system: 'fairplay', address: url });
  if (iv) report.claim({ of: 'iv', at: names['fairplay.iv'], iv });
}

/** A value that is a text; other values were reported when the request or the lines were read. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function readSecretBlock(
  report: Report,
  name: string,
  value: unknown,
  wanted: 'base64' | 'hex',
): Buffer | undefined {
  const text = textOf(value);
  if (text === undefined) return undefined;
  const bytes = readBlock(report, name, text, { wanted });
  report.secretField(name, text, bytes ? '16 bytes' : 'not 16 bytes');
  return bytes;
}

function readKeyId(report: Report, value: unknown, { source, names }: PartsContext): Buffer | undefined {
  const text = textOf(value);
  const name = names['cenc.keyid'];
  const uuid = source === 'key_file' ? 'warning' : 'error';
  const keyId = text === undefined ? undefined : readBlock(report, name, text, { wanted: 'base64', uuid });
  if (keyId) showKeyId(report, name, keyId);
  return keyId;
}

function readWidevine(
  report: Report,
  value: unknown,
  { source, names }: PartsContext,
): WidevinePsshData | undefined {
  const name = names['widevine.psshdata'];
  const text = textOf(value);
  if (text === undefined) return undefined;
  const read = readWidevinePsshData(text);
  if (!read.ok) return meantWidevineData(report, name, text, read.problem);
  if (read.value.unwrapped && source === 'request') report.warning('box_for_data', name, BOX_FOR_DATA);
  else if (read.value.unwrapped) report.error('box_for_data', name, BOX_IN_LINE);
  describeWidevineData(report, `${name}.`, read.value.data);
  return read.value.data;
}

const BOX_IN_LINE =
  'is a whole pssh box instead of its data; write only the data, or POST the box to the key-file API, which unwraps it';

/** Reports the mistake, and continues if the intended bytes are clear. */
function meantWidevineData(
  report: Report,
  name: string,
  text: string,
  { description: sentence }: Problem,
): WidevinePsshData | undefined {
  const meant = readByteText(text);
  const isBase64 = decodeBase64(text).ok;
  const twice = isBase64 && meant ? readTwiceEncoded(meant.bytes) : undefined;
  const bytes = (twice ?? meant)?.bytes ?? Buffer.alloc(0);
  const data: Checked<WidevinePsshData> = parseWidevinePsshData(bytes);
  if (twice && (data.ok || looksLikePsshBox(bytes)))
    report.error('encoded_twice', name, 'was encoded twice; decode it once');
  else if (!isBase64) report.error(encodingFault(text, 'base64'), name, sentence);
  else if (looksLikePsshBox(bytes)) report.error('box_of_other_system', name, sentence);
  else if (looksLikePlayReadyObject(bytes) || isUtf16Xml(bytes))
    report.error('data_of_other_system', name, 'is a PlayReady object or header; write Widevine data');
  else report.error('malformed_data', name, sentence);
  if (!data.ok) return undefined;
  describeWidevineData(report, `${name}.`, data.value);
  return data.value;
}

function readAddress(report: Report, name: string, system: AddressOf, value: unknown): string | undefined {
  const address = textOf(value);
  if (address !== undefined) checkAddress(report, name, system, address);
  return address;
}

function showChecksum(report: Report, name: string, value: unknown): string | undefined {
  const text = textOf(value);
  const checksum = text === undefined ? undefined : readChecksum(report, name, text);
  report.field(name, checksum);
  return checksum;
}
