import { type BitReader, SyntaxBroken } from './bit-reader';

/** Nodes of a tree, two numbers each: the next node, or a code as its complement; 0 where no code goes on. */
type CodeTree = Int16Array;

/** @param words code words with a 1 before their first bit, at the index of their value; 0 for none */
export function treeOf(words: readonly number[]): CodeTree {
  const nodes: number[] = [0, 0];
  words.forEach((word, code) => {
    let node = 0;
    for (let bit = 30 - Math.clz32(word); bit >= 0; bit -= 1) {
      const branch = 2 * node + ((word >> bit) & 1);
      if (bit === 0) nodes[branch] = ~code;
      else {
        if (nodes[branch] === 0) {
          nodes[branch] = nodes.length / 2;
          nodes.push(0, 0);
        }
        node = nodes[branch] ?? 0;
      }
    }
  });
  return Int16Array.from(nodes);
}

export function readCode(bits: BitReader, tree: CodeTree): number {
  let node = 0;
  while (true) {
    const next = tree[2 * node + bits.bit()] ?? 0;
    if (next < 0) return ~next;
    if (next === 0) throw new SyntaxBroken('has a code that there is not');
    node = next;
  }
}
