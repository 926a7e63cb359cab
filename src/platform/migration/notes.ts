import { unknownName } from '../../drm/nearest';
import { describeMapping, type RouteMapping } from './mapping/routes';
import { ADVICE, CONTRACT } from './mapping/sentences';
import type { V2Parts } from './parameters';

type NoteKind = 'changed' | 'beware' | 'removed' | 'unsupported' | 'unknown';

/** What is different in v2, with the sentence of the contract that says so, if one does. */
export interface Note {
  readonly kind: NoteKind;
  /** The parameter that it is about. */
  readonly field?: string;
  readonly sentence: string;
  /** Whether somebody must decide or complete something. */
  readonly byHand: boolean;
}

/** A name that may be anything; what looks like a key, in the wrong place, is not shown. */
function shownName(name: string): string {
  const isCamel = /^[a-z]{1,20}(?:[A-Z][a-z]{1,20}){0,5}$/.test(name);
  return isCamel ? name : (unknownName(name, []).shown ?? 'a parameter');
}

/** Notes in the order in which they came, each once. */
export class Notes {
  readonly #notes = new Map<string, Note>();

  add(kind: NoteKind, sentence: string, field?: string, byHand = false): void {
    const shown = field === undefined ? undefined : shownName(field);
    const note = { kind, ...(shown !== undefined && { field: shown }), sentence, byHand };
    const key = JSON.stringify([kind, shown, sentence]);
    if (!this.#notes.has(key) || byHand) this.#notes.set(key, note);
  }

  /** What each call has to be told, and what its parameters say. */
  general(mapping: RouteMapping, parts: V2Parts): void {
    this.add('changed', describeMapping(mapping));
    this.add('changed', CONTRACT.bearer);
    if (mapping.sentence !== undefined) this.add('changed', mapping.sentence);
    this.add('beware', `${CONTRACT.v1Error} ${CONTRACT.v2Error}`);
    if (parts.authentication.includes('api_format')) this.add('removed', ADVICE.format, 'api_format');
    for (const { v1, removed, sentence, byHand } of parts.used) {
      if (removed) this.add('removed', sentence ?? ADVICE.noParameter, v1, byHand === true);
      else if (sentence !== undefined) this.add('changed', sentence, v1);
    }
    for (const name of parts.options) this.add('changed', CONTRACT.player, name);
    for (const { field, sentence, byHand } of parts.list?.notes ?? [])
      this.add(byHand ? 'beware' : 'changed', sentence, field, byHand);
    for (const { field, fault } of parts.faults)
      this.add('beware', `The value ${fault}; it is left out.`, field, true);
    for (const { field, near } of parts.unknown) {
      const meant = near === undefined ? '' : ` Did you mean \`${near}\`?`;
      this.add('unknown', `${ADVICE.noParameter}${meant}`, field, true);
    }
  }

  /** Placeholders of the paths that nothing of the call fills and no call before answers. */
  missing({ v2, action, resource }: RouteMapping, calls: readonly { readonly path: string }[]): void {
    const found = new Set(calls.flatMap(({ path }) => placeholders(path)));
    for (const name of found) {
      const isOfBefore = resource === 'thumbnail' || (name === 'playlist_type' && calls.length > 1);
      const isSaid = name === 'media_id' && (resource === 'conversion' || resource === 'track');
      if (name === 'site_id' || isOfBefore || isSaid) continue;
      if (!v2.some(({ path }) => path.includes(`{${name}}`))) continue;
      this.add(
        'beware',
        `v1 could not ${action} without the key that is \`${name}\` in v2.`,
        undefined,
        true,
      );
    }
  }

  list(): Note[] {
    return [...this.#notes.values()];
  }
}

/** The names in braces of a path. */
export function placeholders(path: string): string[] {
  return [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name);
}
