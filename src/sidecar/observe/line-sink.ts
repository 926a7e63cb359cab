import type { Whose } from './line-queue';

/**
 * In milliseconds: how long lines are gathered, how long after a failure they are tried again, what a close may take,
 * and how long the attempts of strangers are summed up.
 */
export interface AuditTimes {
  readonly batchMs: number;
  readonly retryMs: number;
  readonly closeMs: number;
  readonly sumMs: number;
}

/** Where audit lines go. */
export interface LineSink {
  write(line: string, whose: Whose): void;
  waiting(): number;
  lost(): number;
  /** Writes what waits before it returns, as far as that is possible, for the end of the process. May throw. */
  flushNow(): void;
  /** Writes what waits. Lines that come later are still taken. */
  close(): Promise<void>;
}
