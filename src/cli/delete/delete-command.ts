import type { Command } from 'commander';
import { type CliError, EXIT, usageError } from '../cli-error';
import { confirm, requireTerminal } from '../confirm';
import type { CliContext } from '../context';
import { count, type Output, shown } from '../output';
import { preconditionOf } from '../put-command';
import { type DeleteResult, deleteFiles } from './delete-files';
import { type Doomed, type Found, findByRule, findNamed, type Selection } from './find-doomed';

interface DeleteOptions extends Selection {
  readonly ifMatch?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly all?: boolean;
}

const AFTER_HELP = `
One stream that is named is deleted at once. Several, and what --prefix or --not-in find, are shown first, and
asked for. A key file that changes between the look and the deletion is left as it is.
A line-up of --not-in is the list of what stays. It is a file that apply takes; its stream ids are read alone.
With --prefix beside it, only key files below that are looked at.
`;

const NOTHING = 'Nothing was deleted.';

/** `delete`: removes the key file of a stream, of several, below a prefix, or those that a line-up does not name. */
export function registerDelete(program: Command, context: CliContext): void {
  program
    .command('delete [streamids...]')
    .description('remove the key files of streams')
    .option('--prefix <text>', 'those of all streams whose id starts with this')
    .option('--not-in <line-up>', 'those of all streams that this line-up does not name')
    .option('--if-match <etag>', 'only the file that has this ETag; for one stream')
    .option('--dry-run', 'only show what would be deleted')
    .option('--yes', 'do not ask')
    .option('--all', 'name every stream, not only the first 20')
    .addHelpText('after', AFTER_HELP)
    .action(async (streamIds: readonly string[], options: DeleteOptions) => {
      checkCall(streamIds, options);
      const [only = ''] = streamIds;
      if (streamIds.length === 1 && !options.dryRun) {
        await deleteOne(context, only, options.ifMatch);
        return;
      }
      if (!options.dryRun && !options.yes) requireTerminal(context, 'delete the key files');
      const found =
        streamIds.length > 0
          ? await findNamed(context, [...new Set(streamIds)], options.ifMatch)
          : await findByRule(context, options);
      const { doomed } = found;
      if (!context.out.json) showPlan(context.out, found, options.all ?? false);
      const isDry = options.dryRun || doomed.length === 0;
      if (!isDry && !options.yes) {
        const question = `Delete ${count(doomed.length, 'key file')} at ${context.sidecar().address}?`;
        if (!(await confirm(context, question, NOTHING))) {
          context.out.note(NOTHING);
          return;
        }
      }
      const sent = isDry ? undefined : await deleteFiles(context, doomed);
      const results = sent?.results ?? doomed.map(({ streamid }) => planned(streamid));
      tellOutcome(context, { found, results, isDone: sent !== undefined, stopped: sent?.stopped, options });
    });
}

function checkCall(streamIds: readonly string[], { prefix, notIn, ifMatch }: DeleteOptions): void {
  const isByRule = prefix !== undefined || notIn !== undefined;
  if (streamIds.length > 0 && isByRule)
    throw usageError('Name streams, or say which ones by --prefix and --not-in; not both.');
  if (streamIds.length === 0 && !isByRule)
    throw usageError(
      'Which key files? Name their streams, or give --prefix, or --not-in with the line-up of what stays.',
    );
  if (ifMatch !== undefined && streamIds.length !== 1)
    throw usageError('--if-match is for one stream: an ETag is that of one file.');
}

async function deleteOne(context: CliContext, streamId: string, ifMatch: string | undefined): Promise<void> {
  const { out } = context;
  await context.sidecar().remove(streamId, preconditionOf(ifMatch));
  if (out.json) out.document({ streamid: streamId, result: 'deleted' });
  else out.note(out.noteStyle('green', `Removed the key file of ${shown(streamId)}.`));
}

function planned(streamid: string): DeleteResult {
  return { streamid, result: 'deleted', errors: [] };
}

/** How many are named unless all are asked for. */
const NAMED = 20;

function showPlan(out: Output, { doomed, failed, staying }: Found, all: boolean): void {
  if (doomed.length > 0) {
    out.write(`${out.style('bold', `${count(doomed.length, 'key file')} would be deleted`)}\n`);
    for (const one of all ? doomed : doomed.slice(0, NAMED))
      out.write(`  ${out.style('red', '-')} ${shown(one.streamid)}${out.style('dim', detailsOf(one))}\n`);
    tellMore(out, doomed, all);
  }
  showFailed(out, failed, all);
  if (staying !== undefined && staying > 0)
    out.write(`${out.style('bold', `${count(staying, 'key file')} would stay`)}\n`);
}

/** What tells one key file from another, for the person who is asked. */
function detailsOf({ modified, content_id }: Doomed): string {
  const parts = [
    ...(modified === undefined ? [] : [`of ${modified.replace('T', ' ').replace(/(?:\.\d+)?Z$/, ' UTC')}`]),
    ...(content_id === undefined || content_id === null ? [] : [`content ${content_id}`]),
  ];
  return parts.length === 0 ? '' : `  (${shown(parts.join(', '))})`;
}

function showFailed(out: Output, failed: readonly DeleteResult[], all: boolean): void {
  if (failed.length === 0) return;
  out.write(`${out.style('bold', `${count(failed.length, 'key file')} can’t be deleted`)}\n`);
  for (const { streamid, errors } of all ? failed : failed.slice(0, NAMED)) {
    out.write(`  ${out.style('red', '!')} ${shown(streamid)}\n`);
    for (const { description } of errors) out.write(`      ${shown(description)}\n`);
  }
  tellMore(out, failed, all);
}

function tellMore(out: Output, of: readonly unknown[], all: boolean): void {
  const more = of.length - NAMED;
  if (!all && more > 0) out.write(`    and ${more.toLocaleString('en-US')} more; --all names them\n`);
}

interface Outcome {
  readonly found: Found;
  readonly results: readonly DeleteResult[];
  /** Whether something was to be deleted, not only looked at. */
  readonly isDone: boolean;
  readonly stopped: CliError | undefined;
  readonly options: DeleteOptions;
}

function tellOutcome(context: CliContext, outcome: Outcome): void {
  const { found, isDone, stopped, options } = outcome;
  const { dryRun = false, all = false } = options;
  const results = [...found.failed, ...outcome.results];
  const { out } = context;
  const number = (wanted: DeleteResult['result']) => results.filter(({ result }) => result === wanted).length;
  const summary = {
    deleted: number('deleted'),
    gone: number('gone'),
    failed: number('failed'),
    not_reached: number('not_reached'),
  };
  if (out.json) {
    const reason = stopped?.problems[0]?.code ?? null;
    const errors = stopped && stopped.exitCode !== EXIT.interrupted ? { errors: stopped.problems } : {};
    out.document({ dry_run: dryRun, stopped: reason, results, summary, ...errors });
  } else {
    showFailed(
      out,
      outcome.results.filter(({ result }) => result === 'failed'),
      all,
    );
    if (stopped && stopped.exitCode !== EXIT.interrupted) out.errors(stopped.problems);
    if (stopped) out.note('Run the same command again to go on.');
    const text = isDone ? sentenceOf(summary) : dryRun ? NOTHING : 'There is nothing to delete.';
    out.note(out.noteStyle(summary.failed > 0 || stopped ? 'red' : 'green', text));
  }
  if (stopped) context.endWith(stopped.exitCode);
  else if (summary.failed > 0) context.endWith(EXIT.failed);
}

function sentenceOf(summary: Readonly<Record<DeleteResult['result'], number>>): string {
  const words = {
    deleted: 'deleted',
    gone: 'gone already',
    failed: 'failed',
    not_reached: 'not reached',
  } as const;
  const told = (['deleted', 'gone', 'failed', 'not_reached'] as const).flatMap((result) =>
    summary[result] > 0 ? [`${summary[result].toLocaleString('en-US')} ${words[result]}`] : [],
  );
  return `Key files: ${told.join(', ')}.`;
}
