import { createInterface } from 'node:readline/promises';
import type { CommandRun } from './command';

/**
 * Asks the user at the terminal.
 * @returns whether the answer is yes; undefined when the user stops the program (Ctrl-C, or the end of the input).
 */
export async function ask(
  { stdin, stderr, interrupted }: Pick<CommandRun, 'stdin' | 'stderr' | 'interrupted'>,
  question: string,
): Promise<boolean | undefined> {
  const terminal = createInterface({ input: stdin, output: stderr });
  const closed = new AbortController();
  terminal.once('SIGINT', () => closed.abort());
  terminal.once('close', () => closed.abort());
  try {
    const answer = await terminal.question(`${question} [y/N] `, {
      signal: AbortSignal.any([interrupted, closed.signal]),
    });
    return /^y(?:es)?$/i.test(answer.trim());
  } catch {
    stderr.write('\n');
    return undefined;
  } finally {
    terminal.close();
  }
}
