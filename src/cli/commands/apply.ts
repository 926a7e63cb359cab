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
  givenDefaults,
  isChange,
  type Sent,
  type StreamResult,
  sendManifest,
  sentenceOf,
  showPlan,
  showResults,
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
  const plan = await sendManifest(context, context.sidecar(), manifest, true);
  if (plan.stopped) throw plan.stopped.exitCode === EXIT.interrupted ? interrupted(NOTHING) : plan.stopped;
  const planned = [...plan.results.values()].flat();
  if (!context.out.json) showPlan(context.out, planned, options);
  const due = items.filter((item) => plan.results.get(item)?.some(({ result }) => isChange(result)));
  const isDry = options.dryRun || due.length === 0;
  if (!isDry && !options.yes) {
    const question = `Write ${count(planned.filter(({ result }) => isChange(result)).length, 'key file')} at ${context.sidecar().address}?`;
    if (!(await confirm(context, question, 'Nothing was written.'))) {
      context.out.note('Nothing was written.');
      return;
    }
  }
  const sent = isDry
    ? undefined
    : await sendManifest(context, context.sidecar({ finishCalls: true }), among(manifest, due), false);
  tellOutcome(context, { sources, isImport, options, items, plan, due, sent });
}

const NOTHING = 'Stopped. Nothing was written.';

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
  readonly plan: Sent;
  readonly due: readonly ManifestItem[];
  readonly sent: Sent | undefined;
}

function tellOutcome(context: CliContext, outcome: Outcome): void {
  const { sources, isImport, options, items, plan, due, sent } = outcome;
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
      ...(isImport ? { keyfiles: sources } : { lineup: sources[0] }),
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
      showResults(out, failed, options);
    }
    if (stopped) tellStop(context, stopped);
    const what = sent
      ? `${sources.length === 1 ? shown(sources[0] ?? '') : 'Key files'}: ${sentenceOf(summary)}.`
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
