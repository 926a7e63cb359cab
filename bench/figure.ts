/** One line of the table: what was measured, what it must reach, and what it reached, as ratios of pairs of runs. */
export interface Figure {
  readonly name: string;
  readonly bound: string;
  readonly ratios: readonly number[];
  readonly reached: (ratio: number) => boolean;
  readonly detail: string;
}

export interface Plan {
  /** How many pairs of runs, and how long one run is. */
  readonly rounds: number;
  readonly seconds: number;
  readonly requestsForMemory: number;
  readonly manyFiles: number;
  readonly listedFiles: number;
}
