import { type Checked, formatUuid, refused } from '../bytes';
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
  THE_DOCUMENT,
} from './document';
import { fairPlayAddress, playReadySignal, widevineData } from './signalling';

const unusable = (sentence: string) => refused('cpix_not_usable', sentence);

export interface CpixKeyFileOptions {
  readonly playReadyUrl?: string | undefined;
  /** The PlayReady license address where neither `playReadyUrl` nor the document has one. */
  readonly fallbackPlayReadyUrl?: string | undefined;
  /** What Widevine data is made of that is missing in the document; without it, the document's content id. */
  readonly contentId?: string | undefined;
}

export type MadeKeyFile =
  | {
      readonly ok: true;
      readonly keyFile: KeyFile;
      readonly findings: readonly Finding[];
      /** Whether the PlayReady checksum was made of key id and key, so that it proves nothing. */
      readonly isChecksumComputed: boolean;
    }
  | { readonly ok: false; readonly faults: readonly Problem[] };

/** Makes the key file of the keys that were chosen in a document, whose values must be plain. */
export function cpixKeyFile(
  document: CpixDocument,
  { cenc, fairplay }: ChosenKeys,
  options: CpixKeyFileOptions,
): MadeKeyFile {
  const ofCenc = cenc && cencPart(document, cenc, options);
  const ofFairPlay = fairplay && fairPlayPart(document, fairplay);
  const faults = [ofCenc, ofFairPlay].flatMap((part) => (part && !part.ok ? part.problem : []));
  if (ofCenc?.ok === false || ofFairPlay?.ok === false) return { ok: false, faults };
  return {
    ok: true,
    keyFile: { ...ofCenc?.value.keyFile, ...(ofFairPlay && { fairplay: ofFairPlay.value }) },
    findings: [
      ...(ofCenc?.value.findings ?? []),
      ...(options.playReadyUrl !== undefined && !cenc?.systems.includes('playready') ? [ADDRESS_UNUSED] : []),
    ],
    isChecksumComputed: ofCenc?.value.isChecksumComputed ?? false,
  };
}

interface CencPart {
  readonly keyFile: KeyFile;
  readonly findings: readonly Finding[];
  readonly isChecksumComputed: boolean;
}

function cencPart(
  document: CpixDocument,
  { keyId, systems }: ChosenKey,
  { playReadyUrl, fallbackPlayReadyUrl, contentId = shortContentId(document) }: CpixKeyFileOptions,
): Checked<CencPart> {
  const value = plainValue(document, keyId);
  if (!value.ok) return value;
  const contentKey = value.value;
  const findings: Finding[] = [];
  let keyFile: KeyFile = {
    cenc: { keyId: keyId.toString('base64'), contentKey: contentKey.toString('base64') },
  };
  if (systems.includes('widevine')) {
    const system = systemOf(document, keyId, 'widevine');
    const data = system ? widevineData(system) : ({ ok: true, value: undefined } as const);
    if (!data.ok) return data;
    if (data.value === undefined) findings.push(WIDEVINE_MADE);
    keyFile = { ...keyFile, widevine: { psshData: data.value ?? widevinePsshDataOf(keyId, contentId) } };
  }
  if (!systems.includes('playready'))
    return { ok: true, value: { keyFile, findings, isChecksumComputed: false } };
  const system = systemOf(document, keyId, 'playready');
  const signal = system && playReadySignal(system, keyId, contentKey, playReadyUrl !== undefined);
  if (signal && !signal.ok) return signal;
  const inDocument = signal?.value.licenseUrl;
  const licenseUrl = playReadyUrl ?? inDocument ?? fallbackPlayReadyUrl;
  if (licenseUrl === undefined)
    return unusable(
      `has no PlayReady license address for the key ${formatUuid(keyId)}; give playready.laurl`,
    );
  if (inDocument !== undefined && inDocument !== licenseUrl) findings.push(ADDRESS_REPLACED);
  if (signal?.value.isCbc) findings.push(HEADER_IS_CBC);
  if (signal?.value.isOfOther) findings.push(HEADER_OF_OTHER);
  const lost = signal?.value.lost ?? [];
  if (lost.length > 0) {
    const sentence = `has ${lost.join(', ')}, for which a key file has no line; players get a header without`;
    findings.push(warning('playready_header_reduced', THE_HEADER, sentence));
  }
  const checksum = playReadyChecksum(keyId, contentKey);
  return {
    ok: true,
    value: {
      keyFile: { ...keyFile, playready: { licenseUrl, checksum } },
      findings,
      isChecksumComputed: !signal?.value.isProved,
    },
  };
}

const MAX_CONTENT_ID = 200;

/** It may be any text; Widevine data has no room for all of it. */
export function shortContentId({ contentId }: CpixDocument): string | undefined {
  return contentId !== undefined && contentId !== '' && contentId.length <= MAX_CONTENT_ID
    ? contentId
    : undefined;
}

export function fairPlayPart(
  document: CpixDocument,
  { keyId }: Pick<ChosenKey, 'keyId'>,
): Checked<NonNullable<KeyFile['fairplay']>> {
  const value = plainValue(document, keyId);
  if (!value.ok) return value;
  const of = `for FairPlay, for the key ${formatUuid(keyId)}`;
  const { explicitIv, ivFault } = keyOf(document, keyId) ?? {};
  const system = systemOf(document, keyId, 'fairplay');
  const address = system ? fairPlayAddress(system, explicitIv) : ({ ok: true, value: undefined } as const);
  if (!address.ok) return address;
  if (address.value === undefined)
    return unusable(`has no address ${of}; put it in URIExtXKey or HLSSignalingData`);
  if (!explicitIv)
    return ivFault === undefined
      ? unusable(`has no explicitIV ${of}; ask the key server for it`)
      : refused('invalid_cpix', `has an explicitIV of the key ${formatUuid(keyId)} that ${ivFault}`);
  return {
    ok: true,
    value: { licenseUrl: address.value, key: upperHex(value.value), iv: upperHex(explicitIv) },
  };
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

export function plainValue(document: CpixDocument, keyId: Buffer): Checked<Buffer> {
  const value = keyOf(document, keyId)?.value;
  if (value?.kind === 'plain') return { ok: true, value: value.bytes };
  const kid = formatUuid(keyId);
  return value
    ? refused(
        'cpix_not_opened',
        `has an encrypted value of the key ${kid}: use a document with plain keys, or write a key file from it at a sidecar that can open it (packager-drm put --cpix) and use that`,
      )
    : unusable(`has no value for the key ${kid}`);
}

export const WIDEVINE_MADE = warning(
  'widevine_data_made',
  THE_DOCUMENT,
  'has no Widevine data; it was made from key id and content id, which suits most license servers',
);
const ADDRESS_UNUSED = warning(
  'playready_address_unused',
  'playready.laurl',
  'is not used, because no PlayReady is written; name playready in systems',
);
const ADDRESS_REPLACED = warning(
  'playready_address_replaced',
  THE_DOCUMENT,
  'has another license address for PlayReady; playready.laurl is written in its place',
);
const THE_HEADER = { called: 'The PlayReady header in the CPIX document' };
const HEADER_IS_CBC = warning(
  'scheme_mismatch',
  THE_HEADER,
  'says AESCBC (cbcs), but the algorithm that is written is AESCTR (cenc)',
);
const HEADER_OF_OTHER = warning(
  'key_id_mismatch',
  THE_HEADER,
  'is for another key id than its key; only its license address is written',
);
