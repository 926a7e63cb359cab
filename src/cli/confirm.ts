import { createInterface } from 'node:readline/promises';
import { interrupted, usageError } from './cli-error';
import type { CliContext } from './context';

/**
 * @param purpose the effect of a yes, as `apply the manifest`.
 * @param otherwise what else the user can do.
 * @throws CliError when the question can't be answered.
 */
export function requireTerminal(
  { stdin, stderr, out }: CliContext,
  purpose: string,
  otherwise = ', or --dry-run to preview it',
): void {
  if (out.json || !stdin.isTTY || !stderr.isTTY)
    throw usageError(
      `This is not a terminal, so the question can't be answered. Add --yes to ${purpose}${otherwise}.`,
    );
}

/**
 * Asks the user for a confirmation at the terminal.
 * @param otherwise the sentence after another answer than yes, as `Nothing was written.`
 * @throws CliError when the user stops the program (Ctrl-C, or the end of the input).
 */
export async function confirm(context: CliContext, question: string, otherwise: string): Promise<boolean> {
  const { stdin, stderr, out } = context;
  const terminal = createInterface({ input: stdin, output: stderr });
  const closed = new AbortController();
  terminal.once('SIGINT', () => closed.abort());
  terminal.once('close', () => closed.abort());
  try {
    const signal = AbortSignal.any([context.interrupted, closed.signal]);
    const answer = await terminal.question(`${question} [y/N] `, { signal });
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
