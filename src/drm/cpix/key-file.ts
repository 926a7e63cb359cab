import { formatUuid } from '../bytes';
import { IV_IS_KEY_ID } from '../cross-check';
import { type Finding, type Problem, warning } from '../finding';
import type { KeyFile } from '../key-file';
import { playReadyChecksum } from '../playready';
import { widevinePsshDataOf } from '../widevine';
import type { ChosenKey, ChosenKeys } from './choose';
import {
  CPIX_SYSTEM_IDS,
  type CpixDocument,
  type CpixKey,
  type CpixSystem,
  type CpixSystemName,
  documentWarning,
} from './document';
import { attempt, refuse, unusable } from './fault';
import { fairPlayAddress, playReadySignal, widevineData } from './signalling';

export interface CpixKeyFileOptions {
  readonly playReadyUrl?: string | undefined;
  /** The PlayReady license address where neither `playReadyUrl` nor the document has one. */
  readonly fallbackPlayReadyUrl?: string | undefined;
  /** The content id for missing Widevine data; by default, the document's. */
  readonly contentId?: string | undefined;
}

type MadeKeyFile =
  | ({ readonly ok: true } & ReturnType<typeof cencPart>)
  | { readonly ok: false; readonly faults: readonly Problem[] };

/** Makes the key file of the keys that were chosen in a document, whose values must be plain. */
export function cpixKeyFile(
  document: CpixDocument,
  { cenc, fairplay }: ChosenKeys,
  options: CpixKeyFileOptions,
): MadeKeyFile {
  const ofCenc = attempt(() => cenc && cencPart(document, cenc, options));
  const ofFairPlay = attempt(() => fairplay && fairPlayPart(document, fairplay.keyId));
  if (!ofCenc.ok || !ofFairPlay.ok)
    return { ok: false, faults: [ofCenc, ofFairPlay].flatMap((part) => (part.ok ? [] : part.faults)) };
  const { keyFile, findings = [], isChecksumComputed = false } = ofCenc.value ?? {};
  const isUnused = options.playReadyUrl !== undefined && !cenc?.systems.includes('playready');
  const isKeyId = fairplay && keyOf(document, fairplay.keyId)?.explicitIv?.equals(fairplay.keyId);
  return {
    ok: true,
    keyFile: { ...keyFile, ...(ofFairPlay.value && { fairplay: ofFairPlay.value }) },
    findings: [...findings, ...(isUnused ? [ADDRESS_UNUSED] : []), ...(isKeyId ? [OF_KEY_ID] : [])],
    isChecksumComputed,
  };
}

function cencPart(
  document: CpixDocument,
  { keyId, systems }: ChosenKey,
  { playReadyUrl, fallbackPlayReadyUrl, contentId = shortContentId(document) }: CpixKeyFileOptions,
) {
  const contentKey = plainValue(document, keyId);
  const findings: Finding[] = [];
  let keyFile: KeyFile = {
    cenc: { keyId: keyId.toString('base64'), contentKey: contentKey.toString('base64') },
  };
  if (systems.includes('widevine')) {
    const system = systemOf(document, keyId, 'widevine');
    const data = system && widevineData(system);
    if (data === undefined) findings.push(WIDEVINE_MADE);
    keyFile = { ...keyFile, widevine: { psshData: data ?? widevinePsshDataOf(keyId, contentId) } };
  }
  if (!systems.includes('playready')) return { keyFile, findings, isChecksumComputed: false };
  const system = systemOf(document, keyId, 'playready');
  const signal = system && playReadySignal(system, keyId, contentKey, playReadyUrl !== undefined);
  const licenseUrl = playReadyUrl ?? signal?.licenseUrl ?? fallbackPlayReadyUrl;
  if (licenseUrl === undefined)
    return unusable(
      `has no PlayReady license address for the key ${formatUuid(keyId)}; give playready.laurl`,
    );
  if (licenseUrl !== (signal?.licenseUrl ?? licenseUrl)) findings.push(ADDRESS_REPLACED);
  if (signal?.isCbc) findings.push(HEADER_IS_CBC);
  if (signal?.isOfOther) findings.push(HEADER_OF_OTHER);
  if (signal && signal.lost.length > 0) {
    const sentence = `has ${signal.lost.join(', ')}, for which a key file has no line; players get a header without`;
    findings.push(warning('playready_header_reduced', THE_HEADER, sentence));
  }
  const checksum = playReadyChecksum(keyId, contentKey);
  return {
    keyFile: { ...keyFile, playready: { licenseUrl, checksum } },
    findings,
    /** Whether the PlayReady checksum was made of key id and key, so that it proves nothing. */
    isChecksumComputed: !signal?.isProved,
  };
}

const MAX_CONTENT_ID = 200;

/** It may be any text; Widevine data has no room for all of it. */
export function shortContentId({ contentId }: CpixDocument): string | undefined {
  return contentId !== undefined && contentId !== '' && contentId.length <= MAX_CONTENT_ID
    ? contentId
    : undefined;
}

/** @throws faults */
export function fairPlayPart(document: CpixDocument, keyId: Buffer): NonNullable<KeyFile['fairplay']> {
  const key = plainValue(document, keyId);
  const of = `for FairPlay, for the key ${formatUuid(keyId)}`;
  const own: CpixKey = keyOf(document, keyId) ?? { keyId };
  const system = systemOf(document, keyId, 'fairplay');
  const licenseUrl = system && fairPlayAddress(system, own.explicitIv);
  if (licenseUrl === undefined)
    return unusable(`has no address ${of}; put it in URIExtXKey or HLSSignalingData`);
  requireReadableIv(own);
  if (!own.explicitIv) return unusable(`has no explicitIV ${of}; ask the key server for it`);
  return { licenseUrl, key: upperHex(key), iv: upperHex(own.explicitIv) };
}

export function requireReadableIv({ keyId, ivFault }: CpixKey): void {
  if (ivFault !== undefined)
    refuse('invalid_cpix', `has an explicitIV of the key ${formatUuid(keyId)} that ${ivFault}`);
}

/** As the platform's key files have it. */
function upperHex(bytes: Buffer): string {
  return bytes.toString('hex').toUpperCase();
}

function keyOf({ keys }: CpixDocument, keyId: Buffer): CpixKey | undefined {
  return keys.find((key) => key.keyId.equals(keyId));
}

export function systemOf(
  { systems }: CpixDocument,
  keyId: Buffer,
  name: CpixSystemName,
): CpixSystem | undefined {
  return systems.find((system) => system.systemId === CPIX_SYSTEM_IDS[name] && system.keyId.equals(keyId));
}

/** @throws faults */
export function plainValue(document: CpixDocument, keyId: Buffer): Buffer {
  const value = keyOf(document, keyId)?.value;
  if (value?.kind === 'plain') return value.bytes;
  return refuse(
    'cpix_not_opened',
    `has an encrypted value of the key ${formatUuid(keyId)}: use a document with plain keys, or write a key file from it at a sidecar that can open it (packager-drm put --cpix) and use that`,
  );
}

export const WIDEVINE_MADE = documentWarning(
  'widevine_data_made',
  'has no Widevine data; it was made from key id and content id, which suits most license servers',
);
const UNUSED = 'is not used, because no PlayReady is written; name playready in systems';
const ADDRESS_UNUSED = warning('playready_address_unused', 'playready.laurl', UNUSED);
const OF_KEY_ID = warning('iv_is_key_id', 'fairplay.iv', IV_IS_KEY_ID);
const ADDRESS_REPLACED = documentWarning(
  'playready_address_replaced',
  'has another license address for PlayReady; playready.laurl is written in its place',
);
const THE_HEADER = { called: 'The PlayReady header in the CPIX document' };
const IS_CBC = 'says AESCBC (cbcs), but the algorithm that is written is AESCTR (cenc)';
const HEADER_IS_CBC = warning('scheme_mismatch', THE_HEADER, IS_CBC);
const IS_OF_OTHER = 'is for another key id than its key; only its license address is written';
const HEADER_OF_OTHER = warning('key_id_mismatch', THE_HEADER, IS_OF_OTHER);
