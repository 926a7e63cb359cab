import { createInterface } from 'node:readline/promises';
import { usageError } from './cli-error';
import type { CliContext } from './context';
import { interrupted } from './sidecar-api';

/**
 * @param purpose what a yes would do, as `apply the line-up`.
 * @throws CliError when there is nobody to ask.
 */
export function requireTerminal({ stdin, stderr, out }: CliContext, purpose: string): void {
  if (out.json || !stdin.isTTY || !stderr.isTTY) {
    throw usageError(`Nobody is there to say yes. Add --yes to ${purpose}, or --dry-run to only see it.`);
  }
}

/**
 * Asks the user at the terminal.
 * @param otherwise what is told when Ctrl-C is the answer, as `Nothing was written.`
 * @throws CliError then.
 */
export async function confirm(
  { stdin, stderr, interrupted: signal }: CliContext,
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
    return /^y(?:es)?$/i.test(answer.trim());
  } catch {
    stderr.write('\n');
    throw interrupted(`Stopped. ${otherwise}`);
  } finally {
    terminal.close();
  }
}
