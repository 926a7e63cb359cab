import { type Checked, decodeBase64 } from '../bytes';
import type { CmafScheme } from '../key-file';
import { looksLikePsshBox } from '../pssh';
import { parseWidevinePsshData, readWidevinePsshData, type WidevinePsshData } from '../widevine';
import { isZero, keyIdField, readBlock, readChecksum, slipOf } from './block';
import { readByteText, readTwiceEncoded } from './byte-text';
import { checkAddress } from './license-address';
import { isUtf16Xml, looksLikePlayReadyObject } from './playready-object';
import type { Report } from './report';
import { checkTogether } from './together';
import { describeWidevineData } from './widevine-data';

/** The values of a request's parts, or of a key file's lines, under the request's names; nothing of them is sure yet. */
export type Parts = Partial<
  Readonly<Record<'cenc' | 'widevine' | 'playready' | 'fairplay', Readonly<Record<string, unknown>>>>
>;

export interface PartsContext {
  readonly source: 'request' | 'key_file';
  readonly scheme: CmafScheme | undefined;
  readonly contentId?: string | undefined;
}

/** What of the values could be read, as it was meant. */
export interface PartValues {
  readonly keyId?: Buffer | undefined;
  readonly contentKey?: Buffer | undefined;
  readonly checksum?: string | undefined;
  readonly widevine?: WidevinePsshData | undefined;
  readonly fairplay?: { readonly licenseUrl: string; readonly iv?: Buffer | undefined } | undefined;
}

/** Checks the values of key-file parts, each by itself and all of them together, and shows what they decode to. */
export function checkParts(report: Report, parts: Parts, context: PartsContext): PartValues {
  const { cenc, widevine, playready, fairplay } = parts;
  const reader = new PartReader(report, context.source);
  const values: PartValues = {
    ...(cenc && readCenc(reader, cenc)),
    ...(widevine && { widevine: readWidevine(reader, widevine) }),
    ...(playready && { checksum: readPlayReady(reader, playready) }),
    ...(fairplay && { fairplay: readFairPlay(reader, fairplay) }),
  };
  checkTogether(report, values, context);
  claimParts(report, parts, values, context);
  return values;
}

/** Key and key id alone encrypt a stream that no player can ask a licence for. */
export function tellNoSystem(report: Report, subject: string): void {
  const sentence =
    'has a key and no DRM system, so players can ask nobody for a licence; add Widevine, PlayReady or FairPlay, unless ' +
    'players get the key by other means (ClearKey)';
  report.warning('no_drm_system', subject, sentence);
}

/** What media and manifests made from these values may not contradict. */
function claimParts(report: Report, parts: Parts, values: PartValues, { scheme }: PartsContext): void {
  const { keyId, contentKey, fairplay } = values;
  if (keyId) report.claim({ of: 'key', at: 'cenc.keyid', keyId, contentKey });
  if (parts.cenc && scheme) report.claim({ of: 'scheme', at: 'cenc.keyid', scheme });
  const { laurl } = parts.playready ?? {};
  if (typeof laurl === 'string')
    report.claim({ of: 'address', at: 'playready.laurl', system: 'playready', address: laurl });
  if (parts.fairplay) report.claim({ of: 'fairplay', at: 'fairplay.laurl' });
  if (!fairplay) return;
  const { licenseUrl, iv } = fairplay;
  report.claim({ of: 'address', at: 'fairplay.laurl', system: 'fairplay', address: licenseUrl });
  if (iv) report.claim({ of: 'iv', at: 'fairplay.iv', iv });
}

class PartReader {
  constructor(
    readonly report: Report,
    readonly source: PartsContext['source'],
  ) {}

  /** A value that must be a text; that a key file's line is missing was said when its lines were read. */
  text(name: string, value: unknown): string | undefined {
    if (typeof value === 'string') return value;
    if (value !== undefined) this.report.error('wrong_type', name, 'must be a string');
    else if (this.source === 'request') this.report.error('missing', name, 'is missing');
    return undefined;
  }

  secretBlock(name: string, value: unknown, wanted: 'base64' | 'hex'): Buffer | undefined {
    const text = this.text(name, value);
    if (text === undefined) return undefined;
    const bytes = readBlock(this.report, name, text, { wanted });
    this.report.secretField(name, text, bytes ? '16 bytes' : 'not 16 bytes');
    return bytes;
  }
}

function readCenc(reader: PartReader, cenc: Readonly<Record<string, unknown>>): PartValues {
  const { report, source } = reader;
  const text = reader.text('cenc.keyid', cenc.keyid);
  const uuid = source === 'key_file' ? 'warning' : 'error';
  const keyId =
    text === undefined ? undefined : readBlock(report, 'cenc.keyid', text, { wanted: 'base64', uuid });
  if (keyId) keyIdField(report, 'cenc.keyid', keyId);
  const contentKey = reader.secretBlock('cenc.contentkey', cenc.contentkey, 'base64');
  if (contentKey && isZero(contentKey))
    report.error('all_zero', 'cenc.contentkey', 'is all zeros; send the real key');
  return { keyId, contentKey };
}

function readWidevine(
  reader: PartReader,
  { psshdata }: Readonly<Record<string, unknown>>,
): WidevinePsshData | undefined {
  const { report, source } = reader;
  const name = 'widevine.psshdata';
  if (psshdata === undefined || (psshdata === null && source === 'request')) return undefined;
  const text = reader.text(name, psshdata);
  if (text === undefined) return undefined;
  const read = readWidevinePsshData(text);
  if (!read.ok) return meantWidevineData(report, name, text, read.fault);
  if (read.value.unwrapped) {
    const sentence = 'is a whole pssh box where its data alone belongs; ';
    if (source === 'request') report.warning('box_for_data', name, `${sentence}the key-file API unwraps it`);
    else
      report.error(
        'box_for_data',
        name,
        `${sentence}write that, or POST the box to the key-file API, which unwraps it`,
      );
  }
  describeWidevineData(report, `${name}.`, read.value.data);
  return read.value.data;
}

/** Names the slip, and reads on when the bytes that were meant are plain. */
function meantWidevineData(
  report: Report,
  name: string,
  text: string,
  fault: string,
): WidevinePsshData | undefined {
  const meant = readByteText(text);
  const isBase64 = decodeBase64(text).ok;
  const twice = isBase64 && meant ? readTwiceEncoded(meant.bytes) : undefined;
  const bytes = (twice ?? meant)?.bytes ?? Buffer.alloc(0);
  const data: Checked<WidevinePsshData> = parseWidevinePsshData(bytes);
  if (twice && (data.ok || looksLikePsshBox(bytes)))
    report.error('encoded_twice', name, 'was encoded twice; decode it once');
  else if (!isBase64) report.error(slipOf(text, 'base64'), name, fault);
  else if (looksLikePsshBox(bytes)) report.error('box_of_other_system', name, fault);
  else if (looksLikePlayReadyObject(bytes) || isUtf16Xml(bytes)) {
    report.error(
      'data_of_other_system',
      name,
      'is a PlayReady object or header; the Widevine data belongs here',
    );
  } else report.error('malformed_data', name, fault);
  if (!data.ok) return undefined;
  describeWidevineData(report, `${name}.`, data.value);
  return data.value;
}

function readPlayReady(reader: PartReader, playready: Readonly<Record<string, unknown>>): string | undefined {
  const { report, source } = reader;
  const address = reader.text('playready.laurl', playready.laurl);
  if (address !== undefined) checkAddress(report, 'playready.laurl', 'playready', address);
  const given = playready.checksum;
  if (given === undefined || (given === null && source === 'request')) return undefined;
  const text = reader.text('playready.checksum', given);
  const checksum = text === undefined ? undefined : readChecksum(report, 'playready.checksum', text);
  if (checksum !== undefined) report.field('playready.checksum', checksum);
  return checksum;
}

function readFairPlay(
  reader: PartReader,
  fairplay: Readonly<Record<string, unknown>>,
): PartValues['fairplay'] {
  const { report } = reader;
  const key = reader.secretBlock('fairplay.key', fairplay.key, 'hex');
  const iv = reader.secretBlock('fairplay.iv', fairplay.iv, 'hex');
  if (key && isZero(key)) report.error('all_zero', 'fairplay.key', 'is all zeros; send the real key');
  if (iv && isZero(iv))
    report.warning('all_zero', 'fairplay.iv', 'is all zeros; the licence server rarely has that');
  if (key && iv?.equals(key))
    report.warning('key_is_iv', 'fairplay.iv', 'equals fairplay.key; look whether one was copied twice');
  const licenseUrl = reader.text('fairplay.laurl', fairplay.laurl);
  if (licenseUrl === undefined) return undefined;
  checkAddress(report, 'fairplay.laurl', 'fairplay', licenseUrl);
  return { licenseUrl, iv };
}
