import type { SyntaxNode, Tree } from '@lezer/common';
import { isAuthentication } from '../mapping/fields';
import { findRoute, ROUTES } from '../mapping/routes';
import { isPlaceholder } from '../mapping/values';
import { addParameter, CLASSES, type FoundCall, readUrl, UnreadableInput } from './found-call';
import { childrenOf, innerOf, itemsOf } from './syntax';

/** A language whose calls are found, as its syntax tree names things. */
export interface Language {
  readonly parse: (text: string) => Tree;
  readonly readers: Readonly<Record<string, (node: SyntaxNode, finder: Finder) => void>>;
  /** By the name of a node that may be a record, its entries; undefined: it is none. */
  readonly records: Readonly<
    Record<string, (node: SyntaxNode, finder: Finder) => readonly Entry[] | undefined>
  >;
  readonly strings: readonly string[];
  /** The nodes in a text that are replaced by their values. */
  readonly interpolations: readonly string[];
  readonly join: '+' | '.';
  /** The quote in which a backslash escapes only itself and the quote. */
  readonly plainQuote?: "'";
}

/** A name (undefined: unknown) and its value, or a record whose entries are taken over. */
export interface Entry {
  readonly name?: string | undefined;
  readonly value?: SyntaxNode | null | undefined;
  readonly spread?: SyntaxNode | undefined;
}

/** The value of an expression; undefined when the program's text does not say it. */
export type Literal = { readonly kind: 'text'; readonly text: string } | KnownRecord | undefined;

/** Names and values; incomplete when some of them can't be known. */
interface KnownRecord {
  readonly kind: 'record';
  readonly entries: Map<string, string>;
  isComplete: boolean;
}

/** The nodes of all three grammars whose text is their value. */
const PLAIN = ['Number', 'Integer', 'Float', 'Boolean', 'BooleanLiteral'];

const METHODS = new Set<string>(ROUTES.map(({ action }) => action));

/** Clients of other services have videos and channels, too. */
const OTHER_SERVICES = /youtube|google|vimeo|dailymotion|brightcove|wistia|twitch|slack/i;

/** The names of what changes in steps, as an offset in a loop: `x += 1`, `x['y'] += 1`, `x |= y`, `x++`, `x = x + 1`. */
const STEPS =
  /(['".]?)\b(\w+)(?:['"]?\]?\s*(?:[-+*.|]=|=\s*\$?\2\s*[-+*])|(?:\+\+|--)(?![\w>]))|(?:\+\+|--)\$?(\w+)/g;

/** Names of the address that all calls begin with: `BASE = '…/v1'`, `baseUrl: '…/v1'`, `define('BASE', '…/v1')`. */
const BASES =
  /\b(\w+)['"]?\]?\s*(?::[ \t]*\w+[ \t]*)?(?:=>?|:|,)\s*(['"`])((?:https?:\/\/[^'"`\s/]+)?\/v1)\/?\2/g;

const MAX_DEPTH = 40;
/** The most entries that spreads copy: a chain of growing ones takes the square of its length. */
const MAX_COPIED = 500_000;
/** The deepest nesting of brackets: beyond it, parsing takes minutes. */
const MAX_NESTING = 5000;

const MENTION =
  /jw-?_?(?:platform|player)|bitsontherun|botr|longtail|\/v1\/(?:videos|channels|players|accounts|status)\b/i;
/** A client that was made elsewhere, by its name. */
const CLIENT = /jw|botr|platform/i;
const CLIENT_CALL =
  /(?:jw|botr|platform)\w*\s*\??\.\s*(?:videos|channels|players|accounts)\b|call\(\s*['"]\/?(?:videos|channels|players|accounts)(?:\/\w+)?\/(?:list|show|create|update|delete)['"]/i;

/** Whether a program may call v1 at all: parsing each file of a large tree would take long. */
export function mayCallV1(text: string): boolean {
  return MENTION.test(text) || CLIENT_CALL.test(text);
}

/** Faulty programs are read as far as they can be. @throws UnreadableInput over the limits of one file. */
export function findCalls(text: string, language: Language): FoundCall[] {
  if (isNestedDeeper(text, MAX_NESTING)) {
    throw new UnreadableInput(`is nested deeper than ${MAX_NESTING} brackets`);
  }
  const finder = new Finder(text, language);
  language.parse(text).iterate({
    // Only nodes of interest are created: a deep one takes longer.
    enter: (place) => {
      const { name } = place;
      // All three grammars call the parameters of a function so.
      if (name === 'ParamList') finder.forget(place);
      const read = language.readers[name];
      if (read) read(place.node, finder);
      else if (finder.mayHoldAddress(place)) finder.readAddress(place.node);
    },
  });
  return finder.calls;
}

/** Whether more brackets are open at a time, including those in texts and comments. */
function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  for (const [bracket] of text.matchAll(/[()[\]{}]/g)) {
    depth = '([{'.includes(bracket) ? depth + 1 : Math.max(0, depth - 1);
    if (depth > limit) return true;
  }
  return false;
}

type Extent = { readonly from: number; readonly to: number };

/** Collects the calls of one program, and the values of its variables, in the order of its text. */
export class Finder {
  readonly text: string;
  readonly calls: FoundCall[] = [];
  readonly #language: Language;
  readonly variables = new Map<string, Literal>();
  readonly #isOfV1: boolean;
  readonly #bases: ReadonlyMap<string, string>;
  /** Variables, and fields with a dot before their name. */
  readonly #stepped: ReadonlySet<string>;
  /** Addresses before this place belong to a call that was found. */
  readUntil = 0;
  #depth = 0;
  #copied = 0;
  #counted = { place: 0, line: 1 };

  constructor(text: string, language: Language) {
    this.text = text;
    this.#language = language;
    this.#isOfV1 = MENTION.test(text);
    const bases = text.matchAll(BASES);
    this.#bases = new Map(Array.from(bases, ([, name = '', , base = '']) => [name, base]));
    const steps = text.matchAll(STEPS);
    this.#stepped = new Set(Array.from(steps, ([, of, name, next]) => next ?? `${of && '.'}${name}`));
  }

  /** Whether a client for all calls is made, as axios does. */
  get hasBaseUrl(): boolean {
    return this.#bases.has('baseURL');
  }

  /** Reads a node that can contain its own kind; stops in a program that is nested too deeply. */
  #nested<Value>(read: () => Value): Value | undefined {
    if (this.#depth >= MAX_DEPTH) return undefined;
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

  literalOf(node: SyntaxNode): Literal {
    return this.#nested(() => this.#readLiteral(node));
  }

  #readLiteral(node: SyntaxNode): Literal {
    const entries = this.#language.records[node.name]?.(node, this);
    if (entries) return this.record(entries);
    const written = this.textOf(node);
    if (PLAIN.includes(node.name) || (node.name === 'UnaryExpression' && /^-[\d.]+$/.test(written)))
      return { kind: 'text', text: written };
    if (node.name === 'VariableName' && this.#stepped.has(written.replace('$', ''))) return undefined;
    if (node.name === 'VariableName') return this.variables.get(written);
    const inner = innerOf(node);
    if (inner) return this.literalOf(inner);
    const text = this.stringOf(node);
    return text === undefined ? undefined : { kind: 'text', text };
  }

  /** @throws UnreadableInput when spreads copy more than the limit. */
  record(entries: readonly Entry[]): KnownRecord {
    const known = new Map<string, string>();
    let isComplete = true;
    for (const { name, value, spread } of entries) {
      const taken = spread && this.literalOf(spread);
      if (taken?.kind === 'record') {
        this.#copied += taken.entries.size;
        if (this.#copied > MAX_COPIED)
          throw new UnreadableInput(`copies more than ${MAX_COPIED} entries by spreads`);
        for (const [key, each] of taken.entries) known.set(key, each);
        isComplete &&= taken.isComplete;
      } else if (name !== undefined && value) known.set(name, this.valueOf(value));
      else isComplete = false;
    }
    return { kind: 'record', entries: known, isComplete };
  }

  /** The text of a string, or of several that are joined, with placeholders for variables. */
  stringOf(node: SyntaxNode): string | undefined {
    return this.#nested(() => this.#readString(node));
  }

  #readString(node: SyntaxNode): string | undefined {
    if (node.name === 'ContinuedString') {
      const parts = itemsOf(node).map((part) => this.stringOf(part));
      return parts.includes(undefined) ? undefined : parts.join('');
    }
    const { strings, interpolations, join, plainQuote } = this.#language;
    if (node.name === 'BinaryExpression') {
      const [left, right] = [node.firstChild, node.lastChild];
      const operator = left?.nextSibling && this.textOf(left.nextSibling);
      if (left && operator === '%') return this.stringOf(left)?.replaceAll('%s', '{value}');
      if (!left || !right || operator !== join) return undefined;
      const texts = [left, right].map((part) => this.stringOf(part));
      if (texts[0] === undefined && texts[1] === undefined) return undefined;
      const joined = `${texts[0] ?? this.#partOf(left)}${texts[1] ?? this.#partOf(right)}`;
      return joined.replace(/\/v1(?=[a-z])/, '/v1/');
    }
    if (!strings.includes(node.name)) return undefined;
    const [start = '', prefix = '', quote = ''] = /^([a-z]*)('''|"""|['"`])/i.exec(this.textOf(node)) ?? [];
    let joined = '';
    let at = node.from + start.length;
    for (const part of childrenOf(node)) {
      if (!interpolations.includes(part.name)) continue;
      const isWrapped = /Interpolation|Replacement/.test(part.name);
      const inner = isWrapped ? itemsOf(part).find(({ name }) => !/^Interpolation/.test(name)) : part;
      joined += this.text.slice(at, part.from) + (inner ? this.#partOf(inner) : '{value}');
      at = part.to;
    }
    joined += this.text.slice(at, node.to - quote.length);
    if (quote === plainQuote) return joined.replaceAll(/\\([\\'])/g, '$1');
    return /r/i.test(prefix) ? joined : unescaped(joined);
  }

  /** The names of `a.b['c']`, from the left; undefined for anything else. An unknown name is `?`. */
  chainOf(node: SyntaxNode): string[] | undefined {
    return this.#nested(() => this.#readChain(node));
  }

  #readChain(node: SyntaxNode): string[] | undefined {
    if (['VariableName', 'this', 'super', 'self'].includes(node.name)) return [this.textOf(node)];
    if (/^(?:Call|New|Await)Expression$/.test(node.name)) return ['()'];
    const inner = innerOf(node);
    if (inner) return this.chainOf(inner) ?? ['()'];
    if (node.name !== 'MemberExpression' && node.name !== 'SubscriptExpression') return undefined;
    const [object, last] = [node.firstChild, node.lastChild];
    const names = object && this.chainOf(object);
    if (!names || !last) return undefined;
    if (last.name === 'PropertyName') return [...names, this.textOf(last)];
    const key = last.prevSibling && this.literalOf(last.prevSibling);
    return [...names, key?.kind === 'text' ? key.text : '?'];
  }

  mayHoldAddress({ name, from, to }: Extent & { readonly name: string }): boolean {
    const isText = name === 'BinaryExpression' || name === 'ContinuedString';
    if (!isText && !this.#language.strings.includes(name)) return false;
    const start = this.#bases.size > 0 ? this.text.slice(from, from + 100).match(/\w+/g) : null;
    return this.text.slice(from, to).includes('v1') || start?.some((word) => this.#bases.has(word)) === true;
  }

  /** Forgets the variables that the parameters of a function hide: their values can't be known. */
  forget({ from, to }: Extent): void {
    for (const name of this.text.slice(from, to).match(/\$?\w+/g) ?? []) {
      this.variables.delete(name);
    }
  }

  assignField(name: string, key: string | undefined, value: string): void {
    let record = this.variables.get(name);
    if (record?.kind !== 'record') {
      record = { kind: 'record', entries: new Map(), isComplete: false };
      this.variables.set(name, record);
    }
    if (key === undefined) record.isComplete = false;
    else record.entries.set(key, value);
  }

  valueOf(node: SyntaxNode): string {
    const literal = this.literalOf(node);
    return literal?.kind === 'text' ? literal.text : this.placeholder(node);
  }

  /** The text of a variable in a text: the address that it is known to be, else a placeholder. */
  #partOf(node: SyntaxNode): string {
    const [name = ''] = /\w*$/.exec(this.textOf(node).slice(-60)) ?? [];
    return this.#bases.get(name) ?? this.placeholder(node);
  }

  placeholder(node: SyntaxNode): string {
    const inner = innerOf(node);
    if (inner) return this.placeholder(inner);
    const text = this.textOf(node)
      .replaceAll(/\s?(?:->|\.)\s?/g, '.')
      .replaceAll('$', '');
    // Anything but a name could contain a text of the program, and so a secret.
    return /^[A-Za-z_][\w.]{0,59}$/.test(text) ? `{${text}}` : '{value}';
  }

  /** A chain of names as `jw.videos.tracks.create`, when it is a method of v1. */
  routeOfChain(names: readonly string[]): string | undefined {
    const method = names.at(-1) ?? '';
    if (names.some((name) => OTHER_SERVICES.test(name))) return undefined;
    // Other services have videos and players, too: this client is known by its name or its program.
    if (!this.#isOfV1 && !names.some((name) => CLIENT.test(name))) return undefined;
    const start = METHODS.has(method)
      ? names.slice(0, -1).findIndex((name, at) => at > 0 && CLASSES.has(name))
      : 0;
    if (start > 0) return `/v1/${names.slice(start).join('/')}`;
    return method === 'status' && CLIENT.test(names[0] ?? '') ? '/v1/status' : undefined;
  }

  /** `/videos/list`, `v1/videos/list` or a URL, as clients take it. */
  routeOfPath(path: string): { route: string; parameters: FoundCall['parameters'] } | undefined {
    if (/^https?:\/\//.test(path)) return readUrl(path);
    const rest = path.replace(/^\/?(?:v1\/)?/, '');
    const [name = '', query] = rest.split(/\?(.*)/s);
    if (/^v\d\//.test(rest) || !/^[a-z_]+(?:\/(?:[a-z_]+|\{[\w.]+\}))*$/.test(name)) return undefined;
    // Without a version it is only known by its class.
    if (!path.includes('v1/') && !CLASSES.has(name.split('/')[0] ?? '')) return undefined;
    return readUrl(`/v1/${name}${query === undefined ? '' : `?${query}`}`);
  }

  found(at: SyntaxNode, route: string, literals: readonly Literal[], query: FoundCall['parameters'] = {}) {
    const parameters = readable(query);
    let isComplete = !Object.keys(query).some(isPlaceholder);
    for (const literal of literals) {
      if (literal?.kind !== 'record') {
        isComplete = false;
        continue;
      }
      isComplete &&= literal.isComplete;
      for (const [name, value] of literal.entries) {
        // The credentials of a client are not parameters of the call, and are not kept.
        if (!isAuthentication(name)) parameters[name] = this.#stepped.has(`.${name}`) ? `{${name}}` : value;
      }
    }
    const line = this.#lineAt(at.from);
    this.calls.push({ route, parameters, line, ...(!isComplete && { incomplete: true as const }) });
  }

  /** An address in a text is a call, unless it is the argument of one that was found. */
  readAddress(node: SyntaxNode): void {
    const text = this.stringOf(node);
    if (node.from < this.readUntil || !text?.includes('/v1/')) return;
    const isFull = /^https?:\/\/[^/]*(?:jwplatform|jwplayer|bitsontherun)[^/]*\/v1\//i.test(text);
    const call = readUrl(text);
    if (!call || !(isFull || findRoute(call.route))) return;
    this.readUntil = node.to;
    const line = this.#lineAt(node.from);
    this.calls.push({ route: call.route, parameters: readable(call.parameters), line, incomplete: true });
  }

  /** The line of a place, from 1, counted on from the place before, as calls come in order: a file may have thousands. */
  #lineAt(place: number): number {
    const { place: from, line } = this.#counted;
    this.#counted = { place, line: line + this.text.slice(from, place).split('\n').length - 1 };
    return this.#counted.line;
  }
}

/** The parameters of an address without its signature, and without variables with a part or all of a query. */
function readable(query: FoundCall['parameters']): Record<string, string | string[]> {
  const parameters: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of Object.entries(query)) {
    if (isAuthentication(name) || isPlaceholder(name)) continue;
    for (const each of typeof value === 'string' ? [value] : value)
      addParameter(parameters, name, each === '{}' ? '{value}' : each);
  }
  return parameters;
}

export function readAssignment(node: SyntaxNode, finder: Finder): void {
  const [target, value] = [node.firstChild, node.lastChild];
  if (!target || !value) return;
  if (target.name === 'VariableName') finder.variables.set(finder.textOf(target), finder.literalOf(value));
  const [name, key, ...others] = finder.chainOf(target) ?? [];
  if (name === undefined || key === undefined) return;
  const isKnown = key !== '?' && others.length === 0;
  finder.assignField(name, isKnown ? key : undefined, finder.valueOf(value));
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  '0': '\0',
  '\n': '',
};

function unescaped(text: string): string {
  return text.replaceAll(
    /\\(?:u\{([\da-f]{1,6})\}|u([\da-f]{4})|x([\da-f]{1,2})|([\s\S]))/gi,
    (_whole, long?: string, short?: string, byte?: string, sign = '') => {
      const code = Number.parseInt(long ?? short ?? byte ?? '', 16);
      if (!Number.isNaN(code)) return code <= 0x10ffff ? String.fromCodePoint(code) : '';
      return ESCAPES[sign] ?? sign;
    },
  );
}
