import type { Problem } from '../../http/errors';
import { CliError, EXIT } from '../cli-error';
import type { CliContext } from '../context';
import type { LineUpItem } from '../lineup/lineup';
import { patiently } from '../patience';
import type { Progress } from '../progress';
import { interrupted, type SidecarApi, SidecarAway } from '../sidecar-api';
import type { BatchResult } from '../sidecar-wire';
import type { Chunk } from './chunks';

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
  readonly results: ReadonlyMap<LineUpItem, readonly StreamResult[]>;
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
  const results = new Map<LineUpItem, readonly StreamResult[]>();
  for (const chunk of chunks) {
    if (context.interrupted.aborted) return { results, stopped: interrupted() };
    try {
      const answers = await sendPatiently(context, sidecar, chunk, dryRun, progress);
      for (const [item, found] of answers) results.set(item, found);
    } catch (thrown) {
      if (!(thrown instanceof CliError)) throw thrown;
      if (thrown instanceof SidecarAway) {
        return { results, stopped: new CliError(EXIT.unreachable, thrown.problems) };
      }
      if (thrown.exitCode !== EXIT.failed) return { results, stopped: thrown };
      for (const item of chunk.items) results.set(item, allFailed(item, thrown.problems));
    }
    progress.advance(chunk.items.reduce((sum, item) => sum + (results.get(item)?.length ?? 0), 0));
  }
  return { results, stopped: undefined };
}

async function sendPatiently(
  context: CliContext,
  sidecar: SidecarApi,
  chunk: Chunk,
  dryRun: boolean,
  progress: Progress,
): Promise<Answers> {
  const body = { [chunk.kind]: chunk.items.map((item) => item.body) };
  const { results } = await patiently(context, progress, () => sidecar.batch(body, dryRun));
  const answers = resultsByItem(chunk.items, results);
  if (answers) return answers;
  if (chunk.items.length === 1) throw otherAnswer(sidecar.address);
  const alone: Answers[] = [];
  for (const item of chunk.items) {
    alone.push(await sendPatiently(context, sidecar, { ...chunk, items: [item] }, dryRun, progress));
  }
  return alone.flat();
}

/**
 * The answers of a chunk by what they were asked for, in order: one for each stream or member of a group, or one
 * failure for a group that can't be read. Undefined when they are of other streams, or can't be told apart.
 */
function resultsByItem(items: readonly LineUpItem[], results: readonly BatchResult[]): Answers | undefined {
  const answers: [LineUpItem, readonly StreamResult[]][] = [];
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

type Answers = (readonly [LineUpItem, readonly StreamResult[]])[];

function asStreamResult(item: LineUpItem, answer: BatchResult): StreamResult {
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

function allFailed(item: LineUpItem, errors: readonly Problem[]): StreamResult[] {
  return namesOf(item).map((streamid) => ({
    streamid,
    result: 'failed',
    line: item.line,
    errors,
    warnings: [],
  }));
}

/** What an item's results are known by before there are any. */
export function namesOf({ streamIds, name }: LineUpItem): readonly string[] {
  return streamIds.length > 0 ? streamIds : [name];
}
