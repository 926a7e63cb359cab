/** How the program ends, for scripts. */
export const EXIT = {
  /** Every call can be migrated as it is shown. */
  done: 0,
  /** Some calls need work by hand, or are not supported or not known. */
  byHand: 1,
  /** The program was called wrongly, or can't use what it was given. */
  unusable: 2,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the program as unusable: what to report to the user. */
export class Failure extends Error {
  constructor(
    readonly code: string,
    description: string,
  ) {
    super(description);
    this.name = 'Failure';
  }
}
