import type { Environment } from '../http/config';
import type { CommandRun } from '../terminal/command';
import type { Output } from '../terminal/output';
import type { Fence } from '../verify/fenced-tester';
import type { ExitCode } from './cli-error';
import { createHttpCall, createSidecarApi, type SidecarApi } from './client';
import { type ConfigFile, findConfigFile, readAuthority, readConnection } from './connection';
import type { Options } from './options';

/** What a run takes from its process. */
export interface Ambient extends CommandRun {
  readonly env: Environment;
  readonly now: () => Date;
  /** So many random bytes, fit for keys. */
  readonly random: (bytes: number) => Buffer;
  /** Resolves after so many milliseconds, or when the signal is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** What a test of a stream may take; without it, it runs in this process. */
  readonly fence?: Fence;
}

export interface CliContext extends Ambient {
  readonly out: Output;
  /**
   * The sidecar that options, environment or configuration file name; all calls of a run share their connections.
   * With `finishCalls` an interruption does not cut a call that is under way.
   * @throws CliError when none is named, or the naming has a fault.
   */
  sidecar(options?: { readonly finishCalls: boolean }): SidecarApi;
  /** The authority to trust besides those of the system, PEM, as the options name it. @throws CliError when it has a fault. */
  authority(): string | undefined;
  /** The file of `--key-file`, as it was given. */
  readonly apiKeyFile: string | undefined;
  /** The configuration file of this call, if there is one. @throws CliError when it has a fault. */
  configFile(): ConfigFile | undefined;
  /** Ends the program with another exit code than 0 although nothing was thrown. */
  endWith(code: ExitCode): void;
}

/** Makes what a command works with; nothing is read or connected before it is asked for. */
export function createContext(
  ambient: Ambient,
  { out, endWith, options }: Pick<CliContext, 'out' | 'endWith'> & { readonly options: Options },
): CliContext {
  const connect = () => {
    const connection = readConnection(options, ambient.env, ambient.cwd);
    for (const warning of connection.warnings) out.warn(warning);
    return { connection, send: createHttpCall(connection) };
  };
  let connected: ReturnType<typeof connect> | undefined;
  return {
    ...ambient,
    out,
    endWith,
    sidecar: (calls) => {
      connected ??= connect();
      const signal = calls?.finishCalls ? new AbortController().signal : ambient.interrupted;
      return createSidecarApi(connected.connection, signal, connected.send);
    },
    authority: () => readAuthority(options, ambient.env, ambient.cwd),
    apiKeyFile: options.keyFile,
    configFile: () => findConfigFile(ambient.env, ambient.cwd, options.config),
  };
}
