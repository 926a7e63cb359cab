import { CliError, EXIT, usageError } from '../cli-error';
import { listPages, type SidecarApi } from '../client';
import type { CliContext } from '../context';
import { endByWait, nothingToWaitFor, requireFleet, type WaitOption, waitForPackagers } from '../fleet/wait';
import { type Manifest, readManifest, requireFaultless } from '../manifest/read-manifest';
import { type AllowOptions, readAllowances } from '../manifest/secrets';
import { PACKAGER_URL, WATCH_SECONDS } from '../program';
import { requireTerminal } from '../terminal';
import type { ProviderOptions } from './provider-options';
import {
  type ContentIdPattern,
  isProvided,
  type Rotation,
  readPattern,
  restartCommands,
  rotateManifest,
} from './rotation';
import { showRotation, tellRotation } from './rotation-text';
import {
  dueItems,
  givenDefaults,
  isChange,
  isConfirmed,
  lookAt,
  outcomeOf,
  type StreamResult,
  settledStreams,
  writeManifest,
} from './send-manifest';
import { type Snapshot, snapshotOf, watchableFolder, watchReads } from './watch-reads';

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

/** `rotate`: provisions new keys for the streams of a manifest, and says what must be restarted. */
export async function rotate(context: CliContext, path: string, options: RotateOptions): Promise<void> {
  const { dryRun = false, yes = false } = options;
  const watched = checkCall(context, options);
  if (!dryRun && !yes) requireTerminal(context, 'write the new keys');
  const read = readPattern(options.contentId, context.now());
  if (!read.ok) throw usageError(`The pattern of --content-id ${read.problem.description}.`);
  const pattern = read.value;
  const manifest = readManifest(context, path, {
    given: givenDefaults(context, options),
    allowed: readAllowances(context, options),
    mayLack: ['contentId'],
  });
  await requireFleet(context, options.wait);
  const { rotation, old } = await plan(context, path, manifest, pattern);
  const looked = await lookAt(context, rotation.manifest);
  const planned = [...looked.values()].flat();
  const shownPlan = { planned, rotation, old };
  if (!context.out.json) showRotation(context.out, shownPlan, options);
  const due = planned.filter(({ result }) => isChange(result)).map(({ streamid }) => streamid);
  const isDry = dryRun || due.length === 0;
  if (!isDry && !yes && !(await isConfirmed(context, due.length))) return;
  const before = watched === undefined ? undefined : snapshotOf(watched, due);
  const dueNow = dueItems(rotation.manifest, looked);
  const sent = isDry ? undefined : await writeManifest(context, dueNow, options.wait !== undefined);
  const results = outcomeOf(rotation.manifest, looked, dueNow, sent);
  // Before it is told what to restart: a packager that has not the new key would start with the former one.
  const waited = sent?.stopped
    ? undefined
    : await waitForPackagers(context, {
        streamIds: settledStreams(results),
        revision: sent?.revision,
        wait: options.wait,
      });
  const written = sent ? writtenOf(results, due) : [];
  const restart = restartCommands(written, {
    application: options.application,
    packagerUrl: options.packagerUrl,
  });
  const namesOthers = namesOtherContents(manifest, rotation);
  const told = { ...shownPlan, path, pattern, results, sent, waited, dryRun, restart, namesOthers };
  // What is to be restarted is told before anybody waits for it.
  const end = tellRotation(context, told, options);
  const seen =
    watched !== undefined && before && written.length > 0 && !sent?.stopped
      ? await watchReads(context, watched, only(before, written), 1000 * (options.timeout ?? WATCH_SECONDS))
      : undefined;
  end(seen);
  const failed = results.some(({ result }) => result === 'failed');
  if (sent?.stopped) context.endWith(sent.stopped.exitCode);
  else if (seen?.end === 'interrupted') context.endWith(EXIT.interrupted);
  else if (failed || (seen && seen.end !== 'all_read')) context.endWith(EXIT.failed);
  else endByWait(context, waited);
}

/** Answers the folder that is to be watched. */
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

/** The manifest with new content ids, and the present ones. @throws CliError when there is nothing to rotate. */
async function plan(
  context: CliContext,
  path: string,
  manifest: Manifest,
  pattern: ContentIdPattern,
): Promise<{ rotation: Rotation; old: ReadonlyMap<string, string> }> {
  const provided = manifest.filter(isProvided);
  const streamIds = provided.flatMap((item) => item.streamIds);
  if (streamIds.length === 0) {
    const description = `No stream of ${path} gets its keys from the key provider: they have keys of their own. Write new ones into it, and apply it.`;
    throw new CliError(EXIT.usage, { code: 'nothing_to_rotate', description });
  }
  const old = await presentContents(context.sidecar(), streamIds);
  const rotation = rotateManifest(manifest, pattern, old);
  requireFaultless(path, rotation.faults);
  return { rotation, old };
}

function writtenOf(results: readonly StreamResult[], due: readonly string[]): string[] {
  const wanted = new Set(due);
  return results.flatMap(({ streamid, result }) =>
    isChange(result) && wanted.has(streamid) ? [streamid] : [],
  );
}

function only(snapshot: Snapshot, streamIds: readonly string[]): Snapshot {
  return new Map(streamIds.map((streamId) => [streamId, snapshot.get(streamId)]));
}

/** Whether to apply the manifest as it is would bring other keys back. */
function namesOtherContents(manifest: Manifest, { contentIds }: Rotation): boolean {
  return manifest
    .filter(isProvided)
    .some(
      ({ body, streamIds }) =>
        body.contentId !== undefined &&
        streamIds.some((streamId) => contentIds.get(streamId) !== body.contentId),
    );
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
  const prefix = commonBeginning(streamIds);
  for await (const { keyfiles } of listPages(sidecar, prefix === '' ? {} : { prefix })) {
    for (const { streamid, content_id } of keyfiles) {
      if (wanted.delete(streamid) && content_id !== null) found.set(streamid, content_id);
    }
    // A sidecar may have a million others.
    if (wanted.size === 0) break;
  }
  return found;
}

function commonBeginning([first = '', ...others]: readonly string[]): string {
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length -= 1;
  return first.slice(0, length);
}
