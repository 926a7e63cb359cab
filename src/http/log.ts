import type { Writable } from 'node:stream';

/** Plain data only: an Error in here would lose its message and stack in JSON (use `describeThrown`). */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
}

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
type EntryLevel = Exclude<LogLevel, 'silent'>;

interface Entry {
  readonly level: EntryLevel;
  readonly message: string;
  readonly time: Date;
  readonly fields: LogFields | undefined;
}

/**
 * A log of JSON lines: `time` (ISO 8601, UTC), `level`, `message` and the fields of each entry. What comes in within
 * `batchMs` (0: within a turn of the event loop) is rendered together and written at once: done one by one, that costs
 * a request several times as much. What is left when the process exits is written then.
 */
export function createLog(level: LogLevel, stream: Writable, clock: () => Date, batchMs = 0): Log {
  const batch = new Batch(stream);
  let entries: Entry[] = [];
  const flush = () => {
    const due = entries;
    entries = [];
    batch.write(due.map(render).join(''));
  };
  flushes.add(flush);
  const soon = batchMs === 0 ? setImmediate : (run: () => void) => setTimeout(run, batchMs);
  const logAt = (entryLevel: EntryLevel) => {
    if (LOG_LEVELS.indexOf(entryLevel) > LOG_LEVELS.indexOf(level) || level === 'silent')
      return () => undefined;
    return (message: string, fields?: LogFields) => {
      if (entries.length === 0) soon(flush);
      entries.push({ level: entryLevel, message, time: clock(), fields });
    };
  };
  return { error: logAt('error'), warn: logAt('warn'), info: logAt('info'), debug: logAt('debug') };
}

/** What may wait for a slow reader of the log, in bytes; more would be memory without end. */
const MAX_WAITING = 1024 * 1024;

/** One line. A field cannot stand in for the time, the level or the message. */
function render({ level, message, time, fields = NO_FIELDS }: Entry): string {
  const own = `{"time":"${time.toISOString()}","level":"${level}","message":${JSON.stringify(message)}`;
  const rest = JSON.stringify(
    'time' in fields || 'level' in fields || 'message' in fields
      ? { ...fields, time: undefined, level: undefined, message: undefined }
      : fields,
  );
  return rest === '{}' ? `${own}}\n` : `${own},${rest.slice(1)}\n`;
}

const NO_FIELDS: LogFields = {};

const flushes = new Set<() => void>();
process.once('exit', () => {
  for (const flush of flushes) flush();
});

/** Writes batches of lines, and drops those that a slow reader has no room for. */
class Batch {
  #dropped = 0;

  constructor(private readonly target: Writable) {
    // A log that can't be written (its disk is full, its reader gone) is no reason to stop serving.
    target.on('error', () => undefined);
  }

  write(text: string): void {
    if (text === '') return;
    if (this.target.writableLength > MAX_WAITING) {
      this.#dropped += text.split('\n').length - 1;
      return;
    }
    const lost =
      this.#dropped === 0
        ? ''
        : `${JSON.stringify({ level: 'warn', message: 'log lines dropped', count: this.#dropped })}\n`;
    if (this.target.writable) this.target.write(lost + text);
    this.#dropped = 0;
  }
}
