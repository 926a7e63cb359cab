import { type CpixDocument, type CpixSystem, FAIRPLAY_SYSTEM_ID } from '../cpix/document';
import { FAIRPLAY_KEY_FORMAT } from '../key-file';
import { boxOf, type DrmSystemData } from '../packaging';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';
import type { StreamKey } from './stream-key';

/**
 * The CPIX document of some keys, each with its scheme. It has no usage rules: a single key without any is for all
 * tracks, while packagers disagree about what a rule for all tracks is.
 */
export function cpixDocumentOf(keys: readonly StreamKey[]): CpixDocument {
  return {
    id: undefined,
    contentId: undefined,
    version: '2.3',
    isSigned: false,
    deliveries: [],
    keys: keys.map(({ keyId, key, iv, scheme }) => ({
      keyId,
      value: { kind: 'plain', bytes: key },
      explicitIv: iv,
      scheme,
    })),
    systems: keys.flatMap(systemsOf),
    periods: [],
    rules: [],
  };
}

function systemsOf({ keyId, systems, keyUri }: StreamKey): CpixSystem[] {
  const signalled = systems.map((system) => ({ ...BARE, keyId, ...signalsOf(system) }));
  return keyUri === undefined ? signalled : [...signalled, { ...BARE, keyId, ...fairPlaySignals(keyUri) }];
}

const BARE = {
  pssh: undefined,
  contentProtectionData: undefined,
  uriExtXKey: undefined,
  hlsMedia: undefined,
  hlsMultivariant: undefined,
  protectionHeader: undefined,
  asked: [],
};

type Signals = Pick<CpixSystem, 'systemId'> & Partial<CpixSystem>;

/** Of one root each, and without prefixes: Unified's packager takes no other `ContentProtectionData`. */
const MANIFEST_ELEMENTS: Readonly<Record<string, (system: DrmSystemData) => string>> = {
  [WIDEVINE_SYSTEM_ID]: (system) =>
    `<pssh xmlns="urn:mpeg:cenc:2013">${boxOf(system).toString('base64')}</pssh>`,
  [PLAYREADY_SYSTEM_ID]: ({ data }) =>
    `<pro xmlns="urn:microsoft:playready">${data.toString('base64')}</pro>`,
};

function signalsOf(system: DrmSystemData): Signals {
  const { systemId, data } = system;
  return {
    systemId,
    pssh: boxOf(system),
    contentProtectionData: MANIFEST_ELEMENTS[systemId]?.(system),
    ...(systemId === PLAYREADY_SYSTEM_ID && { protectionHeader: data }),
  };
}

/** The address stands for itself, too, as SPEKE v1 and older readers take it. */
function fairPlaySignals(keyUri: string): Signals {
  const attributes = `METHOD=SAMPLE-AES,URI="${keyUri}",KEYFORMAT="${FAIRPLAY_KEY_FORMAT}",KEYFORMATVERSIONS="1"`;
  return {
    systemId: FAIRPLAY_SYSTEM_ID,
    uriExtXKey: keyUri,
    hlsMedia: `#EXT-X-KEY:${attributes}`,
    hlsMultivariant: `#EXT-X-SESSION-KEY:${attributes}`,
  };
}
