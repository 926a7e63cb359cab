import type { Finding } from '../../drm/finding';
import { count, jsonText, shown, timeText } from '../../terminal/text';
import type { RenditionReport, StreamReport } from '../../verify/stream-report';
import type { TestOptions, TestResult } from '../../verify/tester';
import type { CliContext } from '../context';
import { findingText, sumOf } from '../findings-text';
import { showReport } from './verify-text';

export type StreamTest = (options: Pick<TestOptions, 'remember' | 'onProgress'>) => Promise<TestResult>;

/** How long it waits for the next segment: half of one, but neither hammers a server nor misses what happens. */
const LEAST_MS = 500;
const MOST_MS = 5000;

/** A fault by its code: the segment that its sentence names is another one each time. */
interface Episode {
  readonly fault: Finding;
  readonly since: Date;
  /** Whether segments were there to be tested; else it is of the manifest or playlist. */
  readonly isOfSegments: boolean;
  /** The renditions that had new segments when it was seen: each must have had another one before it is over. */
  readonly waiting: Set<string>;
  until: Date | undefined;
}

/**
 * Tests each new segment of a live stream until the user stops it, and shows what goes wrong when. With `--json` each look
 * that brought something is a line of JSON. Answers whether there was an error.
 */
export async function watchStream(context: CliContext, test: StreamTest): Promise<boolean> {
  const { out, interrupted: signal } = context;
  const watch = new StreamWatch(context);
  let pause = MOST_MS;
  try {
    while (!signal.aborted) {
      const { report, hasMore } = await test({ remember: true });
      if (signal.aborted) break;
      watch.take(report);
      if (!report.live && report.type !== 'unknown') {
        out.note('The stream is finished: there will be no new segment.');
        break;
      }
      pause = pauseOf(report) ?? pause;
      if (!hasMore) await context.wait(pause, signal);
    }
  } finally {
    watch.stop();
  }
  return watch.hadError;
}

/** Undefined without a new segment of a known length. */
function pauseOf({ renditions }: StreamReport): number | undefined {
  const seconds = renditions.flatMap(({ segment }) =>
    segment && segment.seconds > 0 ? [segment.seconds] : [],
  );
  if (seconds.length === 0) return undefined;
  return Math.min(MOST_MS, Math.max(LEAST_MS, Math.min(...seconds) * 500));
}

class StreamWatch {
  hadError = false;
  readonly #episodes: Episode[] = [];
  /** The key ids of the newest segment of each rendition; its bit rate may be another one in each period. */
  readonly #keyIds = new Map<string, string>();
  readonly #began: Date;
  #looks = 0;
  #segments = 0;

  constructor(private readonly context: CliContext) {
    this.#began = context.now();
  }

  take(report: StreamReport): void {
    const { out, now } = this.context;
    const fresh = report.renditions.filter(({ segment }) => segment !== null);
    this.#segments += fresh.length;
    this.#looks += 1;
    this.#clearLine();
    const isFirst = this.#looks === 1;
    const freshNames = fresh.map(({ name }) => name);
    const keychanges = this.#keyChanges(fresh);
    const news = [
      ...keychanges.map(
        ({ rendition, former, now: keyIds, segment }) =>
          `${clock(now())} ${out.style('green', 'new key:')} ${shown(rendition)} has ${keyIds} from ${shown(segment)} on, ${former} before`,
      ),
      ...this.#compare(report, freshNames, now()),
    ];
    if (out.json) {
      if (isFirst || fresh.length > 0 || news.length > 0)
        out.write(`${jsonText({ time: now().toISOString(), ...report, keychanges })}\n`);
      return;
    }
    if (isFirst) showReport(out, report);
    else for (const line of news) out.write(`${line}\n`);
    this.#showLine(report);
  }

  /** The renditions whose segment has other keys than the one before it. */
  #keyChanges(fresh: readonly RenditionReport[]) {
    return fresh.flatMap(({ name, keyIds, segment }) => {
      const rendition = name.replace(/ \d+ kb\/s$/, '');
      const former = this.#keyIds.get(rendition);
      const now = keyIds.join(' ');
      if (now === '' || !segment) return [];
      this.#keyIds.set(rendition, now);
      if (former === undefined || former === now) return [];
      const path = new URL(segment.url).pathname.split('/');
      return { rendition, former, now, segment: path.slice(-2).join('/') };
    });
  }

  stop(): void {
    this.#clearLine();
    const { out, now } = this.context;
    if (out.json || this.#looks === 0) return;
    const seconds = Math.round((now().getTime() - this.#began.getTime()) / 1000);
    const { text } = sumOf(this.#episodes.map(({ fault }) => fault));
    out.note(`${count(this.#segments, 'segment')} in ${seconds} s: ${text}.`);
    for (const { fault, since, until } of this.#episodes)
      out.note(`  ${clock(since)} to ${until ? clock(until) : 'the end'}: ${fault.code}`);
  }

  /** The lines of what has begun and what is over. What is wrong with segments is over with a segment that is right. */
  #compare({ faults, renditions }: StreamReport, fresh: readonly string[], at: Date): string[] {
    const { out } = this.context;
    const open = this.#episodes.filter(({ until }) => until === undefined);
    const lines: string[] = [];
    for (const fault of faults) {
      const known = open.find((episode) => episode.fault.code === fault.code);
      if (known) {
        for (const name of fresh) known.waiting.add(name);
        continue;
      }
      const isOfSegments = renditions.length > 0;
      const waiting = new Set(fresh);
      this.#episodes.push({ fault, since: at, isOfSegments, waiting, until: undefined });
      this.hadError ||= fault.severity === 'error';
      lines.push(`${clock(at)} ${findingText(out, fault)}`);
    }
    for (const episode of open) {
      if (faults.some(({ code }) => code === episode.fault.code)) continue;
      for (const name of fresh) episode.waiting.delete(name);
      if (episode.isOfSegments && (fresh.length === 0 || episode.waiting.size > 0)) continue;
      episode.until = at;
      lines.push(`${clock(at)} ${out.style('green', 'over:')} ${episode.fault.code}`);
    }
    return lines;
  }

  #showLine({ renditions }: StreamReport): void {
    const { stderr, now, out } = this.context;
    if (!stderr.isTTY || out.json) return;
    const newest = renditions.find(({ segment }) => segment?.number != null)?.segment?.number;
    const open = this.#episodes.filter(({ until }) => until === undefined).length;
    const at = newest === undefined ? '' : `, newest ${newest}`;
    stderr.write(
      `${clock(now())} ${count(this.#segments, 'segment')} tested${at}: ${open === 0 ? 'no faults' : count(open, 'fault')}. Ctrl-C ends it.`,
    );
  }

  #clearLine(): void {
    const { stderr, out } = this.context;
    if (stderr.isTTY && !out.json) stderr.write('\r\u001b[2K');
  }
}

function clock(date: Date): string {
  return timeText(date.toISOString());
}
