import { parseStreamId, type StreamId } from '../../api/stream-id';
import type { KeyRange } from './engine/engine';

/** Also checks names in the engine, which anyone may have written. */
export const PACKAGER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export type EngineKeys = ReturnType<typeof engineKeysUnder>;

/** `prefix` ends in a slash. */
export function engineKeysUnder(prefix: string) {
  const entries = `${prefix}keys/`;
  const [packagers, lives, reports] = [`${prefix}packagers/`, `${prefix}live/`, `${prefix}reports/`];
  return {
    /** The fleet's id, sealed. */
    fleet: `${prefix}fleet`,
    entry: (streamId: StreamId) => `${entries}${streamId}`,
    /** Undefined: the key is none of an entry. */
    streamOf(key: string): StreamId | undefined {
      if (!key.startsWith(entries)) return undefined;
      // Not a slice: that would keep the whole key in memory.
      const parsed = parseStreamId(Buffer.from(key, 'latin1').toString('latin1', entries.length));
      return parsed.ok ? parsed.value : undefined;
    },
    everyEntry: { prefix: entries },
    /** A range for each prefix; undefined: one range of all entries. */
    entries: (prefixes: readonly string[] | undefined): readonly KeyRange[] =>
      distinctPrefixes(prefixes).map((streamPrefix) => ({ prefix: `${entries}${streamPrefix}` })),
    /** Exists until the packager is retired. */
    packager: (name: string) => `${packagers}${name}`,
    packagers: { prefix: packagers },
    /** Exists while the packager's sidecar runs. */
    live: (name: string) => `${lives}${name}`,
    lives: { prefix: lives },
    report: (name: string) => `${reports}${name}`,
    reports: { prefix: reports },
    /** `range` is one of these three. Undefined: the key has no valid name of a packager. */
    nameOf(key: string, range: KeyRange): string | undefined {
      const name = key.slice(range.prefix.length);
      return PACKAGER_NAME.test(name) ? name : undefined;
    },
  };
}

/** Sorted, without duplicates and prefixes that another one covers: one range each. */
export function distinctPrefixes(streams: readonly string[] | undefined): readonly string[] {
  return [...new Set(streams ?? [''])]
    .sort()
    .filter((prefix, _at, all) => !all.some((other) => other !== prefix && prefix.startsWith(other)));
}

/** The revision up to which a packager has a stream that it takes; -1: it has nothing of it yet. */
export function appliedTo(streams: readonly string[] | undefined, applied: readonly number[]) {
  const prefixes = distinctPrefixes(streams);
  return (streamId: string): number =>
    applied[prefixes.findIndex((prefix) => streamId.startsWith(prefix))] ?? -1;
}
