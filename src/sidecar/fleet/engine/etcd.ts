import type { JsonObject } from '../../../drm/bytes';
import { cached } from '../../../http/cached';
import {
  type Change,
  type ChangeAnswer,
  type Engine,
  EngineError,
  type EngineServer,
  type Guard,
  type Lease,
  MAX_CHANGES,
  type Moment,
  type Snapshot,
  type StoredValue,
} from './engine';
import {
  EtcdError,
  encodeKey,
  fields,
  list,
  momentOf,
  rangeOf,
  storedValue,
  text,
  whole,
} from './etcd-answers';
import { ALARM, type Calls, createCalls, type EtcdOptions, TRANSACTION } from './etcd-calls';
import { watchRange } from './etcd-watch';

const NO_MOMENT: Moment = { cluster: '', term: 0, revision: 0 };

/** etcd 3.4 or later, over its JSON gateway, with the names of its protocol buffers (`rpc.proto`). */
export function createEtcd(options: EtcdOptions): Engine {
  const calls = createCalls(options);
  /** A key that this user may read, if known: etcd has no call without rights that returns its revision. */
  let readable = encodeKey('\0');

  const readPart = async (keys: readonly string[]): Promise<Snapshot<StoredValue | undefined>> => {
    const success = keys.map((key) => ({ request_range: { key: encodeKey(key) } }));
    const answer = await calls.call(TRANSACTION, { success });
    const responses = list(answer.responses);
    const values = keys.map((_key, index) => firstOf(fields(responses[index]).response_range));
    return { at: at(answer), values };
  };

  const askHeartbeat = async (server: string): Promise<Moment> =>
    at(await calls.callServer(server, '/v3/kv/range', { key: readable, keys_only: true }));
  const heartbeats = new Map(
    calls.servers.map((server) => [
      server,
      cached(calls.pace.heartbeatMs / 2, options.now, () => askHeartbeat(server)),
    ]),
  );
  const heartbeat = (server: string, fresh: boolean) =>
    (fresh ? undefined : heartbeats.get(server))?.() ?? askHeartbeat(server);

  return {
    async read(keys) {
      const parts: Snapshot<StoredValue | undefined>[] = [];
      for (let begin = 0; begin === 0 || begin < keys.length; begin += MAX_CHANGES)
        parts.push(await readPart(keys.slice(begin, begin + MAX_CHANGES)));
      return { at: parts.at(-1)?.at ?? NO_MOMENT, values: parts.flatMap(({ values }) => values) };
    },

    async list(keys, { limit, revision }) {
      const [key, range_end] = rangeOf(keys);
      const body = { key, range_end, limit, ...atRevision(revision) };
      const answer = await calls.call('/v3/kv/range', body);
      readable = key;
      return {
        at: at(answer),
        values: list(answer.kvs).map(storedValue),
        more: answer.more === true,
        count: whole(answer.count),
      };
    },

    async change(changes, guard) {
      const answers = new Map<Change, ChangeAnswer>();
      for (let left = changes; ; left = left.filter((change) => !answers.has(change))) {
        const answer = await calls.call(TRANSACTION, toTransaction(left, guard), true);
        const isMade = answer.succeeded === true;
        const found = list(answer.responses).map((response) => firstOf(fields(response).response_range));
        if (!isMade && guard && (found[left.length]?.revision ?? 0) !== guard.revision) return undefined;
        for (const [index, change] of left.entries()) {
          const present = found[index];
          if (isMade) answers.set(change, { made: true, revision: at(answer).revision });
          else if ((present?.revision ?? 0) !== change.expected)
            answers.set(change, { made: false, present });
        }
        // Changes that failed because of others are made without them.
        if (answers.size === changes.length) return changes.flatMap((change) => answers.get(change) ?? []);
      }
    },

    watch(keys, watchOptions) {
      [readable] = rangeOf(keys);
      return watchRange(calls, heartbeat, keys, watchOptions);
    },

    async grant(seconds) {
      const answer = await calls.call('/v3/lease/grant', { TTL: String(seconds) });
      return text(answer.ID) as Lease;
    },

    async keepAlive(lease) {
      return whole((await calls.call('/v3/lease/keepalive', { ID: lease })).TTL) > 0;
    },

    async revoke(lease) {
      await calls.call('/v3/lease/revoke', { ID: lease });
    },

    async servers() {
      const asked = await Promise.all(calls.servers.map((server) => askServer(calls, server)));
      const members = new Set(asked.map(({ member }) => member));
      return asked.map(({ server, member, alarms }) => ({
        ...server,
        // An alarm outlives its server, and is then found at the others.
        ...(alarms && { alarms: alarmsOf(alarms, (id) => id === member || !members.has(id)) }),
      }));
    },

    async hasRevision(revision) {
      try {
        await calls.call('/v3/kv/range', { key: readable, ...atRevision(revision) });
        return true;
      } catch (thrown) {
        if (thrown instanceof EngineError && thrown.kind === 'compacted') return false;
        throw thrown;
      }
    },

    clockAhead: calls.clockAhead,

    close: calls.close,
  };
}

function at(answer: JsonObject): Moment {
  return momentOf(answer) ?? NO_MOMENT;
}

function atRevision(revision: number | undefined) {
  return revision === undefined ? {} : { revision: String(revision) };
}

function firstOf(response: unknown): StoredValue | undefined {
  const [kv] = list(fields(response).kvs);
  return kv === undefined ? undefined : storedValue(kv);
}

function compareOf({ key, revision }: Guard) {
  return { key: encodeKey(key), target: 'MOD', result: 'EQUAL', mod_revision: String(revision) };
}

/**
 * Answers all changes or, when a key is not as expected, the present values of each and last of the guard's.
 * It is flat: nested transactions would decide each change for itself, but etcd checks neither the rights of
 * a user (before 3.4.42, 3.5.28 and 3.6.9: CVE-2026-33343) nor its quota (seen with 3.4.23) in them.
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

interface AskedServer {
  readonly server: EngineServer;
  readonly member?: unknown;
  /** Those of all members. */
  readonly alarms?: JsonObject;
}

async function askServer(calls: Calls, url: string): Promise<AskedServer> {
  const ask = (path: string, body: object) => calls.callServer(url, path, body);
  const [status, alarms, quota] = await Promise.allSettled([
    ask('/v3/maintenance/status', {}),
    ask(ALARM, { action: 'GET' }),
    readQuota(calls, url),
  ]);
  if (status.status === 'rejected') {
    const { reason } = status;
    if (!(reason instanceof EtcdError)) return { server: { url, fault: 'it could not be asked' } };
    const { kind, canRetry, why } = reason.fault;
    // Some versions answer it to root alone (docs/fleet.md); but that is an answer, unlike a refused certificate.
    return { server: kind === 'denied' && !canRetry ? { url } : { url, fault: why } };
  }
  const { header, version, leader, dbSize, dbSizeInUse } = status.value;
  const member = fields(header).member_id;
  const server = {
    url,
    version: text(version),
    leader: leader !== undefined && leader === member,
    size: whole(dbSize),
    size_in_use: whole(dbSizeInUse),
    ...(quota.status === 'fulfilled' && quota.value !== undefined && { quota: quota.value }),
  };
  return { server, member, ...(alarms.status === 'fulfilled' && { alarms: alarms.value }) };
}

function alarmsOf(answer: JsonObject, isShown: (member: unknown) => boolean): string[] {
  const shown = list(answer.alarms)
    .map(fields)
    .filter(({ memberID }) => isShown(memberID));
  return [...new Set(shown.map(({ alarm }) => text(alarm)))];
}

/** Undefined where the server has its metrics at another address. */
async function readQuota({ page }: Calls, url: string): Promise<number | undefined> {
  const [, quota] = /^etcd_server_quota_backend_bytes (\S+)$/m.exec(await page(url, '/metrics')) ?? [];
  return quota === undefined ? undefined : Number(quota);
}
