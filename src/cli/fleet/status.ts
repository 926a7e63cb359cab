import { jsonText, shown, timeText } from '../../terminal/text';
import { answerOrError, CliError, EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import type { Options } from '../options';
import { type StatusView, viewOfFleet, viewOfStream } from './status-text';

const WATCH_MS = 1000;

export async function fleetStatus(
  context: CliContext,
  streamId: string | undefined,
  { watch = false, all = false }: Options,
): Promise<void> {
  const { out } = context;
  if (watch && !out.json && !context.stdout.isTTY)
    throw usageError('--watch needs a terminal. With --json it writes an answer each second anywhere.');
  const { fleet } = context.sidecar();
  const readView = async (): Promise<StatusView> =>
    streamId === undefined
      ? viewOfFleet(await fleet.status(), out, all)
      : viewOfStream(await fleet.streamStatus(streamId), out);
  // A fault at the first look is a fault of the call.
  const first = await readView();
  const last = watch ? await watchFleet(context, first, readView) : first;
  if (!out.json) out.write(last.lines.map((line) => `${line}\n`).join(''));
  else if (!watch) out.document(last.answer);
  out.note(last.sentence.text, last.sentence.style);
  if (!last.isWell) context.endWith(EXIT.failed);
}

async function watchFleet(
  context: CliContext,
  first: StatusView,
  readView: () => Promise<StatusView>,
): Promise<StatusView> {
  const { out, interrupted: signal, wait, now } = context;
  let last = first;
  let trouble: string | undefined;
  if (!out.json) out.write(ENTER);
  try {
    for (;;) {
      const { text, style } =
        trouble === undefined ? last.sentence : ({ text: shown(trouble), style: 'red' } as const);
      const head = [`${timeText(now().toISOString())} UTC. Ctrl-C ends it.`, out.style(style, text), ''];
      if (!out.json) draw(context, [...head, ...last.lines]);
      else if (trouble === undefined) out.write(`${jsonText(last.answer)}\n`);
      else out.warn(trouble);
      await wait(WATCH_MS, signal);
      if (signal.aborted || !(await out.ready())) return last;
      const next = await answerOrError(readView());
      if (signal.aborted) return last;
      trouble = next instanceof CliError ? (next.problems[0]?.description ?? next.message) : undefined;
      last = next instanceof CliError ? { ...last, isWell: false } : next;
    }
  } finally {
    if (!out.json) out.write(LEAVE);
  }
}

/** To a screen of its own, so that the former one returns at the end; long lines are cut. */
const ENTER = '\u001b[?1049h\u001b[?7l\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?7h\u001b[?1049l';
const HOME = '\u001b[H';
const END_OF_LINE = '\u001b[K';
const END_OF_SCREEN = '\u001b[J';
const USUAL_ROWS = 24;

/** Draws over the screen without clearing it first. */
function draw({ stdout, out }: CliContext, lines: readonly string[]): void {
  const room = stdout.rows ?? USUAL_ROWS;
  const hidden = lines.length - room;
  const fitting =
    hidden > 0
      ? [...lines.slice(0, room - 1), `and ${hidden + 1} more lines; the window is too small`]
      : lines;
  out.write(`${HOME}${fitting.map((line) => `${line}${END_OF_LINE}`).join('\r\n')}${END_OF_SCREEN}`);
}
