import { readFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { styleText } from 'node:util';
import { CommanderError } from 'commander';
import type { Environment } from '../http/config';
import { type Problem, systemCode } from '../http/errors';
import { jsonText, shown } from './text';

export type TerminalOutput = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow';

/** Where a command's words go: results to stdout, everything about them to stderr. */
export type Output = ReturnType<typeof createOutput>;

export function createOutput(
  stdout: TerminalOutput,
  stderr: TerminalOutput,
  env: Environment,
  json: boolean,
) {
  const colour = !env.NO_COLOR && env.TERM !== 'dumb';
  const styled = (stream: TerminalOutput) => (style: Style, text: string) =>
    colour && stream.isTTY ? styleText(style, text, { validateStream: false }) : text;
  const noteStyle = styled(stderr);
  let gone = false;
  let lost: string | undefined;
  const fail = (thrown: unknown) => {
    gone = true;
    const code = systemCode(thrown) ?? 'ERROR';
    // `| head` closes the pipe when it has enough; this is not an error, and the work continues.
    if (code !== 'EPIPE' && code !== 'ERR_STREAM_DESTROYED') lost ??= code;
  };
  stdout.on('error', fail);
  stderr.on('error', () => undefined);
  const write = (text: string | Buffer): void => {
    if (!gone) stdout.write(text, (thrown) => thrown && fail(thrown));
  };
  /** Resolves when all is written, or can't be. */
  const flushed = () =>
    new Promise<void>((resolve) => {
      stdout.write('', (thrown) => {
        if (thrown) fail(thrown);
        resolve();
      });
    });
  const document = (value: unknown): void => write(`${jsonText(value, 2)}\n`);
  return {
    json,
    /** A text in a style on stdout, and one on stderr: plain where that isn't a terminal. */
    style: styled(stdout),
    noteStyle,
    write,
    document,
    /** A line that is shown in any case, also with `--json`. */
    warn: (line: string): void => {
      stderr.write(`${noteStyle('yellow', 'warning:')} ${shown(line)}\n`);
    },
    /** A line next to the result; none with `--json`, where the document says it. */
    note: (line: string, style?: Style): void => {
      if (!json) stderr.write(`${style ? noteStyle(style, line) : line}\n`);
    },
    errors: (problems: readonly Problem[]): void => {
      if (json) document({ errors: problems.map(({ code, description }) => ({ code, description })) });
      else
        for (const { description } of problems)
          stderr.write(`${noteStyle('red', 'error:')} ${shown(description)}\n`);
    },
    /** Resolves when stdout takes more. Returns false when its reader is gone. */
    ready: async (): Promise<boolean> => {
      if (!gone && stdout.writableNeedDrain) await flushed();
      return !gone && !stdout.destroyed;
    },
    /** Resolves when all is written. Returns the system's code of a failure; a reader that is gone is none. */
    finish: async (): Promise<string | undefined> => {
      if (!gone && !stdout.destroyed) await flushed();
      return lost;
    },
  };
}

export interface CommandRun {
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

/** Takes the signals of this process: to be called once. @param packageFile path of the package.json. */
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

/** Reports commander's error for a wrong call, or a fault of the program. Returns one of the codes, or 0. */
export function reportThrown<Code extends number>(thrown: unknown, out: Output, usage: Code, fault: Code) {
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return 0;
    const isHelp = thrown.code === 'commander.help';
    // Without the value that was given to an option: it may be a key.
    const text = thrown.message
      .replace(/^error: /, '')
      .replaceAll(/(unknown option '(?:-[^-]|[^=]*(?==))|'--?[^'=\s]+(?==)).*'/gsu, "$1'");
    const description = isHelp ? 'A command is missing.' : text.trim().replaceAll(/\s+/g, ' ');
    if (!isHelp || out.json) out.errors([{ code: 'usage', description }]);
    return usage;
  }
  const name = thrown instanceof Error ? thrown.name : typeof thrown;
  const description = `The program has a fault (${name}). Please report it with the command that you gave.`;
  out.errors([{ code: 'fault', description }]);
  return fault;
}
