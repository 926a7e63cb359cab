import {
  base64,
  bytesOf,
  enumOf,
  flagOf,
  GATEWAY_ERRORS,
  longOf,
  type Message,
  messageOf,
  messagesOf,
  numberOf,
  withoutZeros,
} from './etcd-messages';
import { type Bytes, type EtcdStore, type KeyVersion, type Range, STORE_ERRORS } from './etcd-store';

/** The most operations of a transaction, `--max-txn-ops`; a nested one has what the outer one leaves. */
const MAX_OPERATIONS = 128;
/** `--max-request-bytes` */
const MAX_BYTES = 1_572_864;

/** What a request does, for the rights and the quota. */
export interface Effects {
  readonly reads: readonly Range[];
  readonly writes: readonly Range[];
  /** Whether the engine's quota counts it. */
  readonly costs: boolean;
}

const NOTHING: Effects = { reads: [], writes: [], costs: false };

export function rangeOf(message: Message): Range {
  return { key: bytesOf(message, 'key'), end: bytesOf(message, 'range_end') };
}

function keyedRangeOf(message: Message): Range {
  const range = rangeOf(message);
  if (range.key === '') throw GATEWAY_ERRORS.noKey();
  return range;
}

export function keyValue(version: KeyVersion, keysOnly = false): Message {
  return withoutZeros({
    key: base64(version.key),
    create_revision: version.created,
    mod_revision: version.revision,
    version: version.version,
    value: keysOnly ? '' : base64(version.value ?? ''),
    lease: version.lease,
  });
}

/** Each answers what a request answers, without the header. */
export function range(store: EtcdStore, message: Message): Message {
  const asked = keyedRangeOf(message);
  const [revision, limit] = [numberOf(message, 'revision'), numberOf(message, 'limit')];
  const found = store.range(asked, revision);
  if (flagOf(message, 'count_only')) return withoutZeros({ count: found.length });
  const more = limit > 0 && found.length > limit;
  const keysOnly = flagOf(message, 'keys_only');
  return withoutZeros({
    kvs: (more ? found.slice(0, limit) : found).map((version) => keyValue(version, keysOnly)),
    more,
    count: found.length,
  });
}

export function put(store: EtcdStore, message: Message): Message {
  const key = bytesOf(message, 'key');
  const [present] = store.range({ key, end: '' });
  const [keepsValue, keepsLease] = [flagOf(message, 'ignore_value'), flagOf(message, 'ignore_lease')];
  if ((keepsValue || keepsLease) && !present) throw GATEWAY_ERRORS.noKeyFound();
  const value = keepsValue ? (present?.value ?? '') : bytesOf(message, 'value');
  const former = store.put(key, value, keepsLease ? (present?.lease ?? 0n) : longOf(message, 'lease'));
  return former && flagOf(message, 'prev_kv') ? { prev_kv: keyValue(former) } : {};
}

export function deleteRange(store: EtcdStore, message: Message): Message {
  const removed = store.remove(keyedRangeOf(message));
  return withoutZeros({
    deleted: removed.length,
    prev_kvs: flagOf(message, 'prev_kv') ? removed.map((version) => keyValue(version)) : [],
  });
}

export function transaction(store: EtcdStore, message: Message): Message {
  const succeeded = messagesOf(message, 'compare').every((comparison) => holds(store, comparison));
  const branch = messagesOf(message, succeeded ? 'success' : 'failure');
  return withoutZeros({ succeeded, responses: branch.map((operation) => respond(store, operation)) });
}

function respond(store: EtcdStore, operation: Message): Message {
  const { kind, request } = operationOf(operation);
  const answer = { range, put, delete_range: deleteRange, txn: transaction }[kind](store, request);
  const header = kind === 'txn' ? {} : withoutZeros({ revision: store.revisionWithin });
  return { [`response_${kind}`]: { header, ...answer } };
}

type Kind = 'range' | 'put' | 'delete_range' | 'txn';

function operationOf(operation: Message): { readonly kind: Kind; readonly request: Message } {
  for (const kind of ['range', 'put', 'delete_range', 'txn'] as const) {
    const request = messageOf(operation, `request_${kind}`);
    if (request) return { kind, request };
  }
  throw GATEWAY_ERRORS.noKeyFound();
}

const TARGETS = ['VERSION', 'CREATE', 'MOD', 'VALUE', 'LEASE'] as const;
const RESULTS = ['EQUAL', 'GREATER', 'LESS', 'NOT_EQUAL'] as const;

interface Comparison {
  readonly range: Range;
  readonly target: (typeof TARGETS)[number];
  readonly holds: (version: KeyVersion | undefined) => boolean;
}

function comparisonOf(message: Message): Comparison {
  const target = enumOf(message, 'target', TARGETS, 'Compare_CompareTarget');
  const result = enumOf(message, 'result', RESULTS, 'Compare_CompareResult');
  const compare = <Value>(one: Value, other: Value): boolean =>
    ({ EQUAL: one === other, GREATER: one > other, LESS: one < other, NOT_EQUAL: one !== other })[result];
  const tests: Readonly<Record<Comparison['target'], (version: KeyVersion | undefined) => boolean>> = {
    VERSION: (version) => compare(version?.version ?? 0, numberOf(message, 'version')),
    CREATE: (version) => compare(version?.created ?? 0, numberOf(message, 'create_revision')),
    MOD: (version) => compare(version?.revision ?? 0, numberOf(message, 'mod_revision')),
    // A key that is absent has no value that anything could be compared with.
    VALUE: (version) => version !== undefined && compare(version.value ?? '', bytesOf(message, 'value')),
    LEASE: (version) => compare(version?.lease ?? 0n, longOf(message, 'lease')),
  };
  return { range: keyedRangeOf(message), target, holds: tests[target] };
}

function holds(store: EtcdStore, message: Message): boolean {
  const comparison = comparisonOf(message);
  const present = store.range(comparison.range);
  if (present.length === 0) return comparison.holds(undefined);
  return present.every((version) => comparison.holds(version));
}

/**
 * Checks all of a transaction before any of it is done.
 * @throws StoreError as etcd would.
 */
export function checkTransaction(message: Message): void {
  checkOperations(message, MAX_OPERATIONS);
  for (const branch of ['success', 'failure']) checkOnce(messagesOf(message, branch));
}

function checkOperations(message: Message, most: number): void {
  const lists = ['compare', 'success', 'failure'].map((name) => messagesOf(message, name));
  const length = Math.max(...lists.map((list) => list.length));
  if (length > most) throw GATEWAY_ERRORS.tooMany();
  const [comparisons = [], ...branches] = lists;
  for (const comparison of comparisons) comparisonOf(comparison);
  for (const operation of branches.flat()) {
    const { kind, request } = operationOf(operation);
    if (kind === 'txn') checkOperations(request, most - length);
    else if (kind === 'put') checkPut(request);
    else keyedRangeOf(request);
  }
}

export function checkPut(message: Message): void {
  if (bytesOf(message, 'key') === '') throw GATEWAY_ERRORS.noKey();
  if (flagOf(message, 'ignore_value') && bytesOf(message, 'value') !== '')
    throw GATEWAY_ERRORS.valueProvided();
  if (flagOf(message, 'ignore_lease') && longOf(message, 'lease') !== 0n)
    throw GATEWAY_ERRORS.leaseProvided();
}

interface Touched {
  readonly puts: Set<Bytes>;
  readonly removals: readonly Range[];
}

/** No key may be set twice, or set and removed, but in two branches of which one alone is done. */
function checkOnce(operations: readonly Message[]): Touched {
  const all = operations.map(operationOf);
  const requests = (kind: Kind) => all.filter((each) => each.kind === kind).map(({ request }) => request);
  const removals = requests('delete_range').map(rangeOf);
  const puts = new Set<Bytes>();
  const add = (key: Bytes, allowed?: ReadonlySet<Bytes>) => {
    const isTwice = puts.has(key) && !allowed?.has(key);
    if (isTwice || removals.some((removal) => overlaps(removal, key))) throw GATEWAY_ERRORS.twice();
    puts.add(key);
  };
  for (const request of requests('txn')) {
    const success = checkOnce(messagesOf(request, 'success'));
    const failure = checkOnce(messagesOf(request, 'failure'));
    for (const key of success.puts) add(key);
    for (const key of failure.puts) add(key, success.puts);
    removals.push(...success.removals, ...failure.removals);
  }
  for (const request of requests('put')) add(bytesOf(request, 'key'));
  return { puts, removals };
}

/** As etcd compares them here: a range to the end of all keys is taken for one that ends at a zero byte, and has none. */
function overlaps({ key, end }: Range, tested: Bytes): boolean {
  return end === '' ? tested === key : tested >= key && tested < end;
}

/** Checks, before the first change, what a taken branch reads and which leases it needs. */
export function checkBranch(store: EtcdStore, message: Message): void {
  const succeeded = messagesOf(message, 'compare').every((comparison) => holds(store, comparison));
  for (const operation of messagesOf(message, succeeded ? 'success' : 'failure')) {
    const { kind, request } = operationOf(operation);
    if (kind === 'txn') checkBranch(store, request);
    if (kind === 'range') store.checkRevision(numberOf(request, 'revision'));
    if (kind !== 'put') continue;
    const lease = longOf(request, 'lease');
    const [present] = store.range({ key: bytesOf(request, 'key'), end: '' });
    const keeps = flagOf(request, 'ignore_value') || flagOf(request, 'ignore_lease');
    if (keeps && !present) throw GATEWAY_ERRORS.noKeyFound();
    if (lease !== 0n && !store.hasLease(lease)) throw STORE_ERRORS.noLease();
  }
}

/** What a call reads and writes, both branches of a transaction taken together. */
export function effectsOf(kind: Kind, message: Message): Effects {
  if (kind === 'range') return { ...NOTHING, reads: [rangeOf(message)] };
  if (kind === 'put') {
    const key = { key: bytesOf(message, 'key'), end: '' };
    return { reads: flagOf(message, 'prev_kv') ? [key] : [], writes: [key], costs: true };
  }
  if (kind === 'delete_range') return { ...NOTHING, writes: [rangeOf(message)] };
  const operations = ['success', 'failure'].flatMap((branch) => messagesOf(message, branch)).map(operationOf);
  const effects = operations.map((operation) => effectsOf(operation.kind, operation.request));
  return {
    reads: [...messagesOf(message, 'compare').map(rangeOf), ...effects.flatMap(({ reads }) => reads)],
    writes: effects.flatMap(({ writes }) => writes),
    // Puts of nested transactions are not counted.
    costs: operations.some((operation) => operation.kind === 'put'),
  };
}

/** @throws StoreError when a change is larger than etcd takes: a body has four characters for three bytes. */
export function checkSize(body: string): void {
  if (body.length * 0.75 > MAX_BYTES) throw GATEWAY_ERRORS.tooLarge();
}
