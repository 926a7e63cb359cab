import { createInterface } from 'node:readline/promises';
import type { Problem } from '../http/errors';
import type { Output } from '../terminal/output';
import { showProgress } from '../terminal/progress';
import { shown, showSome } from '../terminal/text';
import { answerOrError, CliError, EXIT, interrupted, usageError } from './cli-error';
import { SidecarUnavailable, withRetries } from './client';
import type { CliContext } from './context';
import { EXIT_CODES, showWaiting, type WaitedForFleet } from './fleet/wait';

/** `purpose` is the effect of a yes, as `apply the manifest`. @throws CliError when the question can't be answered. */
export function requireTerminal(
  { stdin, stderr, out }: CliContext,
  purpose: string,
  otherwise = ', or --dry-run to preview it',
): void {
  if (out.json || !stdin.isTTY || !stderr.isTTY)
    throw usageError(
      `This is not a terminal, so the question can't be answered. Add --yes to ${purpose}${otherwise}.`,
    );
}

/** `otherwise` is said after any answer but yes. @throws CliError when the user stops (Ctrl-C, the end of input). */
export async function confirm(context: CliContext, question: string, otherwise: string): Promise<boolean> {
  const { stdin, stderr, out } = context;
  const terminal = createInterface({ input: stdin, output: stderr });
  const closed = new AbortController();
  terminal.once('close', () => closed.abort());
  try {
    const signal = AbortSignal.any([context.interrupted, closed.signal]);
    const answer = await terminal.question(`${question} [y/N] `, { signal });
    const isYes = /^y(?:es)?$/i.test(answer.trim());
    if (!isYes) out.note(otherwise);
    return isYes;
  } catch {
    stderr.write('\n');
    throw interrupted(`Stopped. ${otherwise}`);
  } finally {
    terminal.close();
  }
}

/**
 * Makes a call for each item; it resolves with the fleet's revision of a change. A refusal is of this item alone.
 * Without the sidecar, or after an interruption, the others are left: `stopped` says why.
 */
export async function callEach<Item>(
  context: CliContext,
  title: string,
  items: readonly Item[],
  {
    call,
    refused,
    streamsOf = () => 1,
  }: {
    readonly call: (item: Item) => Promise<number | undefined>;
    readonly refused: (item: Item, problems: readonly Problem[]) => void | Promise<void>;
    readonly streamsOf?: (item: Item) => number;
  },
) {
  const total = items.reduce((sum, item) => sum + streamsOf(item), 0);
  const progress = showProgress(context, title, total);
  let revision: number | undefined;
  try {
    for (const item of items) {
      if (context.interrupted.aborted) throw interrupted();
      const done = await answerOrError(withRetries(context, progress, () => call(item)));
      if (done instanceof SidecarUnavailable) throw new CliError(EXIT.unreachable, done.problems);
      if (!(done instanceof CliError)) revision = Math.max(done ?? 0, revision ?? 0) || undefined;
      else if (done.exitCode === EXIT.failed) await refused(item, done.problems);
      else throw done;
      progress.advance(streamsOf(item));
    }
    return { revision };
  } catch (thrown) {
    if (!(thrown instanceof CliError)) throw thrown;
    return { revision, stopped: thrown };
  } finally {
    progress.stop();
  }
}

export function stopFields(stopped: CliError | undefined) {
  return {
    stopped: stopped?.problems[0]?.code ?? null,
    ...(stopped && stopped.exitCode !== EXIT.interrupted && { errors: stopped.problems }),
  };
}

interface Ending {
  readonly sentence: string;
  readonly isFaulty: boolean;
  readonly stopped?: CliError | undefined;
  readonly resume?: string | undefined;
  /** Undefined when the user did not wait for packagers. */
  readonly waited?: WaitedForFleet | undefined;
}

const RESUME = 'Run the same command again to continue: finished streams are left as they are.';

/** Ends a command for many streams: says how, except with `--json`, where the document does, and sets the exit code. */
export function endAs(
  context: CliContext,
  { sentence, isFaulty, stopped, waited, resume = RESUME }: Ending,
): void {
  const { out } = context;
  if (stopped && !out.json && stopped.exitCode !== EXIT.interrupted) out.errors(stopped.problems);
  if (stopped) out.note(resume);
  out.note(sentence, isFaulty || stopped ? 'red' : 'green');
  if (waited) showWaiting(context, waited);
  if (stopped) context.endWith(stopped.exitCode);
  else if (isFaulty) context.endWith(EXIT.failed);
  else if (waited) context.endWith(EXIT_CODES[waited.end]);
}

export function showFailed(
  out: Output,
  title: string,
  failed: readonly { readonly streamid: string; readonly errors: readonly Pick<Problem, 'description'>[] }[],
  all: boolean | undefined,
): void {
  showSome(out, title, failed, all, ({ streamid, errors }) => {
    out.write(`  ${out.style('red', '!')} ${shown(streamid)}\n`);
    for (const { description } of errors) out.write(`      ${shown(description)}\n`);
  });
}

export function countsOf<Kind extends string>(
  kinds: readonly Kind[],
  results: readonly { readonly result: Kind }[],
): Readonly<Record<Kind, number>> {
  const counts = kinds.map((kind) => [kind, results.filter(({ result }) => result === kind).length]);
  return Object.fromEntries(counts);
}

/** `3 created, 1 changed, 96 unchanged`; a kind without results is left out. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts)
    .filter(([, number]) => number > 0)
    .map(([kind, number]) => `${number.toLocaleString('en-US')} ${kind.replace('_', ' ')}`);
  return parts.join(', ') || 'nothing to do';
}
