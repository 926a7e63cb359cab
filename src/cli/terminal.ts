import { createInterface } from 'node:readline/promises';
import { SingleBar } from 'cli-progress';
import { BAR_STYLE } from '../terminal/command';
import { usageError } from './cli-error';
import { interrupted } from './client';
import type { CliContext } from './context';

/**
 * @param purpose what a yes would do, as `apply the manifest`.
 * @param otherwise what else the user can do.
 * @throws CliError when there is nobody to ask.
 */
export function requireTerminal(
  { stdin, stderr, out }: CliContext,
  purpose: string,
  otherwise = ', or --dry-run to only see it',
): void {
  if (out.json || !stdin.isTTY || !stderr.isTTY)
    throw usageError(`Nobody can answer the question here. Add --yes to ${purpose}${otherwise}.`);
}

/**
 * Asks the user at the terminal.
 * @param otherwise what is told after another answer than yes, as `Nothing was written.`
 * @throws CliError when Ctrl-C is the answer.
 */
export async function confirm(
  { stdin, stderr, out, interrupted: signal }: CliContext,
  question: string,
  otherwise: string,
): Promise<boolean> {
  const terminal = createInterface({ input: stdin, output: stderr });
  const closed = new AbortController();
  terminal.once('SIGINT', () => closed.abort());
  terminal.once('close', () => closed.abort());
  try {
    const answer = await terminal.question(`${question} [y/N] `, {
      signal: AbortSignal.any([signal, closed.signal]),
    });
    const isYes = /^y(?:es)?$/i.test(answer.trim());
    if (!isYes) out.note(otherwise);
    return isYes;
  } catch {
    stderr.write('\n');
    throw interrupted(`Stopped. ${otherwise}`);
  } finally {
    terminal.close();
  }
}

/** How far the sending is; on a terminal as a bar. */
export interface Progress {
  advance(streams: number): void;
  /** The sidecar is away or busy; undefined: no longer. */
  waiting(seconds: number | undefined): void;
  stop(): void;
}

/** How often a log is told that the work goes on. */
const NOTE_MS = 10_000;

export function showProgress(
  { stderr, out }: Pick<CliContext, 'stderr' | 'out'>,
  title: string,
  total: number,
): Progress {
  if (out.json || !stderr.isTTY) {
    let done = 0;
    const number = (value: number) => value.toLocaleString('en-US');
    const timer = setInterval(() => out.note(`${title}: ${number(done)} of ${number(total)}.`), NOTE_MS);
    return {
      advance: (streams) => {
        done += streams;
      },
      waiting: (seconds) => {
        if (seconds !== undefined)
          out.note(`The sidecar cannot be reached or is busy, next try in ${seconds} s.`);
      },
      stop: () => clearInterval(timer),
    };
  }
  const bar = new SingleBar({
    stream: stderr,
    format: `${title} {bar} {value} of {total}{state}`,
    ...BAR_STYLE,
    formatValue: (value, _options, type) =>
      type === 'value' || type === 'total' ? value.toLocaleString('en-US') : String(value),
  });
  bar.start(total, 0, { state: '' });
  return {
    advance: (streams) => bar.increment(streams),
    waiting: (seconds) =>
      bar.update({
        state:
          seconds === undefined ? '' : `, the sidecar cannot be reached or is busy, next try in ${seconds} s`,
      }),
    stop: () => bar.stop(),
  };
}
