import type { Pattern } from './words';

/** A parsed `q`. */
export type Query =
  | {
      readonly kind: 'match';
      readonly field: string;
      readonly pattern: Pattern;
      /** Whether the words of the pattern have to follow each other. */
      readonly isQuoted: boolean;
    }
  | {
      readonly kind: 'range';
      readonly field: string;
      readonly from: string | undefined;
      readonly to: string | undefined;
    }
  | { readonly kind: 'not'; readonly query: Query }
  | { readonly kind: 'and'; readonly queries: readonly Query[] }
  | { readonly kind: 'or'; readonly queries: readonly Query[] };

type ParsedQuery =
  | { readonly ok: true; readonly query: Query | undefined }
  | { readonly ok: false; readonly fault: string };

/** A longer query is refused. */
const MAX_QUERY_LENGTH = 2000;

/** How deep parentheses and NOTs may be nested. */
const MAX_DEPTH = 50;

class QueryFault extends Error {}

/**
 * Reads the filter language of the list routes: `field: word`, `field: "several words"`, `field: [from TO to]`, joined
 * by AND, OR, NOT and parentheses; `*` stands for any text, a backslash takes the next character as it is. NOT binds
 * more than AND, AND more than OR. An empty query asks for everything.
 */
export function parseQuery(text: string): ParsedQuery {
  if (text.trim() === '') return { ok: true, query: undefined };
  if (text.length > MAX_QUERY_LENGTH) {
    const fault = `has ${text.length} characters, at most ${MAX_QUERY_LENGTH} are allowed. Send several shorter requests.`;
    return { ok: false, fault };
  }
  try {
    return { ok: true, query: new QueryReader(text).read() };
  } catch (thrown) {
    if (thrown instanceof QueryFault) return { ok: false, fault: thrown.message };
    throw thrown;
  }
}

class QueryReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Query {
    const query = this.#either();
    this.#skipSpace();
    if (this.#at === this.#text.length) return query;
    throw this.#fault('AND, OR or the end', this.#adviceOnWord());
  }

  /** Advice on one more word after the end of a condition. */
  #adviceOnWord(): string {
    const next = this.#text.slice(this.#at);
    const [, joint] = /^(and|or)\s*[\s(](?:not\b)?[\s(]*[a-z_][\w.-]*\s*:/i.exec(next) ?? [];
    if (joint) return `Write ${joint.toUpperCase()} in capital letters.`;
    return /^(?:NOT\b|\(|[a-z_][\w.-]*\s*:)/i.test(next)
      ? 'Write AND or OR between two conditions.'
      : 'Put several words in quotes.';
  }

  #either(): Query {
    const queries = [this.#both()];
    while (this.#takeWord('OR')) queries.push(this.#both());
    return joined('or', queries);
  }

  #both(): Query {
    const queries = [this.#one()];
    while (this.#takeWord('AND')) queries.push(this.#one());
    return joined('and', queries);
  }

  #one(): Query {
    this.#skipSpace();
    const start = this.#at;
    if (this.#takeWord('NOT')) return { kind: 'not', query: this.#inside(start, () => this.#one()) };
    if (!this.#take('(')) return this.#clause();
    const query = this.#inside(start, () => this.#either());
    if (!this.#take(')')) throw this.#fault('AND, OR or a closing parenthesis', this.#adviceOnWord());
    return query;
  }

  #inside(start: number, read: () => Query): Query {
    if (this.#depth === MAX_DEPTH) {
      this.#at = start;
      throw this.#fault('a field', `Parentheses and NOT may be nested ${MAX_DEPTH} deep.`);
    }
    this.#depth += 1;
    const query = read();
    this.#depth -= 1;
    return query;
  }

  #clause(): Query {
    const field = this.#match(/[A-Za-z_][\w.-]*\*?/y);
    if (field === undefined) throw this.#fault('a field, NOT or an opening parenthesis');
    if (!this.#take(':')) throw this.#fault(`a colon after ${field.slice(0, 60)}`, adviceOnField(field));
    if (this.#take('[')) return { kind: 'range', field, ...this.#range() };
    this.#skipSpace();
    const isQuoted = this.#text[this.#at] === '"';
    return { kind: 'match', field, pattern: this.#pattern(), isQuoted };
  }

  #range(): { from: string | undefined; to: string | undefined } {
    const from = this.#bound();
    if (!this.#takeWord('TO')) throw this.#fault('TO, as in [from TO to]');
    const to = this.#bound();
    if (this.#take(']')) return { from, to };
    throw this.#fault('] at the end of the range');
  }

  #bound(): string | undefined {
    const pattern = this.#pattern();
    if (pattern.length === 1) return pattern[0];
    // A lone `*` leaves the end open.
    if (pattern.every((piece) => piece === '')) return undefined;
    throw this.#fault('a bound without *');
  }

  #pattern(): Pattern {
    const quoted = this.#take('"');
    const end = quoted ? /"/y : /[\s()[\]"]|$/y;
    const start = this.#at;
    const pieces = [''];
    for (;;) {
      const character = this.#text[this.#at];
      end.lastIndex = this.#at;
      if (end.test(this.#text)) break;
      if (character === undefined) throw this.#fault('a closing quote');
      this.#at += 1;
      if (character === '*') {
        pieces.push('');
        continue;
      }
      const literal = character === '\\' ? this.#text[this.#at++] : character;
      if (literal === undefined) throw this.#fault('a character after the backslash');
      pieces.push(`${pieces.pop()}${literal}`);
    }
    if (this.#at === start && !quoted) throw this.#fault('a word, a text in quotes or a range');
    if (quoted) this.#at += 1;
    return pieces;
  }

  #takeWord(word: string): boolean {
    return this.#match(new RegExp(`${word}(?![\\w:.-])`, 'y')) !== undefined;
  }

  #take(sign: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    this.#skipSpace();
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1;
  }

  #fault(expected: string, advice = ''): QueryFault {
    const place = Math.min(this.#at, this.#text.length) + 1;
    return new QueryFault(`at character ${place}, ${expected} is expected.${advice && ` ${advice}`}`);
  }
}

function adviceOnField(name: string): string {
  if (/^(?:and|or|to)$/i.test(name)) return '';
  return /^not$/i.test(name)
    ? 'Write NOT in capital letters.'
    : 'Name the field to look in, as in title: news.';
}

function joined(kind: 'and' | 'or', queries: readonly Query[]): Query {
  const [only] = queries;
  return queries.length === 1 && only ? only : { kind, queries };
}
