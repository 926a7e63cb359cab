import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fs from 'fs-extra';
// What is registered first ends first: sidecars before the servers that they speak with.
import './start-sidecar';

const run = promisify(execFile);

export interface ClusterOptions {
  /** How many servers: 1 or 3. By default three. */
  readonly servers?: 1 | 3;
  /** Further flags of each server, such as `--quota-backend-bytes=16777216`. */
  readonly flags?: readonly string[];
  /** Whether it lasts until all tests of the file are done. */
  readonly kept?: boolean;
}

interface Member {
  readonly name: string;
  readonly client: number;
  readonly peer: number;
  child: ChildProcess | undefined;
  folder: string;
  output: string;
}

const running = new Set<EtcdCluster>();

afterAll(() => closeAll(true));
afterEach(() => closeAll(false));

async function closeAll(withKept: boolean): Promise<void> {
  await Promise.all([...running].filter(({ kept }) => withKept || !kept).map((cluster) => cluster.close()));
}

/** Starts servers of etcd itself on free ports of loopback; they are killed after the test, or after those of the file. */
export async function startEtcdCluster({
  servers = 3,
  flags = [],
  kept = false,
}: ClusterOptions = {}): Promise<EtcdCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'packager-drm-etcd-'));
  const cluster = new EtcdCluster(folder, await freePorts(servers * 2), flags, kept);
  running.add(cluster);
  await cluster.startAll();
  return cluster;
}

/** Servers of etcd, with their data below a temporary folder. */
export class EtcdCluster {
  private readonly members: readonly Member[];
  private token = 0;

  constructor(
    private readonly folder: string,
    ports: readonly number[],
    private readonly flags: readonly string[],
    readonly kept: boolean,
  ) {
    this.members = ports.slice(0, ports.length / 2).map((client, index) => ({
      name: `etcd-${index + 1}`,
      client,
      peer: ports[index + ports.length / 2] ?? 0,
      child: undefined,
      folder: join(folder, `etcd-${index + 1}`),
      output: '',
    }));
  }

  /** Addresses for clients, one a server. */
  get urls(): readonly string[] {
    return this.members.map(({ client }) => `http://127.0.0.1:${client}`);
  }

  /** Starts each server that does not run; resolves when all are healthy. */
  async startAll(): Promise<void> {
    for (const index of this.members.keys()) this.spawn(index);
    await this.untilHealthy();
  }

  /** Kills a server at once, or the one that leads. */
  async kill(index?: number): Promise<number> {
    const killed = index ?? (await this.leader());
    const { child } = this.member(killed);
    if (child) {
      const closed = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGKILL');
      await closed;
    }
    return killed;
  }

  /** Starts a server again that was killed; resolves when it answers. */
  async restart(index: number): Promise<void> {
    this.spawn(index);
    await this.untilHealthy([index]);
  }

  /** A server keeps its connections and does nothing, until `resume`. */
  pause(index: number): void {
    this.member(index).child?.kill('SIGSTOP');
  }

  resume(index: number): void {
    this.member(index).child?.kill('SIGCONT');
  }

  /** Which server leads, as those that run agree; waits for it. */
  async leader(): Promise<number> {
    for (;;) {
      const all = await Promise.all(this.members.map((_, index) => this.status(index)));
      const known = all.filter((status) => status !== undefined);
      const leaders = new Set(known.map(({ leader }) => leader));
      const found = all.findIndex((status) => status !== undefined && leaders.has(status.memberId));
      if (leaders.size === 1 && found >= 0) return found;
      await pause(20);
    }
  }

  /** undefined: it does not answer. */
  async status(index: number) {
    const answer = await this.post(index, '/v3/maintenance/status', {}).catch(() => undefined);
    if (answer === undefined) return undefined;
    const { header, leader } = answer as { header: Record<string, string>; leader?: string };
    return { memberId: header.member_id, leader, revision: Number(header.revision) };
  }

  /**
   * Asks the JSON gateway of a server; gives up after five seconds.
   * @throws Error with the answer when it is not 200.
   */
  async post(index: number, path: string, body: object): Promise<unknown> {
    const response = await fetch(`${this.urls[index]}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(5000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  /** Runs etcdctl against all servers that run; answers its output. */
  async control(...args: readonly string[]): Promise<string> {
    const urls = this.urls.filter((_, index) => this.member(index).child);
    const { stdout } = await run('etcdctl', ['--endpoints', urls.join(','), ...args], { env: ENVIRONMENT });
    return stdout;
  }

  /** Saves a backup, and answers the path of its file. */
  async snapshot(): Promise<string> {
    const path = join(this.folder, `snapshot-${this.token}-${Date.now()}.db`);
    const url = this.urls.find((_, index) => this.member(index).child) ?? '';
    await run('etcdctl', ['--endpoints', url, 'snapshot', 'save', path], { env: ENVIRONMENT });
    return path;
  }

  /** Puts new servers with the data of a backup under the same addresses. */
  async restore(path: string): Promise<void> {
    await this.replace((member) =>
      run('etcdctl', ['snapshot', 'restore', path, ...flagsOf(this.placeOf(member))], { env: ENVIRONMENT }),
    );
  }

  /** Puts new servers without data under the same addresses. */
  async wipe(): Promise<void> {
    await this.replace(async () => undefined);
  }

  /** Kills all servers; their data stay. */
  async stop(): Promise<void> {
    await Promise.all(this.members.map((_, index) => this.kill(index)));
  }

  async close(): Promise<void> {
    running.delete(this);
    await this.stop();
    await fs.remove(this.folder);
  }

  private async replace(fill: (member: Member) => Promise<unknown>): Promise<void> {
    await this.stop();
    this.token += 1;
    for (const member of this.members) member.folder = join(this.folder, `${member.name}-${this.token}`);
    await Promise.all(this.members.map(fill));
    await this.startAll();
  }

  private member(index: number): Member {
    const member = this.members[index];
    if (!member) throw new Error(`there is no server ${index}`);
    return member;
  }

  /** The flags of a server that a restored backup needs, too. */
  private placeOf({ name, folder, peer }: Member) {
    return {
      name,
      'data-dir': folder,
      'initial-advertise-peer-urls': peerUrl(peer),
      'initial-cluster': this.members.map((each) => `${each.name}=${peerUrl(each.peer)}`).join(','),
      'initial-cluster-token': `${this.folder}-${this.token}`,
    };
  }

  private spawn(index: number): void {
    const member = this.member(index);
    if (member.child) return;
    const clients = `http://127.0.0.1:${member.client}`;
    const flags = {
      ...this.placeOf(member),
      'listen-client-urls': clients,
      'advertise-client-urls': clients,
      'listen-peer-urls': peerUrl(member.peer),
      // Faster than by default, so that tests need not wait for an election of seconds.
      'heartbeat-interval': '50',
      'election-timeout': '500',
    };
    // The kernel kills it with this process, however that ends.
    const all = ['--pdeathsig', 'KILL', 'etcd', ...flagsOf(flags), ...this.flags];
    const child = spawn('setpriv', all, { env: ENVIRONMENT, stdio: ['ignore', 'ignore', 'pipe'] });
    member.child = child;
    member.output = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      member.output = `${member.output}${text}`.slice(-20_000);
    });
    child.once('error', (error) => {
      member.output += String(error);
      member.child = undefined;
    });
    child.once('close', () => {
      if (member.child === child) member.child = undefined;
    });
  }

  /** Waits until servers answer that there is a majority. @throws Error with what one wrote before it ended. */
  async untilHealthy(indexes: readonly number[] = [...this.members.keys()]): Promise<void> {
    for (const index of indexes) {
      while (!(await this.isHealthy(index))) {
        const { child, name, output } = this.member(index);
        if (!child) throw new Error(`${name} has ended:\n${output}`);
        await pause(20);
      }
    }
  }

  private async isHealthy(index: number): Promise<boolean> {
    const signal = AbortSignal.timeout(1000);
    const answer = await fetch(`${this.urls[index]}/health`, { signal }).catch(() => undefined);
    await answer?.body?.cancel();
    return answer?.ok === true;
  }
}

/** Its own variables, so that none of the user's for etcd counts. */
const ENVIRONMENT = { PATH: process.env.PATH, ETCDCTL_API: '3' };

const flagsOf = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([flag, value]) => `--${flag}=${value}`);

const peerUrl = (port: number) => `http://127.0.0.1:${port}`;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(
    servers.map((server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
