import type { Log } from '../../http/log';
import type { Sandbox } from '../../verify/sandboxed-tester';

/** Injected by the process; no route uses the real ones. */
export interface EmulatorDependencies {
  readonly log: Log;
  /** Real time. Everything on the platform uses the context's `clock`. */
  readonly wallClock: () => Date;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** A new, unguessable UUID: of a request unless it is of a delivered document, or of a call of the control port. */
  readonly newId: (purpose?: 'feed' | 'control') => string;
  /** A new id of 8 letters and digits for a resource. */
  readonly newResourceId: () => string;
  /** A new secret of 40 letters and digits, for credentials, webhooks and stream keys. */
  readonly newSecret: () => string;
  /** So many unguessable bytes. */
  readonly newBytes: (count: number) => Buffer;
  readonly publicFolder: string;
  /** Limits of a stream test in a process of its own; without them, it runs in this process. */
  readonly sandbox?: Sandbox;
}
