import {
  base64,
  enumOf,
  flagOf,
  GATEWAY_ERRORS,
  longOf,
  type Message,
  numberOf,
  withoutZeros,
} from './etcd-messages';
import type { EtcdStore } from './etcd-store';
import {
  checkBranch,
  checkPut,
  checkTransaction,
  deleteRange,
  effectsOf,
  put,
  range,
  rangeOf,
  transaction,
} from './etcd-transactions';
import { Access } from './etcd-users';

/** The server that is asked. */
export interface Member {
  readonly id: bigint;
  readonly leaderless: boolean;
}

export const VERSION = '3.4.23';
/** Seconds. The least is one and a half times what an election takes. */
const [MIN_TTL, MAX_TTL] = [2, 9_000_000_000];

/** What a cluster of etcd answers to each call of its gateway but `/v3/watch`. */
export class EtcdAnswers {
  cluster = 1_000_000_000_000_000_001n;
  term = 2;
  raftIndex = 8;
  /** The servers that have no space. */
  readonly alarms = new Set<bigint>();
  readonly access = new Access();
  private nextLease = 7_587_000_000_000_000_001n;

  constructor(
    private readonly store: EtcdStore,
    public leader: bigint,
    private readonly quota: number,
  ) {}

  header(member: Member, revision = this.store.revision): Message {
    return withoutZeros({
      cluster_id: this.cluster,
      member_id: member.id,
      revision,
      raft_term: this.term,
    });
  }

  /**
   * The answer of a call by its path; undefined: there is no such call.
   * @throws StoreError
   */
  answer(member: Member, path: string, message: Message, token: string | undefined): Message | undefined {
    const header = () => this.header(member);
    const allow = (kind: 'range' | 'put' | 'delete_range' | 'txn') => {
      const effects = effectsOf(kind, message);
      this.access.authorise(token, effects);
      if (effects.costs && this.alarms.size > 0) throw GATEWAY_ERRORS.noSpace();
    };
    const { store } = this;
    const withHeader = (answer: Message) => ({ header: header(), ...answer });
    switch (path) {
      case '/v3/kv/range': {
        if (rangeOf(message).key === '') throw GATEWAY_ERRORS.noKey();
        allow('range');
        return withHeader(range(store, message));
      }
      case '/v3/kv/put':
        checkPut(message);
        allow('put');
        return withHeader(store.transact(() => put(store, message)));
      case '/v3/kv/deleterange':
        if (rangeOf(message).key === '') throw GATEWAY_ERRORS.noKey();
        allow('delete_range');
        return withHeader(store.transact(() => deleteRange(store, message)));
      case '/v3/kv/txn':
        checkTransaction(message);
        allow('txn');
        checkBranch(store, message);
        return withHeader(store.transact(() => transaction(store, message)));
      case '/v3/kv/compaction':
        store.compact(numberOf(message, 'revision'));
        return { header: header() };
      case '/v3/auth/authenticate':
        return { header: header(), token: this.access.signIn(message) };
      case '/v3/maintenance/status':
        return this.status(member);
      case '/v3/maintenance/alarm':
        return this.answerAlarms(message);
      case '/v3/maintenance/defragment':
        this.access.authoriseRoot(token);
        return {};
      default:
        return path.startsWith('/v3/lease/') ? this.answerLease(member, path, message, token) : undefined;
    }
  }

  private answerLease(
    member: Member,
    path: string,
    message: Message,
    token: string | undefined,
  ): Message | undefined {
    this.access.checkToken(token);
    const { store } = this;
    const header = () => this.header(member);
    const id = longOf(message, 'ID');
    switch (path) {
      case '/v3/lease/grant': {
        if (this.alarms.size > 0) throw GATEWAY_ERRORS.noSpace();
        const ttl = numberOf(message, 'TTL');
        if (ttl > MAX_TTL) throw GATEWAY_ERRORS.tooLong();
        const lease = store.grant(id === 0n ? this.newLease() : id, Math.max(ttl, MIN_TTL));
        return withoutZeros({ header: header(), ID: lease.id, TTL: lease.ttl });
      }
      case '/v3/lease/keepalive':
        return withoutZeros({ header: header(), ID: id, TTL: store.keepAlive(id) ?? 0 });
      case '/v3/lease/revoke':
        store.revoke(id);
        return { header: header() };
      case '/v3/lease/timetolive': {
        const { left, granted, keys } = store.timeToLive(id);
        const named = flagOf(message, 'keys') ? keys.map(base64) : [];
        return withoutZeros({ header: header(), ID: id, TTL: left, grantedTTL: granted, keys: named });
      }
      case '/v3/lease/leases':
        return withoutZeros({
          header: header(),
          leases: store.leaseIds().map((each) => ({ ID: String(each) })),
        });
      default:
        return undefined;
    }
  }

  private newLease(): bigint {
    this.nextLease += 2n;
    return this.nextLease;
  }

  private status(member: Member): Message {
    const errors = [
      ...(member.leaderless ? ['etcdserver: no leader'] : []),
      ...[...this.alarms].map((id) => `${id === 0n ? '' : `memberID:${id} `}alarm:NOSPACE `),
    ];
    return withoutZeros({
      header: this.header(member),
      version: VERSION,
      dbSize: this.store.size,
      leader: member.leaderless ? 0n : this.leader,
      raftIndex: this.raftIndex,
      raftTerm: this.term,
      raftAppliedIndex: this.raftIndex,
      errors,
      dbSizeInUse: this.store.size,
    });
  }

  /** Answers the alarms that there are, or that were set or taken away. */
  private answerAlarms(message: Message): Message {
    const action = enumOf(message, 'action', ['GET', 'ACTIVATE', 'DEACTIVATE'], 'AlarmRequest_AlarmAction');
    const type = enumOf(message, 'alarm', ['NONE', 'NOSPACE', 'CORRUPT'], 'AlarmType');
    const id = longOf(message, 'memberID');
    let told = [...this.alarms];
    if (action === 'ACTIVATE' && type === 'NOSPACE') {
      this.alarms.add(id);
      told = [id];
    }
    if (action === 'DEACTIVATE' && type === 'NOSPACE') told = this.alarms.delete(id) ? [id] : [];
    return withoutZeros({
      alarms: told.map((each) => withoutZeros({ memberID: each, alarm: 'NOSPACE' })),
    });
  }

  metrics(member: Member): string {
    const figures: Readonly<Record<string, number>> = {
      etcd_mvcc_db_total_size_in_bytes: this.store.size,
      etcd_mvcc_db_total_size_in_use_in_bytes: this.store.size,
      etcd_server_has_leader: member.leaderless ? 0 : 1,
      etcd_server_is_leader: !member.leaderless && this.leader === member.id ? 1 : 0,
      etcd_server_quota_backend_bytes: this.quota,
    };
    const lines = Object.entries(figures).flatMap(([name, value]) => [
      `# TYPE ${name} gauge`,
      `${name} ${value < 1e6 ? value : value.toExponential()}`,
    ]);
    return `${lines.join('\n')}\netcd_server_version{server_version="${VERSION}"} 1\n`;
  }
}
