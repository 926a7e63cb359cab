import { formatUuid } from '../bytes';
import type { CpixDocument, CpixKey, CpixLimits, CpixPeriod, CpixRule } from './document';
import { refuseChoice } from './fault';

/** The track types of SPEKE, with the pixels and channels of their filters (AWS, "SPEKE v2.0 presets"). */
export const SPEKE_TRACKS: Readonly<Record<string, CpixLimits>> = {
  VIDEO: {},
  SD: { maxPixels: '589824' },
  HD: { minPixels: '589825', maxPixels: '2073600' },
  HD1: { minPixels: '589825', maxPixels: '921600' },
  HD2: { minPixels: '921601', maxPixels: '2073600' },
  UHD: { minPixels: '2073601' },
  UHD1: { minPixels: '2073601', maxPixels: '8847360' },
  UHD2: { minPixels: '8847361' },
  AUDIO: {},
  STEREO_AUDIO: { maxChannels: '2' },
  MULTICHANNEL_AUDIO: { minChannels: '3' },
  MULTICHANNEL_AUDIO_3_6: { minChannels: '3', maxChannels: '6' },
  MULTICHANNEL_AUDIO_7: { minChannels: '7' },
};

/** The rules that hold in a key period, which is named by its id, else by its index: those for it and those for all. */
export function rulesInPeriod(
  document: CpixDocument,
  rules: readonly CpixRule[],
  period: string,
): readonly CpixRule[] {
  const ids = idsOfPeriod(document, period);
  if (ids.size === 0) {
    const there = listPeriods(document.periods, document.rules);
    refuseChoice(there ? `has no such key period; it has ${there}` : 'has no key periods; leave period out');
  }
  return rules.filter(({ periods }) => periods.length === 0 || periods.some((id) => ids.has(id)));
}

/** An id wins over an index: a document may call its second period `1`. */
function idsOfPeriod({ periods, rules }: CpixDocument, asked: string): Set<string> {
  const isNamed = (id: string | undefined) => id === asked;
  if (periods.some(({ id }) => isNamed(id)) || rules.some((rule) => rule.periods.some(isNamed)))
    return new Set([asked]);
  return new Set(periods.filter(({ index }) => isNamed(index?.trim())).flatMap(({ id }) => id ?? []));
}

/** No period needs to be chosen where every one allows the same keys. */
export function requireSameInAllPeriods({ periods: named }: CpixDocument, rules: readonly CpixRule[]): void {
  const always = new Set(
    rules.filter(({ periods }) => periods.length === 0).map(({ keyId }) => keyId.toString('hex')),
  );
  const allowed = new Map<string, Set<string>>();
  for (const { keyId, periods } of rules) {
    const kid = keyId.toString('hex');
    for (const id of periods) {
      const kids = allowed.get(id) ?? new Set();
      allowed.set(id, always.has(kid) ? kids : kids.add(kid));
    }
  }
  if (new Set([...allowed.values()].map((kids) => [...kids].sort().join())).size < 2) return;
  refuseChoice(`has other keys in each key period; choose one by period: ${listPeriods(named, rules)}`);
}

export function requireKnownFilters(rules: readonly CpixRule[]): void {
  const unknown = [...new Set(rules.flatMap(({ unknownFilters }) => unknownFilters))];
  if (unknown.length === 0) return;
  const names = list(unknown.map(shown), MAX_NAMES);
  refuseChoice(`has usage rules with an unknown filter (${names}), so no track can be chosen; choose by kid`);
}

/** The meanings of a track, the nearest first; rules for all tracks are none of them. */
function meaningsOf(track: string): readonly ((rule: CpixRule) => boolean)[] {
  const wanted = track.toLowerCase();
  return [
    (rule) => namesOf(rule).includes(track),
    (rule) => namesOf(rule).some((name) => name.toLowerCase() === wanted),
    // AWS, "SPEKE v2": types that have one key are joined, as SD+HD1.
    ({ intendedTrackType = '' }) => intendedTrackType.toLowerCase().split('+').includes(wanted),
    (rule) => kindOf(rule)?.toLowerCase() === wanted,
  ];
}

/** The rules of the nearest meaning of a track, and at last the rules for all tracks. */
export function rulesOfTrack(rules: readonly CpixRule[], track: string): readonly CpixRule[] {
  for (const isMeant of [...meaningsOf(track), isOfAll]) {
    const found = rules.filter(isMeant);
    if (found.length > 0) return found;
  }
  return [];
}

export function hasTrack(rules: readonly CpixRule[], track: string): boolean {
  return meaningsOf(track).some((isMeant) => rules.some(isMeant));
}

function isOfAll(rule: CpixRule): boolean {
  const isUnnamed = namesOf(rule).length === 0 && kindOf(rule) === undefined;
  return isUnnamed || rule.intendedTrackType?.toLowerCase() === 'all';
}

function kindOf({ video, audio }: CpixRule): 'VIDEO' | 'AUDIO' | undefined {
  if (video.length > 0 === audio.length > 0) return undefined;
  return video.length > 0 ? 'VIDEO' : 'AUDIO';
}

export function isForSound(rules: readonly CpixRule[]): boolean {
  return rules.some((rule) => isOf(rule, 'AUDIO')) && !rules.some((rule) => isOf(rule, 'VIDEO'));
}

function isOf(rule: CpixRule, kind: 'VIDEO' | 'AUDIO'): boolean {
  const own = kindOf(rule);
  if (own !== undefined) return own === kind;
  return namesOf(rule).some((name) => name.toUpperCase().includes(kind));
}

function namesOf({ intendedTrackType, labels }: CpixRule): string[] {
  return [...(intendedTrackType === undefined ? [] : [intendedTrackType]), ...labels];
}

const MAX_LISTED = 12;
const MAX_NAMES = 4;
const MAX_CHARACTERS = 40;

function shown(text: string): string {
  const plain = text.replaceAll(/[^\x20-\x7e]|"/g, '?');
  return plain.length > MAX_CHARACTERS ? `${plain.slice(0, MAX_CHARACTERS)}...` : plain;
}

function list(names: readonly string[], most = MAX_LISTED): string {
  const more = names.length - most;
  return [...names.slice(0, most), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

export function listKeys(keys: readonly CpixKey[], rules: readonly CpixRule[]): string {
  const named = keys.map(({ keyId }, index) => {
    if (index >= MAX_LISTED) return '';
    const names = tracksOf(rules.filter((rule) => rule.keyId.equals(keyId)));
    const kid = `kid ${formatUuid(keyId)}`;
    return names.length === 0 ? kid : `${list(names.map(shown), MAX_NAMES)} (${kid})`;
  });
  return list(named);
}

export function listTracks(rules: readonly CpixRule[]): string {
  return list(tracksOf(rules).map(shown));
}

function tracksOf(rules: readonly CpixRule[]): string[] {
  const names = rules.flatMap((rule) => {
    const own = namesOf(rule);
    return own.length > 0 ? own : (kindOf(rule) ?? []);
  });
  return [...new Set(names)].filter((name) => name.trim() !== '');
}

function listPeriods(periods: readonly CpixPeriod[], rules: readonly CpixRule[]): string {
  const named = periods.flatMap(({ id, index }) => {
    if (id === undefined) return [];
    return [index === undefined ? shown(id) : `${shown(id)} (index ${shown(index)})`];
  });
  const known = new Set(periods.map(({ id }) => id));
  const others = new Set(rules.flatMap((rule) => rule.periods.filter((id) => !known.has(id))));
  return list([...named, ...[...others].map(shown)]);
}
