import { keyIdChange, renderKeyChange } from '../key-change';
import { renderChanges } from '../line-changes';
import { count, type Output, type Style, shown } from '../output';
import type { StreamResult } from './send-chunks';

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
  Record<'created' | 'changed' | 'failed', { mark: string; style: Style; would: string }>
> = {
  created: { mark: '+', style: 'green', would: 'would be created' },
  changed: { mark: '~', style: 'yellow', would: 'would be changed' },
  failed: { mark: '!', style: 'red', would: 'can’t be provisioned' },
};

/** Shows what a line-up would change: how many of each kind, and their names. */
export function showPlan(out: Output, results: readonly StreamResult[], detail: Detail): void {
  for (const kind of ['created', 'changed', 'failed'] as const) {
    const found = results.filter(({ result }) => result === kind);
    if (found.length === 0) continue;
    out.write(`${out.style('bold', `${count(found.length, 'stream')} ${LOOKS[kind].would}`)}\n`);
    showResults(out, found, detail);
  }
  const unchanged = results.filter(({ result }) => result === 'unchanged').length;
  if (unchanged > 0)
    out.write(
      `${out.style('bold', `${count(unchanged, 'stream')} would stay as ${unchanged === 1 ? 'it is' : 'they are'}`)}\n`,
    );
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
