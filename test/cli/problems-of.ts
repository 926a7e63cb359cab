import { CliError } from '../../src/cli/cli-error';

/** The sentences that a reader of files or options throws; none when it reads them. */
export async function problemsOf(read: () => unknown): Promise<string[]> {
  try {
    await read();
  } catch (thrown) {
    if (thrown instanceof CliError) return thrown.problems.map(({ description }) => description);
    throw thrown;
  }
  return [];
}
