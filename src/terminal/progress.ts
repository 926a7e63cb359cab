import { SingleBar } from 'cli-progress';
import type { CommandRun, Output } from './output';

export type ProgressOutput = Pick<CommandRun, 'stderr'> & { readonly out: Pick<Output, 'json' | 'note'> };

/** On a terminal a bar; elsewhere a note every ten seconds, but none with `--json`. */
export interface Progress {
  /** @param state is shown after the bar. */
  advance(items: number, state?: string): void;
  /** Why the work pauses; undefined: it goes on. */
  pause(sentence: string | undefined): void;
  stop(): void;
}

/** How often a log shows that the work goes on. */
const NOTE_MS = 10_000;

export function showProgress({ stderr, out }: ProgressOutput, title: string, total: number): Progress {
  const number = (value: number) => Math.round(value).toLocaleString('en-US');
  if (out.json || !stderr.isTTY) {
    let done = 0;
    const timer = setInterval(() => out.note(`${title}: ${number(done)} of ${number(total)}.`), NOTE_MS);
    return {
      advance: (items) => {
        done += items;
      },
      pause: (sentence) => sentence !== undefined && out.note(sentence),
      stop: () => clearInterval(timer),
    };
  }
  const bar = new SingleBar({
    barCompleteChar: '\u{2588}',
    barIncompleteChar: '\u{2591}',
    barsize: 30,
    hideCursor: false,
    gracefulExit: true,
    clearOnComplete: true,
    linewrap: false,
    stream: stderr,
    // The end of a long line is not seen.
    format: `{why}${title} {value} of {total} {bar} {state}`,
    formatValue: (value, _options, type) =>
      type === 'value' || type === 'total' ? number(value) : String(value),
  });
  bar.start(total, 0, { why: '', state: '' });
  return {
    advance: (items, state) => bar.increment(items, state === undefined ? {} : { state }),
    pause: (sentence) => bar.update({ why: sentence === undefined ? '' : `${sentence} ` }),
    stop: () => bar.stop(),
  };
}
