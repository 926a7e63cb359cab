import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../http/config';
import type { ExitCode } from './cli-error';
import type { SidecarApi } from './client';
import type { ConfigFile } from './connection';
import type { Output } from './output';

export type TerminalInput = Readable & { readonly isTTY?: boolean };
export type TerminalOutput = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** What the program takes from its process. */
export interface Ambient {
  readonly env: Environment;
  /** The folder that relative paths start from. */
  readonly cwd: string;
  readonly stdin: TerminalInput;
  readonly stdout: TerminalOutput;
  readonly stderr: TerminalOutput;
  /** Aborted when the user wants the program to end (SIGINT). */
  readonly interrupted: AbortSignal;
  /** The time of day. */
  readonly now: () => Date;
  /** Resolves after so many milliseconds, or when the signal is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** What a command works with. */
export interface CliContext extends Ambient {
  readonly out: Output;
  /**
   * The sidecar that options, environment or configuration file name.
   * With `finishCalls` a SIGINT does not cut a call that is under way.
   * @throws CliError when none is named, or the naming has a fault.
   */
  sidecar(options?: { readonly finishCalls: boolean }): SidecarApi;
  /** The configuration file of this call, if there is one. @throws CliError when it has a fault. */
  configFile(): ConfigFile | undefined;
  /** Ends the program with another exit code than 0 although nothing was thrown. */
  endWith(code: ExitCode): void;
}
