import { nearest, printable } from '../../../http/faults';

/** How lists are filtered and sorted by a field; `words` is a text that people search by its words. */
export type FieldKind = 'text' | 'words' | 'number' | 'time';

export interface Field<T> {
  readonly kind: FieldKind;
  /** A text or several, a number, or a time as a date or as it is written. An absent one is null or undefined. */
  readonly of: (item: T) => unknown;
}

export interface Fields<T> {
  readonly named: Readonly<Record<string, Field<T>>>;
  /** Custom parameters: fields with names of the client's own after a prefix. */
  readonly paramsOf?: (item: T) => Readonly<Record<string, string>>;
}

const PREFIX = 'custom_params.';

/** The field of this name, with or without `metadata.` before it. `*` means all custom parameters. */
export function fieldOf<T>({ named, paramsOf }: Fields<T>, written: string): Field<T> | undefined {
  const name = plainName(written);
  if (Object.hasOwn(named, name)) return named[name];
  if (!paramsOf || !name.startsWith(PREFIX)) return undefined;
  const own = name.slice(PREFIX.length);
  const of = (item: T) => {
    const params = paramsOf(item);
    if (own === '*') return Object.values(params);
    return Object.hasOwn(params, own) ? params[own] : undefined;
  };
  return { kind: 'text', of };
}

export function plainName(written: string): string {
  return written.replace(/^metadata\./, '');
}

export function hintOfFields<T>({ named, paramsOf }: Fields<T>, written: string): string {
  const names = Object.keys(named);
  const plain = plainName(written);
  const near = nearest(plain, names);
  if (near !== undefined) return `Did you mean ${near}?`;
  const [head = '', own] = plain.split(/(?<=\.)(.*)/);
  if (paramsOf && own && nearest(head, [PREFIX])) return `Did you mean ${printable(PREFIX + own)}?`;
  return `Fields: ${[...names, ...(paramsOf ? [`${PREFIX}<name>`] : [])].join(', ')}.`;
}

export function isNumeric({ kind }: Field<never>): boolean {
  return kind === 'number' || kind === 'time';
}

/** A number, or a time in milliseconds. An invalid number or date counts as absent. */
export function numericOf<T>(field: Field<T>, item: T): number | undefined {
  const value = field.of(item) ?? Number.NaN;
  const number = field.kind === 'time' ? new Date(value as string | Date).getTime() : Number(value);
  return Number.isNaN(number) ? undefined : number;
}

/** The texts of a field; a number or a time as it is written. */
export function textsOf<T>(field: Field<T>, item: T): readonly string[] {
  if (!isNumeric(field)) return [field.of(item) ?? []].flat().map(String);
  const value = numericOf(field, item);
  if (value === undefined) return [];
  return [field.kind === 'time' ? new Date(value).toISOString() : String(value)];
}

type Predicate<T> = (item: T) => boolean;

const MAX_QUERY_LENGTH = 2000;

const MAX_DEPTH = 50;

const JOINED = 'Join conditions by AND or OR in capital letters, and put several words in quotes.';
const NAMED = 'Name the field to look in, as in title: news, and write NOT in capital letters.';

class QueryFault extends Error {}

/**
 * Reads the filter language of the list routes: `field: word`, `field: "several words"`, `field: [from TO to]`, joined
 * by AND, OR, NOT and parentheses; `*` matches any text, a backslash takes the next character as it is. NOT binds
 * more than AND, AND more than OR. An empty query asks for everything, and has no predicate.
 * @returns every fault of the query as `faults`.
 */
export function readFilter<T>(
  text: string,
  fields: Fields<T>,
): { readonly predicate?: Predicate<T>; readonly faults: readonly string[] } {
  if (text.trim() === '') return { faults: [] };
  if (text.length > MAX_QUERY_LENGTH) {
    const fault = `has ${text.length} characters, at most ${MAX_QUERY_LENGTH} are allowed. Send several shorter requests.`;
    return { faults: [fault] };
  }
  const reader = new FilterReader(text, fields);
  try {
    return { predicate: reader.read(), faults: [...reader.faults] };
  } catch (thrown) {
    if (thrown instanceof QueryFault) return { faults: [thrown.message] };
    throw thrown;
  }
}

const IN_QUOTES = /^(?:\\[\s\S]?|[^"\\])*/;
const WORD = /^(?:\\[\s\S]?|[^\s()[\]"\\])*/;

class FilterReader<T> {
  readonly faults = new Set<string>();
  #at = 0;
  #depth = 0;

  constructor(
    private readonly text: string,
    private readonly fields: Fields<T>,
  ) {}

  read(): Predicate<T> {
    const predicate = this.#either();
    if (this.#at === this.text.length) return predicate;
    throw this.#fault('AND, OR or the end', JOINED);
  }

  #either(): Predicate<T> {
    const parts = [this.#both()];
    while (this.#takeWord('OR')) parts.push(this.#both());
    return (item) => parts.some((part) => part(item));
  }

  #both(): Predicate<T> {
    const parts = [this.#one()];
    while (this.#takeWord('AND')) parts.push(this.#one());
    return (item) => parts.every((part) => part(item));
  }

  #one(): Predicate<T> {
    this.#skipSpace();
    const start = this.#at;
    if (this.#takeWord('NOT')) {
      const part = this.#inside(start, () => this.#one());
      return (item) => !part(item);
    }
    if (!this.#take('(')) return this.#clause();
    const part = this.#inside(start, () => this.#either());
    if (!this.#take(')')) throw this.#fault('AND, OR or a closing parenthesis', JOINED);
    return part;
  }

  #inside(start: number, read: () => Predicate<T>): Predicate<T> {
    if (this.#depth === MAX_DEPTH) {
      this.#at = start;
      throw this.#fault('a field', `Parentheses and NOT may be nested ${MAX_DEPTH} deep.`);
    }
    this.#depth += 1;
    const part = read();
    this.#depth -= 1;
    return part;
  }

  #clause(): Predicate<T> {
    const name = this.#match(/[A-Za-z_][\w.-]*\*?/y);
    if (name === undefined) throw this.#fault('a field, NOT or an opening parenthesis');
    if (!this.#take(':')) throw this.#fault(`a colon after ${name.slice(0, 60)}`, NAMED);
    const field = fieldOf(this.fields, name);
    if (!field)
      this.faults.add(`${printable(name)} is not a field to filter by. ${hintOfFields(this.fields, name)}`);
    if (this.#take('[')) {
      const range = this.#range();
      if (field && isNumeric(field)) return this.#numericRange(field, name, range);
      const isWithin = textRange(range);
      return (item) => field !== undefined && textsOf(field, item).some(isWithin);
    }
    const isQuoted = this.text[this.#at] === '"';
    const pattern = this.#pattern();
    const [text = ''] = pattern;
    if (field?.kind === 'time' && pattern.length === 1 && !Number.isNaN(readTime(text, 'first')))
      return this.#numericRange(field, name, [text, text]);
    const matches = textMatch(field?.kind === 'words', pattern, isQuoted);
    return (item) => field !== undefined && textsOf(field, item).some(matches);
  }

  /** Both bounds belong to the range. */
  #numericRange(field: Field<T>, name: string, [from, to]: Range): Predicate<T> {
    const readNumber = (text: string) => (text.trim() === '' ? Number.NaN : Number(text));
    const read = field.kind === 'time' ? readTime : readNumber;
    const low = from === undefined ? Number.NEGATIVE_INFINITY : read(from, 'first');
    const high = to === undefined ? Number.POSITIVE_INFINITY : read(to, 'last');
    if (Number.isNaN(low) || Number.isNaN(high)) {
      const wanted = field.kind === 'time' ? 'ISO 8601 times' : 'numbers';
      this.faults.add(`the bounds of ${printable(name)} must be ${wanted}, or * for none.`);
    }
    return (item) => {
      const value = numericOf(field, item);
      return value !== undefined && value >= low && value <= high;
    };
  }

  #range(): Range {
    const from = this.#bound();
    if (!this.#takeWord('TO')) throw this.#fault('TO, as in [from TO to]');
    const to = this.#bound();
    if (this.#take(']')) return [from, to];
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
    const [written = ''] = (quoted ? IN_QUOTES : WORD).exec(this.text.slice(this.#at)) ?? [];
    this.#at += written.length;
    const pieces = [''];
    for (const [part, literal = part] of written.matchAll(/\\([\s\S]?)|[\s\S]/g)) {
      if (literal === '') throw this.#fault('a character after the backslash');
      pieces.push(part === '*' ? '' : `${pieces.pop()}${literal}`);
    }
    if (quoted && !this.text.startsWith('"', this.#at)) throw this.#fault('a closing quote');
    if (!quoted && written === '') throw this.#fault('a word, a text in quotes or a range');
    if (quoted) this.#at += 1;
    return pieces;
  }

  #takeWord(word: string): boolean {
    return this.#match(new RegExp(`${word}(?![\\w:.-])`, 'y')) !== undefined;
  }

  #take(sign: string): boolean {
    this.#skipSpace();
    if (this.text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    this.#skipSpace();
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #skipSpace(): void {
    while (/\s/.test(this.text[this.#at] ?? '')) this.#at += 1;
  }

  #fault(expected: string, advice = ''): QueryFault {
    const place = Math.min(this.#at, this.text.length) + 1;
    return new QueryFault(`at character ${place}, ${expected} is expected.${advice && ` ${advice}`}`);
  }
}

function textMatch(byWords: boolean, pattern: Pattern, isQuoted: boolean): (text: string) => boolean {
  const fold = byWords ? foldLetters : foldCase;
  const pieces = pattern.map(fold);
  const words = byWords && pieces.length === 1 ? wordsOf(pieces[0] ?? '') : [];
  if (words.length === 0) return (text: string) => hasPattern(fold(text), pieces);
  // The words of an unquoted text may be in any order.
  if (!isQuoted)
    return (text: string) => {
      const folded = fold(text);
      return words.every((word) => hasPattern(folded, [word]));
    };
  const phrase = ` ${words.join(' ')} `;
  return (text: string) => ` ${wordsOf(fold(text)).join(' ')} `.includes(phrase);
}

/** Undefined leaves an end open. */
type Range = readonly [from: string | undefined, to: string | undefined];

function textRange([from = '', to]: Range) {
  const [low, high] = [foldCase(from), to && foldCase(to)];
  return (text: string) => {
    const folded = foldCase(text);
    return folded >= low && (high === undefined || folded <= high);
  };
}

/** A date without a time means the whole day. */
function readTime(text: string, end: 'first' | 'last'): number {
  if (!/^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(text)) return Number.NaN;
  const time = Date.parse(text);
  return end === 'last' && text.length === 10 ? time + 24 * 60 * 60 * 1000 - 1 : time;
}

/** A text to look for: the pieces between its `*`s. One piece means no `*`. */
type Pattern = readonly string[];

/** A text in one letter case, with each letter and its accents as one character: `É` and `E´` are both `é`. */
export function foldCase(text: string): string {
  return text.toLowerCase().normalize('NFC');
}

/** Letters that no decomposition of Unicode resolves, as they are written without their own key. */
const LETTERS: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ł: 'l',
  ı: 'i',
  ς: 'σ',
};
const SPECIAL_LETTERS = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g');

/** A text in one letter case and without accents: `Über` is `uber`. */
export function foldLetters(text: string): string {
  // Vowel signs of other scripts are no accents: only the marks of Latin, Greek and Cyrillic letters go.
  const bare = text
    .toLowerCase()
    .normalize('NFD')
    .replaceAll(/[\u0300-\u036f]/g, '');
  return bare.replaceAll(SPECIAL_LETTERS, (letter) => LETTERS[letter] ?? letter);
}

export function wordsOf(folded: string): readonly string[] {
  return folded.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/**
 * Whether a text has the pattern as whole words: `live` is in "live show", not in "alive"; `liv*` is in both "live"
 * and "liver". Both are folded alike. The time is proportional to the text for each piece of the pattern.
 */
function hasPattern(text: string, pattern: Pattern): boolean {
  if (pattern.every((piece) => piece === '')) return pattern.length > 1 || text === '';
  let from = 0;
  for (const [index, piece] of pattern.entries()) {
    // The earliest occurrence is the one that leaves most for the rest.
    const whole = { start: index === 0, end: index === pattern.length - 1 };
    const end = piece === '' ? from : endOfPiece(text, piece, from, whole);
    if (end === undefined) return false;
    from = end;
  }
  return true;
}

/** Where the first occurrence ends that starts, or ends, where a word does. */
function endOfPiece(text: string, piece: string, from: number, whole: { start: boolean; end: boolean }) {
  for (let at = text.indexOf(piece, from); at !== -1; at = text.indexOf(piece, at + 1)) {
    const end = at + piece.length;
    if (!(whole.start && isWithinWord(text, at)) && !(whole.end && isWithinWord(text, end))) return end;
  }
  return undefined;
}

const WITHIN_WORD = /(?<=[\p{L}\p{N}\p{M}])[\p{L}\p{N}\p{M}]/uy;

function isWithinWord(text: string, at: number): boolean {
  WITHIN_WORD.lastIndex = at;
  return WITHIN_WORD.test(text);
}
