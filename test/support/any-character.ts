import * as fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };

function characterAt(index: number): string {
  return String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count);
}

function indexOf(text: unknown): number {
  const point = typeof text === 'string' ? (text.codePointAt(0) ?? 0) : 0;
  const index = point < SURROGATES.first ? point : point - SURROGATES.count;
  if (characterAt(index) !== text) throw new Error('This is not one character.');
  return index;
}

/**
 * Any character of Unicode: what fast-check's unit `binary` is, too. That one makes a table of a million entries in
 * each test file, which takes a second and 90 MB, to find out which of its dangerous strings it can draw.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES.count })
  .map(characterAt, indexOf);
