import { formatUuid, groupedBy } from '../bytes';
import { type Finding, warning } from '../finding';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { type ProtectionScheme, WIDEVINE_SYSTEM_ID } from '../widevine';

/**
 * The content of a CPIX document (DASH-IF, "Content Protection Information Exchange Format", 2.3 and 2.4), in its
 * order. Key ids are 16 bytes, big endian. Of DRM systems that this project does not know, only their names are kept.
 */
export interface CpixDocument {
  /** The document's own; SPEKE v1 has the content id here. */
  readonly id?: string | undefined;
  readonly contentId?: string | undefined;
  readonly version?: string | undefined;
  readonly isSigned: boolean;
  readonly deliveries: readonly CpixDelivery[];
  readonly keys: readonly CpixKey[];
  readonly systems: readonly CpixSystem[];
  readonly periods: readonly CpixPeriod[];
  readonly rules: readonly CpixRule[];
}

export interface CpixKey {
  readonly keyId: Buffer;
  /** Undefined in a request, which asks for it. */
  readonly value?: CpixValue | undefined;
  /** 16 bytes. */
  readonly explicitIv?: Buffer | undefined;
  /** Why the document's cannot be read. It is a fault only where the IV is needed. */
  readonly ivFault?: string | undefined;
  readonly scheme?: ProtectionScheme | undefined;
  /** The method of HLS that stands in the document in place of the scheme. */
  readonly method?: string | undefined;
}

/** The methods of HLS, which may be named in place of a scheme since CPIX 2.4. AWS puts AES-128 with `cbc1`. */
export const HLS_METHODS = { cenc: 'SAMPLE-AES-CTR', cbcs: 'SAMPLE-AES', cbc1: 'AES-128' } as const;

export function schemeName({ method, scheme }: CpixKey): string | undefined {
  return method ?? scheme;
}

/** A plain one has 16 bytes, not all zero. */
export type CpixValue =
  | { readonly kind: 'plain'; readonly bytes: Buffer }
  | ({ readonly kind: 'encrypted'; readonly mac: Buffer | undefined } & CpixCipher);

export function plainKey({ value }: CpixKey): Buffer | undefined {
  return value?.kind === 'plain' ? value.bytes : undefined;
}

/** Encrypted bytes, and the XML Encryption address of the algorithm; `''` where none is named. */
export interface CpixCipher {
  readonly algorithm: string;
  /** The digest's, where one is named; RSA-OAEP has SHA-1 without. */
  readonly digest?: string;
  readonly cipher: Buffer;
}

export interface CpixDelivery {
  /** DER. */
  readonly certificate: Buffer | undefined;
  readonly documentKeys: readonly CpixDocumentKey[];
  readonly mac: { readonly algorithm: string; readonly key: CpixCipher | undefined } | undefined;
}

export interface CpixDocumentKey {
  /** Its algorithm, as an XML Encryption address; `''` where none is named. */
  readonly algorithm: string;
  readonly value: CpixCipher | undefined;
  /** The content keys that it is for; none: all. */
  readonly keyIds: readonly Buffer[];
}

export type CpixSignal = Exclude<keyof CpixSystem, 'systemId' | 'keyId' | 'asked'>;

/** The signalling of a DRM system for a key. Empty elements of the document are undefined here. */
export interface CpixSystem {
  /** A UUID in lower case. */
  readonly systemId: string;
  readonly keyId: Buffer;
  /** A whole `pssh` box. */
  readonly pssh?: Buffer | undefined;
  /** The XML that stands in `ContentProtection` of a DASH manifest. */
  readonly contentProtectionData?: string | undefined;
  readonly uriExtXKey?: string | undefined;
  readonly hlsMedia?: string | undefined;
  readonly hlsMultivariant?: string | undefined;
  /** A PlayReady object. */
  readonly protectionHeader?: Buffer | undefined;
  /** The empty elements of the document, by which a request asks for them. */
  readonly asked: readonly CpixSignal[];
}

export type CpixPeriod = { readonly [Name in (typeof PERIOD_ATTRIBUTES)[number]]?: string | undefined };
export const PERIOD_ATTRIBUTES = ['id', 'index', 'start', 'end', 'startOffset', 'endOffset'] as const;

/** The limits of a video or audio filter, as the document has them: `{ maxPixels: '589824' }`. */
export type CpixLimits = { readonly [Name in (typeof LIMIT_ATTRIBUTES)[number]]?: string | undefined };
export const LIMIT_ATTRIBUTES = [
  ...(['minPixels', 'maxPixels', 'hdr', 'wcg', 'minFps', 'maxFps'] as const),
  ...(['minChannels', 'maxChannels'] as const),
];

/** The use of a key. Filters of one kind are alternatives; one of each kind there is must fit. */
export interface CpixRule {
  readonly keyId: Buffer;
  /** Free text: `SD`, `HD`, `AUDIO`, `ALL`. */
  readonly intendedTrackType?: string | undefined;
  readonly periods: readonly string[];
  readonly labels: readonly string[];
  readonly video: readonly CpixLimits[];
  readonly audio: readonly CpixLimits[];
  readonly isOfBitrates: boolean;
  readonly unknownFilters: readonly string[];
}

/** By the UUID of the key id. */
export function byKeyId<Item extends { readonly keyId: Buffer }>(
  items: readonly Item[],
): Map<string, Item[]> {
  return groupedBy(items, ({ keyId }) => formatUuid(keyId));
}

export const EMPTY_DOCUMENT: CpixDocument = {
  isSigned: false,
  deliveries: [],
  keys: [],
  systems: [],
  periods: [],
  rules: [],
};

export const NO_FILTERS: Omit<CpixRule, 'keyId' | 'intendedTrackType'> = {
  periods: [],
  labels: [],
  video: [],
  audio: [],
  isOfBitrates: false,
  unknownFilters: [],
};

export const THE_DOCUMENT = { called: 'The CPIX document' };

export function documentWarning(code: string, description: string): Finding {
  return warning(code, THE_DOCUMENT, description);
}

export const CPIX_NAMESPACE = 'urn:dashif:org:cpix';
export const PSKC_NAMESPACE = 'urn:ietf:params:xml:ns:keyprov:pskc';
export const ENCRYPTION_NAMESPACE = 'http://www.w3.org/2001/04/xmlenc#';
export const SIGNATURE_NAMESPACE = 'http://www.w3.org/2000/09/xmldsig#';
/** AWS, "SPEKE v1": elements of its own. */
export const SPEKE_NAMESPACE = 'urn:aws:amazon:com:speke';

/** FairPlay's system id, which stands in CPIX documents alone: no box has it. */
export const FAIRPLAY_SYSTEM_ID = '94ce86fb-07ff-4f43-adb8-93d2fa968ca2';

export type CpixSystemName = 'widevine' | 'playready' | 'fairplay';

export const CPIX_SYSTEM_IDS: Readonly<Record<CpixSystemName, string>> = {
  widevine: WIDEVINE_SYSTEM_ID,
  playready: PLAYREADY_SYSTEM_ID,
  fairplay: FAIRPLAY_SYSTEM_ID,
};
export const CPIX_SYSTEMS = Object.keys(CPIX_SYSTEM_IDS) as CpixSystemName[];

export function cpixSystemOf(systemId: string): CpixSystemName | undefined {
  return CPIX_SYSTEMS.find((name) => CPIX_SYSTEM_IDS[name] === systemId);
}
