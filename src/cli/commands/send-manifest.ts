import type { BatchResult } from '../../api/batch';
import type { Problem } from '../../http/errors';
import { CliError, EXIT } from '../cli-error';
import { interrupted, type SidecarApi, SidecarAway, withRetries } from '../client';
import type { CliContext } from '../context';
import { keyIdChange, renderChanges, renderKeyChange } from '../key-files';
import type { Manifest, ManifestItem } from '../manifest/read-manifest';
import { count, type Output, type Style, shown } from '../output';
import { type Progress, showProgress } from '../terminal';
import { type ProviderOptions, providerFields } from './put';

/** Sends a manifest, or asks with `dryRun` what it would change. */
export async function sendManifest(
  context: CliContext,
  sidecar: SidecarApi,
  { streams, groups }: Manifest,
  dryRun: boolean,
): Promise<Sent> {
  const total = [...streams, ...groups].reduce((sum, item) => sum + namesOf(item).length, 0);
  const progress = showProgress(context, dryRun ? 'Comparing' : 'Writing', total);
  try {
    return await sendChunks(
      context,
      sidecar,
      [...chunksOf('streams', streams), ...chunksOf('groups', groups)],
      dryRun,
      progress,
    );
  } finally {
    progress.stop();
  }
}

/** The items of which a look said that they would change something. */
export function dueItems(items: readonly ManifestItem[], looked: Sent['results']): ManifestItem[] {
  return items.filter((item) => looked.get(item)?.some(({ result }) => isChange(result)));
}

/** The part of a manifest that has some items alone. */
export function among({ streams, groups }: Manifest, due: readonly ManifestItem[]): Manifest {
  const wanted = new Set(due);
  return {
    streams: streams.filter((item) => wanted.has(item)),
    groups: groups.filter((item) => wanted.has(item)),
  };
}

/** What became of each item: of one that was not due, what the look said. */
export function outcomeOf(
  items: readonly ManifestItem[],
  looked: Sent['results'] | undefined,
  due: readonly ManifestItem[],
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
    ...(cmaf !== undefined && {
      cmaf: cmaf === true ? true : cmaf === false ? false : (cmaf as 'cenc' | 'cbcs'),
    }),
  };
}

/** As many streams as are asked for at once: few enough to stop soon, many enough for the sidecar to work beside each other. */
const CHUNK_STREAMS = 100;

/** What is sent in one request. */
export interface Chunk {
  readonly kind: 'streams' | 'groups';
  readonly items: readonly ManifestItem[];
}

/** Divides streams and groups into requests. A group is never divided: its members may share one key. */
export function chunksOf(kind: Chunk['kind'], items: readonly ManifestItem[], most = CHUNK_STREAMS): Chunk[] {
  const chunks: ManifestItem[][] = [];
  let room = 0;
  for (const item of items) {
    const size = item.streamIds.length;
    const last = chunks.at(-1);
    const fits = size <= room;
    if (last && fits) last.push(item);
    else chunks.push([item]);
    room = (last && fits ? room : most) - size;
  }
  return chunks.map((chunk) => ({ kind, items: chunk }));
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

export interface Sent {
  readonly results: ReadonlyMap<ManifestItem, readonly StreamResult[]>;
  /** Why the rest was not sent. */
  readonly stopped: CliError | undefined;
}

/**
 * Sends the chunks one after the other. What fails in one is noted and the next is sent; a sidecar that can't be
 * reached is tried again for half a minute, and then the rest is left.
 */
export async function sendChunks(
  context: CliContext,
  sidecar: SidecarApi,
  chunks: readonly Chunk[],
  dryRun: boolean,
  progress: Progress,
): Promise<Sent> {
  const results = new Map<ManifestItem, readonly StreamResult[]>();
  for (const chunk of chunks) {
    if (context.interrupted.aborted) return { results, stopped: interrupted() };
    try {
      const answers = await sendWithRetries(context, sidecar, chunk, dryRun, progress);
      for (const [item, found] of answers) results.set(item, found);
    } catch (thrown) {
      if (!(thrown instanceof CliError)) throw thrown;
      if (thrown instanceof SidecarAway) {
        return { results, stopped: new CliError(EXIT.unreachable, thrown.problems) };
      }
      if (thrown.exitCode !== EXIT.failed) return { results, stopped: thrown };
      for (const item of chunk.items) results.set(item, allOf(item, 'failed', thrown.problems));
    }
    progress.advance(chunk.items.reduce((sum, item) => sum + (results.get(item)?.length ?? 0), 0));
  }
  return { results, stopped: undefined };
}

async function sendWithRetries(
  context: CliContext,
  sidecar: SidecarApi,
  chunk: Chunk,
  dryRun: boolean,
  progress: Progress,
): Promise<Answers> {
  const body = { [chunk.kind]: chunk.items.map((item) => item.body) };
  const { results } = await withRetries(context, progress, () => sidecar.batch(body, dryRun));
  const answers = resultsByItem(chunk.items, results);
  if (answers) return answers;
  if (chunk.items.length === 1) throw otherAnswer(sidecar.address);
  const alone: Answers[] = [];
  for (const item of chunk.items) {
    alone.push(await sendWithRetries(context, sidecar, { ...chunk, items: [item] }, dryRun, progress));
  }
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
    // The place in the request is none that the user knows.
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
export function namesOf({ streamIds, name }: ManifestItem): readonly string[] {
  return streamIds.length > 0 ? streamIds : [name];
}

/** How many of a kind are named unless all are asked for. */
const NAMED = 20;

type Kind = StreamResult['result'];

export type Summary = Readonly<Record<Kind, number>>;

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
export function showResults(
  out: Output,
  results: readonly StreamResult[],
  { all = false, verbose = false }: Detail,
): void {
  for (const { streamid, result, line, errors, warnings, lines = [] } of all
    ? results
    : results.slice(0, NAMED)) {
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
  const more = results.length - NAMED;
  if (!all && more > 0) out.write(`    and ${more.toLocaleString('en-US')} more; --all names them\n`);
}
