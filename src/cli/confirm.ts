import { ask } from '../terminal/question';
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
 * Asks the user for a confirmation.
 * @param otherwise the sentence after another answer than yes, as `Nothing was written.`
 * @throws CliError when the user stops the program.
 */
export async function confirm(context: CliContext, question: string, otherwise: string): Promise<boolean> {
  const answer = await ask(context, question);
  if (answer === undefined) throw interrupted(`Stopped. ${otherwise}`);
  if (!answer) context.out.note(otherwise);
  return answer;
}
