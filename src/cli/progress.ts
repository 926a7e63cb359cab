import { SingleBar } from 'cli-progress';
import type { CliContext } from './context';

/** How far the sending is; on a terminal as a bar. */
export interface Progress {
  advance(streams: number): void;
  /** Something that the user waits for; an empty text takes it back. */
  tell(text: string): void;
  stop(): void;
}

/** How often a log is told that the work goes on. */
const NOTE_MS = 10_000;

export function showProgress(
  { stderr, out }: Pick<CliContext, 'stderr' | 'out'>,
  title: string,
  total: number,
): Progress {
  if (out.json || !stderr.isTTY) {
    let done = 0;
    const number = (value: number) => value.toLocaleString('en-US');
    const timer = setInterval(() => out.note(`${title}: ${number(done)} of ${number(total)}.`), NOTE_MS);
    return {
      advance: (streams) => {
        done += streams;
      },
      tell: (text) => {
        if (text) out.note(`${text[0]?.toUpperCase()}${text.slice(1)}.`);
      },
      stop: () => clearInterval(timer),
    };
  }
  const bar = new SingleBar({
    stream: stderr,
    format: `${title} {bar} {value} of {total}{state}`,
    barCompleteChar: '\u{2588}',
    barIncompleteChar: '\u{2591}',
    barsize: 30,
    hideCursor: false,
    gracefulExit: false,
    // What follows the bar takes its place.
    clearOnComplete: true,
    linewrap: false,
    formatValue: (value, _options, type) =>
      type === 'value' || type === 'total' ? value.toLocaleString('en-US') : String(value),
  });
  bar.start(total, 0, { state: '' });
  return {
    advance: (streams) => bar.increment(streams),
    tell: (text) => bar.update({ state: text && `, ${text}` }),
    stop: () => bar.stop(),
  };
}
