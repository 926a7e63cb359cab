import {
  type Change,
  type ChangeAnswer,
  type Engine,
  EngineError,
  type EngineServer,
  type KeyRange,
  type Lease,
  type ListOptions,
  type Moment,
  type StoredValue,
  type Watch,
  type WatchEnd,
  type WatchedEvent,
  type WatchOptions,
} from '../../src/sidecar/fleet/engine/engine';
import { encodeKey } from '../../src/sidecar/fleet/engine/etcd-answers';

/** A request to an engine. `keys` contains the keys, or the prefix of a range. */
export interface EngineCall {
  readonly method: Exclude<keyof Engine, 'clockAhead' | 'close'>;
  readonly keys: readonly string[];
}

/** Of these it is not known whether they were done when no answer comes. */
const CHANGING: readonly EngineCall['method'][] = ['change', 'revoke'];

interface Held {
  readonly value: Buffer;
  readonly revision: number;
  readonly lease: Lease | undefined;
}

/** The servers of an engine, in memory: every revision is kept until it is compacted, and leases end by hand. */
export class FakeCluster {
  id = 'cluster-1';
  revision = 1;
  servers: readonly EngineServer[] = [{ url: 'http://engine', version: '3.4.23', leader: true }];
  #compacted = 0;
  #keys = new Map<string, Held>();
  #history: WatchedEvent[] = [];
  #leases = new Map<Lease, number>();
  #grants = 0;
  /** Run after each change of what it holds. */
  readonly listeners = new Set<() => void>();

  /** One sidecar's connection to it. */
  connect(): FakeEngine {
    return new FakeEngine(this);
  }

  get moment(): Moment {
    return { revision: this.revision, cluster: this.id, term: 2 };
  }

  get compacted(): number {
    return this.#compacted;
  }

  /** The leases that hold, with their seconds. */
  get leases(): ReadonlyMap<Lease, number> {
    return this.#leases;
  }

  get(key: string): StoredValue | undefined {
    const held = this.#keys.get(key);
    return held && { key, value: held.value, revision: held.revision };
  }

  /** The JSON that a key holds. */
  json(key: string): unknown {
    const held = this.#keys.get(key);
    return held && JSON.parse(held.value.toString());
  }

  /** The chosen keys at a revision, in order. */
  range(isChosen: (key: string) => boolean, revision = this.revision): readonly StoredValue[] {
    return this.#at(revision)
      .filter(({ key }) => isChosen(key))
      .sort((one, other) => (one.key < other.key ? -1 : 1));
  }

  /** Makes changes in one revision without conditions. A lease must be valid. */
  apply(
    changes: readonly (Pick<Change, 'key' | 'value'> & { readonly lease?: Lease | undefined })[],
  ): number {
    const ended = changes.find(({ lease }) => lease !== undefined && !this.#leases.has(lease));
    if (ended) throw new EngineError('refused', 'requested lease not found');
    const effective = changes.filter(({ key, value }) => value !== undefined || this.#keys.has(key));
    if (effective.length === 0) return this.revision;
    this.revision += 1;
    const { revision } = this;
    for (const { key, value, lease } of effective) {
      if (value === undefined) this.#keys.delete(key);
      else this.#keys.set(key, { value, revision, lease });
      this.#history.push({ key, value, revision });
    }
    this.#wake();
    return revision;
  }

  /** Sets a key as somebody with other tools does. */
  set(key: string, value: Buffer | string | undefined): number {
    return this.apply([{ key, value: typeof value === 'string' ? Buffer.from(value) : value }]);
  }

  grant(seconds: number): Lease {
    this.#grants += 1;
    const lease = `lease-${this.#grants}` as Lease;
    this.#leases.set(lease, seconds);
    return lease;
  }

  /** Ends a lease, as its time or a revocation does; by default all. */
  expire(lease?: Lease): void {
    const ending = lease === undefined ? [...this.#leases.keys()] : [lease];
    for (const each of ending) {
      this.#leases.delete(each);
      const keys = [...this.#keys].filter(([, held]) => held.lease === each).map(([key]) => key);
      this.apply(keys.map((key) => ({ key, value: undefined })));
    }
  }

  /** Forgets all but the present. */
  compact(): void {
    this.#compacted = this.revision;
    this.#wake();
  }

  /** Its present content, for `restore`. */
  backup() {
    return {
      revision: this.revision,
      compacted: this.#compacted,
      keys: new Map(this.#keys),
      history: [...this.#history],
      leases: new Map(this.#leases),
    };
  }

  /** Becomes other servers with the data of a backup; without one, with none. */
  restore(from = new FakeCluster().backup()): void {
    this.id = `${this.id}'`;
    this.revision = from.revision;
    this.#compacted = from.compacted;
    this.#keys = new Map(from.keys);
    this.#history = [...from.history];
    this.#leases = new Map(from.leases);
    this.#wake();
  }

  eventsFrom(revision: number): readonly WatchedEvent[] {
    return this.#history.filter((event) => event.revision >= revision && event.revision <= this.revision);
  }

  #at(revision: number): StoredValue[] {
    if (revision < this.#compacted) throw new EngineError('compacted', 'the revision has been compacted');
    if (revision > this.revision) throw new EngineError('refused', 'a future revision is asked for');
    const keys = new Map<string, StoredValue>();
    for (const event of this.#history) {
      if (event.revision > revision) break;
      if (event.value === undefined) keys.delete(event.key);
      else keys.set(event.key, { key: event.key, value: event.value, revision: event.revision });
    }
    return [...keys.values()];
  }

  #wake(): void {
    for (const listener of this.listeners) listener();
  }
}

/** An engine as `engine.ts` describes it, on a cluster in memory. Faults are made by its fields. */
export class FakeEngine implements Engine {
  /** Its requests, oldest first. */
  readonly calls: EngineCall[] = [];
  /** Runs before a call is answered: it may wait, or throw for it to fail with nothing done. */
  before: (call: EngineCall) => Promise<void> | void = () => undefined;
  /** Runs after a call was done: what it throws is answered instead. */
  after: (call: EngineCall) => Promise<void> | void = () => undefined;
  /** In ms. */
  ahead: number | undefined = 0;
  #isAway = false;
  #isClosed = false;
  readonly #watches = new Set<FakeWatch>();

  constructor(private readonly cluster: FakeCluster) {
    cluster.listeners.add(() => {
      for (const watch of this.#watches) watch.wake();
    });
  }

  /** How often a method was called. */
  count(method?: EngineCall['method']): number {
    return this.calls.filter((call) => method === undefined || call.method === method).length;
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** Whether the cluster can't be reached: calls fail, and watches hear nothing until it can. */
  set isAway(isAway: boolean) {
    if (isAway === this.#isAway) return;
    this.#isAway = isAway;
    for (const watch of this.#watches) {
      if (isAway) watch.lose();
      else watch.find();
    }
  }

  read(keys: readonly string[]) {
    return this.#do({ method: 'read', keys }, () => ({
      at: this.cluster.moment,
      values: keys.map((key) => this.cluster.get(key)),
    }));
  }

  list(range: KeyRange, { limit, revision }: ListOptions) {
    return this.#do({ method: 'list', keys: [range.prefix] }, () => {
      const found = this.cluster.range(within(range), revision);
      const page = found.slice(0, limit);
      return { at: this.cluster.moment, values: page, more: page.length < found.length, count: found.length };
    });
  }

  change(changes: readonly Change[], guard?: { readonly key: string; readonly revision: number }) {
    return this.#do({ method: 'change', keys: changes.map(({ key }) => key) }, () => {
      if (new Set(changes.map(({ key }) => key)).size < changes.length)
        throw new EngineError('refused', 'duplicate key given in txn request');
      if (guard && this.#revisionOf(guard.key) !== guard.revision) return undefined;
      const presents = changes.map(({ key }) => this.cluster.get(key));
      const isMade = changes.map(({ expected }, index) => (presents[index]?.revision ?? 0) === expected);
      const revision = this.cluster.apply(changes.filter((_, index) => isMade[index]));
      return changes.map(
        (_, index): ChangeAnswer =>
          isMade[index] ? { made: true, revision } : { made: false, present: presents[index] },
      );
    });
  }

  watch(range: KeyRange, options: WatchOptions): Watch {
    this.calls.push({ method: 'watch', keys: [range.prefix] });
    const watch = new FakeWatch(this.cluster, range, options, () => this.#watches.delete(watch));
    this.#watches.add(watch);
    if (this.#isAway) watch.lose();
    else watch.wake();
    return watch;
  }

  grant(seconds: number) {
    return this.#do({ method: 'grant', keys: [] }, () => this.cluster.grant(seconds));
  }

  keepAlive(lease: Lease) {
    return this.#do({ method: 'keepAlive', keys: [lease] }, () => this.cluster.leases.has(lease));
  }

  revoke(lease: Lease) {
    return this.#do({ method: 'revoke', keys: [lease] }, () => this.cluster.expire(lease));
  }

  async servers() {
    this.calls.push({ method: 'servers', keys: [] });
    return this.#isAway
      ? this.cluster.servers.map(({ url }) => ({ url, fault: 'connection refused' }))
      : this.cluster.servers;
  }

  hasRevision(revision: number) {
    return this.#do({ method: 'hasRevision', keys: [] }, () => revision >= this.cluster.compacted);
  }

  clockAhead(): number | undefined {
    return this.ahead;
  }

  close(): void {
    this.#isClosed = true;
    for (const watch of this.#watches) watch.close();
  }

  #revisionOf(key: string): number {
    return this.cluster.get(key)?.revision ?? 0;
  }

  /** Each call is answered in a later turn of the event loop, as over a network. */
  async #do<Answer>(call: EngineCall, action: () => Answer): Promise<Answer> {
    this.calls.push(call);
    await new Promise((resolve) => setImmediate(resolve));
    await this.before(call);
    if (this.#isAway || this.#isClosed) throw new EngineError('unavailable', 'no server is reached');
    call.keys.forEach(encodeKey);
    const answer = action();
    await this.after(call);
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#isAway) {
      const kind = CHANGING.includes(call.method) ? 'unknown' : 'unavailable';
      throw new EngineError(kind, 'the connection was lost before the answer');
    }
    return answer;
  }
}

class FakeWatch implements Watch {
  #next: number;
  /** The last known state of the engine. */
  #seen: Moment;
  #isLost = false;
  #isClosed = false;
  #isTelling = false;
  /** A heartbeat follows its changes. */
  #owesHeartbeat = true;

  constructor(
    private readonly cluster: FakeCluster,
    private readonly range: KeyRange,
    private readonly options: WatchOptions,
    private readonly leave: () => void,
  ) {
    this.#next = options.from;
    this.#seen = options.since;
  }

  close(): void {
    this.#isClosed = true;
    this.leave();
  }

  lose(): void {
    this.#isLost = true;
    this.options.onLost?.(new EngineError('unavailable', 'the connection is lost'));
  }

  find(): void {
    this.#isLost = false;
    this.#owesHeartbeat = true;
    this.wake();
  }

  wake(): void {
    if (this.#isTelling || this.#isLost || this.#isClosed) return;
    this.#isTelling = true;
    setImmediate(() => this.#tell());
  }

  async #tell(): Promise<void> {
    while (!this.#isLost && !this.#isClosed) {
      const end = this.#end();
      if (end) return this.#finish(end);
      const at = this.cluster.moment;
      this.#seen = at;
      const events = this.cluster.eventsFrom(this.#next).filter(({ key }) => within(this.range)(key));
      this.#next = Math.max(at.revision + 1, this.#next);
      if (events.length === 0) break;
      await this.options.onEvents(events, at);
    }
    this.#isTelling = false;
    if (!this.#owesHeartbeat || this.#isLost || this.#isClosed) return;
    this.#owesHeartbeat = false;
    this.options.onHeartbeat?.(this.cluster.moment);
  }

  #end(): WatchEnd | undefined {
    const at = this.cluster.moment;
    if (at.revision < this.#next - 1 || at.cluster !== this.#seen.cluster) return 'restored';
    return this.#next < this.cluster.compacted ? 'compacted' : undefined;
  }

  #finish(end: WatchEnd): void {
    this.close();
    this.options.onEnd(end);
  }
}

const within =
  ({ prefix, after = '' }: KeyRange) =>
  (key: string) =>
    key.startsWith(prefix) && key > after;
