import { formatUuid } from '../bytes';
import { systemName } from '../check/boxes';
import { type Finding, warning } from '../finding';
import {
  byKeyId,
  type CpixDocument,
  type CpixKey,
  type CpixRule,
  cpixSystemOf,
  THE_DOCUMENT,
} from './document';
import { isForSound } from './usage-rules';

/** Keys without a DRMSystem in a document that has known systems for others. */
export function bareKeys({ keys, systems }: CpixDocument): readonly CpixKey[] {
  if (!systems.some(({ systemId }) => cpixSystemOf(systemId))) return [];
  const kids = byKeyId(systems);
  return keys.filter(({ keyId }) => !kids.has(formatUuid(keyId)));
}

/**
 * Keys that the caller may miss. A separate key for audio fits no key file: the packager encrypts all tracks with one.
 * @param present the keys of the key period that the systems are for
 * @param rules the usage rules in force, by the UUID of their key
 */
export function leftOutFindings(
  document: CpixDocument,
  taken: readonly CpixKey[],
  present: readonly CpixKey[],
  rules: ReadonlyMap<string, readonly CpixRule[]>,
): Finding[] {
  const every = byKeyId(document.rules);
  const isOfSound = ({ keyId }: CpixKey) => {
    const kid = formatUuid(keyId);
    return isForSound(rules.get(kid) ?? every.get(kid) ?? []);
  };
  const bare = bareKeys(document);
  const left = [...new Set([...present, ...bare])].filter((key) => !taken.includes(key));
  const sound = taken.every(isOfSound) ? [] : left.filter(isOfSound);
  const others = left.filter((key) => bare.includes(key) && !isOfSound(key));
  const ofSound = `has a separate key for audio (${idsOf(sound)}), which is left out: one key is for all tracks`;
  const ofOthers = `has keys without a DRMSystem (${idsOf(others)}), which are left out; choose by track or kid if one is meant`;
  return [
    ...(sound.length > 0 ? [warning('audio_key_left_out', THE_DOCUMENT, ofSound)] : []),
    ...(others.length > 0 ? [warning('cpix_key_left_out', THE_DOCUMENT, ofOthers)] : []),
  ];
}

const MAX_IDS = 3;

function idsOf(keys: readonly CpixKey[]): string {
  const ids = keys.slice(0, MAX_IDS).map(({ keyId }) => formatUuid(keyId));
  return `${ids.join(', ')}${keys.length > ids.length ? ` and ${keys.length - ids.length} more` : ''}`;
}

const MAX_NAMES = 6;

/** The systems of keys for which a key file has no lines. */
export function skippedSystems({ systems }: CpixDocument, taken: readonly CpixKey[]): Finding[] {
  const ids = taken.flatMap(({ keyId }) => byKeyId(systems).get(formatUuid(keyId)) ?? []);
  const names = new Set(
    ids.flatMap(({ systemId }) => (cpixSystemOf(systemId) ? [] : (systemName(systemId) ?? systemId))),
  );
  if (names.size === 0) return [];
  const shown = [...names].slice(0, MAX_NAMES).join(', ');
  const sentence = `has DRM systems that are not supported (${shown}); they are left out`;
  return [warning('cpix_systems_skipped', THE_DOCUMENT, sentence)];
}
