import { type Stats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { shown } from '../../terminal/text';
import { type CliError, EXIT, stopFields, usageError } from '../cli-error';
import { requireTerminal } from '../confirm';
import type { CliContext } from '../context';
import {
  endByWait,
  nothingToWaitFor,
  requireFleet,
  showWaiting,
  type WaitedForFleet,
  type WaitOption,
  waitFields,
  waitForPackagers,
} from '../fleet/wait';
import { type ProviderOptions, unusable } from '../input';
import { hasGroupRules, type Manifest } from '../manifest/entries';
import { readManifest } from '../manifest/read-manifest';
import { type AllowOptions, readAllowances } from '../manifest/secrets';
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

/** `apply`: provisions the streams of a manifest, or imports existing key files. */
export async function apply(
  context: CliContext,
  sources: readonly string[],
  options: ApplyOptions,
): Promise<void> {
  const { dryRun = false, yes = false, verbose = false, wait } = options;
  const isImport = sources.some((source) => namesKeyFiles(context, source));
  if (!dryRun && !yes) requireTerminal(context, isImport ? 'import the key files' : 'apply the manifest');
  if (dryRun && wait !== undefined) throw nothingToWaitFor();
  const manifest = isImport
    ? await importedManifest(context, sources, options)
    : oneManifest(context, sources, options);
  if (wait !== undefined) await requireFleet(context);
  // The sidecar leaves what is unchanged. A look asks the key provider for every content, so with --yes it is made only
  // for the changed lines, and for groups, whose rules the sidecar alone knows.
  const isLooking = !yes || dryRun || verbose || manifest.some(hasGroupRules);
  const plan = isLooking ? await lookAt(context, sources.join(' '), manifest) : undefined;
  const planned = plan ? [...plan.values()].flat() : [];
  const isShown = plan !== undefined && (!yes || dryRun || verbose);
  if (isShown && !context.out.json) showChanges(context.out, planned, 'would', options);
  const due = plan ? dueItems(manifest, plan) : manifest;
  const isDry = dryRun || due.length === 0;
  const changes = planned.filter(({ result }) => isChange(result)).length;
  if (!isDry && !yes && !(await isConfirmed(context, changes))) return;
  const sent = isDry ? undefined : await writeManifest(context, due, wait !== undefined);
  if (!plan && sent?.stopped && sent.results.size === 0) throw sent.stopped;
  const results = outcomeOf(manifest, plan, due, sent);
  const waited =
    wait === undefined || sent?.stopped
      ? undefined
      : await waitForPackagers(context, {
          streamIds: settledStreams(results),
          revision: sent?.revision,
          wait,
        });
  showOutcome(context, { sources, isImport, dryRun, options, isShown, sent, waited, results });
}

function oneManifest(context: CliContext, sources: readonly string[], options: ApplyOptions): Manifest {
  const [path = '', ...others] = sources;
  if (others.length > 0) throw usageError('Give one manifest at a time; several sources must be key files.');
  if (options.keepUnknown)
    throw usageError('--keep-unknown goes with key files: a folder, or files that end in .key.');
  // It may have been meant for a folder of key files.
  if (!/\.\w+$/.test(path) && !statsOf(context, path)) throw unusable(`There is no file or folder ${path}.`);
  return readManifest(context, path, {
    given: givenDefaults(context, options),
    allowed: readAllowances(context, options),
  });
}

async function importedManifest(
  context: CliContext,
  sources: readonly string[],
  options: ApplyOptions,
): Promise<Manifest> {
  const other = sources.find((source) => !namesKeyFiles(context, source));
  if (other !== undefined)
    throw usageError(`${other} is not a folder and does not end in .key; apply a manifest by itself.`);
  const { client, clientApiKey, clientApiKeyFile, cmaf, keepUnknown = false } = options;
  if ([client, clientApiKey, clientApiKeyFile, cmaf].some((value) => value !== undefined))
    throw usageError('Key files hold their keys; leave --client, --client-api-key and --cmaf out.');
  const { readKeyFiles } = await import('./import-key-files');
  return readKeyFiles(context, sources, keepUnknown);
}

/** Whether the user means key files, and no manifest. */
function namesKeyFiles(context: CliContext, source: string): boolean {
  return /\.key$/i.test(source) || statsOf(context, source)?.isDirectory() === true;
}

function statsOf({ cwd }: CliContext, source: string): Stats | undefined {
  try {
    return statSync(resolve(cwd, source));
  } catch {
    return undefined;
  }
}

interface Outcome {
  readonly sources: readonly string[];
  readonly isImport: boolean;
  readonly dryRun: boolean;
  readonly options: ApplyOptions;
  /** Whether the plan was shown. */
  readonly isShown: boolean;
  readonly sent: Sent | undefined;
  /** Undefined when the user did not wait for packagers. */
  readonly waited: WaitedForFleet | undefined;
  readonly results: readonly StreamResult[];
}

function showOutcome(context: CliContext, outcome: Outcome): void {
  const { sources, isImport, dryRun, options, isShown, sent, waited, results } = outcome;
  const { out } = context;
  const summary = summaryOf(results);
  const stopped = sent?.stopped;
  if (out.json) {
    out.document({
      ...(isImport ? { keyfiles: sources } : { lineup: sources[0] }),
      dry_run: dryRun,
      results,
      summary,
      ...(waited && waitFields(waited)),
      ...stopFields(stopped),
    });
  } else {
    if (!isShown) showChanges(out, results, 'did', options);
    else if (sent) showChanges(out, failedIn(sent.results), 'did', options);
    if (stopped) showStop(context, stopped);
    const source = sources.length === 1 ? shown(sources[0] ?? '') : 'Key files';
    const nothing = dryRun ? NOTHING : 'There is nothing to write.';
    const isDone = sent !== undefined && summary.unchanged < results.length;
    const what = isDone ? `${source}: ${sentenceOf(summary)}.` : nothing;
    out.note(out.noteStyle(summary.failed > 0 || stopped ? 'red' : 'green', what));
  }
  if (waited) showWaiting(context, waited);
  if (stopped) context.endWith(stopped.exitCode);
  else if (summary.failed > 0) context.endWith(EXIT.failed);
  else if (waited) endByWait(context, waited);
}

function failedIn(results: Results): StreamResult[] {
  return [...results.values()].flat().filter(({ result }) => result === 'failed');
}

function showStop({ out }: CliContext, stopped: CliError): void {
  if (stopped.exitCode !== EXIT.interrupted) out.errors(stopped.problems);
  out.note('Run the same command again to go on: what is written is left as it is.');
}
