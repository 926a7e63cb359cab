import { shown } from '../../terminal/text';
import { type CliError, EXIT, stopFields, usageError } from '../cli-error';
import type { CliContext } from '../context';
import {
  endByWait,
  nothingToWaitFor,
  requireFleet,
  tellWaited,
  type WaitedForFleet,
  type WaitOption,
  waitFields,
  waitForPackagers,
} from '../fleet/wait';
import { unusable } from '../input';
import { type Manifest, readManifest } from '../manifest/read-manifest';
import { type AllowOptions, readAllowances } from '../manifest/secrets';
import { requireTerminal } from '../terminal';
import { isThere, namesKeyFiles, readKeyFiles } from './import-key-files';
import type { ProviderOptions } from './provider-options';
import {
  dueItems,
  givenDefaults,
  isChange,
  isConfirmed,
  lookAt,
  NOTHING,
  outcomeOf,
  type Results,
  type Sent,
  type StreamResult,
  sentenceOf,
  settledStreams,
  showChanges,
  summaryOf,
  writeManifest,
} from './send-manifest';

export interface ApplyOptions extends ProviderOptions, AllowOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly all?: boolean;
  readonly verbose?: boolean;
  readonly keepUnknown?: boolean;
  readonly wait?: WaitOption;
}

/** `apply`: provisions the streams of a manifest, or takes existing key files over. */
export async function apply(
  context: CliContext,
  sources: readonly string[],
  options: ApplyOptions,
): Promise<void> {
  const isImport = sources.some((source) => namesKeyFiles(context, source));
  if (!options.dryRun && !options.yes)
    requireTerminal(context, isImport ? 'import the key files' : 'apply the manifest');
  if (options.dryRun && options.wait !== undefined) throw nothingToWaitFor();
  const manifest = isImport
    ? importedManifest(context, sources, options)
    : oneManifest(context, sources, options);
  await requireFleet(context, options.wait);
  // The sidecar leaves what is unchanged by itself: who says yes beforehand needs no look, which asks the key provider
  // for every content. Lines, though, are told by a look alone.
  const isLooking = !options.yes || options.dryRun || options.verbose;
  const plan = isLooking ? await lookAt(context, manifest) : undefined;
  const planned = plan ? [...plan.values()].flat() : [];
  if (plan && !context.out.json) showChanges(context.out, planned, 'would', options);
  const due = plan ? dueItems(manifest, plan) : manifest;
  const isDry = options.dryRun || due.length === 0;
  const changes = planned.filter(({ result }) => isChange(result)).length;
  if (!isDry && !options.yes && !(await isConfirmed(context, changes))) return;
  const sent = isDry ? undefined : await writeManifest(context, due, options.wait !== undefined);
  if (!plan && sent?.stopped && sent.results.size === 0) throw sent.stopped;
  const results = outcomeOf(manifest, plan, due, sent);
  const waited = sent?.stopped
    ? undefined
    : await waitForPackagers(context, {
        streamIds: settledStreams(results),
        revision: sent?.revision,
        wait: options.wait,
      });
  tellOutcome(context, { sources, isImport, options, plan, sent, waited, results });
}

function oneManifest(context: CliContext, sources: readonly string[], options: ApplyOptions): Manifest {
  const [path = '', ...others] = sources;
  if (others.length > 0) throw usageError('Give one manifest at a time; several sources must be key files.');
  if (options.keepUnknown)
    throw usageError('--keep-unknown goes with key files: a folder, or files that end in .key.');
  // It may have been meant for a folder of key files.
  if (!/\.\w+$/.test(path) && !isThere(context, path)) throw unusable(`There is no file or folder ${path}.`);
  return readManifest(context, path, {
    given: givenDefaults(context, options),
    allowed: readAllowances(context, options),
  });
}

function importedManifest(context: CliContext, sources: readonly string[], options: ApplyOptions): Manifest {
  const other = sources.find((source) => !namesKeyFiles(context, source));
  if (other !== undefined)
    throw usageError(`${other} is not a folder and does not end in .key; apply a manifest by itself.`);
  const { client, clientApiKey, clientApiKeyFile, cmaf, keepUnknown = false } = options;
  if ([client, clientApiKey, clientApiKeyFile, cmaf].some((value) => value !== undefined))
    throw usageError('Key files hold their keys; leave --client, --client-api-key and --cmaf out.');
  return readKeyFiles(context, sources, keepUnknown);
}

interface Outcome {
  readonly sources: readonly string[];
  readonly isImport: boolean;
  readonly options: ApplyOptions;
  /** What a look found; undefined when there was none. */
  readonly plan: Results | undefined;
  readonly sent: Sent | undefined;
  /** What came of waiting for packagers; undefined: nobody waited. */
  readonly waited: WaitedForFleet | undefined;
  readonly results: readonly StreamResult[];
}

function tellOutcome(context: CliContext, outcome: Outcome): void {
  const { sources, isImport, options, plan, sent, waited, results } = outcome;
  const { out } = context;
  const summary = summaryOf(results);
  const stopped = sent?.stopped;
  if (out.json) {
    out.document({
      ...(isImport ? { keyfiles: sources } : { lineup: sources[0] }),
      dry_run: options.dryRun ?? false,
      results,
      summary,
      ...waitFields(waited),
      ...stopFields(stopped),
    });
  } else {
    if (!plan) showChanges(out, results, 'did', options);
    else if (sent) {
      // What failed in the look was told with it.
      const failed = [...sent.results.values()].flat().filter(({ result }) => result === 'failed');
      showChanges(out, failed, 'did', options);
    }
    if (stopped) tellStop(context, stopped);
    const isDone = summary.unchanged < results.length;
    const what =
      sent && isDone
        ? `${sources.length === 1 ? shown(sources[0] ?? '') : 'Key files'}: ${sentenceOf(summary)}.`
        : options.dryRun
          ? NOTHING
          : 'There is nothing to write.';
    out.note(out.noteStyle(summary.failed > 0 || stopped ? 'red' : 'green', what));
  }
  tellWaited(context, waited);
  if (stopped) context.endWith(stopped.exitCode);
  else if (summary.failed > 0) context.endWith(EXIT.failed);
  else endByWait(context, waited);
}

function tellStop({ out }: CliContext, stopped: CliError): void {
  if (stopped.exitCode !== EXIT.interrupted) out.errors(stopped.problems);
  out.note('Run the same command again to go on: what is written is left as it is.');
}
