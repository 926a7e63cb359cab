import { SingleBar } from 'cli-progress';
import { BAR_STYLE } from '../../../terminal/command';
import type { TerminalOutput } from '../../../terminal/output';
import { shown } from '../../../terminal/text';

/** How far the reading of an input is. */
export interface Progress {
  advance(bytes: number): void;
  stop(): void;
}

/** Less is read before anybody looks. */
const WORTH_A_BAR = 8 * 1024 * 1024;

const NONE: Progress = { advance: () => undefined, stop: () => undefined };

/** A bar on the terminal, for inputs that take a while. */
export function showProgress(stderr: TerminalOutput, name: string, total: number | undefined): Progress {
  if (!stderr.isTTY || total === undefined || total < WORTH_A_BAR) return NONE;
  const bar = new SingleBar({
    stream: stderr,
    format: `${shown(name).slice(-40)} {bar} {percentage} % of ${Math.round(total / 1024 / 1024).toLocaleString('en-US')} MiB`,
    ...BAR_STYLE,
  });
  bar.start(total, 0);
  return { advance: (bytes) => bar.increment(bytes), stop: () => bar.stop() };
}
