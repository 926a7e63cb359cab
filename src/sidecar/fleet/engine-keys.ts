import { parseStreamId, type StreamId } from '../../api/stream-id';
import type { KeyRange } from './engine/engine';

/** The rule of `PACKAGERDRMAPI_FLEET_NAME`; names in the engine may be anybody's. */
export const PACKAGER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export type EngineKeys = ReturnType<typeof engineKeysUnder>;

/** The keys of a fleet in the engine. The prefix of all ends in a slash. */
export function engineKeysUnder(prefix: string) {
  const entries = `${prefix}keys/`;
  const [packagers, lives, reports] = [`${prefix}packagers/`, `${prefix}live/`, `${prefix}reports/`];
  return {
    /** The description of the fleet: its id, sealed. */
    fleet: `${prefix}fleet`,
    entry: (streamId: StreamId) => `${entries}${streamId}`,
    /** The stream of an entry's key; undefined: it is no such key. */
    streamOf(key: string): StreamId | undefined {
      const parsed = parseStreamId(key.startsWith(entries) ? key.slice(entries.length) : '');
      return parsed.ok ? parsed.value : undefined;
    },
    everyEntry: { prefix: entries },
    /** The ranges of the entries with some stream-id prefixes; undefined: one range of all. */
    entries: (prefixes: readonly string[] | undefined): readonly KeyRange[] =>
      followed(prefixes).map((streamPrefix) => ({ prefix: `${entries}${streamPrefix}` })),
    /** The registration of a packager, until it is retired. */
    packager: (name: string) => `${packagers}${name}`,
    packagers: { prefix: packagers },
    /** Exists while the packager's sidecar runs. */
    live: (name: string) => `${lives}${name}`,
    lives: { prefix: lives },
    /** The report of a packager. */
    report: (name: string) => `${reports}${name}`,
    reports: { prefix: reports },
    /** The name of the packager in a key of one of these three ranges; undefined: it is none. */
    nameOf(key: string, range: KeyRange): string | undefined {
      const name = key.slice(range.prefix.length);
      return PACKAGER_NAME.test(name) ? name : undefined;
    },
  };
}

/** The prefixes that a packager follows, one range each: those that no other one covers, each once, sorted. */
export function followed(streams: readonly string[] | undefined): readonly string[] {
  return [...new Set(streams ?? [''])]
    .sort()
    .filter((prefix, _at, all) => !all.some((other) => other !== prefix && prefix.startsWith(other)));
}

/** Returns the revision up to which a packager has a stream that it takes; -1: it has nothing of it yet. */
export function appliedTo(streams: readonly string[] | undefined, applied: readonly number[]) {
  const prefixes = followed(streams);
  return (streamId: string): number =>
    applied[prefixes.findIndex((prefix) => streamId.startsWith(prefix))] ?? -1;
}
