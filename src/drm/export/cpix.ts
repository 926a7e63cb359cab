import type { CpixDocument, CpixSignal, CpixSystem } from '../cpix/document';
import { cpixSystem, fairPlaySignals, playReadySignals, widevineSignals } from '../cpix/signals';
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

function systemsOf({ keyId, systems, keyUri, scheme }: StreamKey): CpixSystem[] {
  const signalled = systems.map(({ systemId, data }) =>
    systemId === WIDEVINE_SYSTEM_ID
      ? cpixSystem('widevine', keyId, widevineSignals(keyId, data, scheme), OF_DASH)
      : cpixSystem('playready', keyId, playReadySignals(data, scheme), OF_DASH),
  );
  // The address stands for itself, too, as SPEKE v1 and older readers take it.
  const ofFairPlay = keyUri === undefined ? [] : [cpixSystem('fairplay', keyId, fairPlaySignals(keyUri))];
  return [...signalled, ...ofFairPlay];
}

const OF_DASH: readonly CpixSignal[] = ['pssh', 'contentProtectionData', 'protectionHeader'];
