import type { Output } from '../../terminal/output';
import { count, shellWord, shown, showSome, someNames } from '../../terminal/text';
import { CliError, EXIT, optionOf, usageError } from '../cli-error';
import { listPages, type SidecarApi } from '../client';
import type { CliContext } from '../context';
import { requireFleet } from '../fleet/wait';
import { providerFields } from '../input';
import { keyIdChange, renderChanges, renderKeyChange } from '../key-files';
import { readManifest, requireFaultless } from '../manifest/read-manifest';
import { readAllowances } from '../manifest/secrets';
import { type Options, PACKAGER_URL, WATCH_SECONDS } from '../options';
import { requireTerminal } from '../outcome';
import {
  endAsProvisioned,
  failedIn,
  INDENT,
  isChange,
  planChanges,
  provisionedFields,
  type StreamResult,
  showResult,
  writeManifest,
} from './apply';
import { rotateStream } from './rotate-stream';
import { readPattern, restartCommands, rotateManifest } from './rotation';
import { stateOf, type Watched, watchableFolder, watchReads } from './watch-reads';

type RotateOptions = Options & {
  readonly stream?: string;
  readonly application?: string;
  readonly packagerUrl: string;
};

export async function rotate(
  context: CliContext,
  path: string | undefined,
  options: RotateOptions,
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

async function rotateAll(context: CliContext, path: string, options: RotateOptions): Promise<void> {
  const { dryRun = false, yes = false } = options;
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
  await requireFleet(context, options.wait);
  const streamIds = manifest.flatMap((item) => item.streamIds);
  const old = await presentContents(context.sidecar(), streamIds);
  const absent = folder === undefined ? [] : [...old.keys()].filter((id) => !stateOf(folder, id));
  if (absent.length > 0)
    throw usageError(
      `--folder is not the sidecar's key folder: it has no key file of ${someNames(absent)}. Nothing was written.`,
    );
  const rotation = rotateManifest(manifest, pattern, old);
  if (rotation.contentIds.size === 0) {
    const description = `No stream of ${path} gets its keys from the key provider, because the manifest has the keys. Write new ones into it, and apply it.`;
    throw new CliError(EXIT.usage, { code: 'nothing_to_rotate', description });
  }
  requireFaultless(path, rotation.faults);
  const plan = await planChanges(context, path, rotation.manifest);
  const planned = [...plan.values()].flat();
  const showOne = (one: StreamResult) => {
    const former = old.get(one.streamid);
    showStream(context, one, former, rotation.contentIds.get(one.streamid) ?? '', options.verbose);
  };
  const of = (kind: StreamResult['result']) => planned.filter(({ result }) => result === kind);
  const show = <Item>(found: readonly Item[], text: string, each: (item: Item) => void) =>
    showSome(out, `${count(found.length, 'stream')} ${text}`, found, options.all, each);
  if (!out.json) {
    show(of('changed'), 'would get a new key', showOne);
    show(of('created'), 'would get a first key file', showOne);
    show(of('failed'), "can't be provisioned", showOne);
    const same = of('unchanged').length;
    const stay = `${count(same, 'stream')} would stay: they have this content id already`;
    if (same > 0) out.write(`${out.style('bold', stay)}\n`);
    show(rotation.supplied, 'not rotated: the manifest has the keys; write new ones there', (streamid) =>
      out.write(`  = ${shown(streamid)}\n`),
    );
  }
  const due = planned.filter(isChange).map(({ streamid }) => streamid);
  const timeoutMs = 1000 * (options.timeout ?? WATCH_SECONDS);
  const watch = folder === undefined ? undefined : watchReads(context, folder, due, timeoutMs);
  // Packagers first: a packager without the new key would start with the former one.
  const done = await writeManifest(context, rotation.manifest, plan, options);
  if (!done) return;
  const isWritten = (one: StreamResult) => isChange(one) && due.includes(one.streamid);
  const written = (done.sent ? done.results.filter(isWritten) : []).map(({ streamid }) => streamid);
  const restart = restartCommands(written, options);
  if (!out.json) show(failedIn(done), 'failed', showOne);
  const resume = `Run it again with --content-id ${shellWord(pattern)} to continue: written key files are left as they are.`;
  endAsProvisioned(context, done, { name: path, dryRun, resume });
  if (restart.length > 0 && !out.json) {
    if (rotation.namesOthers)
      out.warn(
        `${path} still gives other content ids: applying it unchanged restores the former keys; write the new ones into it (--json lists them)`,
      );
    showRestart(out, restart);
  }
  const seen = written.length > 0 && !done.sent?.stopped ? await watch?.(written) : undefined;
  if (out.json) {
    const lines = new Map(planned.map((one) => [one.streamid, one.lines ?? []]));
    const { results, summary, ...ending } = provisionedFields(done);
    out.document({
      lineup: path,
      dry_run: dryRun,
      content_id: pattern,
      results: results.map(({ streamid, result, line, errors, warnings }) => {
        const keys = keyIdChange(lines.get(streamid) ?? []);
        return {
          streamid,
          result,
          line,
          key_id: keys?.now ?? null,
          former_key_id: keys?.former ?? null,
          content_id: rotation.contentIds.get(streamid) ?? null,
          former_content_id: old.get(streamid) ?? null,
          errors,
          warnings,
        };
      }),
      supplied: rotation.supplied,
      summary,
      restart,
      watched: seen ? { end: seen.end, read: seen.read, unread: seen.unread } : null,
      ...ending,
    });
  } else if (seen) showWatched(context, seen);
  if (seen && seen.end !== 'all_read')
    context.endWith(seen.end === 'interrupted' ? EXIT.interrupted : EXIT.failed);
}

function showRestart(out: Output, restart: ReturnType<typeof restartCommands>): void {
  const isUnknown = restart.some(({ command }) => command.includes('APPLICATION'));
  out.write(
    `# ${count(restart.length, 'stream')} to restart: each goes on with its former key until it starts again.\n# At a Wowza Streaming Engine (the commands of other packagers are not known here), with PACKAGER_LOGIN=user:password${isUnknown ? ' and APPLICATION=application' : ''}:\n`,
  );
  for (const { command } of restart) out.write(`${command}\n`);
}

function showStream(
  { out }: CliContext,
  one: StreamResult,
  former: string | undefined,
  now: string,
  verbose: boolean | undefined,
): void {
  const { result, lines = [] } = one;
  if (result === 'failed') {
    showResult(out, one, '');
    return;
  }
  const keys = verbose ? undefined : keyIdChange(lines);
  // An address that follows the content id changes with it.
  const others = lines.filter(
    ({ value, former: before }) => former === undefined || before?.replaceAll(former, now) !== value,
  );
  const change = keys ? renderKeyChange(out, keys, others, INDENT) : renderChanges(out, lines, INDENT);
  const before = former === undefined ? '' : `${shown(former)} → `;
  const contentId = `${INDENT}content id ${before}${out.style('green', shown(now))}\n`;
  showResult(out, one, `${result === 'changed' ? change : ''}${contentId}`);
}

function showWatched({ out }: CliContext, { end, read, unread, elsewhere }: Watched): void {
  const number = `${read.length.toLocaleString('en-US')} of ${count(read.length + unread.length, 'key file')}`;
  const all = read.length === 1 ? 'The key file was read' : `All ${count(read.length, 'key file')} were read`;
  const sentences = {
    all_read: `${all} since (the access time does not say by which program).`,
    interrupted: `Stopped waiting: ${number} read, not ${someNames(unread)}. The new keys are written.`,
    timeout: `Not read in time: ${someNames(unread)} (${number} read). Restart these streams. A packager that mounts the folder read-only, as a container may, leaves no trace: check there when they started.`,
    other_folder: `--folder is not the sidecar's key folder: the new key file of ${someNames(elsewhere)} is not there. The new keys are written; it is not known whether they were read.`,
  };
  const style = end === 'all_read' ? 'green' : 'red';
  out.note(sentences[end], end === 'interrupted' ? undefined : style);
}

/** Returns the folder to watch. */
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

/** The content ids of the present key files. No key material is requested. */
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
