import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Lease } from '../../src/sidecar/fleet/engine/engine';
import { FakeCluster } from './fake-engine';

type Body = Record<string, unknown>;
type Part = Readonly<Record<string, Body>>;

/** An error of etcd: gRPC's code, and etcd's message. */
class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

const noLeader = () => new Refusal(14, 'etcdserver: no leader');
/** HTTP status by gRPC's code. */
const STATUS: Readonly<Record<number, number>> = { 5: 404, 7: 403, 8: 429, 14: 503, 16: 401 };
const WRITES = ['/v3/kv/put', '/v3/kv/txn', '/v3/lease/grant'];
const JSON_TYPE = { 'content-type': 'application/json' };

interface User {
  readonly name: string;
  readonly password: string;
  readonly rights: readonly { readonly prefix: string; readonly may: 'read' | 'write' }[];
}

interface Stream {
  readonly response: ServerResponse;
  readonly isChosen: (key: string) => boolean;
  readonly needsLeader: boolean;
  next: number;
}

interface Member {
  server: Server | undefined;
  port: number;
  isHung: boolean;
  isLeaderless: boolean;
  readonly sockets: Set<Socket>;
  readonly streams: Set<Stream>;
  readonly waiting: Set<() => void>;
}

const running = new Set<FakeEtcd>();

afterEach(async () => {
  await Promise.all([...running].map((etcd) => etcd.close()));
});

/** Starts the JSON gateways of a fake cluster on free ports of loopback; they are stopped after the test. */
export async function startFakeEtcd(servers = 1, clock = () => new Date()): Promise<FakeEtcd> {
  const etcd = new FakeEtcd(servers, clock);
  running.add(etcd);
  for (const index of etcd.members.keys()) await etcd.start(index);
  return etcd;
}

/** The calls of etcd's JSON gateway that the sidecar makes, on a `FakeCluster`, with faults on demand. */
export class FakeEtcd {
  readonly cluster = new FakeCluster();
  readonly calls: { readonly server: number; readonly path: string }[] = [];
  readonly members: readonly Member[];
  #loses: 'request' | 'answer' | undefined;
  #isFull = false;
  #users: readonly User[] | undefined;
  #tokens = new Map<string, User>();
  #tokenCount = 0;

  constructor(
    servers: number,
    private readonly clock: () => Date,
  ) {
    this.cluster.id = '5';
    this.members = Array.from({ length: servers }, () => ({
      server: undefined,
      port: 0,
      isHung: false,
      isLeaderless: false,
      sockets: new Set<Socket>(),
      streams: new Set<Stream>(),
      waiting: new Set<() => void>(),
    }));
    this.cluster.listeners.add(() => this.#tell());
  }

  get urls(): readonly string[] {
    return this.members.map(({ port }) => `http://127.0.0.1:${port}`);
  }

  get url(): string {
    return this.urls[0] ?? '';
  }

  get watches(): number {
    return this.members.reduce((sum, { streams }) => sum + streams.size, 0);
  }

  async start(index: number): Promise<void> {
    const member = this.#member(index);
    const server = createServer((request, response) => void this.#serve(index, request, response));
    server.on('connection', (socket) => {
      member.sockets.add(socket);
      socket.once('close', () => member.sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(member.port, '127.0.0.1', resolve));
    member.server = server;
    member.port = (server.address() as AddressInfo).port;
  }

  async stop(index: number): Promise<void> {
    const { server } = this.#member(index);
    const closed = new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
    this.cut(index);
    await closed;
  }

  /** Resets the connections of a server. */
  cut(index = 0): void {
    for (const socket of this.#member(index).sockets) socket.resetAndDestroy();
  }

  /** A server accepts connections and answers nothing until `resume`. */
  hang(index = 0): void {
    this.#member(index).isHung = true;
  }

  resume(index = 0): void {
    const member = this.#member(index);
    member.isHung = false;
    for (const go of member.waiting) go();
    this.#tell();
  }

  /** A server, or each one, loses the leader. */
  loseQuorum(index?: number): void {
    for (const [each, member] of this.members.entries()) {
      if (index !== undefined && each !== index) continue;
      member.isLeaderless = true;
      for (const { response, needsLeader } of member.streams)
        if (needsLeader)
          response.end(`${JSON.stringify({ error: { grpc_code: 14, message: noLeader().message } })}\n`);
    }
  }

  findQuorum(): void {
    this.cluster.term += 1;
    for (const member of this.members) member.isLeaderless = false;
  }

  /** The next change is made or not, and its connection is reset before the answer. */
  lose(what: 'request' | 'answer'): void {
    this.#loses = what;
  }

  full(): void {
    this.#isFull = true;
  }

  compact(revision?: number): void {
    this.cluster.compact(revision);
  }

  requireUsers(users: readonly User[] | undefined): void {
    this.#users = users;
    this.forgetTokens();
  }

  forgetTokens(): void {
    this.#tokens.clear();
  }

  /** Other servers are at the same addresses, with the data of a backup or none. */
  replace(backup?: ReturnType<FakeCluster['backup']>): void {
    this.cluster.restore(backup, { id: `${this.cluster.id}0` });
    for (const index of this.members.keys()) this.cut(index);
  }

  /** Reports to the watches how far the cluster is, as etcd does every ten minutes. */
  tellProgress(): void {
    for (const { streams } of this.members)
      for (const { response } of streams) response.write(this.#line({ header: this.#header() }));
  }

  async close(): Promise<void> {
    running.delete(this);
    await Promise.all(this.members.map((_, index) => this.stop(index)));
  }

  #member(index: number): Member {
    const member = this.members[index];
    if (!member) throw new Error(`there is no server ${index}`);
    return member;
  }

  #header(index = 0) {
    const { id, revision, term } = this.cluster;
    return {
      cluster_id: id,
      member_id: String(index + 1),
      revision: String(revision),
      raft_term: String(term),
    };
  }

  #line(result: object): string {
    return `${JSON.stringify({ result })}\n`;
  }

  async #serve(index: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const member = this.#member(index);
    const path = request.url ?? '';
    response.sendDate = false;
    response.setHeader('date', this.clock().toUTCString());
    const sent = await text(request).catch(() => undefined);
    while (member.isHung && !response.destroyed)
      await new Promise<void>((resolve) => {
        member.waiting.add(resolve);
        response.once('close', resolve);
      });
    if (sent === undefined || response.destroyed) return;
    if (path === '/metrics') {
      response.end('etcd_server_quota_backend_bytes 2.147483648e+09\n');
      return;
    }
    this.calls.push({ server: index, path });
    try {
      const body = JSON.parse(sent) as Body;
      const needsLeader = request.headers['grpc-metadata-hasleader'] === 'true';
      if (member.isLeaderless && needsLeader && path !== '/v3/maintenance/status') throw noLeader();
      const user = this.#userOf(path, request.headers.authorization);
      if (path === '/v3/watch') {
        this.#watch(index, body.create_request as Body, { response, user, needsLeader });
        return;
      }
      if (this.#isFull && WRITES.includes(path) && !isRead(body))
        throw new Refusal(8, 'etcdserver: mvcc: database space exceeded');
      const lost = isRead(body) || path !== '/v3/kv/txn' ? undefined : this.#loses;
      if (lost) this.#loses = undefined;
      const answer = lost === 'request' ? undefined : this.#answer(index, path, body, user);
      if (lost) response.socket?.resetAndDestroy();
      else response.writeHead(200, JSON_TYPE).end(JSON.stringify(answer));
    } catch (thrown) {
      const code = thrown instanceof Refusal ? thrown.code : 13;
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      response.writeHead(STATUS[code] ?? (code === 13 ? 500 : 400), JSON_TYPE);
      response.end(JSON.stringify({ error: message, message, code }));
    }
  }

  /** The user of a token; undefined: there are no users. */
  #userOf(path: string, token: string | undefined): User | undefined {
    if (!this.#users || path === '/v3/auth/authenticate') return undefined;
    if (token === undefined) throw new Refusal(3, 'etcdserver: user name is empty');
    const user = this.#tokens.get(token);
    if (!user) throw new Refusal(16, 'etcdserver: invalid auth token');
    return user;
  }

  #answer(index: number, path: string, body: Body, user: User | undefined): object {
    const header = this.#header(index);
    const { cluster } = this;
    switch (path) {
      case '/v3/kv/range':
        return { header, ...this.#range(body, user) };
      case '/v3/kv/txn':
        return this.#transaction(body, user, index);
      case '/v3/lease/grant': {
        return { header, ID: cluster.grant(Number(body.TTL)) };
      }
      case '/v3/lease/keepalive': {
        const seconds = cluster.leases.get(body.ID as Lease);
        return { result: { header, ...(seconds !== undefined && { TTL: String(seconds) }) } };
      }
      case '/v3/lease/revoke': {
        if (!cluster.leases.has(body.ID as Lease))
          throw new Refusal(5, 'etcdserver: requested lease not found');
        cluster.expire(body.ID as Lease);
        return { header };
      }
      case '/v3/auth/authenticate':
        return { header, token: this.#signIn(body) };
      case '/v3/maintenance/status':
        return { header, version: '3.4.23', leader: '1', dbSize: '24576', dbSizeInUse: '16384' };
      case '/v3/maintenance/alarm':
        return this.#isFull ? { alarms: [{ memberID: '1', alarm: 'NOSPACE' }] } : {};
      default:
        throw new Refusal(12, `there is no ${path}`);
    }
  }

  #signIn({ name, password }: Body): string {
    if (!this.#users) throw new Refusal(9, 'etcdserver: authentication is not enabled');
    const user = this.#users.find((each) => each.name === name && each.password === password);
    if (!user) throw new Refusal(3, 'etcdserver: authentication failed, invalid user ID or password');
    this.#tokenCount += 1;
    this.#tokens.set(`token-${this.#tokenCount}`, user);
    return `token-${this.#tokenCount}`;
  }

  #range(body: Body, user: User | undefined): Body {
    const { limit = 0, revision, keys_only: keysOnly } = body;
    authorise(user, 'read', decode(body.key));
    const at = revision === undefined ? this.cluster.revision : Number(revision);
    if (at < this.cluster.compacted)
      throw new Refusal(11, 'etcdserver: mvcc: required revision has been compacted');
    const found = this.cluster.range(chosenBy(body), at);
    const page = Number(limit) > 0 ? found.slice(0, Number(limit)) : found;
    return {
      kvs: page.map(({ key, value, revision: mod }) => ({
        ...{ key: encode(key), mod_revision: String(mod) },
        ...(!keysOnly && value.length > 0 && { value: value.toString('base64') }),
      })),
      ...(page.length < found.length && { more: true }),
      count: String(found.length),
    };
  }

  #transaction(body: Body, user: User | undefined, index: number): object {
    const { compare = [], success = [], failure = [] } = body as Record<string, Body[]>;
    const revisionOf = (key: unknown) => this.cluster.get(decode(key))?.revision ?? 0;
    const succeeded = compare.every(({ key, mod_revision }) => revisionOf(key) === Number(mod_revision));
    const parts = (succeeded ? success : failure) as Part[];
    const changes = parts.flatMap(({ request_put: put, request_delete_range: removed }) => {
      const changed = put ?? removed;
      if (!changed) return [];
      authorise(user, 'write', decode(changed.key));
      const value = put && Buffer.from(String(put.value ?? ''), 'base64');
      const lease = put?.lease as Lease | undefined;
      if (lease !== undefined && !this.cluster.leases.has(lease))
        throw new Refusal(5, 'etcdserver: requested lease not found');
      return [{ key: decode(changed.key), value, lease }];
    });
    this.cluster.apply(changes);
    const responses = parts.map(({ request_range: asked }) =>
      asked ? { response_range: this.#range(asked, user) } : {},
    );
    return { header: this.#header(index), succeeded, responses };
  }

  #watch(
    index: number,
    body: Body,
    { response, user, needsLeader }: Pick<Stream, 'response' | 'needsLeader'> & { user: User | undefined },
  ): void {
    const { streams } = this.#member(index);
    const header = this.#header(index);
    const next = Number(body.start_revision);
    response.writeHead(200, JSON_TYPE);
    response.write(this.#line({ header, created: true }));
    const cancel = (why: object) => response.end(this.#line({ header, canceled: true, ...why }));
    try {
      authorise(user, 'read', decode(body.key));
    } catch (thrown) {
      cancel({ cancel_reason: String(thrown) });
      return;
    }
    if (next < this.cluster.compacted) {
      cancel({ compact_revision: String(this.cluster.compacted) });
      return;
    }
    const stream = { response, isChosen: chosenBy(body), needsLeader, next };
    streams.add(stream);
    response.once('close', () => streams.delete(stream));
    this.#tell();
  }

  /** Sends the watches what has happened. */
  #tell(): void {
    for (const [index, member] of this.members.entries()) {
      if (member.isHung || member.isLeaderless) continue;
      for (const stream of member.streams) {
        const events = this.cluster.eventsFrom(stream.next).filter(({ key }) => stream.isChosen(key));
        stream.next = Math.max(stream.next, this.cluster.revision + 1);
        if (events.length === 0) continue;
        const sent = events.map(({ key, value, revision }) => ({
          ...(value === undefined && { type: 'DELETE' }),
          kv: { key: encode(key), mod_revision: String(revision), value: value?.toString('base64') },
        }));
        stream.response.write(this.#line({ header: this.#header(index), events: sent }));
      }
    }
  }
}

function isRead({ success, compare }: Body): boolean {
  return !compare && (success as Part[] | undefined)?.every((part) => 'request_range' in part) === true;
}

function authorise(user: User | undefined, may: 'read' | 'write', key: string): void {
  if (user && !user.rights.some((right) => right.may === may && key.startsWith(right.prefix)))
    throw new Refusal(7, 'etcdserver: permission denied');
}

function chosenBy(body: Body): (key: string) => boolean {
  const [start, end] = [decode(body.key), decode(body.range_end)];
  if (end === '') return (key) => key === start;
  return (key) => key >= start && (end === '\0' || key < end);
}

function decode(value: unknown): string {
  return Buffer.from(String(value ?? ''), 'base64').toString('latin1');
}

function encode(key: string): string {
  return Buffer.from(key, 'latin1').toString('base64');
}
