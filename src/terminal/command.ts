import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { TerminalOutput } from './output';

/** What a command takes from its process, in addition to the environment. */
export interface CommandRun {
  /** What follows the program's name. */
  readonly argv: readonly string[];
  readonly version: string;
  /** The folder that relative paths start from. */
  readonly cwd: string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: TerminalOutput;
  readonly stderr: TerminalOutput;
  /** Aborted when the user wants the program to end (SIGINT, SIGTERM). */
  readonly interrupted: AbortSignal;
}

/** @param packageFile path of the package.json that has the version. */
export function commandRun(packageFile: string): CommandRun {
  const interrupt = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'])
    process.on(name, () => {
      // The second time, the user doesn't want to wait for running work.
      if (interrupt.signal.aborted) process.exit(130);
      interrupt.abort();
    });
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8'));
  return {
    argv: process.argv.slice(2),
    version,
    cwd: process.cwd(),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    interrupted: interrupt.signal,
  };
}

/** Where commander writes: a wrong call is reported with all other errors. */
export function parserOutput({ stdout, stderr }: Pick<CommandRun, 'stdout' | 'stderr'>, json: boolean) {
  return {
    writeOut: (text: string) => void stdout.write(text),
    // The help of a call without a command.
    writeErr: (text: string) => void (json || stderr.write(text)),
    outputError: () => undefined,
    getErrHelpWidth: () => stderr.columns ?? 100,
    getOutHelpWidth: () => stdout.columns ?? 100,
  };
}
