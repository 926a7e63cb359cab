import { uuidOfName } from '../bytes';
import { type CpixSignal, type CpixSystemName, EMPTY_DOCUMENT, NO_FILTERS } from './document';
import { cpixSystem } from './signals';
import { writeCpix } from './write';

/** The schemes that a request asks for: one each, since providers refuse documents that mix them. */
export type SpekeScheme = 'cenc' | 'cbcs';

export interface SpekeQuestion {
  /** AWS, "Secure Packager and Encoder Key Exchange API", v1.0 and v2.0. */
  readonly version: 1 | 2;
  readonly contentId: string;
  readonly scheme: SpekeScheme;
  /** Of the systems that the scheme is for, those to ask for; without them, all. */
  readonly systems?: readonly CpixSystemName[] | undefined;
  /** DER. With one, the values of the answer come encrypted for it. */
  readonly certificate?: Buffer | undefined;
}

/** A namespace of this project's own, made at random once. */
const NAMESPACE = Buffer.from('c7c5b7f2a0d94b1c9a53d4c1f0f6e2a8', 'hex');

/** The version 5 UUID of content id and scheme, so that the same content has the same keys. A provider may answer another. */
export function spekeKeyId(contentId: string, scheme: SpekeScheme): Buffer {
  return uuidOfName(NAMESPACE, `${scheme}:${contentId}`);
}

type Asked = readonly (readonly [CpixSystemName, readonly CpixSignal[]])[];

const OF_CENC: Asked = [
  ['widevine', ['pssh', 'contentProtectionData']],
  ['playready', ['pssh', 'contentProtectionData', 'protectionHeader']],
];

/** AWS's reference server answers v1 only where the elements stand ready. */
const ASKED: Readonly<Record<1 | 2, Readonly<Record<SpekeScheme, Asked>>>> = {
  1: { cenc: OF_CENC, cbcs: [['fairplay', ['uriExtXKey']]] },
  2: { cenc: OF_CENC, cbcs: [['fairplay', ['hlsMedia', 'hlsMultivariant']]] },
};

/** The document that a SPEKE provider is asked with: the key, and empty elements for what it is to fill in. */
export function writeSpekeRequest({
  version,
  contentId,
  scheme,
  systems: wanted,
  certificate,
}: SpekeQuestion): string {
  const keyId = spekeKeyId(contentId, scheme);
  const systems = ASKED[version][scheme]
    .filter(([system]) => wanted?.includes(system) ?? true)
    .map(([system, asked]) => ({ ...cpixSystem(system, keyId, {}), asked }));
  const deliveries = certificate ? [{ certificate, documentKeys: [], mac: undefined }] : [];
  const common = { ...EMPTY_DOCUMENT, deliveries, systems };
  if (version === 1) return writeCpix({ ...common, id: contentId, keys: [{ keyId }] }, 'speke1');
  const rule = { ...NO_FILTERS, keyId, intendedTrackType: 'ALL', video: [{}], audio: [{}] };
  return writeCpix({ ...common, contentId, version: '2.3', keys: [{ keyId, scheme }], rules: [rule] });
}
