/** In blocks of 4 x 4. */
interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface MotionPart extends Area {
  /** Bit 0: it refers to pictures of list 0; bit 1: of list 1. None: it is predicted directly. */
  readonly lists: number;
  /** The parts of it that have vectors of their own, from its corner on. */
  readonly inside: readonly Area[];
}

const L0 = 1;
const L1 = 2;
const BI = 3;

function whole(lists: number): MotionPart[] {
  return [part(lists, 0, 0, 4, 4)];
}

function halves(isUpright: boolean, first: number, second: number): MotionPart[] {
  return isUpright
    ? [part(first, 0, 0, 2, 4), part(second, 2, 0, 2, 4)]
    : [part(first, 0, 0, 4, 2), part(second, 0, 2, 4, 2)];
}

function part(lists: number, x: number, y: number, width: number, height: number): MotionPart {
  return { lists, x, y, width, height, inside: [{ x: 0, y: 0, width, height }] };
}

/** mb_type of P slices (ISO/IEC 14496-10 table 7-13); the fourth has parts of its own. */
export const P_PARTS: readonly (readonly MotionPart[] | undefined)[] = [
  whole(L0),
  halves(false, L0, L0),
  halves(true, L0, L0),
  undefined,
];

/** mb_type of B slices (table 7-14), from 1 on. */
export const B_PARTS: readonly (readonly MotionPart[])[] = [
  [],
  whole(L0),
  whole(L1),
  whole(BI),
  ...[
    [L0, L0],
    [L1, L1],
    [L0, L1],
    [L1, L0],
    [L0, BI],
    [L1, BI],
    [BI, L0],
    [BI, L1],
    [BI, BI],
  ].flatMap(([first = 0, second = 0]) => [halves(false, first, second), halves(true, first, second)]),
];

/** How parts of 8 x 8 are divided: not at all, in two above one another, in two side by side, in four. */
const PART_SHAPES: readonly MotionPart['inside'][] = [
  [{ x: 0, y: 0, width: 2, height: 2 }],
  [0, 1].map((y) => ({ x: 0, y, width: 2, height: 1 })),
  [0, 1].map((x) => ({ x, y: 0, width: 1, height: 2 })),
  [0, 1, 2, 3].map((index) => ({ x: index & 1, y: index >> 1, width: 1, height: 1 })),
];

export interface SubPart {
  readonly lists: number;
  readonly shape: number;
}

/** sub_mb_type of P slices (table 7-17). */
export const P_SUB_PARTS: readonly SubPart[] = [0, 1, 2, 3].map((shape) => ({ lists: L0, shape }));

/** sub_mb_type of B slices (table 7-18). */
export const B_SUB_PARTS: readonly SubPart[] = [
  { lists: 0, shape: 0 },
  { lists: L0, shape: 0 },
  { lists: L1, shape: 0 },
  { lists: BI, shape: 0 },
  { lists: L0, shape: 1 },
  { lists: L0, shape: 2 },
  { lists: L1, shape: 1 },
  { lists: L1, shape: 2 },
  { lists: BI, shape: 1 },
  { lists: BI, shape: 2 },
  { lists: L0, shape: 3 },
  { lists: L1, shape: 3 },
  { lists: BI, shape: 3 },
];

/** The parts of a macroblock of four blocks of 8 x 8, and whether their transforms may have that size (§ 7.3.5). */
export function partsOf8x8(
  kinds: readonly SubPart[],
  direct8x8: boolean,
): { readonly parts: readonly MotionPart[]; readonly may8x8: boolean } {
  const parts = kinds.map(({ lists, shape }, index): MotionPart => {
    const inside = lists === 0 ? [] : (PART_SHAPES[shape] ?? []);
    return { lists, x: (index & 1) * 2, y: (index >> 1) * 2, width: 2, height: 2, inside };
  });
  return { parts, may8x8: kinds.every(({ lists, shape }) => (lists === 0 ? direct8x8 : shape === 0)) };
}
