/** One line of the table: a measurement, and its results as ratios of pairs of runs. */
export interface Figure {
  readonly name: string;
  readonly ratios: readonly number[];
  /** The bound of the median; neither: the figure is only reported. */
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly detail?: string;
}

export interface Plan {
  /** How many pairs of runs, and how long one run is. */
  readonly rounds: number;
  readonly seconds: number;
  readonly requestsForMemory: number;
  readonly manyFiles: number;
  readonly listedFiles: number;
  /** Of the longer of two access logs. */
  readonly logLines: number;
  /** In the engine when a packager of a fleet starts without any. */
  readonly fleetKeys: number;
  /** Of a stream with a key every ten seconds. */
  readonly rotatedKeys: number;
}
