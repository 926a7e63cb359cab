import { resolve } from 'node:path';
import type { Command } from 'commander';
import { parseStreamId } from '../../api/stream-id';
import { say } from '../../drm/bytes';
import { EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { readStreamIds } from '../lineup/read-lineup';
import { diagnose } from './diagnose';
import { examine, NothingToExamine } from './examine';
import type { MachinePaths } from './packager-user';
import { renderReport, reportDocument, reportRows, summaryOf } from './report';

const MACHINE: MachinePaths = { passwd: '/etc/passwd', group: '/etc/group', proc: '/proc' };

interface DoctorOptions {
  readonly packager: string;
  readonly application?: readonly string[];
  readonly streams?: readonly string[];
  readonly lineup?: string;
  readonly user?: string;
  readonly csv?: boolean;
}

/** `doctor`: checks a packager's installation against the sidecar, and says what to change where. */
export function registerDoctor(program: Command, context: CliContext, machine: MachinePaths = MACHINE): void {
  program
    .command('doctor')
    .description("check a packager's installation: its settings, its key folder, its rights, its streams")
    .requiredOption(
      '--packager <folder>',
      'where the packager is installed, as /usr/local/WowzaStreamingEngine',
    )
    .option('--application <name>', 'check only this application; may be given again', namesInto, undefined)
    .option(
      '--streams <ids>',
      'streams that must have a key file, divided by commas; may be given again',
      namesInto,
      undefined,
    )
    .option('--lineup <file>', 'line-up whose streams must have a key file')
    .option('--user <name>', 'whom the packager runs as, by name or number, when it can’t be found out')
    .option('--csv', 'the findings as CSV with a header row, for a spreadsheet')
    .addHelpText(
      'after',
      '\nIt reads only: nothing is written or changed. Ends with 1 when there is a fault.',
    )
    .action(async (options: DoctorOptions) => {
      const { out, interrupted, wait } = context;
      const { lineup } = options;
      if (options.csv && out.json) throw usageError('Give --csv or --json, not both.');
      checkNames(options);
      const examined = await examine({
        packager: resolve(context.cwd, options.packager),
        applications: options.application,
        user: options.user,
        given: [...(options.streams ?? []), ...(lineup === undefined ? [] : readStreamIds(context, lineup))],
        sidecar: () => context.sidecar(),
        machine,
        pause: (ms) => wait(ms, interrupted),
      }).catch((thrown: unknown) => {
        throw thrown instanceof NothingToExamine ? usageError(thrown.message) : thrown;
      });
      const sections = diagnose(examined);
      if (out.json) out.document(reportDocument(examined, sections));
      else if (options.csv) out.write(reportRows(sections));
      else out.write(renderReport(examined, sections, out));
      if (summaryOf(sections).faults > 0) context.endWith(EXIT.failed);
    });
}

/** What is no stream id would be looked for, and not found for a reason that nobody sees. */
function checkNames({ application, streams }: DoctorOptions): void {
  if (application?.length === 0) throw usageError('--application names none.');
  if (streams?.length === 0) throw usageError('--streams names none.');
  for (const name of streams ?? []) {
    const parsed = parseStreamId(name);
    if (!parsed.ok) throw usageError(`--streams ${name}: ${say(parsed.fault)}`);
  }
}

function namesInto(text: string, former: readonly string[] | undefined): readonly string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return [...(former ?? []), ...names];
}
