import { type CliError, EXIT, usageError } from '../cli-error';
import { interrupted } from '../client';
import type { CliContext } from '../context';
import { unusable } from '../input';
import { type Manifest, type ManifestItem, readManifest } from '../manifest/read-manifest';
import { type AllowOptions, readAllowances } from '../manifest/secrets';
import { count, shown } from '../output';
import { confirm, requireTerminal } from '../terminal';
import { isThere, namesKeyFiles, readKeyFiles } from './import-key-files';
import type { ProviderOptions } from './put';
import {
  among,
  dueItems,
  givenDefaults,
  isChange,
  outcomeOf,
  type Sent,
  sendManifest,
  sentenceOf,
  showChanges,
  summaryOf,
} from './send-manifest';

export interface ApplyOptions extends ProviderOptions, AllowOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly all?: boolean;
  readonly verbose?: boolean;
  readonly keepUnknown?: boolean;
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
  const manifest = isImport
    ? importedManifest(context, sources, options)
    : oneManifest(context, sources, options);
  const items = [...manifest.streams, ...manifest.groups];
  // The sidecar leaves what is unchanged by itself: who says yes beforehand needs no look, which asks the key provider
  // for every content. Lines, though, are told by a look alone.
  const isLooking = !options.yes || options.dryRun || options.verbose;
  const plan = isLooking ? await look(context, manifest, options) : undefined;
  const due = plan ? dueItems(items, plan) : items;
  const isDry = options.dryRun || due.length === 0;
  if (!isDry && !options.yes && !(await isConfirmed(context, plan))) return;
  const sent = isDry
    ? undefined
    : await sendManifest(context, context.sidecar({ finishCalls: true }), among(manifest, due), false);
  if (!plan && sent?.stopped && sent.results.size === 0) throw sent.stopped;
  tellOutcome(context, { sources, isImport, options, items, plan, due, sent });
}

type Results = Sent['results'];

/** Shows what would change. @throws CliError when not all of it could be looked at. */
async function look(context: CliContext, manifest: Manifest, options: ApplyOptions): Promise<Results> {
  const { results, stopped } = await sendManifest(context, context.sidecar(), manifest, true);
  if (stopped) throw stopped.exitCode === EXIT.interrupted ? interrupted(`Stopped. ${NOTHING}`) : stopped;
  if (!context.out.json) showChanges(context.out, [...results.values()].flat(), 'would', options);
  return results;
}

async function isConfirmed(context: CliContext, plan: Results | undefined): Promise<boolean> {
  const changes = [...(plan?.values() ?? [])].flat().filter(({ result }) => isChange(result)).length;
  const question = `Write ${count(changes, 'key file')} at ${context.sidecar().address}?`;
  if (await confirm(context, question, NOTHING)) return true;
  context.out.note(NOTHING);
  return false;
}

const NOTHING = 'Nothing was written.';

function oneManifest(context: CliContext, sources: readonly string[], options: ApplyOptions): Manifest {
  const [path = '', ...others] = sources;
  if (others.length > 0) throw usageError('Give one manifest at a time; several sources must be key files.');
  if (options.keepUnknown)
    throw usageError('--keep-unknown goes with key files: a folder, or files that end in .key.');
  // It may have been meant for a folder of key files.
  if (!/\.\w+$/.test(path) && !isThere(context, path))
    throw unusable(`There is no file and no folder ${path}.`);
  return readManifest(context, path, {
    given: givenDefaults(context, options),
    allowed: readAllowances(context, options),
  });
}

function importedManifest(context: CliContext, sources: readonly string[], options: ApplyOptions): Manifest {
  const other = sources.find((source) => !namesKeyFiles(context, source));
  if (other !== undefined)
    throw usageError(`${other} is no folder and does not end in .key; apply a manifest by itself.`);
  const { client, clientApiKey, clientApiKeyFile, cmaf, keepUnknown = false } = options;
  if ([client, clientApiKey, clientApiKeyFile, cmaf].some((value) => value !== undefined))
    throw usageError('Key files hold their keys; leave --client, --client-api-key and --cmaf out.');
  return readKeyFiles(context, sources, keepUnknown);
}

interface Outcome {
  readonly sources: readonly string[];
  readonly isImport: boolean;
  readonly options: ApplyOptions;
  readonly items: readonly ManifestItem[];
  /** What a look found; undefined when there was none. */
  readonly plan: Results | undefined;
  readonly due: readonly ManifestItem[];
  readonly sent: Sent | undefined;
}

function tellOutcome(context: CliContext, outcome: Outcome): void {
  const { sources, isImport, options, items, plan, due, sent } = outcome;
  const { out } = context;
  const results = outcomeOf(items, plan, due, sent);
  const summary = summaryOf(results);
  const stopped = sent?.stopped;
  if (out.json) {
    const reason = stopped ? (stopped.problems[0]?.code ?? null) : null;
    const errors = stopped && stopped.exitCode !== EXIT.interrupted ? { errors: stopped.problems } : {};
    out.document({
      ...(isImport ? { keyfiles: sources } : { lineup: sources[0] }),
      dry_run: options.dryRun ?? false,
      stopped: reason,
      results,
      summary,
      ...errors,
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
  if (stopped) context.endWith(stopped.exitCode);
  else if (summary.failed > 0) context.endWith(EXIT.failed);
}

function tellStop({ out }: CliContext, stopped: CliError): void {
  if (stopped.exitCode !== EXIT.interrupted) out.errors(stopped.problems);
  out.note('Run the same command again to go on: what is written is left as it is.');
}
