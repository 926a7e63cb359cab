import { CliError, EXIT, usageError } from '../cli-error';
import type { SidecarApi } from '../client';
import { requireTerminal } from '../confirm';
import type { CliContext } from '../context';
import { PACKAGER_URL, WATCH_SECONDS } from '../defaults';
import { endByWait, nothingToWaitFor, requireFleet, type WaitOption, waitForPackagers } from '../fleet/wait';
import type { ProviderOptions } from '../input';
import { listPages } from '../list-pages';
import { readManifest, requireFaultless } from '../manifest/read-manifest';
import { type AllowOptions, readAllowances } from '../manifest/secrets';
import { readPattern, restartCommands, rotateManifest } from './rotation';
import { documentOf, showOutcome, showRotation, showWatched } from './rotation-text';
import {
  dueItems,
  givenDefaults,
  isChange,
  isConfirmed,
  lookAt,
  outcomeOf,
  settledStreams,
  writeManifest,
} from './send-manifest';
import { snapshotOf, watchableFolder, watchReads } from './watch-reads';

export interface RotateOptions extends ProviderOptions, AllowOptions {
  readonly contentId: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly all?: boolean;
  readonly verbose?: boolean;
  readonly application?: string;
  readonly packagerUrl: string;
  readonly watch?: boolean;
  readonly folder?: string;
  /** In seconds. */
  readonly timeout?: number;
  readonly wait?: WaitOption;
}

/** `rotate`: provisions new keys for the streams of a manifest, and shows what must be restarted. */
export async function rotate(context: CliContext, path: string, options: RotateOptions): Promise<void> {
  const { dryRun = false, yes = false, wait, application, packagerUrl } = options;
  const { out } = context;
  const folder = checkCall(context, options);
  if (!dryRun && !yes) requireTerminal(context, 'write the new keys');
  const read = readPattern(options.contentId, context.now());
  if (!read.ok) throw usageError(`The pattern of --content-id ${read.problem.description}.`);
  const pattern = read.value;
  const manifest = readManifest(context, path, {
    given: givenDefaults(context, options),
    allowed: readAllowances(context, options),
    needsContentId: false,
  });
  if (wait !== undefined) await requireFleet(context);
  const streamIds = manifest.flatMap((item) => item.streamIds);
  const old = await presentContents(context.sidecar(), streamIds);
  const rotation = rotateManifest(manifest, pattern, old);
  if (rotation.contentIds.size === 0) {
    const description = `No stream of ${path} gets its keys from the key provider: they have keys of their own. Write new ones into it, and apply it.`;
    throw new CliError(EXIT.usage, { code: 'nothing_to_rotate', description });
  }
  requireFaultless(path, rotation.faults);
  const looked = await lookAt(context, path, rotation.manifest);
  const planned = [...looked.values()].flat();
  if (!out.json) showRotation(out, { planned, rotation, old }, options);
  const due = planned.filter(({ result }) => isChange(result)).map(({ streamid }) => streamid);
  const isDry = dryRun || due.length === 0;
  if (!isDry && !yes && !(await isConfirmed(context, due.length))) return;
  const before = folder === undefined ? undefined : snapshotOf(folder, due);
  const dueNow = dueItems(rotation.manifest, looked);
  const sent = isDry ? undefined : await writeManifest(context, dueNow, wait !== undefined);
  const results = outcomeOf(rotation.manifest, looked, dueNow, sent);
  // Packagers first: one without the new key would start with the former one.
  const waited =
    wait === undefined || sent?.stopped
      ? undefined
      : await waitForPackagers(context, {
          streamIds: settledStreams(results),
          revision: sent?.revision,
          wait,
        });
  const wanted = new Set(due);
  const written = sent
    ? results.filter(({ streamid, result }) => isChange(result) && wanted.has(streamid))
    : [];
  const writtenIds = written.map(({ streamid }) => streamid);
  const restart = restartCommands(writtenIds, { application, packagerUrl });
  const outcome = { planned, rotation, old, path, pattern, results, sent, waited, dryRun, restart };
  if (!out.json) showOutcome(context, outcome, options);
  const seen =
    folder !== undefined && before && writtenIds.length > 0 && !sent?.stopped
      ? await watchReads(
          context,
          folder,
          new Map(writtenIds.map((streamId) => [streamId, before.get(streamId)])),
          1000 * (options.timeout ?? WATCH_SECONDS),
        )
      : undefined;
  if (out.json) out.document(documentOf(outcome, seen));
  else if (seen) showWatched(context, seen);
  if (sent?.stopped) context.endWith(sent.stopped.exitCode);
  else if (seen?.end === 'interrupted') context.endWith(EXIT.interrupted);
  else if (results.some(({ result }) => result === 'failed') || (seen && seen.end !== 'all_read'))
    context.endWith(EXIT.failed);
  else if (waited) endByWait(context, waited);
}

/** Answers the folder to watch. */
function checkCall(
  context: CliContext,
  { watch, folder, timeout, dryRun, packagerUrl, wait }: RotateOptions,
): string | undefined {
  if (dryRun && wait !== undefined) throw nothingToWaitFor();
  const isAddress = /^https?:\/\/[^\s'"?#]+$/i.test(packagerUrl) && URL.canParse(packagerUrl);
  if (!isAddress || new URL(packagerUrl).username !== '')
    throw usageError(`--packager-url must be an address without user and query, as ${PACKAGER_URL}.`);
  if (!watch) {
    if (folder !== undefined || timeout !== undefined)
      throw usageError('--folder and --timeout are for --watch; add it, or leave them out.');
    return undefined;
  }
  if (dryRun) throw usageError('A dry run writes nothing that could be watched; leave --watch out.');
  if (folder === undefined)
    throw usageError(
      '--watch needs --folder, the key folder of the sidecar as this machine has it: on another machine it can’t be known whether the packager has read a key file.',
    );
  return watchableFolder(context, folder);
}

/**
 * The content ids of the streams' present key files, as far as these have one. No key material is asked for.
 * @throws CliError when the sidecar gives no list.
 */
async function presentContents(
  sidecar: SidecarApi,
  streamIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set(streamIds);
  const found = new Map<string, string>();
  const prefix = commonPrefix(streamIds);
  for await (const { keyfiles } of listPages(sidecar, prefix === '' ? {} : { prefix })) {
    for (const { streamid, content_id } of keyfiles) {
      if (wanted.delete(streamid) && content_id !== null) found.set(streamid, content_id);
    }
    // The sidecar may have many others.
    if (wanted.size === 0) break;
  }
  return found;
}

function commonPrefix([first = '', ...others]: readonly string[]): string {
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length -= 1;
  return first.slice(0, length);
}
