/** In milliseconds: how long lines are gathered, how long after a failure they are tried again, what a close may take. */
export interface AuditTimes {
  readonly batchMs: number;
  readonly retryMs: number;
  readonly closeMs: number;
}

/** Where audit lines go. */
export interface LineSink {
  write(line: string): void;
  waiting(): number;
  lost(): number;
  /** Writes what waits before it returns, as far as that is possible, for the end of the process. May throw. */
  flushNow(): void;
  close(): Promise<void>;
}
