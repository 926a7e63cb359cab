import type { Log, LogFields } from '../../src/http/log';

export type LogLine = readonly [level: string, message: string, fields?: LogFields];

/** A log that keeps its lines. */
export function recordedLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: string) => (message: string, fields?: LogFields) => {
    lines.push(fields === undefined ? [level, message] : [level, message, fields]);
  };
  return { log: { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') }, lines };
}
