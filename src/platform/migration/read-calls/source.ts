import type { SyntaxNode, Tree } from '@lezer/common';
import { isAuthentication } from '../mapping/fields';
import { findRoute, ROUTES } from '../mapping/routes';
import { isPlaceholder } from '../mapping/values';
import { addParameter, type FoundCall, readUrl, UnreadableInput } from './found-call';

/** A language whose calls are found, as its syntax tree names things. */
export interface Language {
  parse(text: string): Tree;
  /** By the name of a node, what looks at it; what it finds it tells the finder. */
  readonly readers: ReadonlyMap<string, (node: SyntaxNode, finder: Finder) => void>;
  /** The names of the nodes that are texts, or texts put together. */
  readonly texts: readonly string[];
  /** The text of such a node, with placeholders for what isn't known. */
  textOf(node: SyntaxNode, finder: Finder): string | undefined;
}

/** What an expression is, as far as the program's text alone says. */
export type Literal =
  | { readonly kind: 'text'; readonly text: string }
  /** Names and values; incomplete when some of them can't be known. */
  | { readonly kind: 'record'; readonly entries: Map<string, string>; isComplete: boolean }
  | { readonly kind: 'other' };

export const OTHER: Literal = { kind: 'other' };

/** The literals that all three grammars have, by the names that one or the other gives them. */
export function plainLiteral(node: SyntaxNode, finder: Finder, textOf: Language['textOf']): Literal {
  switch (node.name) {
    case 'Number':
    case 'Integer':
    case 'Float':
    case 'Boolean':
    case 'BooleanLiteral':
      return { kind: 'text', text: finder.textOf(node) };
    case 'UnaryExpression':
      return /^-[\d.]+$/.test(finder.textOf(node)) ? { kind: 'text', text: finder.textOf(node) } : OTHER;
    case 'VariableName':
      return finder.variable(finder.textOf(node));
    default: {
      const text = textOf(node, finder);
      return text === undefined ? OTHER : { kind: 'text', text };
    }
  }
}

/** The classes of v1, as `videos`, and its methods. */
const CLASSES = new Set(ROUTES.map(({ route }) => route.split('/')[2] ?? ''));
const METHODS = new Set([...ROUTES.map(({ action }) => action as string), 'list']);

/** Clients of other services have videos and channels, too. */
const OTHER_SERVICES = /youtube|google|vimeo|dailymotion|brightcove|wistia|twitch|slack/i;

const MAX_DEPTH = 40;
/** Brackets in brackets: behind that, parsing takes minutes. */
const MAX_NESTING = 5000;

const MENTION =
  /jw-?_?(?:platform|player)|bitsontherun|botr|longtail|\/v1\/(?:videos|channels|players|accounts|status)\b/i;
/** A client that was made elsewhere, by its name. */
const CLIENT = /jw|botr|platform/i;
const CLIENT_CALL = /(?:jw|botr|platform)\w*\s*\??\.\s*(?:videos|channels|players|accounts)\b/i;

/** Whether a program may call v1 at all: parsing each file of a large tree would take long. */
export function mayCallV1(text: string): boolean {
  return MENTION.test(text) || CLIENT_CALL.test(text);
}

/**
 * Finds the calls of v1 in a program; faulty programs are read as far as they can be.
 *
 * @throws UnreadableInput when it is nested deeper than a parser gets through in a reasonable time.
 */
export function findCalls(text: string, language: Language): FoundCall[] {
  if (isNestedDeeper(text, MAX_NESTING)) {
    throw new UnreadableInput(`is nested deeper than ${MAX_NESTING} brackets`);
  }
  const finder = new Finder(text);
  language.parse(text).iterate({
    // Only what is looked at becomes a node: making one takes longer the deeper it stands.
    enter: (place) => {
      const { name } = place;
      // All three grammars call the parameters of a function so.
      if (name === 'ParamList') finder.forget(place);
      const read = language.readers.get(name);
      if (read) read(place.node, finder);
      else if (language.texts.includes(name) && finder.mayHoldAddress(place)) {
        const { node } = place;
        const address = language.textOf(node, finder);
        if (address !== undefined) finder.foundAddress(node, address);
      }
    },
  });
  return finder.calls;
}

/** Whether more brackets are open at a time. Those in texts and comments count, too: nobody writes so many. */
function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  for (const [bracket] of text.matchAll(/[()[\]{}]/g)) {
    depth = '([{'.includes(bracket) ? depth + 1 : Math.max(0, depth - 1);
    if (depth > limit) return true;
  }
  return false;
}

interface Extent {
  readonly from: number;
  readonly to: number;
}

/** Collects the calls of one program, and what its variables hold, in the order of its text. */
export class Finder {
  readonly text: string;
  readonly calls: FoundCall[] = [];
  readonly #variables = new Map<string, Literal>();
  readonly #lineStarts: number[] = [0];
  readonly #isOfV1: boolean;
  /** Where `v1` stands next, from the place that was asked about last. */
  #version = -1;
  /** Addresses before this place belong to a call that is told. */
  #readUntil = 0;
  #depth = 0;

  constructor(text: string) {
    this.text = text;
    this.#isOfV1 = MENTION.test(text);
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.#lineStarts.push(at + 1);
  }

  /** Reads what can stand in itself: a program that is deeper than anybody writes is not read to its end. */
  nested<Value>(read: () => Value, otherwise: Value): Value {
    if (this.#depth >= MAX_DEPTH) return otherwise;
    this.#depth += 1;
    try {
      return read();
    } finally {
      this.#depth -= 1;
    }
  }

  textOf({ from, to }: Extent): string {
    return this.text.slice(from, to);
  }

  /** Whether a version stands in it, in a program that is asked about from its beginning to its end. */
  mayHoldAddress({ from, to }: Extent): boolean {
    if (this.#version < from) {
      const at = this.text.indexOf('v1', from);
      this.#version = at < 0 ? Number.POSITIVE_INFINITY : at;
    }
    return this.#version < to;
  }

  assign(name: string, value: Literal): void {
    this.#variables.set(name, value);
  }

  /** What a function is given can't be known, whatever had the same name before. */
  forget({ from, to }: Extent): void {
    for (const name of this.text.slice(from, to).match(/\$?\w+/g) ?? []) {
      this.#variables.delete(name);
    }
  }

  /** `name.key = value`: what was known of the variable grows. */
  assignField(name: string, key: string | undefined, value: string): void {
    let record = this.variable(name);
    if (record.kind !== 'record') {
      record = { kind: 'record', entries: new Map(), isComplete: false };
      this.#variables.set(name, record);
    }
    if (key === undefined) record.isComplete = false;
    else record.entries.set(key, value);
  }

  variable(name: string): Literal {
    return this.#variables.get(name) ?? OTHER;
  }

  /** A value as a parameter: its text, or a placeholder with the name of the variable that has it. */
  parameterOf(literal: Literal, node: SyntaxNode): string {
    if (literal.kind === 'text') return literal.text;
    return this.placeholder(node);
  }

  placeholder(node: SyntaxNode): string {
    const text = this.textOf(node).replaceAll('->', '.').replaceAll(/[$\s]/g, '');
    // Anything else than a name could hold a text of the program, and so a secret.
    return /^[A-Za-z_][\w.]{0,59}$/.test(text) ? `{${text}}` : '{value}';
  }

  /** A chain of names as `jw.videos.tracks.create`, when it is a method of v1. */
  routeOfChain(names: readonly string[]): string | undefined {
    const method = names.at(-1) ?? '';
    if (names.some((name) => OTHER_SERVICES.test(name))) return undefined;
    // Others have videos and players, too: of a client that is not named as one, the program must tell.
    if (!this.#isOfV1 && !names.some((name) => CLIENT.test(name))) return undefined;
    for (let start = 1; start < names.length - 1; start += 1) {
      const route = `/v1/${names.slice(start).join('/')}`;
      const isMethod = CLASSES.has(names[start] ?? '') && METHODS.has(method);
      if (findRoute(route) || isMethod) return route;
    }
    return method === 'status' && CLIENT.test(names[0] ?? '') ? '/v1/status' : undefined;
  }

  /** `/videos/list`, `v1/videos/list` or a URL, as clients take it. */
  routeOfPath(path: string): { route: string; parameters: FoundCall['parameters'] } | undefined {
    if (/^https?:\/\//.test(path)) return readUrl(path);
    const rest = path.replace(/^\/?(?:v1\/)?/, '');
    const [name = '', query] = rest.split(/\?(.*)/s);
    if (/^v\d\//.test(rest) || !/^[a-z_]+(?:\/[a-z_]+)*$/.test(name)) return undefined;
    // Without a version it is only known by its class.
    if (!path.includes('v1/') && !CLASSES.has(name.split('/')[0] ?? '')) return undefined;
    return readUrl(`/v1/${name}${query === undefined ? '' : `?${query}`}`);
  }

  /** Tells a call with the parameters of these arguments. */
  found(at: SyntaxNode, route: string, literals: readonly Literal[], query: FoundCall['parameters'] = {}) {
    const parameters = readable(query);
    let isComplete = !Object.keys(query).some(isPlaceholder);
    for (const literal of literals) {
      if (literal.kind !== 'record') {
        isComplete = false;
        continue;
      }
      isComplete &&= literal.isComplete;
      for (const [name, value] of literal.entries) {
        // What a client signs with is no parameter of the call, and nothing of it is kept.
        if (!isAuthentication(name)) parameters[name] = value;
      }
    }
    const line = this.#lineAt(at.from);
    this.calls.push({ route, parameters, line, ...(!isComplete && { incomplete: true as const }) });
  }

  /** An address that stands somewhere: a call, unless it is the argument of one that is told already. */
  foundAddress(node: SyntaxNode, text: string): void {
    if (node.from < this.#readUntil || !/\/v1\//.test(text)) return;
    const isFull = /^https?:\/\/[^/]*(?:jwplatform|jwplayer|bitsontherun)[^/]*\/v1\//i.test(text);
    const call = readUrl(text);
    if (!call || !(isFull || findRoute(call.route))) return;
    this.isRead(node);
    const line = this.#lineAt(node.from);
    this.calls.push({ route: call.route, parameters: readable(call.parameters), line, incomplete: true });
  }

  /** The addresses in it belong to a call that is told by itself. */
  isRead({ to }: SyntaxNode): void {
    this.#readUntil = to;
  }

  /** The line of a place, from 1. */
  #lineAt(place: number): number {
    let low = 0;
    let high = this.#lineStarts.length;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= place) low = middle;
      else high = middle;
    }
    return low + 1;
  }
}

/** The parameters of an address without what signs it, and without variables that hold some or all of a query. */
function readable(query: FoundCall['parameters']): Record<string, string | string[]> {
  const parameters: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of Object.entries(query)) {
    if (isAuthentication(name) || isPlaceholder(name)) continue;
    for (const each of typeof value === 'string' ? [value] : value) addParameter(parameters, name, each);
  }
  return parameters;
}

/** The parts of a list without its brackets, commas and comments. */
export function itemsOf(list: SyntaxNode): SyntaxNode[] {
  const items: SyntaxNode[] = [];
  for (let node = list.firstChild; node; node = node.nextSibling) {
    if (!/^[^\w]*$/.test(node.name) && !/Comment$/.test(node.name)) items.push(node);
  }
  return items;
}
