/** A key or value as the gateway has it: text of one character a byte. Its order is that of the bytes. */
export type Bytes = string;

export interface KeyVersion {
  readonly key: Bytes;
  /** undefined: the key was deleted. */
  readonly value: Bytes | undefined;
  readonly created: number;
  readonly revision: number;
  /** Counts the puts since the key was created. */
  readonly version: number;
  /** 0: none. */
  readonly lease: bigint;
}

/** A key alone; with `end` all keys from it to before `end`, where a zero byte is the end of all keys. */
export interface Range {
  readonly key: Bytes;
  readonly end: Bytes;
}

export interface Lease {
  readonly id: bigint;
  /** Seconds. */
  readonly ttl: number;
  /** In ms, of the clock that the store was given. */
  readonly ends: number;
}

/** What makes etcd's server refuse a request, by its text and its gRPC code. */
export class StoreError extends Error {
  constructor(
    message: string,
    readonly code: number,
  ) {
    super(message);
  }
}

export const STORE_ERRORS = {
  future: () => new StoreError('etcdserver: mvcc: required revision is a future revision', 11),
  compacted: () => new StoreError('etcdserver: mvcc: required revision has been compacted', 11),
  noLease: () => new StoreError('etcdserver: requested lease not found', 5),
  leaseExists: () => new StoreError('etcdserver: lease already exists', 9),
};

const ALL = '\0';

export function isWithin({ key, end }: Range, tested: Bytes): boolean {
  if (end === '') return tested === key;
  return tested >= key && (end === ALL || tested < end);
}

/** All that a store knows, for a backup. */
export interface StoreState {
  readonly revision: number;
  readonly compacted: number;
  readonly history: ReadonlyMap<Bytes, readonly KeyVersion[]>;
  readonly events: readonly KeyVersion[];
  readonly leases: ReadonlyMap<bigint, Lease>;
}

/** Keys and values with all their revisions, as etcd keeps them: what a revision was is read until it is compacted. */
export class EtcdStore {
  revision = 1;
  /** Revisions before this one can't be read any more. */
  compacted = -1;
  /** Hears of the events of each revision. */
  onRevision: (events: readonly KeyVersion[]) => void = () => undefined;
  /** The versions of each key, oldest first. */
  private history = new Map<Bytes, KeyVersion[]>();
  /** The keys of `history`, in order. */
  private sorted: Bytes[] = [];
  private events: KeyVersion[] = [];
  private leases = new Map<bigint, Lease>();
  private pending: KeyVersion[] = [];

  constructor(private readonly now: () => number) {}

  /** What a range holds at a revision, 0 for now, in the order of the keys. */
  range(range: Range, revision = 0): KeyVersion[] {
    this.checkRevision(revision);
    const found: KeyVersion[] = [];
    const keys = range.end === '' ? [range.key] : this.keysFrom(range.key);
    for (const key of keys) {
      if (!isWithin(range, key)) break;
      const version = this.at(key, revision);
      if (version?.value !== undefined) found.push(version);
    }
    return found;
  }

  checkRevision(revision: number): void {
    if (revision > this.revision) throw STORE_ERRORS.future();
    if (revision > 0 && revision < this.compacted) throw STORE_ERRORS.compacted();
  }

  /** Does several changes as one revision, which there is none of if nothing changes. */
  transact<Answer>(change: () => Answer): Answer {
    const answer = change();
    const events = this.pending;
    this.pending = [];
    if (events.length === 0) return answer;
    this.revision += 1;
    this.events.push(...events);
    this.onRevision(events);
    return answer;
  }

  /** The revision that a read within a transaction sees. */
  get revisionWithin(): number {
    return this.pending.length > 0 ? this.revision + 1 : this.revision;
  }

  put(key: Bytes, value: Bytes, lease: bigint): KeyVersion | undefined {
    if (lease !== 0n) this.findLease(lease);
    const former = this.at(key);
    const lives = former?.value !== undefined;
    const revision = this.revision + 1;
    this.add({
      key,
      value,
      lease,
      revision,
      created: lives ? former.created : revision,
      version: lives ? former.version + 1 : 1,
    });
    return lives ? former : undefined;
  }

  remove(range: Range): KeyVersion[] {
    const found = this.range(range);
    for (const { key } of found)
      this.add({ key, value: undefined, created: 0, revision: this.revision + 1, version: 0, lease: 0n });
    return found;
  }

  /** What happened in a range from a revision on, in order. */
  eventsFrom(range: Range, revision: number): KeyVersion[] {
    return this.events.filter((event) => event.revision >= revision && isWithin(range, event.key));
  }

  /** What a key held before an event, as long as that is not compacted. */
  before({ key, revision }: KeyVersion): KeyVersion | undefined {
    if (revision - 1 < this.compacted) return undefined;
    const former = this.at(key, revision - 1);
    return former?.value === undefined ? undefined : former;
  }

  compact(revision: number): void {
    if (revision <= this.compacted) throw STORE_ERRORS.compacted();
    if (revision > this.revision) throw STORE_ERRORS.future();
    this.compacted = revision;
    const kept = new Set<KeyVersion>();
    for (const [key, versions] of this.history) {
      const last = versions.findLastIndex((version) => version.revision <= revision);
      const rest = versions.slice(Math.max(last, 0));
      if (last >= 0 && rest[0]?.value === undefined) rest.shift();
      if (rest.length === 0) this.history.delete(key);
      else this.history.set(key, rest);
      for (const version of rest) kept.add(version);
    }
    this.sorted = this.sorted.filter((key) => this.history.has(key));
    this.events = this.events.filter((event) => kept.has(event));
  }

  /** The bytes of what it holds, all revisions of it. */
  get size(): number {
    let size = 20_480;
    for (const { key, value } of this.events) size += key.length + (value?.length ?? 0) + 64;
    return size;
  }

  grant(id: bigint, ttl: number): Lease {
    if (this.leases.has(id)) throw STORE_ERRORS.leaseExists();
    const lease = { id, ttl, ends: this.now() + ttl * 1000 };
    this.leases.set(id, lease);
    return lease;
  }

  /** Answers the seconds that a lease lasts now; undefined: it has ended. */
  keepAlive(id: bigint): number | undefined {
    const lease = this.leases.get(id);
    if (!lease) return undefined;
    this.leases.set(id, { ...lease, ends: this.now() + lease.ttl * 1000 });
    return lease.ttl;
  }

  revoke(id: bigint): void {
    this.findLease(id);
    this.leases.delete(id);
    const keys = this.sorted.filter((key) => {
      const present = this.at(key);
      return present?.value !== undefined && present.lease === id;
    });
    this.transact(() => {
      for (const key of keys) this.remove({ key, end: '' });
    });
  }

  /** The seconds that a lease has left; -1: it has ended. */
  timeToLive(id: bigint): { readonly left: number; readonly granted: number; readonly keys: Bytes[] } {
    const lease = this.leases.get(id);
    if (!lease) return { left: -1, granted: 0, keys: [] };
    const keys = this.sorted.filter((key) => this.at(key)?.lease === id);
    return { left: Math.floor((lease.ends - this.now()) / 1000), granted: lease.ttl, keys };
  }

  leaseIds(): bigint[] {
    return [...this.leases.keys()];
  }

  /** Ends the leases whose time is over. */
  expire(): void {
    for (const { id, ends } of [...this.leases.values()]) if (ends <= this.now()) this.revoke(id);
  }

  save(): StoreState {
    return {
      revision: this.revision,
      compacted: this.compacted,
      history: new Map([...this.history].map(([key, versions]) => [key, [...versions]])),
      events: [...this.events],
      leases: new Map(this.leases),
    };
  }

  /** Puts back what was saved. Leases get their whole time, as under a new leader. */
  load(state: StoreState): void {
    this.revision = state.revision;
    this.compacted = state.compacted;
    this.history = new Map([...state.history].map(([key, versions]) => [key, [...versions]]));
    this.sorted = [...this.history.keys()].sort(byBytes);
    this.events = [...state.events];
    this.leases = new Map(
      [...state.leases].map(([id, lease]) => [id, { ...lease, ends: this.now() + lease.ttl * 1000 }]),
    );
  }

  private findLease(id: bigint): Lease {
    const lease = this.leases.get(id);
    if (!lease) throw STORE_ERRORS.noLease();
    return lease;
  }

  hasLease(id: bigint): boolean {
    return this.leases.has(id);
  }

  private add(version: KeyVersion): void {
    const versions = this.history.get(version.key);
    if (versions) versions.push(version);
    else {
      this.history.set(version.key, [version]);
      this.sorted.splice(this.indexOf(version.key), 0, version.key);
    }
    this.pending.push(version);
  }

  private at(key: Bytes, revision = 0): KeyVersion | undefined {
    const versions = this.history.get(key);
    return revision === 0 ? versions?.at(-1) : versions?.findLast((version) => version.revision <= revision);
  }

  private *keysFrom(key: Bytes): Generator<Bytes> {
    for (let index = this.indexOf(key); index < this.sorted.length; index += 1) {
      const found = this.sorted[index];
      if (found !== undefined) yield found;
    }
  }

  /** Where a key stands, or would, among the sorted. */
  private indexOf(key: Bytes): number {
    let [low, high] = [0, this.sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.sorted[middle] ?? '') < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const byBytes = (one: Bytes, other: Bytes) => (one < other ? -1 : one > other ? 1 : 0);
