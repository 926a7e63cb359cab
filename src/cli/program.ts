import type { Command } from 'commander';
import { COMMANDS, type CommandEntry } from './command-table';
import type { CliContext } from './context';

/**
 * Adds commands. What a command does is loaded when it is called: most calls need little of the program.
 * @param open answers what the command works with, once its options are read.
 */
export function addCommands(
  program: Command,
  open: () => Promise<CliContext>,
  entries: readonly CommandEntry[] = COMMANDS,
): void {
  for (const entry of entries) {
    const { load, commands = [] } = entry;
    const command = addCommand(program, entry);
    addCommands(command, open, commands);
    if (load)
      command.action(async (...args: readonly unknown[]) => {
        const run = await load();
        // The last argument is the command itself.
        await run(await open(), ...(args.slice(0, -1) as never[]));
      });
  }
}

/** Adds a command without what it does. */
export function addCommand(
  program: Command,
  { usage, description, options = [], help }: CommandEntry,
): Command {
  const command = program.command(usage).description(description);
  for (const option of options) command.addOption(option);
  return help === undefined ? command : command.addHelpText('after', help);
}
