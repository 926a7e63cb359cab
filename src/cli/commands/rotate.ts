import { shellWord } from '../../terminal/text';
import { CliError, EXIT, optionOf, usageError } from '../cli-error';
import { listPages, type SidecarApi } from '../client';
import { requireTerminal } from '../confirm';
import type { CliContext } from '../context';
import { PACKAGER_URL, WATCH_SECONDS } from '../defaults';
import { requireFleet, type WaitOption } from '../fleet/wait';
import { type ProviderOptions, providerFields } from '../input';
import { readManifest, requireFaultless } from '../manifest/read-manifest';
import { type AllowOptions, readAllowances } from '../manifest/secrets';
import { type RotateStreamOptions, rotateStream } from './rotate-stream';
import { readPattern, restartCommands, rotateManifest } from './rotation';
import { documentOf, showFailed, showRestarts, showRotation, showWatched } from './rotation-text';
import {
  type Detail,
  endAsProvisioned,
  isChange,
  isConfirmed,
  lookAt,
  type StreamResult,
  writeManifest,
} from './send-manifest';
import { snapshotOf, watchableFolder, watchReads } from './watch-reads';

export interface RotateOptions extends ProviderOptions, AllowOptions, Detail {
  readonly contentId?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly application?: string;
  readonly packagerUrl: string;
  readonly watch?: boolean;
  readonly folder?: string;
  /** In seconds. */
  readonly timeout?: number;
  readonly wait?: WaitOption;
}

/** `rotate`: new keys for the streams of a manifest or, with --stream, for one stream. */
export async function rotate(
  context: CliContext,
  path: string | undefined,
  options: RotateOptions & RotateStreamOptions,
): Promise<void> {
  const { stream } = options;
  if ((path === undefined) === (stream === undefined))
    throw usageError('Give a manifest, or --stream with the id of one stream.');
  const stray = OF_STREAM.find((name) => options[name] !== undefined);
  if (stream === undefined && stray !== undefined)
    throw usageError(`${optionOf(stray)} is for --stream; leave it out.`);
  if (stream !== undefined) await rotateStream(context, stream, options);
  else if (path !== undefined) await rotateAll(context, path, options);
}

const OF_STREAM = ['every', 'count', 'cpix', 'track', 'random'] as const;

/** Provisions new keys for the streams of a manifest, and shows what must be restarted. */
async function rotateAll(context: CliContext, path: string, options: RotateOptions): Promise<void> {
  const { dryRun = false, yes = false, wait, application, packagerUrl } = options;
  const { out } = context;
  const folder = checkCall(context, options);
  if (!dryRun && !yes) requireTerminal(context, 'write the new keys');
  const read = readPattern(options.contentId ?? '{streamid}-{date}', context.now());
  if (!read.ok) throw usageError(`The pattern of --content-id ${read.problem.description}.`);
  const pattern = read.value;
  const manifest = readManifest(context, path, {
    given: providerFields(context, options),
    allowed: readAllowances(context, options),
    needsContentId: false,
  });
  await requireFleet(context, wait);
  const streamIds = manifest.flatMap((item) => item.streamIds);
  const old = await presentContents(context.sidecar(), streamIds);
  const rotation = rotateManifest(manifest, pattern, old);
  if (rotation.contentIds.size === 0) {
    const description = `No stream of ${path} gets its keys from the key provider, because the manifest has the keys. Write new ones into it, and apply it.`;
    throw new CliError(EXIT.usage, { code: 'nothing_to_rotate', description });
  }
  requireFaultless(path, rotation.faults);
  const looked = await lookAt(context, path, rotation.manifest);
  const planned = [...looked.values()].flat();
  const plan = { planned, rotation, old };
  if (!out.json) showRotation(out, plan, options);
  const due = planned.filter(isChange).map(({ streamid }) => streamid);
  const isDry = dryRun || due.length === 0;
  if (!isDry && !yes && !(await isConfirmed(context, due.length))) return;
  const before = folder === undefined ? undefined : snapshotOf(folder, due);
  // Packagers first: a packager without the new key would start with the former one.
  const done = await writeManifest(context, rotation.manifest, looked, { isDry, wait });
  const isWritten = (one: StreamResult) => isChange(one) && due.includes(one.streamid);
  const written = (done.sent ? done.results.filter(isWritten) : []).map(({ streamid }) => streamid);
  const restart = restartCommands(written, { application, packagerUrl });
  if (!out.json) showFailed(out, plan, done, options);
  const resume = `Run it again with --content-id ${shellWord(pattern.text)} to continue: written key files are left as they are.`;
  endAsProvisioned(context, done, { name: path, dryRun, resume });
  if (!out.json) showRestarts(out, path, rotation, restart);
  const seen =
    folder !== undefined && before && written.length > 0 && !done.sent?.stopped
      ? await watchReads(
          context,
          folder,
          new Map(written.map((streamId) => [streamId, before.get(streamId)])),
          1000 * (options.timeout ?? WATCH_SECONDS),
        )
      : undefined;
  if (out.json) out.document(documentOf({ ...plan, ...done, path, pattern, dryRun, restart, seen }));
  else if (seen) showWatched(context, seen);
  if (seen && seen.end !== 'all_read')
    context.endWith(seen.end === 'interrupted' ? EXIT.interrupted : EXIT.failed);
}

/** Answers the folder to watch. */
function checkCall(
  context: CliContext,
  { watch, folder, timeout, packagerUrl }: RotateOptions,
): string | undefined {
  const isAddress = /^https?:\/\/[^\s'"?#]+$/i.test(packagerUrl) && URL.canParse(packagerUrl);
  if (!isAddress || new URL(packagerUrl).username !== '')
    throw usageError(`--packager-url must be an address without user and query, such as ${PACKAGER_URL}.`);
  if (!watch) {
    if (folder !== undefined || timeout !== undefined)
      throw usageError('--folder and --timeout are for --watch; add it, or leave them out.');
    return undefined;
  }
  if (folder === undefined)
    throw usageError(
      '--watch needs --folder, the key folder of the sidecar on this machine: only the machine with the folder can see whether the packager has read a key file.',
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
