import {
  type Change,
  type ChangeAnswer,
  type Engine,
  EngineError,
  type EngineServer,
  type Guard,
  type KeyRange,
  type Lease,
  type ListOptions,
  MAX_CHANGES,
  type Moment,
  type Page,
  type Snapshot,
  type StoredValue,
} from './engine';
import { ALARM, type Calls, createCalls, type EtcdOptions, type EtcdServer } from './etcd-calls';
import { Failed } from './etcd-faults';
import {
  decodeKey,
  encodeKey,
  type Fields,
  fields,
  list,
  rangeOf,
  storedValue,
  text,
  whole,
} from './etcd-json';
import { createPulse, type Pulse } from './etcd-pulse';
import { openWatch } from './etcd-watch';

export type { EtcdOptions };

/** Of a transaction, half of what etcd allows by default: a nested one counts, too. */
const MAX_READS = 64;
/** Of a list that is asked for as a whole: larger pages are no faster, and take more memory. */
const PAGE = 500;
/** How often a list begins again whose revision was compacted meanwhile. */
const LIST_TRIES = 3;
const SERVER_MS = 1500;

/**
 * The engine of the fleet on servers of etcd 3.4 or later, through their JSON gateway, whose names are those of etcd's
 * protocol buffers (`rpc.proto`). The servers are asked in the order of their addresses: one is kept while it answers.
 */
export function createEtcd(options: EtcdOptions): Engine {
  const calls = createCalls(options);
  const pulses = new Map<EtcdServer, Pulse>();
  const watches = new Set<{ close(): void }>();
  /** One that this user may read, as far as is known: etcd has no call for a revision that needs none. */
  let readable = encodeKey('\0');

  const pulseOf = (server: EtcdServer): Pulse => {
    const pulse = pulses.get(server) ?? createPulse(calls, server);
    pulses.set(server, pulse);
    return pulse;
  };

  const range = async (body: Asked) => {
    const told = await calls.linearizable('/v3/kv/range', body);
    readable = body.key;
    return told;
  };

  const readSome = async (keys: readonly string[]): Promise<Snapshot<StoredValue | undefined>> => {
    const success = keys.map((key) => ({ request_range: { key: encodeKey(key) } }));
    const { answer, at } = await calls.linearizable('/v3/kv/txn', { success });
    const responses = list(answer.responses);
    const values = keys.map((_key, index) => firstOf(fields(responses[index]).response_range));
    return { at, values };
  };

  const listPage = async (body: Asked): Promise<WirePage> => {
    const { answer, at } = await range(body);
    const kvs = list(answer.kvs);
    return { at, kvs, more: answer.more === true, count: whole(answer.count) };
  };

  const listAll = async (keys: KeyRange, { revision, keysOnly = false }: ListOptions): Promise<WirePage> => {
    const [start, range_end] = rangeOf(keys);
    const kvs: unknown[] = [];
    let key = start;
    let begun: WirePage | undefined;
    for (;;) {
      const at = revision ?? begun?.at.revision;
      const page = await listPage({ key, range_end, limit: PAGE, keys_only: keysOnly, ...atRevision(at) });
      begun ??= page;
      for (const kv of page.kvs) kvs.push(kv);
      const last = fields(page.kvs.at(-1)).key;
      if (!page.more || last === undefined) return { ...begun, kvs, more: false };
      key = encodeKey(`${decodeKey(last)}\0`);
    }
  };

  return {
    async read(keys) {
      const parts = await Promise.all(inParts(keys, MAX_READS).map(readSome));
      const moments = parts.map(({ at }) => at);
      return { at: latest(moments), values: parts.flatMap(({ values }) => values) };
    },

    async list(keys, listOptions = {}) {
      const { limit, revision, keysOnly = false } = listOptions;
      if (limit === undefined) {
        for (let tries = 1; ; tries++) {
          try {
            return toPage(await listAll(keys, listOptions));
          } catch (thrown) {
            const isGone = thrown instanceof EngineError && thrown.kind === 'compacted';
            if (!isGone || revision !== undefined || tries === LIST_TRIES) throw thrown;
          }
        }
      }
      const [key, range_end] = rangeOf(keys);
      const asked = { key, range_end, limit, keys_only: keysOnly, ...atRevision(revision) };
      return toPage(await listPage(asked));
    },

    async change(changes, guard) {
      if (changes.length > MAX_CHANGES) throw new RangeError(`More than ${MAX_CHANGES} changes at once`);
      if (new Set(changes.map(({ key }) => key)).size < changes.length)
        throw new RangeError('Two changes of one key at once');
      const answers = new Map<Change, ChangeAnswer>();
      for (let left = changes; ; left = left.filter((change) => !answers.has(change))) {
        const { answer, at } = await calls.linearizable('/v3/kv/txn', toTransaction(left, guard), {
          isChange: true,
        });
        const isMade = answer.succeeded === true;
        const found = list(answer.responses).map((response) => firstOf(fields(response).response_range));
        if (!isMade && guard && (found[left.length]?.revision ?? 0) !== guard.revision) return undefined;
        for (const [index, change] of left.entries()) {
          const present = found[index];
          if (isMade) answers.set(change, { made: true, revision: at.revision });
          else if ((present?.revision ?? 0) !== change.expected)
            answers.set(change, { made: false, present });
        }
        // Those that would have been made but for others are made without them.
        if (answers.size === changes.length)
          return { at, answers: changes.flatMap((change) => answers.get(change) ?? []) };
      }
    },

    async put(key, value, lease) {
      const body = { key: encodeKey(key), value: value.toString('base64'), ...(lease && { lease }) };
      const { at } = await calls.linearizable('/v3/kv/put', body, { isChange: true });
      return at.revision;
    },

    async remove(key) {
      const { answer } = await calls.linearizable(
        '/v3/kv/deleterange',
        { key: encodeKey(key) },
        { isChange: true },
      );
      return whole(answer.deleted) > 0;
    },

    watch(keys, watchOptions) {
      const watch = openWatch(calls, pulseOf, keys, watchOptions);
      watches.add(watch);
      return {
        close() {
          watches.delete(watch);
          watch.close();
        },
      };
    },

    async grant(seconds) {
      const answer = await calls.call('/v3/lease/grant', { TTL: String(seconds) });
      return text(answer.ID) as Lease;
    },

    async keepAlive(lease) {
      return whole((await calls.call('/v3/lease/keepalive', { ID: lease })).TTL) > 0;
    },

    async revoke(lease) {
      try {
        await calls.call('/v3/lease/revoke', { ID: lease }, { isChange: true });
      } catch (thrown) {
        if (!(thrown instanceof EngineError) || !/lease not found/.test(thrown.message)) throw thrown;
      }
    },

    servers: () => Promise.all(calls.servers.map((server) => askServer(calls, server))),

    async remembers(revision) {
      try {
        await range({ key: readable, ...atRevision(revision) });
        return true;
      } catch (thrown) {
        if (thrown instanceof EngineError && thrown.kind === 'compacted') return false;
        throw thrown;
      }
    },

    clockAhead: calls.clockAhead,

    close() {
      for (const watch of watches) watch.close();
      watches.clear();
      calls.close();
    },
  };
}

/** What is asked for of a range, as it is sent. */
interface Asked {
  readonly key: string;
  readonly range_end?: string;
  readonly limit?: number;
  readonly revision?: string;
  readonly keys_only?: boolean;
}

interface WirePage {
  readonly at: Moment;
  readonly kvs: readonly unknown[];
  readonly more: boolean;
  readonly count: number;
}

function toPage({ at, kvs, more, count }: WirePage): Page {
  return { at, values: kvs.map(storedValue), more, count };
}

function atRevision(revision: number | undefined) {
  return revision === undefined ? {} : { revision: String(revision) };
}

function inParts<Item>(items: readonly Item[], size: number): Item[][] {
  const parts = Math.max(1, Math.ceil(items.length / size));
  return Array.from({ length: parts }, (_, index) => items.slice(index * size, (index + 1) * size));
}

function latest(moments: readonly Moment[]): Moment {
  return moments.reduce((one, other) => (other.revision > one.revision ? other : one));
}

function firstOf(response: unknown): StoredValue | undefined {
  const [kv] = list(fields(response).kvs);
  return kv === undefined ? undefined : storedValue(kv);
}

function compareOf({ key, revision }: Guard) {
  return { key: encodeKey(key), target: 'MOD', result: 'EQUAL', mod_revision: String(revision) };
}

/**
 * All of the changes or, when one of the keys is not as expected, what stands at each of them and last at the guard's. One
 * transaction that nests others would decide each for itself, but etcd checks neither the rights of a user (before 3.4.42,
 * 3.5.28 and 3.6.9: CVE-2026-33343) nor its quota (seen with 3.4.23) in nested ones.
 */
function toTransaction(changes: readonly Change[], guard: Guard | undefined) {
  const compare = changes.map(({ key, expected }) => compareOf({ key, revision: expected }));
  const keys = changes.map(({ key }) => key);
  return {
    compare: guard ? [...compare, compareOf(guard)] : compare,
    success: changes.map(({ key: name, value, lease }) => {
      const key = encodeKey(name);
      if (value === undefined) return { request_delete_range: { key } };
      return { request_put: { key, value: value.toString('base64'), ...(lease && { lease }) } };
    }),
    failure: (guard ? [...keys, guard.key] : keys).map((key) => ({
      request_range: { key: encodeKey(key) },
    })),
  };
}

async function askServer(calls: Calls, server: EtcdServer): Promise<EngineServer> {
  const { url } = server;
  const ask = (path: string, body: object) => calls.once(server, path, body, { silenceMs: SERVER_MS });
  const [status, alarms, quota] = await Promise.allSettled([
    ask('/v3/maintenance/status', {}),
    ask(ALARM, { action: 'GET' }),
    readQuota(server),
  ]);
  if (status.status === 'rejected') {
    // Some versions tell it to nobody but root (etcd 3.5.28 to 3.5.31): the server answers all the same.
    return isDenied(status.reason) ? { url } : { url, fault: faultText(status.reason) };
  }
  const { header, version, leader, dbSize, dbSizeInUse } = status.value;
  const member = fields(header).member_id;
  return {
    url,
    version: text(version),
    isLeader: leader !== undefined && leader === member,
    size: whole(dbSize),
    sizeInUse: whole(dbSizeInUse),
    ...(quota.status === 'fulfilled' && quota.value !== undefined && { quota: quota.value }),
    ...(alarms.status === 'fulfilled' && { alarms: alarmsOf(alarms.value, member) }),
  };
}

/** The names of the alarms that a member has raised. */
function alarmsOf(answer: Fields, member: unknown): string[] {
  return list(answer.alarms)
    .map(fields)
    .filter(({ memberID }) => memberID === member)
    .map(({ alarm }) => text(alarm));
}

/** From the server's metrics, which may be served elsewhere: undefined then. */
async function readQuota({ exchange }: EtcdServer): Promise<number | undefined> {
  const { status, body } = await exchange.ask({ path: '/metrics', silenceMs: SERVER_MS });
  const [, quota] = /^etcd_server_quota_backend_bytes (\S+)$/m.exec(body.toString('latin1')) ?? [];
  return status === 200 && quota !== undefined ? Number(quota) : undefined;
}

function isDenied(thrown: unknown): boolean {
  return thrown instanceof Failed && thrown.fault.kind === 'denied';
}

function faultText(thrown: unknown): string {
  return thrown instanceof Failed ? thrown.fault.why : 'it could not be asked';
}
