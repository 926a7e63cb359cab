import { uuidOfName } from '../bytes';
import {
  type CpixDocument,
  type CpixRule,
  type CpixSignal,
  type CpixSystemName,
  EMPTY_DOCUMENT,
  NO_FILTERS,
} from './document';
import { cpixSystem } from './signalling';
import { SPEKE_TRACKS } from './usage-rules';
import { writeCpix } from './write';

/** AWS, "Secure Packager and Encoder Key Exchange API", v1.0, v2.0 and v2.1. */
export type SpekeVersion = 1 | 2 | 2.1;

/** The version of CPIX that goes with each of SPEKE; version 1 names none. */
export const CPIX_VERSIONS = { 2: '2.3', 2.1: '2.4' } as const;

/** The schemes that a request asks for: one each, since providers refuse documents that mix them. */
export type SpekeScheme = 'cenc' | 'cbcs';

export interface SpekeQuestion {
  readonly version: SpekeVersion;
  readonly contentId: string;
  /** Track types of `SPEKE_TRACKS`, or several joined by `+`, for a key each; without them, one key for all tracks. */
  readonly tracks?: readonly string[] | undefined;
  readonly scheme: SpekeScheme;
  /** Of the systems that the scheme is for, those to ask for; without them, all. */
  readonly systems?: readonly CpixSystemName[] | undefined;
  /** DER. With one, the values of the answer come encrypted for it. */
  readonly certificate?: Buffer | undefined;
}

/** A namespace of this project's own, made at random once. */
const NAMESPACE = Buffer.from('c7c5b7f2a0d94b1c9a53d4c1f0f6e2a8', 'hex');

/** Of version 5: the same content has the same key ids. A provider may answer others. No id has a colon. */
export function spekeKeyId(contentId: string, scheme: SpekeScheme, track?: string): Buffer {
  return uuidOfName(NAMESPACE, `${scheme}:${contentId}${track === undefined ? '' : `:${track}`}`);
}

/** AWS's reference server answers v1 only where the elements stand ready. */
function askedOf(version: SpekeVersion, scheme: SpekeScheme): [CpixSystemName, CpixSignal[]][] {
  if (scheme === 'cbcs')
    return [['fairplay', version === 1 ? ['uriExtXKey'] : ['hlsMedia', 'hlsMultivariant']]];
  return [
    ['widevine', ['pssh', 'contentProtectionData']],
    ['playready', ['pssh', 'contentProtectionData', 'protectionHeader']],
  ];
}

export function writeSpekeRequest(question: SpekeQuestion): string {
  const { version, contentId, scheme, systems: wanted, certificate, tracks } = question;
  const asked = askedOf(version, scheme).filter(([system]) => wanted?.includes(system) ?? true);
  const keyIdOf = (track?: string) => spekeKeyId(contentId, scheme, track);
  const named = (tracks ?? [undefined]).map((track) => ({ track, keyId: keyIdOf(track) }));
  const document: CpixDocument = {
    ...EMPTY_DOCUMENT,
    deliveries: certificate ? [{ certificate, documentKeys: [], mac: undefined }] : [],
    keys: named.map(({ keyId }) => (version === 1 ? { keyId } : { keyId, scheme })),
    systems: named.flatMap(({ keyId }) =>
      asked.map(([system, signals]) => ({ ...cpixSystem(system, keyId, {}), asked: signals })),
    ),
    rules: named.map(({ keyId, track }) => ruleOf(keyId, track)),
  };
  if (version !== 1) return writeCpix({ ...document, contentId, version: CPIX_VERSIONS[version] });
  return writeCpix({ ...document, id: contentId, rules: tracks ? document.rules : [] }, true);
}

function ruleOf(keyId: Buffer, track: string | undefined): CpixRule {
  if (track === undefined)
    return { ...NO_FILTERS, keyId, intendedTrackType: 'ALL', video: [{}], audio: [{}] };
  const parts = track.split('+');
  const filters = (isOfSound: boolean) =>
    parts.filter((part) => part.includes('AUDIO') === isOfSound).map((part) => SPEKE_TRACKS[part] ?? {});
  return { ...NO_FILTERS, keyId, intendedTrackType: track, video: filters(false), audio: filters(true) };
}
