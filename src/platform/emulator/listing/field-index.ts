import { type TextField, textsOf } from './filter';
import { canBeNear, errorsAllowed, isMistyped, LETTERS_FOR_ERROR, stemOf } from './near-words';
import { NumberSet } from './number-set';
import { foldOf, isMatched, type TextMatch, type WordMatch } from './text-match';
import { wordsOf } from './words';

/**
 * The texts of one field, by their words. Items are numbered by whoever keeps it; each text is kept once, however many
 * items have it, with the words that it consists of.
 */
export class FieldIndex<T> {
  readonly #field: TextField<T>;
  readonly #fold: (text: string) => string;
  readonly #texts = new Numbered();
  readonly #itemsWithText = new Postings();
  /** By item: its texts, or its only one. */
  readonly #textsOf: (number | readonly number[] | undefined)[] = [];
  readonly #words = new Numbered();
  readonly #textsWithWord = new Postings();
  /** By their first letters. */
  readonly #wordsBeginning = new Map<string, number[]>();
  /** Where order decides: the words of all texts in their order, and by text where its own begin. */
  readonly #sequence = new NumberList();
  readonly #sequenceStarts = new NumberList();
  readonly #near: NearWords | undefined;
  #unusedTexts = 0;

  constructor(field: TextField<T>) {
    this.#field = field;
    this.#fold = foldOf({ isNear: field.near ?? false });
    this.#near = field.near ? new NearWords(this.#words) : undefined;
  }

  /** Whether most of what it keeps is of texts that no item has any more. */
  get isWorn(): boolean {
    return this.#unusedTexts > 1000 && this.#unusedTexts > this.#texts.size / 2;
  }

  /** Takes the texts that an item has now; undefined for an item that is gone. */
  update(item: number, value: T | undefined): void {
    const before = this.#textsOf[item] ?? NONE;
    const now = value === undefined ? NONE : this.#take(textsOf(this.#field, value));
    if (now === before) return;
    const old = typeof before === 'number' ? [before] : before;
    const fresh = typeof now === 'number' ? [now] : now;
    for (const text of old) if (!fresh.includes(text)) this.#remove(item, text);
    for (const text of fresh) if (!old.includes(text)) this.#add(item, text);
    this.#textsOf[item] = now;
  }

  #take(texts: readonly string[]): number | readonly number[] {
    const [only] = texts;
    if (texts.length === 1 && only !== undefined) return this.#takeText(only);
    return [...new Set(texts)].map((text) => this.#takeText(text));
  }

  #takeText(text: string): number {
    const known = this.#texts.find(text);
    if (known !== undefined) return known;
    const number = this.#texts.add(text);
    this.#unusedTexts += 1;
    this.#sequenceStarts.push(this.#sequence.length);
    for (const word of wordsOf(this.#fold(text))) {
      const wordNumber = this.#takeWord(word);
      this.#textsWithWord.add(wordNumber, number);
      if (this.#near) this.#sequence.push(wordNumber);
    }
    return number;
  }

  #takeWord(word: string): number {
    const known = this.#words.find(word);
    if (known !== undefined) return known;
    const number = this.#words.add(word);
    append(this.#wordsBeginning, word.slice(0, BEGINNING), number);
    this.#near?.add(word, number);
    return number;
  }

  #add(item: number, text: number): void {
    if (this.#itemsWithText.count(text) === 0) this.#unusedTexts -= 1;
    this.#itemsWithText.add(text, item);
  }

  #remove(item: number, text: number): void {
    this.#itemsWithText.remove(text, item);
    if (this.#itemsWithText.count(text) === 0) this.#unusedTexts += 1;
  }

  /** The items that have a text such as is asked for. @param bound above every item's number. */
  find({ words, decidedBy, holds }: TextMatch, bound: number): NumberSet {
    const items = new NumberSet(bound);
    const lists = words.map((word) => this.#wordsMatching(word));
    const [only] = lists;
    if (only && lists.length === 1 && decidedBy === 'words') {
      for (const word of only) this.#itemsWithText.addAll(this.#textsWithWord.of(word), items);
      return items;
    }
    if (decidedBy === 'order of words') {
      this.#itemsWithText.addAll(this.#inOrder(lists), items);
      return items;
    }
    const candidates = this.#textsWithAll(lists);
    const sure =
      decidedBy === 'words' ? candidates : candidates.filter((text) => holds(this.#texts.at(text)));
    this.#itemsWithText.addAll(sure, items);
    return items;
  }

  /** The texts that have a word of each list, one after the other. One may come twice. */
  #inOrder(lists: readonly (readonly number[])[]): readonly number[] {
    const wanted = lists.map((words) => {
      const set = new NumberSet(this.#words.size);
      for (const word of words) set.add(word);
      return set;
    });
    const { numbers: sequence, length } = this.#sequence;
    const { numbers: starts, length: texts } = this.#sequenceStarts;
    const fits = (text: number) => {
      const last = (text + 1 < texts ? (starts[text + 1] ?? 0) : length) - wanted.length;
      for (let at = starts[text] ?? 0; at <= last; at += 1) {
        let place = 0;
        while (place < wanted.length && wanted[place]?.has(sequence[at + place] ?? 0)) place += 1;
        if (place === wanted.length) return true;
      }
      return false;
    };
    const found: number[] = [];
    for (const word of this.#rarest(lists))
      for (const text of this.#textsWithWord.of(word)) if (fits(text)) found.push(text);
    return found;
  }

  #wordsMatching(match: WordMatch): readonly number[] {
    if (match.as === 'near' && this.#near) return this.#near.find(match.word);
    if (match.as === 'same') {
      const number = this.#words.find(match.word);
      return number === undefined ? NONE : [number];
    }
    if (match.as === 'begins' && match.word.length >= BEGINNING) {
      const alike = this.#wordsBeginning.get(match.word.slice(0, BEGINNING)) ?? NONE;
      return alike.filter((word) => isMatched(match, this.#words.at(word)));
    }
    return this.#words.numbersOf((word) => isMatched(match, word));
  }

  /** The texts that have one of the words of each of these lists. */
  #textsWithAll(lists: readonly (readonly number[])[]): readonly number[] {
    if (lists.length === 0) return [...Array(this.#texts.size).keys()];
    const [first, ...others] = lists.map((words) => this.#setOf(words));
    return others.reduce((all, texts) => all?.intersect(texts), first)?.toArray() ?? NONE;
  }

  #setOf(words: readonly number[]): NumberSet {
    const texts = new NumberSet(this.#texts.size);
    this.#textsWithWord.addAll(words, texts);
    return texts;
  }

  /** The words that the fewest texts have. */
  #rarest(lists: readonly (readonly number[])[]): readonly number[] {
    const count = (words: readonly number[]) =>
      words.reduce((sum, word) => sum + this.#textsWithWord.count(word), 0);
    return lists.reduce((least, words) => (count(words) < count(least) ? words : least), lists[0] ?? NONE);
  }
}

/** How many first letters words are told apart by, for those that begin with some. */
const BEGINNING = 2;

const NONE: readonly number[] = [];

const NOTHING = -1;
const SEVERAL = -2;

/** Numbers by number, ascending, each once. Most have only one, for which no list is made. */
class Postings {
  readonly #only: number[] = [];
  readonly #several = new Map<number, number[]>();

  count(key: number): number {
    const only = this.#only[key] ?? NOTHING;
    if (only === SEVERAL) return this.#several.get(key)?.length ?? 0;
    return only === NOTHING ? 0 : 1;
  }

  add(key: number, number: number): void {
    const only = this.#only[key] ?? NOTHING;
    if (only === number) return;
    if (only === NOTHING) {
      this.#only[key] = number;
    } else if (only !== SEVERAL) {
      this.#only[key] = SEVERAL;
      this.#several.set(key, only < number ? [only, number] : [number, only]);
    } else {
      const numbers = this.#several.get(key) ?? [];
      const place = placeIn(numbers, number);
      if (place === numbers.length) numbers.push(number);
      else if (numbers[place] !== number) numbers.splice(place, 0, number);
    }
  }

  remove(key: number, number: number): void {
    const only = this.#only[key] ?? NOTHING;
    if (only === number) this.#only[key] = NOTHING;
    if (only !== SEVERAL) return;
    const numbers = this.#several.get(key) ?? [];
    const place = placeIn(numbers, number);
    if (numbers[place] === number) numbers.splice(place, 1);
  }

  of(key: number): readonly number[] {
    const only = this.#only[key] ?? NOTHING;
    if (only === SEVERAL) return this.#several.get(key) ?? NONE;
    return only === NOTHING ? NONE : [only];
  }

  /** Adds the numbers of many keys to a set. */
  addAll(keys: readonly number[], to: NumberSet): void {
    for (const key of keys) {
      const only = this.#only[key] ?? NOTHING;
      if (only >= 0) to.add(only);
      else if (only === SEVERAL) for (const number of this.#several.get(key) ?? NONE) to.add(number);
    }
  }
}

/** The place of a number in an ascending list, or where it belongs. */
function placeIn(numbers: readonly number[], number: number): number {
  let low = (numbers.at(-1) ?? -1) < number ? numbers.length : 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A list of numbers that takes little memory, so that much of it is read fast. */
class NumberList {
  /** They are followed by room for more. */
  numbers = new Int32Array(64);
  length = 0;

  push(number: number): void {
    if (this.length === this.numbers.length) {
      const larger = new Int32Array(this.length * 2);
      larger.set(this.numbers);
      this.numbers = larger;
    }
    this.numbers[this.length] = number;
    this.length += 1;
  }
}

/** Texts, numbered from 0 in the order they were added. */
class Numbered {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];

  get size(): number {
    return this.#texts.length;
  }

  add(text: string): number {
    this.#numbers.set(text, this.#texts.length);
    return this.#texts.push(text) - 1;
  }

  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }

  at(number: number): string {
    return this.#texts[number] ?? '';
  }

  numbersOf(isWanted: (text: string) => boolean): number[] {
    const numbers: number[] = [];
    for (let number = 0; number < this.#texts.length; number += 1)
      if (isWanted(this.at(number))) numbers.push(number);
    return numbers;
  }
}

/** Finds what `isNear` says of the words of an index, without asking it of each. */
class NearWords {
  readonly #words: Numbered;
  /** The words that have another stem than themselves, by stem. */
  readonly #forms = new Map<string, number[]>();
  /** Words by first letter and length: what is mistyped differs little in the one, and not in the other. */
  readonly #alike = new Map<string, number[]>();

  constructor(words: Numbered) {
    this.#words = words;
  }

  add(word: string, number: number): void {
    if (!canBeNear(word)) return;
    const stem = stemOf(word);
    if (stem !== word) append(this.#forms, stem, number);
    if (word.length >= LETTERS_FOR_ERROR) append(this.#alike, `${word[0]}${word.length}`, number);
  }

  find(asked: string): readonly number[] {
    const found = new Set<number>();
    this.#addWord(found, asked);
    if (!canBeNear(asked)) return [...found];
    const stem = stemOf(asked);
    if (stemOf(stem) === stem) this.#addWord(found, stem);
    for (const number of this.#forms.get(stem) ?? NONE) found.add(number);
    const longest = asked.length + 2;
    for (let length = Math.max(asked.length - 2, LETTERS_FOR_ERROR); length <= longest; length += 1) {
      if (errorsAllowed(asked.length, length) < Math.abs(asked.length - length)) continue;
      for (const number of this.#alike.get(`${asked[0]}${length}`) ?? NONE)
        if (isMistyped(asked, this.#words.at(number))) found.add(number);
    }
    const swapped = `${asked[1] ?? ''}${asked[0] ?? ''}${asked.slice(2)}`;
    if (isMistyped(asked, swapped)) this.#addWord(found, swapped);
    return [...found];
  }

  #addWord(found: Set<number>, word: string): void {
    const number = this.#words.find(word);
    if (number !== undefined) found.add(number);
  }
}

function append(lists: Map<string, number[]>, key: string, number: number): void {
  const list = lists.get(key);
  if (list) list.push(number);
  else lists.set(key, [number]);
}
