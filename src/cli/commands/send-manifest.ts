import type { BatchResult } from '../../api/batch';
import type { Problem } from '../../http/errors';
import type { Output, Style } from '../../terminal/output';
import { count, shown } from '../../terminal/text';
import { CliError, EXIT } from '../cli-error';
import { interrupted, type SidecarApi, SidecarAway, withRetries } from '../client';
import type { CliContext } from '../context';
import { keyIdChange, renderChanges, renderKeyChange } from '../key-files';
import type { Manifest, ManifestItem } from '../manifest/read-manifest';
import { firstOf, tellRest } from '../output';
import { confirm, type Progress, showProgress } from '../terminal';
import { type ProviderOptions, providerFields } from './provider-options';

/** What became of a manifest's items, of those that were reached. */
export type Results = ReadonlyMap<ManifestItem, readonly StreamResult[]>;

export interface Sent {
  readonly results: Results;
  /** Why the rest was not sent. */
  readonly stopped: CliError | undefined;
  /** The fleet's revision of the last change; undefined without a fleet. */
  readonly revision: number | undefined;
}

/** What a person is told when nothing came of a command. */
export const NOTHING = 'Nothing was written.';

/** Asks what a manifest would change. @throws CliError when not all of it could be looked at. */
export async function lookAt(context: CliContext, manifest: Manifest): Promise<Results> {
  const { results, stopped } = await send(context, context.sidecar(), manifest, { dryRun: true });
  if (stopped) throw stopped.exitCode === EXIT.interrupted ? interrupted(`Stopped. ${NOTHING}`) : stopped;
  return results;
}

/**
 * Writes a manifest; a request that is under way when the user stops is finished.
 * @param isAwaited whether it is to be waited for, afterwards, until all packagers of the fleet have it.
 */
export function writeManifest(context: CliContext, manifest: Manifest, isAwaited = false): Promise<Sent> {
  return send(context, context.sidecar({ finishCalls: true }), manifest, { dryRun: false, isAwaited });
}

/** The streams that the sidecar has as they were to be. */
export function settledStreams(results: readonly StreamResult[]): string[] {
  return results.flatMap(({ streamid, result }) =>
    isChange(result) || result === 'unchanged' ? [streamid] : [],
  );
}

/** Asks the user whether so many key files are to be written. */
export function isConfirmed(context: CliContext, keyFiles: number): Promise<boolean> {
  return confirm(context, `Write ${count(keyFiles, 'key file')} at ${context.sidecar().address}?`, NOTHING);
}

interface How {
  readonly dryRun: boolean;
  readonly isAwaited?: boolean;
}

async function send(context: CliContext, sidecar: SidecarApi, manifest: Manifest, how: How): Promise<Sent> {
  const total = manifest.reduce((sum, item) => sum + namesOf(item).length, 0);
  const progress = showProgress(context, how.dryRun ? 'Comparing' : 'Writing', total);
  try {
    return await sendChunks(context, sidecar, chunksOf(manifest), how, progress);
  } finally {
    progress.stop();
  }
}

/** The items of which a look said that they would change something. */
export function dueItems(items: Manifest, looked: Results): Manifest {
  return items.filter((item) => looked.get(item)?.some(({ result }) => isChange(result)));
}

/** What became of each item: of one that was not due, what the look said. */
export function outcomeOf(
  items: Manifest,
  looked: Results | undefined,
  due: Manifest,
  sent: Sent | undefined,
): StreamResult[] {
  const wanted = new Set(due);
  return items.flatMap((item) =>
    sent && wanted.has(item)
      ? (sent.results.get(item) ?? allOf(item, 'not_reached', []))
      : (looked?.get(item) ?? []),
  );
}

export function isChange(result: StreamResult['result']): boolean {
  return result === 'created' || result === 'changed';
}

/** The defaults of a manifest that the options give. */
export function givenDefaults(context: CliContext, options: ProviderOptions) {
  const { client, clientApiKey, cmaf } = providerFields(context, options);
  return {
    ...(client !== undefined && { client }),
    ...(clientApiKey !== undefined && { clientApiKey }),
    ...(cmaf !== undefined && { cmaf }),
  };
}

/** As many streams as are asked for at once: few enough to stop soon, many enough for the sidecar to work beside each other. */
const CHUNK_STREAMS = 100;

/** Half of what the sidecar takes: documents are long, and JSON makes them longer. */
const CHUNK_BYTES = 8 * 1024 * 1024;

/** Divides a manifest into requests, each of one kind. A group is never divided: its members may share one key. */
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

/** What became of one stream. */
export interface StreamResult {
  readonly streamid: string;
  readonly result: BatchResult['result'] | 'not_reached';
  readonly line: number | undefined;
  readonly errors: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Of a dry run: the lines that would not stay as they are; secret values are masked. */
  readonly lines?: NonNullable<BatchResult['lines']>;
}

/**
 * Sends the chunks one after the other. What fails in one is noted and the next is sent; a sidecar that can't be
 * reached is tried again for half a minute, and then the rest is left.
 */
async function sendChunks(
  context: CliContext,
  sidecar: SidecarApi,
  chunks: readonly Manifest[],
  { dryRun, isAwaited = false }: How,
  progress: Progress,
): Promise<Sent> {
  const results = new Map<ManifestItem, readonly StreamResult[]>();
  let revision: number | undefined;
  const onRevision = (found: number) => {
    revision = Math.max(found, revision ?? 0);
  };
  for (const chunk of chunks) {
    if (context.interrupted.aborted) return { results, revision, stopped: interrupted() };
    // With the last changes the packagers report at once that they have all of them, else within five seconds.
    const wait = isAwaited && chunk === chunks.at(-1) ? 1 : undefined;
    const batch = async (body: unknown) => {
      const answer = await withRetries(context, progress, () => sidecar.batch(body, dryRun, wait));
      if (answer.revision !== undefined) onRevision(answer.revision);
      return answer.results;
    };
    try {
      const answers = await sendChunk(batch, sidecar.address, chunk);
      for (const [item, found] of answers) results.set(item, found);
    } catch (thrown) {
      if (!(thrown instanceof CliError)) throw thrown;
      if (thrown instanceof SidecarAway) {
        return { results, revision, stopped: new CliError(EXIT.unreachable, thrown.problems) };
      }
      if (thrown.exitCode !== EXIT.failed) return { results, revision, stopped: thrown };
      for (const item of chunk) results.set(item, allOf(item, 'failed', thrown.problems));
    }
    progress.advance(chunk.reduce((sum, item) => sum + (results.get(item)?.length ?? 0), 0));
  }
  return { results, revision, stopped: undefined };
}

async function sendChunk(
  batch: (body: unknown) => Promise<readonly BatchResult[]>,
  address: string,
  chunk: Manifest,
): Promise<Answers> {
  const results = await batch({ [chunk[0]?.kind ?? 'streams']: chunk.map((item) => item.body) });
  const answers = resultsByItem(chunk, results);
  if (answers) return answers;
  if (chunk.length === 1) throw otherAnswer(address);
  const alone: Answers[] = [];
  for (const item of chunk) alone.push(await sendChunk(batch, address, [item]));
  return alone.flat();
}

/**
 * The answers of a chunk by what they were asked for, in order: one for each stream or member of a group, or one
 * failure for a group that can't be read. Undefined when they are of other streams, or can't be told apart.
 */
function resultsByItem(items: readonly ManifestItem[], results: readonly BatchResult[]): Answers | undefined {
  const answers: [ManifestItem, readonly StreamResult[]][] = [];
  let from = 0;
  for (const item of items) {
    const [whole] = results.slice(from);
    const isWhole = items.length === 1 && results.length === 1 && whole !== undefined && isNameless(whole);
    const own = isWhole ? results : results.slice(from, from + item.streamIds.length);
    const isOwn = item.streamIds.every((streamId, index) => {
      const result = own[index];
      return result !== undefined && (result.streamid === streamId || isNameless(result));
    });
    if (!isWhole && !isOwn) return undefined;
    from += own.length;
    answers.push([item, own.map((result) => asStreamResult(item, result))]);
  }
  return from === results.length ? answers : undefined;
}

/** A failure of something that could not be taken for a stream. */
function isNameless({ streamid, result }: BatchResult): boolean {
  return result === 'failed' && (streamid === null || streamid === undefined);
}

function otherAnswer(address: string): CliError {
  const description = `What answers at ${address} did not say what became of every stream. Check the address.`;
  return new CliError(EXIT.unreachable, { code: 'not_a_sidecar', description });
}

type Answers = (readonly [ManifestItem, readonly StreamResult[]])[];

function asStreamResult(item: ManifestItem, answer: BatchResult): StreamResult {
  const { streamid, result, errors = [], warnings = [], lines = [] } = answer;
  return {
    streamid: streamid ?? item.name,
    result,
    line: item.line,
    // The place in the request (`streams.3: …`) is none that the user knows, and the API has no field of its own for it.
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

/** What an item's results are known by before there are any. */
function namesOf({ streamIds, name }: ManifestItem): readonly string[] {
  return streamIds.length > 0 ? streamIds : [name];
}

type Kind = StreamResult['result'];

type Summary = Readonly<Record<Kind, number>>;

export function summaryOf(results: readonly StreamResult[]): Summary {
  const summary: Record<Kind, number> = { created: 0, changed: 0, unchanged: 0, failed: 0, not_reached: 0 };
  for (const { result } of results) summary[result] += 1;
  return summary;
}

/** `3 created, 1 changed, 96 unchanged`; what there is none of is left out. */
export function sentenceOf(summary: Summary): string {
  const words: Readonly<Record<Kind, string>> = {
    created: 'created',
    changed: 'changed',
    unchanged: 'unchanged',
    failed: 'failed',
    not_reached: 'not reached',
  };
  const parts = KINDS.filter((kind) => summary[kind] > 0).map(
    (kind) => `${summary[kind].toLocaleString('en-US')} ${words[kind]}`,
  );
  return parts.join(', ') || 'nothing to do';
}

/** How much is told. */
export interface Detail {
  /** Every stream, not the first of each kind. */
  readonly all?: boolean;
  /** Each line of a stream that gets another key. */
  readonly verbose?: boolean;
}

const KINDS: readonly Kind[] = ['created', 'changed', 'unchanged', 'failed', 'not_reached'];

const LOOKS: Readonly<
  Record<'created' | 'changed' | 'failed', { mark: string; style: Style; would: string; did: string }>
> = {
  created: { mark: '+', style: 'green', would: 'would be created', did: 'created' },
  changed: { mark: '~', style: 'yellow', would: 'would be changed', did: 'changed' },
  failed: { mark: '!', style: 'red', would: 'can’t be provisioned', did: 'failed' },
};

/** Shows what a manifest would change, or `did`: how many of each kind, and their names. */
export function showChanges(
  out: Output,
  results: readonly StreamResult[],
  tense: 'would' | 'did',
  detail: Detail,
): void {
  for (const kind of ['created', 'changed', 'failed'] as const) {
    const found = results.filter(({ result }) => result === kind);
    if (found.length === 0) continue;
    out.write(`${out.style('bold', `${count(found.length, 'stream')} ${LOOKS[kind][tense]}`)}\n`);
    showResults(out, found, detail);
  }
  const unchanged = results.filter(({ result }) => result === 'unchanged').length;
  if (unchanged === 0) return;
  const isOne = unchanged === 1;
  const stay =
    tense === 'would'
      ? `would stay as ${isOne ? 'it is' : 'they are'}`
      : `stayed as ${isOne ? 'it was' : 'they were'}`;
  out.write(`${out.style('bold', `${count(unchanged, 'stream')} ${stay}`)}\n`);
}

/** Names streams, each with what is wrong or odd about it. */
function showResults(
  out: Output,
  results: readonly StreamResult[],
  { all = false, verbose = false }: Detail,
): void {
  for (const { streamid, result, line, errors, warnings, lines = [] } of firstOf(results, all)) {
    if (result === 'unchanged' || result === 'not_reached') continue;
    const { mark, style } = LOOKS[result];
    const where = line !== undefined && result === 'failed' ? ` (line ${line})` : '';
    out.write(`  ${out.style(style, mark)} ${shown(streamid)}${where}\n`);
    const keys = result === 'changed' && !verbose ? keyIdChange(lines) : undefined;
    if (keys) out.write(renderKeyChange(out, keys, lines, '      '));
    else if (result === 'changed') out.write(renderChanges(out, lines, '      '));
    for (const { description } of errors) out.write(`      ${shown(description)}\n`);
    for (const { code, description } of warnings)
      out.write(`      ${out.style('yellow', 'warning:')} ${shown(`${code}: ${description}`)}\n`);
  }
  tellRest(out, results, all);
}
