import type { BatchResult } from '../../api/answers';
import { groupedBy } from '../../drm/bytes';
import type { Problem } from '../../http/errors';
import type { Output } from '../../terminal/output';
import { count, shown, showSome, someNames } from '../../terminal/text';
import { CliError, EXIT, interrupted, usageError } from '../cli-error';
import type { SidecarApi } from '../client';
import type { CliContext } from '../context';
import { requireFleet, waitFields, waitForPackagers } from '../fleet/wait';
import { providerFields, statsOf, unusable } from '../input';
import { keyIdChange, renderChanges, renderKeyChange } from '../key-files';
import { hasGroupRules, type Manifest, type ManifestItem } from '../manifest/entries';
import { readManifest, requireFaultless } from '../manifest/read-manifest';
import { readAllowances } from '../manifest/secrets';
import type { Options } from '../options';
import { callEach, confirm, countsOf, countsText, endAs, requireTerminal, stopFields } from '../outcome';

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

/** Shows what a manifest would change, asks, and writes it. The JSON document starts with `fields`. */
export async function provision(
  context: CliContext,
  manifest: Manifest,
  name: string,
  fields: object,
  options: Options,
): Promise<void> {
  const { dryRun = false, yes = false, verbose = false } = options;
  const { out } = context;
  await requireFleet(context, options.wait);
  // The sidecar leaves unchanged files. A look asks the key provider for every content, so with --yes it is made only
  // for the changed lines, and for groups, whose rules the sidecar alone knows.
  const isPlanning = !yes || dryRun || verbose || manifest.some(hasGroupRules);
  const plan = isPlanning ? await planChanges(context, name, manifest) : undefined;
  const planned = plan ? [...plan.values()].flat() : [];
  const isShown = plan !== undefined && (!yes || dryRun || verbose);
  if (isShown && !out.json) showChanges(out, planned, 'would', options);
  const done = await writeManifest(context, manifest, plan, options);
  if (!done) return;
  const { sent, results } = done;
  if (!plan && sent?.stopped && sent.results.size === 0) throw sent.stopped;
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

/** The results of a manifest's items, as far as it got. */
type Results = ReadonlyMap<ManifestItem, readonly StreamResult[]>;

export interface StreamResult {
  readonly streamid: string;
  readonly result: BatchResult['result'] | 'not_reached';
  readonly line: number | undefined;
  readonly errors: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Of a dry run: the lines that would not stay as they are; secret values are masked. */
  readonly lines?: NonNullable<BatchResult['lines']>;
}

const NOTHING = 'Nothing was written.';

/** The codes of faults of a group with any answer of the key provider. */
const GROUP_FAULTS: ReadonlySet<string> = new Set(['invalid_body', 'unknown_field', 'duplicate_quality']);

/** Asks the sidecar for the changes. @throws CliError when a part can't be looked at or a group is faulty. */
export async function planChanges(context: CliContext, path: string, manifest: Manifest): Promise<Results> {
  const { results, stopped } = await send(context, context.sidecar(), manifest, { dryRun: true });
  if (stopped) throw stopped.exitCode === EXIT.interrupted ? interrupted(`Stopped. ${NOTHING}`) : stopped;
  const ofGroups = [...results].flatMap(([item, own]) => (hasGroupRules(item) ? own : []));
  const faults = ofGroups.flatMap(({ streamid, line, errors }) =>
    errors
      .filter(({ code }) => GROUP_FAULTS.has(code))
      .map(({ description }) => ({ line, description: `${streamid}: ${description}` })),
  );
  requireFaultless(path, faults);
  return results;
}

type Provisioned = NonNullable<Awaited<ReturnType<typeof writeManifest>>>;

/**
 * Asks, writes the changes, and waits for the packagers if wanted. An interruption does not cut a request.
 * @param plan the expected changes, which are the result of an item without any; undefined: they were not read.
 * @returns undefined when the user said no; `sent` is it when nothing was sent, `waited` without a wait for packagers.
 */
export async function writeManifest(
  context: CliContext,
  manifest: Manifest,
  plan: Results | undefined,
  { dryRun = false, yes = false, wait }: Options,
) {
  const due = new Set(manifest.filter((item) => plan?.get(item)?.some(isChange) ?? !plan));
  const sidecar = context.sidecar({ finishCalls: true });
  const changes = [...(plan?.values() ?? [])].flat().filter(isChange).length;
  const question = `Write ${count(changes, 'key file')} at ${sidecar.address}?`;
  const isDry = dryRun || due.size === 0;
  if (!isDry && !yes && !(await confirm(context, question, NOTHING))) return undefined;
  const isAwaited = wait !== undefined;
  const sent = isDry ? undefined : await send(context, sidecar, [...due], { dryRun: false, isAwaited });
  const results = manifest.flatMap((item) =>
    sent && due.has(item)
      ? (sent.results.get(item) ?? allOf(item, 'not_reached', []))
      : (plan?.get(item) ?? []),
  );
  const settled = results.filter((one) => isChange(one) || one.result === 'unchanged');
  const waited = await waitForPackagers(context, {
    streamIds: settled.map(({ streamid }) => streamid),
    revision: sent?.revision,
    stopped: sent?.stopped,
    wait,
  });
  return { results, sent, waited };
}

export function isChange({ result }: StreamResult): boolean {
  return result === 'created' || result === 'changed';
}

/** The fields of the JSON document that every command for a manifest has. */
export function provisionedFields({ results, sent, waited }: Provisioned) {
  return { results, summary: summaryOf(results), ...waitFields(waited), ...stopFields(sent?.stopped) };
}

export function failedIn({ sent }: Provisioned): StreamResult[] {
  return [...(sent?.results.values() ?? [])].flat().filter(({ result }) => result === 'failed');
}

export function endAsProvisioned(
  context: CliContext,
  { results, sent, waited }: Provisioned,
  { name, dryRun, resume }: { readonly name: string; readonly dryRun: boolean; readonly resume?: string },
): void {
  const summary = summaryOf(results);
  const nothing = dryRun ? NOTHING : 'There is nothing to write.';
  const isDone = sent !== undefined && summary.unchanged < results.length;
  const sentence = isDone ? `${shown(name)}: ${countsText(summary)}.` : nothing;
  endAs(context, { sentence, isFaulty: summary.failed > 0, stopped: sent?.stopped, waited, resume });
}

/** Streams of one request: few enough to stop soon, many enough for the sidecar to work in parallel. */
const CHUNK_STREAMS = 100;

/** Half of the sidecar's limit: documents are long, and JSON makes them longer. */
const CHUNK_BYTES = 8 * 1024 * 1024;

/** Divides a manifest into requests. A group is never divided: its members may share one key. */
function chunksOf(items: Manifest): ManifestItem[][] {
  const chunks: ManifestItem[][] = [];
  let [room, bytesLeft] = [0, 0];
  for (const item of items) {
    const size = item.streamIds.length;
    const bytes = JSON.stringify(item.body).length;
    const last = chunks.at(-1);
    const fits = size <= room && bytes <= bytesLeft && last?.[0]?.kind === item.kind;
    if (last && fits) last.push(item);
    else chunks.push([item]);
    room = (fits ? room : CHUNK_STREAMS) - size;
    bytesLeft = (fits ? bytesLeft : CHUNK_BYTES) - bytes;
  }
  return chunks;
}

/** A refused chunk fails, and the next is sent. Without the sidecar the rest is left: `stopped` says why. */
async function send(
  context: CliContext,
  sidecar: SidecarApi,
  manifest: Manifest,
  { dryRun, isAwaited = false }: { readonly dryRun: boolean; readonly isAwaited?: boolean },
) {
  const results = new Map<ManifestItem, readonly StreamResult[]>();
  const chunks = chunksOf(manifest);
  const { revision, stopped } = await callEach(context, dryRun ? 'Comparing' : 'Writing', chunks, {
    streamsOf: (chunk) => chunk.flatMap(namesOf).length,
    call: async (chunk) => {
      // With the last changes the packagers report at once that they have all of them, else within five seconds.
      const wait = isAwaited && chunk === chunks.at(-1) ? 1 : undefined;
      const body = { [chunk[0]?.kind ?? 'streams']: chunk.map((item) => item.body) };
      const answer = await sidecar.batch(body, dryRun, wait);
      for (const [item, own] of resultsOf(chunk, answer.results, sidecar.address)) results.set(item, own);
      return answer.revision;
    },
    refused: (chunk, problems) => {
      for (const item of chunk) results.set(item, allOf(item, 'failed', problems));
    },
  });
  return { results, revision, stopped };
}

/** The results of each item of a chunk. @throws CliError when they are not those of the chunk. */
function resultsOf(chunk: Manifest, results: readonly BatchResult[], address: string) {
  const found = chunk.map((item, index) => [item, results.filter((one) => one.index === index)] as const);
  const isWhole = found.every(
    ([{ streamIds }, own]) =>
      own.length === streamIds.length ||
      // The one failure of an item that can't be read.
      (own.length === 1 && own[0]?.streamid === null),
  );
  if (!isWhole || results.some(({ index }) => index >= chunk.length)) {
    const description = `The server at ${address} did not report the result of every stream. Check the address.`;
    throw new CliError(EXIT.unreachable, { code: 'not_a_sidecar', description });
  }
  return found.map(([item, own]) => [item, own.map((one) => asStreamResult(item, one))] as const);
}

function asStreamResult(item: ManifestItem, answer: BatchResult): StreamResult {
  const { streamid, result, errors = [], warnings = [], lines = [] } = answer;
  return {
    streamid: streamid ?? item.name,
    result,
    line: item.line,
    // An error without a stream id begins with its place in the request, as `groups.0: `.
    errors: errors.map(({ code, description }) => ({
      code,
      description: description.replace(/^(?:streams|groups)\.\d+(?:: |\.)/, ''),
    })),
    warnings,
    ...(lines.length > 0 && { lines }),
  };
}

function allOf(
  item: ManifestItem,
  result: 'failed' | 'not_reached',
  errors: readonly Problem[],
): StreamResult[] {
  return namesOf(item).map((streamid) => ({ streamid, result, line: item.line, errors, warnings: [] }));
}

function namesOf({ streamIds, name }: ManifestItem): readonly string[] {
  return streamIds.length > 0 ? streamIds : [name];
}

function summaryOf(results: readonly StreamResult[]) {
  return countsOf(['created', 'changed', 'unchanged', 'failed', 'not_reached'], results);
}

const RESULT_STYLES = {
  created: { mark: '+', style: 'green', would: 'would be created', did: 'created' },
  changed: { mark: '~', style: 'yellow', would: 'would be changed', did: 'changed' },
  failed: { mark: '!', style: 'red', would: "can't be provisioned", did: 'failed' },
} as const;

function showChanges(
  out: Output,
  results: readonly StreamResult[],
  tense: 'would' | 'did',
  detail: Options,
): void {
  for (const kind of ['created', 'changed', 'failed'] as const) {
    const found = results.filter(({ result }) => result === kind);
    const title = `${count(found.length, 'stream')} ${RESULT_STYLES[kind][tense]}`;
    const rows = kind === 'failed' && !detail.all ? byReason(found) : found;
    showSome(out, title, rows, detail.all, (one) => {
      const { lines = [] } = kind === 'changed' ? one : {};
      const keys = detail.verbose ? undefined : keyIdChange(lines);
      const change = keys ? renderKeyChange(out, keys, lines, INDENT) : renderChanges(out, lines, INDENT);
      showResult(out, one, change);
    });
  }
  const unchanged = results.filter(({ result }) => result === 'unchanged').length;
  if (unchanged === 0) return;
  const [are, were] = unchanged === 1 ? ['it is', 'it was'] : ['they are', 'they were'];
  const stay = tense === 'would' ? `would stay as ${are}` : `stayed as ${were}`;
  out.write(`${out.style('bold', `${count(unchanged, 'stream')} ${stay}`)}\n`);
}

/** Streams that failed for the same reason as one row: a wrong client of 300 rows is one mistake. */
function byReason(failed: readonly StreamResult[]): StreamResult[] {
  const reasons = groupedBy(failed, ({ errors, warnings }) => JSON.stringify([errors, warnings]));
  return [...reasons.values()].flatMap((same) => {
    const [first, ...others] = same;
    if (!first || others.length === 0) return same;
    const names = same.map(({ streamid, line }) => `${streamid}${lineText(line)}`);
    const streamid = `${count(same.length, 'stream')}: ${someNames(names, 5)}`;
    return [{ ...first, streamid, line: undefined }];
  });
}

function lineText(line: number | undefined): string {
  return line === undefined ? '' : ` (line ${line})`;
}

export const INDENT = '      ';

export function showResult(out: Output, one: StreamResult, details: string): void {
  const { streamid, result, line, errors, warnings } = one;
  if (result === 'unchanged' || result === 'not_reached') return;
  const { mark, style } = RESULT_STYLES[result];
  const where = result === 'failed' ? lineText(line) : '';
  out.write(`  ${out.style(style, mark)} ${shown(streamid)}${where}\n${details}`);
  for (const { description } of errors) out.write(`${INDENT}${shown(description)}\n`);
  for (const { code, description } of warnings)
    out.write(`${INDENT}${out.style('yellow', 'warning:')} ${shown(`${code}: ${description}`)}\n`);
}
