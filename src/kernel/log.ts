import { Writable } from 'node:stream';
import { createLogger, format, transports } from 'winston';

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

/** A log of JSON lines: `time` (ISO 8601, UTC), `level`, `message` and the fields of each entry. */
export function createLog(level: LogLevel, stream: Writable, clock: () => Date): Log {
  const line = format.printf(({ level: entryLevel, message, ...fields }) =>
    JSON.stringify({ time: clock().toISOString(), level: entryLevel, message, ...fields }),
  );
  const logger = createLogger({
    level: level === 'silent' ? 'error' : level,
    silent: level === 'silent',
    format: line,
    transports: [new transports.Stream({ stream: inBatches(stream), eol: '\n' })],
  });
  return {
    error: (message, fields) => void logger.error(message, fields),
    warn: (message, fields) => void logger.warn(message, fields),
    info: (message, fields) => void logger.info(message, fields),
    debug: (message, fields) => void logger.debug(message, fields),
  };
}

// What the last turn has logged is written, too: this runs while the process can still write synchronously.
const flushes = new Set<() => void>();
process.once('exit', () => {
  for (const flush of flushes) flush();
});

/** Passes on in one write what a turn of the event loop has logged: a write each line costs more than the line. */
function inBatches(stream: Writable): Writable {
  let batch = '';
  const flush = () => {
    if (batch === '') return;
    stream.write(batch);
    batch = '';
  };
  flushes.add(flush);
  return new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      if (batch === '') setImmediate(flush);
      batch += chunk;
      done();
    },
  });
}
