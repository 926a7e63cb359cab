import { usageError } from '../cli-error';
import { requireTerminal } from '../confirm';
import type { CliContext } from '../context';
import { requireFleet } from '../fleet/wait';
import { providerFields, statsOf, unusable } from '../input';
import { hasGroupRules, type Manifest } from '../manifest/entries';
import { readManifest } from '../manifest/read-manifest';
import { readAllowances } from '../manifest/secrets';
import type { Options } from '../options';
import {
  endAsProvisioned,
  failedIn,
  isChange,
  isConfirmed,
  lookAt,
  provisionedFields,
  showChanges,
  writeManifest,
} from './send-manifest';

/** `apply`: provisions the streams of a manifest, or imports existing key files. */
export async function apply(
  context: CliContext,
  sources: readonly string[],
  options: Options,
): Promise<void> {
  const { dryRun = false, yes = false } = options;
  const isImport = sources.some((source) => namesKeyFiles(context, source));
  if (!dryRun && !yes) requireTerminal(context, isImport ? 'import the key files' : 'apply the manifest');
  const manifest = isImport
    ? await importedManifest(context, sources, options)
    : oneManifest(context, sources, options);
  const name = sources.length === 1 ? (sources[0] ?? '') : 'Key files';
  const fields = isImport ? { keyfiles: sources } : { lineup: sources[0] };
  await provision(context, manifest, name, fields, options);
}

/**
 * Shows what a manifest would change, asks, writes it, and shows what it did; each as the options want it.
 * @param name of the manifest in messages.
 * @param fields those that JSON has before the others.
 */
export async function provision(
  context: CliContext,
  manifest: Manifest,
  name: string,
  fields: object,
  options: Options,
): Promise<void> {
  const { dryRun = false, yes = false, verbose = false, wait } = options;
  const { out } = context;
  await requireFleet(context, wait);
  // The sidecar leaves what is unchanged. A look asks the key provider for every content, so with --yes it is made only
  // for the changed lines, and for groups, whose rules the sidecar alone knows.
  const isLooking = !yes || dryRun || verbose || manifest.some(hasGroupRules);
  const looked = isLooking ? await lookAt(context, name, manifest) : undefined;
  const planned = looked ? [...looked.values()].flat() : [];
  const isShown = looked !== undefined && (!yes || dryRun || verbose);
  if (isShown && !out.json) showChanges(out, planned, 'would', options);
  const changes = planned.filter(isChange).length;
  const isDry = dryRun || (looked !== undefined && changes === 0);
  if (!isDry && !yes && !(await isConfirmed(context, changes))) return;
  const done = await writeManifest(context, manifest, looked, { isDry, wait });
  const { sent, results } = done;
  if (!looked && sent?.stopped && sent.results.size === 0) throw sent.stopped;
  if (out.json) out.document({ ...fields, dry_run: dryRun, ...provisionedFields(done) });
  else if (!isShown) showChanges(out, results, 'did', options);
  else showChanges(out, failedIn(done), 'did', options);
  endAsProvisioned(context, done, { name, dryRun });
}

function oneManifest(context: CliContext, sources: readonly string[], options: Options): Manifest {
  const [path = '', ...others] = sources;
  if (others.length > 0) throw usageError('Give one manifest at a time; several sources must be key files.');
  if (options.keepUnknown)
    throw usageError('--keep-unknown goes with key files: a folder, or files that end in .key.');
  // It may have been meant for a folder of key files.
  if (!/\.\w+$/.test(path) && !statsOf(context, path)) throw unusable(`There is no file or folder ${path}.`);
  return readManifest(context, path, {
    given: providerFields(context, options),
    allowed: readAllowances(context, options),
  });
}

async function importedManifest(
  context: CliContext,
  sources: readonly string[],
  options: Options,
): Promise<Manifest> {
  const other = sources.find((source) => !namesKeyFiles(context, source));
  if (other !== undefined)
    throw usageError(`${other} is not a folder and does not end in .key; apply one manifest at a time.`);
  const { client, clientApiKey, clientApiKeyFile, cmaf, keepUnknown = false } = options;
  if ([client, clientApiKey, clientApiKeyFile, cmaf].some((value) => value !== undefined))
    throw usageError('Key files hold their keys; leave --client, --client-api-key and --cmaf out.');
  const { readKeyFiles } = await import('./import-key-files');
  return readKeyFiles(context, sources, keepUnknown);
}

function namesKeyFiles(context: CliContext, source: string): boolean {
  return /\.key$/i.test(source) || statsOf(context, source)?.isDirectory() === true;
}
