import { checkPrefix } from '../../api/list';

/** One folder to look in, and how the names in it must begin. */
export interface Search {
  /** Below the key-file folder, parts divided by `/`; empty for the folder itself. */
  readonly folder: string;
  /** Beginnings of the names in the folder; an empty one lets every name pass. */
  readonly beginnings: readonly string[];
}

/**
 * Where the streams are that begin with `prefix` and that a key reaches whose stream ids begin with one of `reach`
 * (undefined: all). Together the searches find each stream once; there are none when the two exclude each other.
 */
export function searchesFor(prefix: string, reach: readonly string[] | undefined): Search[] {
  const wanted = (reach ?? [''])
    .filter((beginning) => checkPrefix(beginning).ok)
    .flatMap((beginning) => {
      if (prefix.startsWith(beginning)) return [prefix];
      return beginning.startsWith(prefix) ? [beginning] : [];
    });
  const folders = new Map<string, string[]>();
  for (const beginning of widest(wanted)) {
    const slash = beginning.lastIndexOf('/');
    const folder = beginning.slice(0, Math.max(slash, 0));
    const names = folders.get(folder) ?? [];
    names.push(beginning.slice(slash + 1));
    folders.set(folder, names);
  }
  return [...folders].map(([folder, beginnings]) => ({ folder, beginnings }));
}

/** The beginnings that no other one covers, each once. In their order a beginning comes before all that it covers. */
export function widest(beginnings: readonly string[]): string[] {
  const kept: string[] = [];
  for (const beginning of beginnings.toSorted()) {
    const last = kept.at(-1);
    if (last === undefined || !beginning.startsWith(last)) kept.push(beginning);
  }
  return kept;
}
