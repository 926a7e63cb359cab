import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAllTests, afterTest, temporaryFolder } from './after-test';

const run = promisify(execFile);

interface ClusterOptions {
  /** How many servers: 1 or 3. By default three. */
  readonly servers?: 1 | 3;
  /** Further flags of each server, such as `--quota-backend-bytes=16777216`. */
  readonly flags?: readonly string[];
  /** Whether it lasts until all tests of the file are done. */
  readonly kept?: boolean;
}

interface Member {
  readonly name: string;
  readonly url: string;
  readonly peer: string;
  child: ChildProcess | undefined;
  folder: string;
  output: string;
}

export type EtcdCluster = Awaited<ReturnType<typeof startEtcdCluster>>;

/**
 * Starts servers of etcd itself on free ports of loopback, with their data below a temporary folder; they are killed after
 * the test, or after those of the file.
 */
export async function startEtcdCluster({ servers = 3, flags = [], kept = false }: ClusterOptions = {}) {
  const after = kept ? afterAllTests : afterTest;
  const folder = await temporaryFolder(after);
  const addresses = (await freePorts(servers * 2)).map((port) => `http://127.0.0.1:${port}`);
  const members = addresses.slice(0, servers).map((url, index): Member => {
    const name = `etcd-${index + 1}`;
    const peer = addresses[index + servers] ?? '';
    return { name, url, peer, child: undefined, folder: join(folder, name), output: '' };
  });
  let token = 0;

  const memberAt = (index: number): Member => {
    const member = members[index];
    if (!member) throw new Error(`there is no server ${index}`);
    return member;
  };
  /** The flags of a server that a restored backup needs, too. */
  const placeOf = (member: Member) => ({
    name: member.name,
    'data-dir': member.folder,
    'initial-advertise-peer-urls': member.peer,
    'initial-cluster': members.map(({ name, peer }) => `${name}=${peer}`).join(','),
    'initial-cluster-token': `${folder}-${token}`,
  });
  const launch = (member: Member): void => {
    if (member.child) return;
    const own = {
      ...placeOf(member),
      'listen-client-urls': member.url,
      'advertise-client-urls': member.url,
      'listen-peer-urls': member.peer,
      // Faster than by default, so that tests need not wait for an election of seconds.
      'heartbeat-interval': '50',
      'election-timeout': '500',
    };
    // The kernel kills it with this process, however that ends.
    const all = ['--pdeathsig', 'KILL', 'etcd', ...flagsOf(own), ...flags];
    const child = spawn('setpriv', all, { env: ENVIRONMENT, stdio: ['ignore', 'ignore', 'pipe'] });
    member.child = child;
    member.output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      member.output = `${member.output}${text}`.slice(-20_000);
    });
    child.once('error', (error) => {
      member.output += String(error);
      member.child = undefined;
    });
    child.once('close', () => {
      if (member.child === child) member.child = undefined;
    });
  };
  /** Waits until servers answer that there is a majority. @throws Error with what one wrote before it ended. */
  const untilHealthy = async (waited: readonly Member[]): Promise<void> => {
    for (const member of waited) {
      while (!(await isHealthy(member.url))) {
        if (!member.child) throw new Error(`${member.name} has ended:\n${member.output}`);
        await pause(20);
      }
    }
  };
  const end = async ({ child }: Member): Promise<void> => {
    if (!child) return;
    const closed = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGKILL');
    await closed;
  };
  const replace = async (fill: (member: Member) => Promise<unknown>): Promise<void> => {
    await Promise.all(members.map(end));
    token += 1;
    for (const member of members) member.folder = join(folder, `${member.name}-${token}`);
    await Promise.all(members.map(fill));
    await cluster.startAll();
  };
  const etcdctl = (...args: readonly string[]) => run('etcdctl', args, { env: ENVIRONMENT });
  const endpoints = () => members.filter(({ child }) => child).map(({ url }) => url);
  /**
   * Asks the JSON gateway of a server; gives up after five seconds.
   * @throws Error with the answer when it is not 200.
   */
  const post = async (index: number, path: string, body: object): Promise<unknown> => {
    const request = { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(5000) };
    const response = await fetch(`${memberAt(index).url}${path}`, request);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };

  const cluster = {
    /** Addresses for clients, one a server. */
    urls: members.map(({ url }) => url),
    /** Starts each server that does not run; resolves when all are healthy. */
    async startAll(): Promise<void> {
      members.forEach(launch);
      await untilHealthy(members);
    },
    /** Kills a server at once, or the one that leads. */
    async kill(index?: number): Promise<number> {
      const killed = index ?? (await cluster.leader());
      await end(memberAt(killed));
      return killed;
    },
    /** Starts a server again that was killed; resolves when it answers. */
    async restart(index: number): Promise<void> {
      launch(memberAt(index));
      await untilHealthy([memberAt(index)]);
    },
    /** A server keeps its connections and does nothing, until `resume`. */
    pause: (index: number) => memberAt(index).child?.kill('SIGSTOP'),
    resume: (index: number) => memberAt(index).child?.kill('SIGCONT'),
    /** Which server leads; waits for it. By its metrics: where etcd has users, they alone may ask for its status. */
    async leader(): Promise<number> {
      for (;;) {
        const leads = await Promise.all(members.map(isLeader));
        if (leads.filter(Boolean).length === 1) return leads.indexOf(true);
        await pause(20);
      }
    },
    post,
    /** Runs etcdctl against all servers that run. */
    control: (...args: readonly string[]) => etcdctl('--endpoints', endpoints().join(','), ...args),
    /** Forgets all revisions before the present one. */
    async compact(): Promise<void> {
      const { header } = (await post(0, '/v3/maintenance/status', {})) as { header: { revision: string } };
      await cluster.control('compact', header.revision);
    },
    /** Saves a backup, and answers the path of its file. */
    async snapshot(...args: readonly string[]): Promise<string> {
      const path = join(folder, 'snapshot.db');
      await etcdctl('--endpoints', endpoints()[0] ?? '', ...args, 'snapshot', 'save', path);
      return path;
    },
    /** Puts new servers with the data of a backup under the same addresses. */
    restore: (path: string) =>
      replace((member) => etcdctl('snapshot', 'restore', path, ...flagsOf(placeOf(member)))),
    /** Puts new servers without data under the same addresses. */
    wipe: () => replace(async () => undefined),
  };
  after(() => Promise.all(members.map(end)));
  await cluster.startAll();
  return cluster;
}

/** Its own variables, so that none of the user's for etcd counts. */
const ENVIRONMENT = { PATH: process.env.PATH, ETCDCTL_API: '3' };

const flagsOf = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([flag, value]) => `--${flag}=${value}`);

async function isHealthy(url: string): Promise<boolean> {
  const signal = AbortSignal.timeout(1000);
  const answer = await fetch(`${url}/health`, { signal }).catch(() => undefined);
  await answer?.body?.cancel();
  return answer?.ok === true;
}

async function isLeader({ url }: Member): Promise<boolean> {
  const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(5000) }).catch(() => undefined);
  return /^etcd_server_is_leader 1$/m.test((await answer?.text().catch(() => '')) ?? '');
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(
    servers.map((server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
