/** A set of whole numbers from 0 that are below a bound, one bit for each: fast to combine and to count. */
export class NumberSet {
  #words: Uint32Array;

  /** @param bound the first number that need not fit; `add` makes room for larger ones. */
  constructor(bound: number) {
    this.#words = new Uint32Array(Math.ceil(bound / 32));
  }

  copy(): NumberSet {
    const copy = new NumberSet(0);
    copy.#words = this.#words.slice();
    return copy;
  }

  add(number: number): void {
    const word = number >>> 5;
    if (word >= this.#words.length) {
      const larger = new Uint32Array(Math.max(word + 1, this.#words.length * 2));
      larger.set(this.#words);
      this.#words = larger;
    }
    this.#words[word] = (this.#words[word] ?? 0) | (1 << (number & 31));
  }

  delete(number: number): void {
    const word = number >>> 5;
    if (word < this.#words.length) this.#words[word] = (this.#words[word] ?? 0) & ~(1 << (number & 31));
  }

  has(number: number): boolean {
    return ((this.#words[number >>> 5] ?? 0) & (1 << (number & 31))) !== 0;
  }

  /** Keeps what is in the other set too. */
  intersect(other: NumberSet): this {
    for (let word = 0; word < this.#words.length; word += 1)
      this.#words[word] = (this.#words[word] ?? 0) & (other.#words[word] ?? 0);
    return this;
  }

  /** Takes what is in the other set, which has no larger bound. */
  unite(other: NumberSet): this {
    for (let word = 0; word < other.#words.length; word += 1)
      this.#words[word] = (this.#words[word] ?? 0) | (other.#words[word] ?? 0);
    return this;
  }

  /** Removes what is in the other set. */
  subtract(other: NumberSet): this {
    for (let word = 0; word < this.#words.length; word += 1)
      this.#words[word] = (this.#words[word] ?? 0) & ~(other.#words[word] ?? 0);
    return this;
  }

  /** How many numbers are in it. */
  get size(): number {
    let size = 0;
    for (const word of this.#words) size += bitsOf(word);
    return size;
  }

  /** Ascending. */
  forEach(use: (number: number) => void): void {
    for (let word = 0; word < this.#words.length; word += 1) {
      for (let left = this.#words[word] ?? 0; left !== 0; left &= left - 1)
        use(word * 32 + 31 - Math.clz32(left & -left));
    }
  }

  /** Ascending. */
  toArray(): number[] {
    const numbers = new Array<number>(this.size);
    let length = 0;
    this.forEach((number) => {
      numbers[length] = number;
      length += 1;
    });
    return numbers;
  }

  /** Some of its numbers in their order, or in the opposite one. It costs next to nothing to skip the ones before. */
  slice(start: number, length: number, isDescending: boolean): number[] {
    const numbers: number[] = [];
    const count = this.#words.length;
    let skip = start;
    for (let index = 0; index < count && numbers.length < length; index += 1) {
      const word = isDescending ? count - 1 - index : index;
      const bits = this.#words[word] ?? 0;
      const inWord = bitsOf(bits);
      if (inWord <= skip) {
        skip -= inWord;
        continue;
      }
      for (let bit = 0; bit < 32 && numbers.length < length; bit += 1) {
        const place = isDescending ? 31 - bit : bit;
        if ((bits & (1 << place)) === 0) continue;
        if (skip > 0) skip -= 1;
        else numbers.push(word * 32 + place);
      }
    }
    return numbers;
  }
}

function bitsOf(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
