import type { Command } from 'commander';
import { type CliError, EXIT } from '../cli-error';
import type { CliContext } from '../context';
import type { LineUp, LineUpItem } from '../lineup/lineup';
import { readLineUp } from '../lineup/read-lineup';
import { count } from '../output';
import { addProviderOptions, type ProviderOptions, providerFields } from '../put-body';
import { interrupted, type SidecarApi } from '../sidecar-api';
import { chunksOf } from './chunks';
import { confirm, requireTerminal } from './confirm';
import { sentenceOf, showPlan, showResults, summaryOf } from './outcome-text';
import { showProgress } from './progress';
import { namesOf, type Sent, type StreamResult, sendChunks } from './send-chunks';

interface ApplyOptions extends ProviderOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly all?: boolean;
}

const AFTER_HELP = `
It shows first what would change, asks, and goes on after single failures. Run it again after a
failure or a stop: what is done is left as it is. A stream that the file does not name is never touched.
`;

/** `apply`: provisions a line-up. */
export function registerApply(program: Command, context: CliContext): void {
  const command = program
    .command('apply <line-up>')
    .description('provision a line-up: a .yaml, .json or .csv file');
  addProviderOptions(command)
    .option('--dry-run', 'only show what would change')
    .option('--yes', 'do not ask')
    .option('--all', 'name every stream, not only the first 20 of each kind')
    .addHelpText('after', AFTER_HELP)
    .action(async (path: string, options: ApplyOptions) => {
      if (!options.dryRun && !options.yes) requireTerminal(context);
      const lineUp = readLineUp(context, path, given(context, options));
      const items = [...lineUp.streams, ...lineUp.groups];
      const plan = await send(context, context.sidecar(), lineUp, true);
      if (plan.stopped)
        throw plan.stopped.exitCode === EXIT.interrupted ? interrupted(NOTHING) : plan.stopped;
      const planned = [...plan.results.values()].flat();
      if (!context.out.json) showPlan(context.out, planned, options.all ?? false);
      const due = items.filter((item) => plan.results.get(item)?.some(({ result }) => isChange(result)));
      const isDry = options.dryRun || due.length === 0;
      if (!isDry && !options.yes) {
        const question = `Write ${count(planned.filter(({ result }) => isChange(result)).length, 'key file')} at ${context.sidecar().address}?`;
        if (!(await confirm(context, question))) {
          context.out.note('Nothing was written.');
          return;
        }
      }
      const sent = isDry
        ? undefined
        : await send(context, context.sidecar({ finishCalls: true }), among(lineUp, due), false);
      tellOutcome(context, { path, options, items, plan, due, sent });
    });
}

const NOTHING = 'Stopped. Nothing was written.';

interface Outcome {
  readonly path: string;
  readonly options: ApplyOptions;
  readonly items: readonly LineUpItem[];
  readonly plan: Sent;
  readonly due: readonly LineUpItem[];
  readonly sent: Sent | undefined;
}

function tellOutcome(context: CliContext, { path, options, items, plan, due, sent }: Outcome): void {
  const { out } = context;
  const results = items.flatMap((item) => {
    const planned = plan.results.get(item) ?? [];
    if (!sent || !due.includes(item)) return planned;
    return (
      sent.results.get(item) ?? planned.map((result): StreamResult => ({ ...result, result: 'not_reached' }))
    );
  });
  const summary = summaryOf(results);
  const stopped = sent?.stopped;
  if (out.json) {
    const reason = stopped ? (stopped.problems[0]?.code ?? null) : null;
    const errors = stopped && stopped.exitCode !== EXIT.interrupted ? { errors: stopped.problems } : {};
    out.document({
      lineup: path,
      dry_run: options.dryRun ?? false,
      stopped: reason,
      results,
      summary,
      ...errors,
    });
  } else {
    if (sent) {
      // What failed in the dry run was told with the plan.
      const failed = [...sent.results.values()].flat().filter(({ result }) => result === 'failed');
      if (failed.length > 0) out.write(`${out.style('bold', `${count(failed.length, 'stream')} failed`)}\n`);
      showResults(out, failed, options.all ?? false);
    }
    if (stopped) tellStop(context, stopped);
    const what = sent
      ? `${path}: ${sentenceOf(summary)}.`
      : options.dryRun
        ? 'Nothing was written.'
        : 'There is nothing to write.';
    out.note(out.noteStyle(summary.failed > 0 || stopped ? 'red' : 'green', what));
  }
  if (stopped) context.endWith(stopped.exitCode);
  else if (summary.failed > 0) context.endWith(EXIT.failed);
}

function tellStop({ out }: CliContext, stopped: CliError): void {
  if (stopped.exitCode !== EXIT.interrupted) out.errors(stopped.problems);
  out.note('Run the same command again to go on: what is written is left as it is.');
}

async function send(
  context: CliContext,
  sidecar: SidecarApi,
  { streams, groups }: LineUp,
  dryRun: boolean,
): Promise<Sent> {
  const total = [...streams, ...groups].reduce((sum, item) => sum + namesOf(item).length, 0);
  const progress = showProgress(context, dryRun ? 'Comparing' : 'Writing', total);
  try {
    return await sendChunks(
      context,
      sidecar,
      [...chunksOf('streams', streams), ...chunksOf('groups', groups)],
      dryRun,
      progress,
    );
  } finally {
    progress.stop();
  }
}

function among({ streams, groups }: LineUp, due: readonly LineUpItem[]): LineUp {
  const wanted = new Set(due);
  return {
    streams: streams.filter((item) => wanted.has(item)),
    groups: groups.filter((item) => wanted.has(item)),
  };
}

function isChange(result: StreamResult['result']): boolean {
  return result === 'created' || result === 'changed';
}

/** The defaults that the options give. */
function given(context: CliContext, options: ProviderOptions) {
  const { client, clientApiKey, cmaf } = providerFields(context, options);
  return {
    ...(client !== undefined && { client }),
    ...(clientApiKey !== undefined && { clientApiKey }),
    ...(cmaf !== undefined && {
      cmaf: cmaf === true ? true : cmaf === false ? false : (cmaf as 'cenc' | 'cbcs'),
    }),
  };
}
