import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Environment } from '../../../http/config';
import { systemCode } from '../../../http/errors';
import {
  type CommandRun,
  createOutput,
  type Output,
  parserOutput,
  reportThrown,
} from '../../../terminal/output';
import { shellWord } from '../../../terminal/text';
import { CLIENTS, type Client, V2_ADDRESS } from '../render';
import { Collector, htmlReport, jsonReport, type Report, summary, textReport } from '../report';
import { Failure, KINDS, type Kind, readInput, readPieces } from './inputs';

const EXIT = {
  /** Every call can be migrated as it is shown. */
  done: 0,
  /** Some calls need work by hand, or are not supported or not known. */
  byHand: 1,
  /** Wrong usage, or unusable input. */
  unusable: 2,
  interrupted: 130,
} as const;

type ExitCode = (typeof EXIT)[keyof typeof EXIT];

type Run = CommandRun & { readonly env: Environment };

interface Options {
  readonly from?: Kind;
  readonly json?: true;
  readonly html?: string;
  readonly site?: string;
  readonly client: Client;
  readonly address?: string;
}

const AFTER_HELP = `
An input is a curl command or an address (in quotes), a file, a folder, or - for standard input (the default). The
program detects the kind of each input: a command, addresses, a HAR file, an access log (also as JSON lines, also
compressed by gzip), or a program in JavaScript, TypeScript, Python or PHP. Everything after the word curl belongs
to the command:

  platform-migrate curl -d video_key=abc -d title=New https://api.jwplatform.com/v1/videos/update
  platform-migrate --json access.log > report.json
  platform-migrate --html report.html src/

Exit codes:
  0    every call can be migrated as it is shown
  1    some calls need work by hand, or are not supported or not known in v2
  2    wrong usage or unusable input
  130  stopped by SIGINT (Ctrl-C)
`;

/** Runs the program once, and answers the code that the process ends with. It never throws. */
export async function runMigrate(run: Run): Promise<ExitCode> {
  const json = optionWords(run.argv).includes('--json');
  const out = createOutput(run.stdout, run.stderr, run.env, json);
  const program = describe(run, json);
  let exitCode: ExitCode = EXIT.done;
  program.action(async (inputs: readonly string[]) => {
    exitCode = await migrate(run, out, inputs, program.opts<Options>());
  });
  try {
    await program.parseAsync(optionWords(run.argv), { from: 'user' });
  } catch (thrown) {
    if (run.interrupted.aborted) {
      out.note('Stopped.');
      exitCode = EXIT.interrupted;
    } else if (thrown instanceof Failure) {
      out.errors([{ code: thrown.code, description: thrown.message }]);
      exitCode = EXIT.unusable;
    } else exitCode = reportThrown(thrown, out, EXIT.unusable, EXIT.unusable);
  }
  const lost = await out.finish();
  if (lost === undefined) return exitCode;
  run.stderr.write(`error: The output could not be written (${lost}).\n`);
  return exitCode === EXIT.done ? EXIT.unusable : exitCode;
}

/** The words, with a curl command that wasn't quoted as one. Its options look like those of the program. */
function optionWords(argv: readonly string[]): string[] {
  const start = argv.findIndex((word, at) => word === 'curl' && argv[at - 1] !== '--from');
  if (start < 0) return [...argv];
  return [
    ...argv.slice(0, start),
    `curl ${argv
      .slice(start + 1)
      .map(shellWord)
      .join(' ')}`,
  ];
}

function describe({ version, stdout, stderr }: Run, json: boolean): Command {
  return new Command('platform-migrate')
    .description('Shows the calls of Management API v2 that do what calls of v1 did.')
    .version(version)
    .argument('[inputs...]', 'sources of v1 calls')
    .addOption(
      new Option('--from <kind>', 'kind of the inputs, if the program detects another one').choices(KINDS),
    )
    .option('--json', 'one JSON document on stdout, errors as {"errors":[…]} too')
    .option('--html <file>', 'write the report as a page to this file')
    .option('--site <id>', 'id of the site (default: the placeholder {site_id})', siteId)
    .addOption(
      new Option('--client <language>', 'client of v2 to show calls for').choices(CLIENTS).default('python'),
    )
    .option('--address <url>', 'address of v2 for the curl commands', address)
    .addHelpText('after', AFTER_HELP)
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput(parserOutput({ stdout, stderr }, json));
}

function siteId(value: string): string {
  if (/^[\w-]{1,100}$/.test(value)) return value;
  throw new InvalidArgumentError('It is an id of letters and digits.');
}

function address(value: string): string {
  const isWeb = URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
  if (isWeb && !/[?#@\s"'$`\\]/.test(value)) return value.replace(/\/+$/, '');
  throw new InvalidArgumentError('It must be an address such as http://127.0.0.1:8080.');
}

async function migrate(
  run: Run,
  out: Output,
  inputs: readonly string[],
  options: Options,
): Promise<ExitCode> {
  const { stdin, stderr, cwd, interrupted } = run;
  const collector = new Collector();
  const reading = { collector, cwd, from: options.from, interrupted, stderr, out };
  if (inputs.length === 0 && stdin.isTTY) {
    throw new Failure('usage', 'Nothing to read. Name a curl command, an address, a file or a folder.');
  }
  for (const input of inputs.length === 0 ? ['-'] : inputs) {
    if (input === '-') await readPieces(reading, 'Standard input', stdin, 0);
    else await readInput(reading, input);
  }
  const report = collector.report(options.site);
  await write(report, out, cwd, options);
  const { by_hand, unsupported, unknown } = report.totals;
  return by_hand + unsupported + unknown + report.uncounted > 0 ? EXIT.byHand : EXIT.done;
}

async function write(report: Report, out: Output, cwd: string, options: Options): Promise<void> {
  const { html, client, address = V2_ADDRESS } = options;
  const how = { client, address };
  if (html !== undefined) {
    await writeFile(resolve(cwd, html), htmlReport(report, how)).catch((thrown: unknown) => {
      const code = systemCode(thrown);
      if (code === undefined) throw thrown;
      throw new Failure('unusable_output', `${html} can't be written (${code}).`);
    });
  }
  if (out.json) {
    out.document(jsonReport(report, how));
    return;
  }
  if (html !== undefined) out.write(`${summary(report)} The report is in ${html}.\n`);
  else
    for (const part of textReport(report, how)) {
      out.write(part);
      if (!(await out.ready())) return;
    }
}
