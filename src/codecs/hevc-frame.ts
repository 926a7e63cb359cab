import { blocksOf, type HevcSegment, type HevcSlice } from './hevc-slice-header';

/** The common state of the slice segments of one picture: their places, and the state for neighbours. */
export class HevcFrame {
  readonly columns: number;
  /** Addresses of coding tree blocks in the order in which they come (ISO/IEC 23008-2 § 6.5.1). */
  readonly order: Uint32Array;
  readonly tiles: Uint16Array;
  readonly tileStarts: Uint16Array;
  /** One more than the address of the slice that has read each block; 0 before. */
  readonly slices: Uint32Array;
  /** Of blocks of the smallest coding size: how deep they are in their tree, and whether they are skipped. */
  readonly codingColumns: number;
  readonly depths: Uint8Array;
  readonly skipped: Uint8Array;
  /** Of blocks of 4 x 4: how they are predicted within the picture. */
  readonly modeColumns: number;
  readonly modes: Uint8Array;
  next = 0;
  slice: HevcSlice | undefined;
  sliceAddress = 0;
  /** The first states of a dependent segment. */
  segmentStates: Uint8Array | undefined;
  rowStates: Uint8Array | undefined;

  constructor({ sequence, picture }: HevcSegment) {
    const { columns, rows } = blocksOf(sequence);
    const count = columns * rows;
    this.columns = columns;
    this.order = new Uint32Array(count);
    this.tiles = new Uint16Array(count);
    this.tileStarts = new Uint16Array(count);
    this.slices = new Uint32Array(count);
    this.codingColumns = columns << (sequence.treeBlock - sequence.minCoding);
    this.depths = new Uint8Array(count << (2 * (sequence.treeBlock - sequence.minCoding)));
    this.skipped = new Uint8Array(this.depths.length);
    this.modeColumns = columns << (sequence.treeBlock - 2);
    this.modes = new Uint8Array(count << (2 * (sequence.treeBlock - 2)));
    const edges = ([columns, rows] as const).map((size, axis) => {
      const { tiles } = picture;
      if (!tiles) return [0, size];
      const given = tiles.sizes?.[axis];
      const parts = axis === 0 ? tiles.columns : tiles.rows;
      const list = [0];
      for (let part = 1; part < parts; part += 1) {
        list.push(given ? (list[part - 1] ?? 0) + (given[part - 1] ?? 1) : Math.floor((part * size) / parts));
      }
      return [...list.map((edge) => Math.min(edge, size)), size];
    });
    const [across = [], down = []] = edges;
    let number = 0;
    for (let row = 0; row + 1 < down.length; row += 1) {
      for (let column = 0; column + 1 < across.length; column += 1) {
        for (let y = down[row] ?? 0; y < (down[row + 1] ?? 0); y += 1) {
          for (let x = across[column] ?? 0; x < (across[column + 1] ?? 0); x += 1) {
            const address = y * columns + x;
            this.order[number] = address;
            this.tiles[address] = row * (across.length - 1) + column;
            this.tileStarts[address] = across[column] ?? 0;
            number += 1;
          }
        }
      }
    }
  }

  get isWhole(): boolean {
    return this.next === this.order.length;
  }

  /** Whether a block is there for another one: read by the same slice, in the same tile (§ 6.4.1). */
  isNear(address: number, of: number): boolean {
    return this.slices[address] === this.sliceAddress + 1 && this.tiles[address] === this.tiles[of];
  }
}
