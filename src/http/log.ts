import { Writable } from 'node:stream';
import winston from 'winston';

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

/** Bytes that may wait for a slow reader of the log. */
const MAX_WAITING = 1024 * 1024;
const none = () => undefined;

/**
 * JSON lines: `time` (ISO 8601, UTC), `level`, `message` and `fields`, which cannot replace these. They are written
 * every `batchMs` (0: each turn of the event loop), and at the exit. A slow reader loses lines, which is logged, and
 * neither blocks the process nor fills its memory.
 */
export function createLog(level: LogLevel, stream: Writable, clock: () => Date, batchMs = 0): Log {
  if (level === 'silent') return { error: none, warn: none, info: none, debug: none };
  const { format, transports } = winston;
  const lineOf = (fields: LogFields) => JSON.stringify({ time: clock().toISOString(), ...fields });
  const logger = winston.createLogger({
    level,
    format: format.printf(({ level, message, time: _time, ...fields }) =>
      lineOf({ level, message, ...fields }),
    ),
    transports: new transports.Stream({ stream: batched(stream, batchMs, lineOf), eol: '\n' }),
  });
  const logAt = (level: Exclude<LogLevel, 'silent'>) => {
    if (!logger.isLevelEnabled(level)) return none;
    return (message: string, fields?: LogFields) => {
      logger.log({ ...fields, level, message });
    };
  };
  return { error: logAt('error'), warn: logAt('warn'), info: logAt('info'), debug: logAt('debug') };
}

const flushes = new Set<() => void>();
process.once('exit', () => {
  for (const flush of flushes) flush();
});

function batched(target: Writable, batchMs: number, lineOf: (fields: LogFields) => string): Writable {
  let lines: string[] = [];
  let dropped = 0;
  // A log that cannot be written (its disk is full, its reader gone) is no reason to stop serving.
  target.off('error', none).on('error', none);
  const flush = () => {
    const due = lines;
    lines = [];
    if (due.length === 0) return;
    if (target.writableLength > MAX_WAITING) {
      dropped += due.length;
      return;
    }
    if (dropped > 0)
      due.unshift(`${lineOf({ level: 'warn', message: 'log lines dropped', count: dropped })}\n`);
    if (target.writable) target.write(due.join(''));
    dropped = 0;
  };
  flushes.add(flush);
  return new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      if (lines.length === 0) {
        if (batchMs === 0) setImmediate(flush);
        else setTimeout(flush, batchMs);
      }
      lines.push(line);
      done();
    },
  });
}
