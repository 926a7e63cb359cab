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

/** Ends the program: what to tell the user. */
export class Failure extends Error {
  readonly code: string;
  readonly exitCode: ExitCode;

  constructor(code: string, description: string, exitCode: ExitCode = EXIT.unusable) {
    super(description);
    this.name = 'Failure';
    this.code = code;
    this.exitCode = exitCode;
  }
}
