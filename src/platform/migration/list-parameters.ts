import { LIST_PARAMETERS, type ListParameter, listedName, searchedFields, V1_LIMIT } from './mapping/lists';
import type { RouteMapping } from './mapping/routes';
import { ADVICE, CONTRACT } from './mapping/sentences';
import { isPlaceholder, splitList, toV2Value } from './mapping/values';

/** What became of a parameter of a list, and whether somebody has to look at it. */
interface ListNote {
  readonly field: string;
  readonly sentence: string;
  readonly byHand: boolean;
}

/** A list of v1 as v2 asks for it. */
export interface ListQuery {
  /** `page`, `page_length`, `sort` and `q`, those that are needed. */
  readonly query: Readonly<Record<string, string>>;
  /** The window that v1 asked for, where it is known. A `page` that begins elsewhere has a note. */
  readonly limit: number | undefined;
  readonly offset: number | undefined;
  readonly notes: readonly ListNote[];
  readonly faults: readonly { readonly field: string; readonly fault: string }[];
}

/** Whether a route's list takes a parameter of this name; `search:title` and its like are `search`. */
export function isListParameter({ resource, action }: RouteMapping, name: string): boolean {
  return action === 'list' && parameterOf(LIST_PARAMETERS[resource] ?? [], name) !== undefined;
}

function parameterOf(known: readonly ListParameter[], name: string): ListParameter | undefined {
  return known.find(({ v1, kind }) => v1 === name || (kind === 'search' && name.startsWith('search:')));
}

/**
 * Reads the parameters of a list; those that are none of a list are left to others.
 * @param searchesCustom whether the v2 that is asked searches in all custom parameters at once, as the emulator does.
 */
export function readListParameters(
  mapping: RouteMapping,
  parameters: Readonly<Record<string, string>>,
  searchesCustom: boolean,
): ListQuery | undefined {
  const known = LIST_PARAMETERS[mapping.resource];
  if (mapping.action !== 'list' || !known) return undefined;
  const reader = new ListReader(mapping, parameters, searchesCustom);
  for (const [name, text] of Object.entries(parameters)) {
    const parameter = parameterOf(known, name);
    if (parameter) reader.read(parameter, name, text);
  }
  return reader.finish();
}

class ListReader {
  readonly #mapping: RouteMapping;
  readonly #parameters: Readonly<Record<string, string>>;
  readonly #searchesCustom: boolean;
  readonly #clauses: string[] = [];
  /** The two ends of the range of each field. */
  readonly #ranges = new Map<string, { since: string; until: string }>();
  readonly #notes: ListNote[] = [];
  readonly #faults: { field: string; fault: string }[] = [];
  #limit: string | undefined;
  #offset: string | undefined;
  #sort: string | undefined;

  constructor(mapping: RouteMapping, parameters: Readonly<Record<string, string>>, searchesCustom: boolean) {
    this.#mapping = mapping;
    this.#parameters = parameters;
    this.#searchesCustom = searchesCustom;
  }

  read(parameter: ListParameter, name: string, text: string): void {
    // v1 took an empty filter for none.
    if (text.trim() === '') return;
    switch (parameter.kind) {
      case 'limit':
        this.#limit = this.#wholeNumber(name, text);
        break;
      case 'offset':
        this.#offset = this.#wholeNumber(name, text);
        break;
      case 'sort':
        this.#readSort(name, text);
        break;
      case 'search':
        this.#readSearch(name, text);
        break;
      case 'tags':
        this.#readTags(name, text);
        break;
      case 'tags_mode':
        break;
      case 'any_of':
        this.#anyOf(splitList(text).map((word) => `${parameter.v2}: ${quoted(word)}`));
        this.#note(name, CONTRACT.filter);
        break;
      case 'is':
        this.#clauses.push(`${parameter.v2}: ${quoted(text)}`);
        this.#note(name, CONTRACT.filter);
        break;
      default:
        this.#readBound(parameter, name, text);
    }
  }

  #wholeNumber(field: string, text: string): string | undefined {
    if (isPlaceholder(text) || /^\d{1,15}$/.test(text)) return text;
    this.#faults.push({ field, fault: 'must be a whole number, 0 or more' });
    return undefined;
  }

  #readSort(field: string, text: string): void {
    if (isPlaceholder(text)) {
      this.#sort = text;
      this.#note(field, ADVICE.sort, true);
      return;
    }
    const sorts: string[] = [];
    for (const part of splitList(text)) {
      const [v1 = '', direction = 'asc'] = part.split(':');
      const name = listedName(this.#mapping.resource, v1);
      const order = { asc: 'asc', desc: 'dsc', dsc: 'dsc' }[direction.toLowerCase()];
      if (name === undefined) this.#note(field, `\`${v1.slice(0, 100)}\`: ${ADVICE.noSort}`, true);
      else if (order === undefined) this.#faults.push({ field, fault: 'must be as date:asc or date:desc' });
      else sorts.push(`${name}:${order}`);
    }
    if (sorts.length === 0) return;
    this.#sort = sorts.join(',');
    this.#note(field, ADVICE.sort);
  }

  #readSearch(field: string, text: string): void {
    const { resource } = this.#mapping;
    const named = splitList(field.slice('search:'.length));
    const fields = named.flatMap((name) => (name === '*' ? searchedFields(resource, true) : name));
    const clauses: string[] = [];
    for (const v1 of named.length > 0 ? fields : searchedFields(resource, false)) {
      const isAllCustom = v1 === 'custom.*';
      const name = isAllCustom && !this.#searchesCustom ? undefined : listedName(resource, v1);
      if (name !== undefined) clauses.push(`${name}: ${holding(text)}`);
      else if (isAllCustom) this.#note(field, ADVICE.customSearch, true);
      else if (named.includes(v1)) this.#note(field, `\`${v1.slice(0, 100)}\`: ${ADVICE.noSort}`, true);
    }
    this.#anyOf(clauses);
    if (clauses.length > 0) this.#note(field, ADVICE.search);
  }

  #readTags(field: string, text: string): void {
    const clauses = splitList(text).map((tag) => `tags: ${quoted(tag)}`);
    const mode = this.#parameters.tags_mode || 'all';
    if (mode === 'any') this.#anyOf(clauses);
    else this.#clauses.push(...clauses);
    if (!['all', 'any'].includes(mode)) {
      this.#faults.push({ field: 'tags_mode', fault: 'must be all or any' });
    }
    this.#note(field, CONTRACT.filter);
  }

  #readBound({ kind, v2 }: Extract<ListParameter, { kind: 'since' | 'until' }>, field: string, text: string) {
    const date = toV2Value('date', text);
    if (!date.ok) {
      this.#faults.push({ field, fault: date.fault });
      return;
    }
    const range = this.#ranges.get(v2) ?? { since: '*', until: '*' };
    range[kind] = String(date.value);
    this.#ranges.set(v2, range);
    this.#note(field, ADVICE.dateRange);
  }

  #anyOf(clauses: readonly string[]): void {
    if (clauses.length > 1) this.#clauses.push(`(${clauses.join(' OR ')})`);
    else this.#clauses.push(...clauses);
  }

  #note(field: string, sentence: string, byHand = false): void {
    this.#notes.push({ field, sentence, byHand });
  }

  finish(): ListQuery {
    const limit = this.#limit ?? String(V1_LIMIT);
    const offset = this.#offset ?? '0';
    const clauses = [...this.#clauses];
    for (const [field, { since, until }] of this.#ranges) clauses.push(`${field}: [${since} TO ${until}]`);
    const query = {
      ...this.#page(limit, offset),
      ...(this.#sort !== undefined && { sort: this.#sort }),
      ...(clauses.length > 0 && { q: clauses.join(' AND ') }),
    };
    return {
      query,
      limit: isPlaceholder(limit) ? undefined : Number(limit),
      offset: isPlaceholder(offset) ? undefined : Number(offset),
      notes: this.#notes,
      faults: this.#faults,
    };
  }

  #page(limit: string, offset: string): Record<string, string> {
    if (this.#limit === undefined) this.#note('result_limit', ADVICE.pageLength);
    if (limit === '0') {
      this.#note('result_limit', ADVICE.limit, true);
      return {};
    }
    if (isPlaceholder(limit) || isPlaceholder(offset)) {
      const needsPage = offset !== '0';
      if (needsPage) this.#note('result_offset', ADVICE.pageOfRest, true);
      return { ...(needsPage && { page: '{page}' }), page_length: limit };
    }
    const page = Math.floor(Number(offset) / Number(limit)) + 1;
    if (Number(offset) % Number(limit) !== 0) this.#note('result_offset', ADVICE.offset, true);
    return { ...(page > 1 && { page: String(page) }), page_length: limit };
  }
}

const escaped = (text: string) => text.replaceAll(/[\\"*]/g, '\\$&');

/** A value of `q`: one word as it is, anything else in quotes. */
function quoted(text: string): string {
  return /^\w+$/.test(text) ? text : `"${escaped(text)}"`;
}

/** In `q`, what a text must hold somewhere. */
function holding(text: string): string {
  return `"*${escaped(text)}*"`;
}
