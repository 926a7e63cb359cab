import { Command, InvalidArgumentError, type Option } from 'commander';
import { createOutput, type Output, parserOutput, reportThrown } from '../terminal/output';
import { CliError, EXIT, type ExitCode, usageError } from './cli-error';
import { COMMANDS, type CommandEntry } from './command-table';
import type { CliContext, CliDependencies } from './context';
import type { Options } from './options';

const AFTER_HELP = `
The address and the key come from the options, else from PACKAGERDRM_URL and PACKAGERDRM_APIKEY (or
PACKAGERDRM_APIKEY_FILE), else from the first configuration file that exists: ./packager-drm.yaml or
~/.config/packager-drm/config.yaml (url, key or keyFile, ca, cert, certKey, allowEnv, allowFile), else,
inside the sidecar's container, from the sidecar's own variables.
An address in ./packager-drm.yaml is only used with a key from the same file, and allowEnv and allowFile
are refused there, unless --config names it.

Exit codes:
  0    done
  1    something failed, the sidecar refused the request, or a fault was found
  2    wrong usage or unusable input; nothing was sent
  3    the sidecar can't be reached, or it refused the API key
  130  stopped by SIGINT (Ctrl-C) or SIGTERM
`;

/** Runs the command line once, and returns the exit code of the process. It never throws. */
export async function runCli(run: CliDependencies): Promise<ExitCode> {
  // Known before the options are read: a wrong option is reported as JSON, too.
  const json = run.argv.includes('--json');
  const out = createOutput(run.stdout, run.stderr, run.env, json);
  let exitCode: ExitCode = EXIT.done;
  const program = new Command('packager-drm');
  describeProgram(program, run, json);
  // Subcommands take over how the program speaks and ends, so this comes after describeProgram.
  addCommands(program, COMMANDS, async () => {
    const { createContext } = await import('./context');
    return createContext(run, {
      out,
      options: program.opts<Options>(),
      endWith: (code) => {
        exitCode = code;
      },
    });
  });
  program.hook('preAction', (_program, command) => refuseEmptyOptions(command));
  try {
    await program.parseAsync(run.argv, { from: 'user' });
  } catch (thrown) {
    exitCode = report(thrown, out);
  }
  const lost = await out.finish();
  if (lost === undefined) return exitCode;
  run.stderr.write(`error: The output could not be written (${lost}).\n`);
  return exitCode === EXIT.done ? EXIT.failed : exitCode;
}

function report(thrown: unknown, out: Output): ExitCode {
  if (!(thrown instanceof CliError)) return reportThrown(thrown, out, EXIT.usage, EXIT.failed);
  if (thrown.exitCode !== EXIT.interrupted || out.json) out.errors(thrown.problems);
  else for (const { description } of thrown.problems) out.note(description);
  return thrown.exitCode;
}

/** The code of a command is loaded with its call: most calls need little of the program. */
function addCommands(
  program: Command,
  entries: readonly CommandEntry[],
  open: () => Promise<CliContext>,
): void {
  for (const entry of entries) {
    const { load, commands = [] } = entry;
    const command = addCommand(program, entry);
    addCommands(command, commands, open);
    if (load)
      command.action(async (...args: readonly unknown[]) => {
        const run = await load();
        // The last argument is the command itself.
        await run(await open(), ...(args.slice(0, -1) as never[]));
      });
  }
}

export function addCommand(
  program: Command,
  { usage, description, options = [], help }: CommandEntry,
): Command {
  const command = program.command(usage).description(description);
  for (const option of options) command.addOption(option);
  return help === undefined ? command : command.addHelpText('after', help);
}

/** An option whose variable was empty would otherwise fall through to another value. */
function refuseEmptyOptions(command: Command): void {
  const all: Option[] = [];
  for (let each: Command | null = command; each; each = each.parent) all.push(...each.options);
  const values = command.optsWithGlobals();
  const empty = all.find((option) => [values[option.attributeName()]].flat().includes(''));
  if (empty) throw usageError(`${empty.long} is given without a value.`);
}

/** The parser would show the help of the command above it. */
function refuseUnknownCommand({ args, commands }: Command): string {
  const [name = '-'] = args[0] === 'help' ? args.slice(1) : args;
  const names = commands.map((command) => command.name());
  if (commands.length === 0 || name.startsWith('-') || names.includes(name)) return '';
  throw usageError(`There is no command ${name}; the commands are ${names.join(', ')}.`);
}

function describeProgram(
  program: Command,
  { version, stdout, stderr }: CliDependencies,
  json: boolean,
): void {
  program
    .description("Provisions, reads and checks a packager's key files through the sidecar's API.")
    .version(version)
    .option('--url <url>', "the sidecar's address")
    .option('--key <key>', 'API key; use --key-file to hide it from other users')
    .option('--key-file <file>', 'file that holds the API key', singleValue)
    .option('--ca <file>', 'certificate of the authority to trust, PEM')
    .option('--cert <file>', 'client certificate, PEM')
    .option('--cert-key <file>', 'its private key, PEM')
    .option('--config <file>', 'configuration file to read instead of the usual ones')
    .option('--json', 'one JSON document on stdout, errors as {"errors":[…]} too')
    .addHelpText('after', AFTER_HELP)
    .addHelpText('beforeAll', ({ command }) => refuseUnknownCommand(command))
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .configureOutput(parserOutput({ stdout, stderr }, json));
}

/** Of two files one would be ignored silently. */
function singleValue(value: string, former: string | undefined): string {
  if (former === undefined) return value;
  throw new InvalidArgumentError('It is given twice; give one API key.');
}
