import type { Command } from 'commander';
import type { CliContext } from '../context';
import type { StatusOptions } from './status';
import type { ImportOptions, StepsOptions } from './steps';

/** Adds the commands of a fleet of packagers. */
export function addFleetCommands(program: Command, open: () => Promise<CliContext>): void {
  const fleet = program
    .command('fleet')
    .description('the fleet of packagers that the sidecar is in: see who has what, bring key files in')
    .addHelpText(
      'after',
      `
All of it needs an API key without streams; what changes something, one that may write.
docs/fleet.md says what a fleet is, and what to do when something fails.
`,
    );
  fleet
    .command('status [streamid]')
    .description('show the packagers, what each lacks, and the servers of the engine; or who has a stream')
    .option('--watch', 'show it again each second, until Ctrl-C')
    .option('--all', 'name every packager, and every stream that one lacks, not only the first 20')
    .addHelpText(
      'after',
      `
Ends with 0 when this sidecar is level with the fleet, and every live packager has all of its streams; else with 1.
A packager that is not live is shown, and does not count. With a stream: whether every live packager that takes it
has it. Packagers report what they have every five seconds, so that a change of a moment ago may count as missing.
With --json the answer of the API; with --watch, too, one on each line.
`,
    )
    .action(async (streamId: string | undefined, options: StatusOptions) =>
      (await import('./status')).fleetStatus(await open(), streamId, options),
    );
  fleet
    .command('import')
    .description("bring the key files of the sidecar's folder into the fleet")
    .option('--found', 'found the fleet again in an engine that has lost it, and import then')
    .option('--all', 'name every key file that is refused, not only the first 20')
    .addHelpText(
      'after',
      `
A stream that the fleet knows already is left as it is: a key file that differs stays, here and in the fleet, and is
named. Run it at each packager that had key files before. Run it again after a failure or a stop: what is done
counts as there already. Ends with 1 when a key file is refused.
`,
    )
    .action(async (options: ImportOptions) =>
      (await import('./steps')).importKeyFiles(await open(), options),
    );
  fleet
    .command('reseal')
    .description('seal all entries of the fleet with the first secret of the sidecar’s file of secrets')
    .option('--all', 'name every stream whose entry can’t be opened, not only the first 20')
    .addHelpText(
      'after',
      `
For a new secret: put it below the old one in the file of each sidecar, then above it, then reseal, then remove the
old one. Run it again after a failure or a stop. Ends with 1 when an entry can't be opened: it stays as it is.
`,
    )
    .action(async (options: StepsOptions) => (await import('./steps')).reseal(await open(), options));
  fleet
    .command('retire <name>')
    .description('remove a packager that does not run any more, so that nobody waits for it')
    .option('--yes', 'do not ask')
    .action(async (name: string, options: { readonly yes?: boolean }) =>
      (await import('./retire')).retire(await open(), name, options),
    );
}
