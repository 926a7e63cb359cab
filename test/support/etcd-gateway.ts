import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { EtcdAnswers } from './etcd-answers';
import { flagOf, GATEWAY_ERRORS, type Message, readMessage } from './etcd-messages';
import { answerGet, JSON_HEADERS, writeFault, writeJson } from './etcd-replies';
import { type Bytes, EtcdStore, type StoreState } from './etcd-store';
import { streamFault, WatchStream } from './etcd-streams';
import { checkSize, effectsOf } from './etcd-transactions';
import type { GatewayUser } from './etcd-users';

export interface GatewayOptions {
  /** How many servers, each with a port of its own; by default one. */
  readonly servers?: number;
  /** The clock of leases, in ms. By default the real one; leases whose time is over end by themselves then. */
  readonly now?: () => number;
  /** The clock of the header `Date`. */
  readonly clock?: () => Date;
  /** How long a call without a majority waits for it, in ms; etcd's own time is 5 seconds and two elections. */
  readonly quorumMs?: number;
  /** The quota of its database, in bytes, as metrics tell. */
  readonly quota?: number;
}

export interface Backup {
  readonly state: StoreState;
}

/** A call that arrived at a server. */
export interface GatewayCall {
  readonly server: number;
  readonly path: string;
  readonly body: Message;
  readonly token: string | undefined;
}

interface Member {
  readonly id: bigint;
  server: Server | undefined;
  port: number;
  hung: boolean;
  leaderless: boolean;
  readonly sockets: Set<Socket>;
  readonly streams: Set<WatchStream>;
  /** Calls that wait until the server goes on. */
  readonly waiting: Set<() => void>;
}

const running = new Set<EtcdGateway>();

afterEach(async () => {
  await Promise.all([...running].map((gateway) => gateway.close()));
});

/** Starts the stand-in of etcd's servers on free ports of loopback; it is stopped after the test. */
export async function startEtcdGateway(options: GatewayOptions = {}): Promise<EtcdGateway> {
  const gateway = new EtcdGateway(options);
  running.add(gateway);
  for (const index of gateway.members.keys()) await gateway.start(index);
  return gateway;
}

/**
 * The JSON gateway of etcd 3.4 over real HTTP, with keys and values in memory. All servers share them, as a healthy
 * cluster does. `test/fleet` holds its answers against those of etcd itself.
 */
export class EtcdGateway {
  /** What arrived, in order. */
  readonly calls: GatewayCall[] = [];
  readonly members: readonly Member[];
  private readonly store: EtcdStore;
  private readonly answers: EtcdAnswers;
  private latencyMs = 0;
  private loses: 'request' | 'answer' | undefined;
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly options: GatewayOptions) {
    this.store = new EtcdStore(options.now ?? (() => performance.now()));
    this.store.onRevision = (events) => {
      for (const { streams, leaderless } of this.members)
        if (!leaderless) for (const stream of streams) stream.tell(events);
    };
    this.members = Array.from({ length: options.servers ?? 1 }, (_, index) => ({
      id: 9_000_000_000_000_000_001n + BigInt(index),
      server: undefined,
      port: 0,
      hung: false,
      leaderless: false,
      sockets: new Set(),
      streams: new Set(),
      waiting: new Set(),
    }));
    this.answers = new EtcdAnswers(this.store, this.member(0).id, options.quota ?? 2_147_483_648);
    this.timer = setInterval(() => this.expire(), 100).unref();
  }

  get url(): string {
    return this.urls[0] ?? '';
  }

  get urls(): readonly string[] {
    return this.members.map(({ port }) => `http://127.0.0.1:${port}`);
  }

  get revision(): number {
    return this.store.revision;
  }

  /** Listens, on the same port as before. */
  async start(index = 0): Promise<void> {
    const member = this.member(index);
    if (member.server) return;
    const server = createServer((request, response) => {
      void this.serve(index, request, response);
    });
    server.on('connection', (socket: Socket) => {
      member.sockets.add(socket);
      socket.once('close', () => member.sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(member.port, '127.0.0.1', resolve);
    });
    member.server = server;
    member.hung = false;
    member.port = (server.address() as AddressInfo).port;
  }

  /** Cuts its connections and refuses new ones. */
  async stop(index = 0): Promise<void> {
    const member = this.member(index);
    const { server } = member;
    member.server = undefined;
    const closed = new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
    this.cut(index);
    await closed;
  }

  /** Cuts the connections of a server, which stays. */
  cut(index = 0): void {
    for (const socket of this.member(index).sockets) socket.resetAndDestroy();
  }

  /** From now on a server takes connections and says nothing, until `resume`. */
  hang(index = 0): void {
    this.member(index).hung = true;
  }

  resume(index = 0): void {
    const member = this.member(index);
    member.hung = false;
    for (const stream of member.streams) stream.release();
    for (const go of [...member.waiting]) go();
  }

  /** A server, or each one, has no leader any more. */
  loseQuorum(index?: number): void {
    for (const [each, member] of this.members.entries()) {
      if (index !== undefined && each !== index) continue;
      member.leaderless = true;
      for (const stream of member.streams) if (stream.needsLeader) stream.fail(GATEWAY_ERRORS.noLeader());
    }
  }

  /** There is a leader again, after an election. Watches that lasted hear what they missed. */
  findQuorum(index?: number): void {
    this.answers.term += 1;
    for (const [each, member] of this.members.entries())
      if (index === undefined || each === index) {
        member.leaderless = false;
        for (const go of [...member.waiting]) go();
      }
  }

  /** Another server leads from now on. */
  elect(index: number): void {
    this.answers.leader = this.member(index).id;
    this.answers.term += 1;
  }

  /** The next change is made, but the connection is cut before it is answered. */
  loseAnswer(): void {
    this.loses = 'answer';
  }

  /** The connection of the next change is cut before it is made. */
  loseRequest(): void {
    this.loses = 'request';
  }

  /** The quota is used up, or no longer. */
  full(isFull = true): void {
    this.answers.alarms.clear();
    if (isFull) this.answers.alarms.add(this.member(0).id);
  }

  /** Forgets the revisions before one; by default before the newest. */
  compact(revision = this.store.revision): void {
    this.store.compact(revision);
  }

  backUp(): Backup {
    return { state: this.store.save() };
  }

  /** New servers with the data of a backup are under the same addresses: another cluster, an early term. */
  restore({ state }: Backup): void {
    this.store.load(state);
    this.replace();
  }

  /** New servers without data are under the same addresses. */
  wipe(): void {
    this.store.load({ revision: 1, compacted: -1, history: new Map(), events: [], leases: new Map() });
    this.replace();
  }

  /** Every call takes so long, in ms. */
  slow(ms: number): void {
    this.latencyMs = ms;
  }

  /** From now on calls need a user; undefined: no more. */
  requireUsers(users: readonly GatewayUser[] | undefined): void {
    this.answers.access.require(users);
  }

  /** Tokens end after five minutes, and with the server that gave them. */
  forgetTokens(): void {
    this.answers.access.forgetTokens();
  }

  put(key: string, value: Buffer | string): number {
    const bytes = typeof value === 'string' ? latin(value) : value.toString('latin1');
    this.store.transact(() => this.store.put(latin(key), bytes, 0n));
    return this.store.revision;
  }

  remove(key: string): boolean {
    return this.store.transact(() => this.store.remove({ key: latin(key), end: '' })).length > 0;
  }

  get(key: string): Buffer | undefined {
    const [found] = this.store.range({ key: latin(key), end: '' });
    return found && Buffer.from(found.value ?? '', 'latin1');
  }

  /** The keys that begin with something, in order. */
  keys(prefix = ''): string[] {
    const all = this.store
      .range({ key: '\0', end: '\0' })
      .map(({ key }) => Buffer.from(key, 'latin1').toString());
    return all.filter((key) => key.startsWith(prefix));
  }

  /** How many watches are open. */
  get watches(): number {
    return this.members.reduce((sum, { streams }) => sum + streams.size, 0);
  }

  /** What etcd tells every ten minutes to watches that asked for it. */
  tellProgress(): void {
    for (const { streams } of this.members) for (const stream of streams) stream.tellProgress();
  }

  /** Ends the leases whose time is over, by the clock that was handed in. */
  expire(): void {
    if (this.members.some(({ leaderless }) => !leaderless)) this.store.expire();
  }

  async close(): Promise<void> {
    running.delete(this);
    clearInterval(this.timer);
    await Promise.all(this.members.map((_, index) => this.stop(index)));
  }

  private member(index: number): Member {
    const member = this.members[index];
    if (!member) throw new Error(`there is no server ${index}`);
    return member;
  }

  private replace(): void {
    this.answers.cluster += 1n;
    this.answers.term = 2;
    this.answers.alarms.clear();
    this.forgetTokens();
    for (const index of this.members.keys()) this.cut(index);
  }

  private async serve(index: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const member = this.member(index);
    const path = request.url ?? '';
    response.sendDate = false;
    response.setHeader('Date', (this.options.clock ?? (() => new Date()))().toUTCString());
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    if (this.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, this.latencyMs));
    while (member.hung) {
      await new Promise<void>((resolve) => {
        const go = () => {
          member.waiting.delete(go);
          resolve();
        };
        member.waiting.add(go);
        response.once('close', go);
      });
      if (response.destroyed) return;
    }
    if (response.destroyed) return;
    if (request.method === 'GET' || GETS.includes(path)) {
      answerGet(this.answers, member, request.method === 'GET' ? path : '/v3/', response);
      return;
    }
    try {
      await this.answerPost(index, request, body, response);
    } catch (error) {
      writeFault(response, error, path === '/v3/watch' ? 2 : 3);
    }
  }

  private async answerPost(
    index: number,
    request: IncomingMessage,
    body: string,
    response: ServerResponse,
  ): Promise<void> {
    const member = this.member(index);
    const path = (request.url ?? '').replace('/v3/kv/lease/', '/v3/lease/');
    const token = request.headers.authorization;
    const needsLeader = request.headers['grpc-metadata-hasleader'] === 'true';
    if (path === '/v3/watch') {
      this.openWatch(index, body, { token, needsLeader, response });
      return;
    }
    const message = readMessage(body);
    this.calls.push({ server: index, path, body: message, token });
    const isStream = path === '/v3/lease/keepalive';
    const isChange = CHANGES.has(path) && !(path === '/v3/kv/txn' && isReadOnly(message));
    const isLocal = path === '/v3/maintenance/status' || flagOf(message, 'serializable');
    if (member.leaderless && !isLocal) {
      const isTold = needsLeader || isStream;
      if (!isTold) await this.quorumAgain(member, response);
      if (response.destroyed) return;
      if (member.leaderless) {
        const isProposal = isChange || path.startsWith('/v3/lease') || path === '/v3/maintenance/alarm';
        const error = isProposal ? GATEWAY_ERRORS.deadline() : GATEWAY_ERRORS.timedOut();
        if (isStream) writeJson(response, streamFault(GATEWAY_ERRORS.noLeader()), 503);
        else throw isTold ? GATEWAY_ERRORS.noLeader() : error;
        return;
      }
    }
    this.expire();
    const lost = isChange ? this.loses : undefined;
    if (isChange) this.loses = undefined;
    if (lost === 'request') {
      response.socket?.resetAndDestroy();
      return;
    }
    if (CHANGES.has(path)) checkSize(body);
    const answer = this.answers.answer(member, path, message, token);
    if (answer === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('Not Found\n');
      return;
    }
    if (isChange) this.answers.raftIndex += 1;
    if (lost === 'answer') response.socket?.resetAndDestroy();
    else if (isStream) response.writeHead(200, JSON_HEADERS).end(`${JSON.stringify({ result: answer })}\n`);
    else writeJson(response, answer);
  }

  private openWatch(
    index: number,
    body: string,
    call: { token: string | undefined; needsLeader: boolean; response: ServerResponse },
  ): void {
    const { token, needsLeader, response } = call;
    const member = this.member(index);
    const requests = body.split('\n').filter((line) => line.trim() !== '');
    const messages = requests.map((line) => readMessage(line));
    for (const message of messages)
      this.calls.push({ server: index, path: '/v3/watch', body: message, token });
    if (member.leaderless && needsLeader) {
      writeJson(response, streamFault(GATEWAY_ERRORS.noLeader()), 503);
      return;
    }
    response.writeHead(200, JSON_HEADERS);
    const stream = new WatchStream({
      store: this.store,
      response,
      header: (revision) => this.answers.header(member, revision),
      authorise: (asked) =>
        this.answers.access.authorise(token, { reads: [asked], writes: [], costs: false }),
      needsLeader,
      isHeld: () => member.hung,
    });
    member.streams.add(stream);
    response.once('close', () => member.streams.delete(stream));
    for (const message of messages) stream.take(message);
  }

  private async quorumAgain(member: Member, response: ServerResponse): Promise<void> {
    await new Promise<void>((resolve) => {
      const go = () => {
        clearTimeout(timer);
        member.waiting.delete(go);
        resolve();
      };
      const timer = setTimeout(go, this.options.quorumMs ?? 5600);
      member.waiting.add(go);
      response.once('close', go);
    });
  }
}

const GETS = ['/health', '/version', '/metrics'];
const CHANGES = new Set(['/v3/kv/put', '/v3/kv/deleterange', '/v3/kv/txn']);

function isReadOnly(message: Message): boolean {
  return effectsOf('txn', message).writes.length === 0;
}

function latin(value: string): Bytes {
  return Buffer.from(value).toString('latin1');
}
