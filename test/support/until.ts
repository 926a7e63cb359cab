/**
 * Resolves when a condition holds; a test whose condition never does ends by its own time limit. An open
 * wait does not keep the process.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5).unref());
}
