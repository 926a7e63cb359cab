import { createInterface } from 'node:readline/promises';
import { usageError } from '../cli-error';
import type { CliContext } from '../context';
import { interrupted } from '../sidecar-api';

/** @throws CliError when there is nobody to ask. */
export function requireTerminal({ stdin, stderr, out }: CliContext): void {
  if (out.json || !stdin.isTTY || !stderr.isTTY) {
    throw usageError(
      'Nobody is there to say yes. Add --yes to apply the line-up, or --dry-run to only see it.',
    );
  }
}

/** Asks the user at the terminal. @throws CliError when Ctrl-C is the answer. */
export async function confirm(
  { stdin, stderr, interrupted: signal }: CliContext,
  question: string,
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
    throw interrupted('Stopped. Nothing was written.');
  } finally {
    terminal.close();
  }
}
