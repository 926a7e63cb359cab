import { formatUuid } from '../bytes';
import type { CpixKey, CpixPeriod, CpixRule } from './document';

const MAX_LISTED = 12;
const MAX_NAMES = 4;
const MAX_CHARACTERS = 40;

/** A text out of a document as a message may have it. */
export function shown(text: string): string {
  const plain = text.replaceAll(/[^\x20-\x7e]|"/g, '?');
  return plain.length > MAX_CHARACTERS ? `${plain.slice(0, MAX_CHARACTERS)}...` : plain;
}

/** The names that a rule gives its key. */
export function namesOf({ intendedTrackType, labels }: CpixRule): string[] {
  return [...(intendedTrackType === undefined ? [] : [intendedTrackType]), ...labels];
}

function tracksOf(rules: readonly CpixRule[]): string[] {
  const byFilter = rules.flatMap((rule) => {
    if (rule.intendedTrackType !== undefined || rule.isOfVideo === rule.isOfAudio) return [];
    return [rule.isOfVideo ? 'VIDEO' : 'AUDIO'];
  });
  return [...new Set([...rules.flatMap(namesOf), ...byFilter])].filter((name) => name !== '');
}

/** Keys to choose from: what they are for, and their ids. */
export function listKeys(keys: readonly CpixKey[], rules: readonly CpixRule[]): string {
  const listed = keys.slice(0, MAX_LISTED).map(({ keyId }) => {
    const names = tracksOf(rules.filter((rule) => rule.keyId.equals(keyId)));
    const kid = `kid ${formatUuid(keyId)}`;
    return names.length === 0 ? kid : `${join(names.map(shown), MAX_NAMES)} (${kid})`;
  });
  return withMore(listed, keys.length);
}

/** The track types and labels of rules. */
export function listTracks(rules: readonly CpixRule[]): string {
  return join(tracksOf(rules).map(shown), MAX_LISTED);
}

/** The key periods that there are, or that rules name. */
export function listPeriods(periods: readonly CpixPeriod[], rules: readonly CpixRule[]): string {
  const named = periods.flatMap(({ id, index }) => {
    if (id === undefined) return index === undefined ? [] : [`index ${shown(index)}`];
    return [index === undefined ? shown(id) : `${shown(id)} (index ${shown(index)})`];
  });
  const known = new Set(periods.map(({ id }) => id));
  const others = new Set(rules.flatMap((rule) => rule.periods.filter((id) => !known.has(id))));
  return join([...named, ...[...others].map(shown)], MAX_LISTED);
}

function join(names: readonly string[], most: number): string {
  return withMore(names.slice(0, most), names.length);
}

function withMore(listed: readonly string[], count: number): string {
  return [...listed, ...(count > listed.length ? [`${count - listed.length} more`] : [])].join(', ');
}
