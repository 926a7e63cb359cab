import type { ServerResponse } from 'node:http';
import {
  fieldOf,
  flagOf,
  longOf,
  type Message,
  messageOf,
  numberOf,
  statusOf,
  withoutZeros,
} from './etcd-messages';
import { type EtcdStore, isWithin, type KeyVersion, type Range, StoreError } from './etcd-store';
import { keyValue, rangeOf } from './etcd-transactions';

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** The line that a stream ends with when etcd breaks it off. */
export function streamFault({ message, code }: StoreError): Message {
  const status = statusOf(code);
  return { error: { grpc_code: code, http_code: status, message, http_status: STATUS_TEXTS[status] } };
}

interface Watcher {
  readonly id: number;
  readonly range: Range;
  readonly from: number;
  readonly progress: boolean;
  readonly formers: boolean;
  readonly unwanted: readonly unknown[];
}

export interface StreamOptions {
  readonly store: EtcdStore;
  readonly response: ServerResponse;
  /** The header of an answer, at a revision; by default at the newest. */
  readonly header: (revision?: number) => Message;
  /** Refuses who may not read a range. @throws StoreError */
  readonly authorise: (range: Range) => void;
  /** Whether the client asked for an end without a leader. */
  readonly needsLeader: boolean;
  /** Whether what is to be sent waits: the server hangs. */
  readonly isHeld: () => boolean;
}

const GRPC_NAMES: Readonly<Record<number, string>> = {
  3: 'InvalidArgument',
  7: 'PermissionDenied',
  16: 'Unauthenticated',
};

/** One call of `/v3/watch`, with the watchers that its requests made. */
export class WatchStream {
  private readonly watchers = new Map<number, Watcher>();
  private held: Message[] = [];

  constructor(private readonly options: StreamOptions) {}

  get needsLeader(): boolean {
    return this.options.needsLeader;
  }

  take(request: Message): void {
    const creation = messageOf(request, 'create_request');
    if (creation) this.create(creation);
    const cancellation = messageOf(request, 'cancel_request');
    const id = cancellation && numberOf(cancellation, 'watch_id');
    if (id !== undefined && this.watchers.delete(id)) this.send({ watch_id: id, canceled: true });
    if (messageOf(request, 'progress_request')) this.send({ watch_id: -1 });
  }

  /** Tells of the events of one revision. */
  tell(events: readonly KeyVersion[]): void {
    const [{ revision } = { revision: 0 }] = events;
    for (const watcher of this.watchers.values())
      if (watcher.from <= revision) this.sendEvents(watcher, events);
  }

  /** What etcd sends every ten minutes to who asked for it. */
  tellProgress(): void {
    for (const { id, progress } of this.watchers.values()) if (progress) this.send({ watch_id: id });
  }

  /** Sends what waited. */
  release(): void {
    for (const message of this.held.splice(0)) this.write(message);
  }

  fail(error: StoreError): void {
    this.write(streamFault(error));
    this.options.response.end();
  }

  private create(request: Message): void {
    const { key, end } = rangeOf(request);
    const range = { key: key === '' ? '\0' : key, end };
    const refusal = this.refusal(range);
    if (refusal !== undefined) {
      this.send({ watch_id: -1, created: true, canceled: true, cancel_reason: refusal });
      return;
    }
    const { store } = this.options;
    const asked = numberOf(request, 'start_revision');
    const watcher: Watcher = {
      id: Number(longOf(request, 'watch_id')) || this.watchers.size,
      range,
      from: asked > 0 ? asked : store.revision + 1,
      progress: flagOf(request, 'progress_notify'),
      formers: flagOf(request, 'prev_kv'),
      unwanted: (fieldOf(request, 'filters') ?? []) as readonly unknown[],
    };
    const { id } = watcher;
    this.send({ watch_id: id, created: true });
    if (watcher.from < store.compacted) {
      this.send({ watch_id: id, canceled: true, compact_revision: store.compacted }, 0);
      return;
    }
    this.watchers.set(id, watcher);
    if (asked > 0) this.sendEvents(watcher, store.eventsFrom(range, watcher.from));
  }

  private refusal(range: Range): string | undefined {
    try {
      this.options.authorise(range);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return `rpc error: code = ${GRPC_NAMES[error.code]} desc = ${error.message}`;
    }
    const isEmpty = range.end !== '' && range.end !== '\0' && range.key >= range.end;
    return isEmpty ? 'mvcc: watcher range is empty' : undefined;
  }

  private sendEvents(watcher: Watcher, events: readonly KeyVersion[]): void {
    const wanted = events.filter(
      (event) =>
        isWithin(watcher.range, event.key) &&
        !watcher.unwanted.includes(event.value === undefined ? 'NODELETE' : 'NOPUT'),
    );
    if (wanted.length === 0) return;
    this.send({ watch_id: watcher.id, events: wanted.map((event) => this.eventOf(event, watcher.formers)) });
  }

  private eventOf(event: KeyVersion, withFormer: boolean): Message {
    const former = withFormer ? this.options.store.before(event) : undefined;
    return {
      ...(event.value === undefined && { type: 'DELETE' }),
      kv: keyValue(event),
      ...(former && { prev_kv: keyValue(former) }),
    };
  }

  private send(result: Message, revision?: number): void {
    const message = { result: { header: this.options.header(revision), ...withoutZeros(result) } };
    if (this.options.isHeld()) this.held.push(message);
    else this.write(message);
  }

  private write(message: Message): void {
    const { response } = this.options;
    if (!response.writableEnded) response.write(`${JSON.stringify(message)}\n`);
  }
}
