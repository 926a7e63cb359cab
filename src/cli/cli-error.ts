import type { Problem } from '../http/errors';

export const EXIT = {
  done: 0,
  failed: 1,
  /** A wrong call of the program, or unusable input; nothing was sent. */
  usage: 2,
  /** The sidecar can't be reached, or refused the API key. */
  unreachable: 3,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command: the problems, and how the process ends. A description never holds a secret. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  readonly problems: readonly Problem[];

  constructor(exitCode: ExitCode, problems: Problem | readonly Problem[]) {
    const list: readonly Problem[] = 'code' in problems ? [problems] : problems;
    super(list.map(({ code }) => code).join(', '));
    this.name = 'CliError';
    this.exitCode = exitCode;
    this.problems = list;
  }
}

export function usageError(description: string): CliError {
  return new CliError(EXIT.usage, { code: 'usage', description });
}

export function answerOrError<Answer>(call: Promise<Answer>): Promise<Answer | CliError> {
  return call.catch((thrown: unknown) => {
    if (thrown instanceof CliError) return thrown;
    throw thrown;
  });
}

/** How a user types the option of this property: `cencKeyid` is `--cenc-keyid`. */
export function optionOf(property: string): string {
  return `--${property.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

export function interrupted(description = 'Stopped.'): CliError {
  return new CliError(EXIT.interrupted, { code: 'interrupted', description });
}
