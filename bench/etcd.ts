import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { followed, freePort } from './processes';

/** Whether the engine of a fleet is installed. */
export function hasEtcd(): boolean {
  return spawnSync('etcd', ['--version'], { stdio: 'ignore' }).status === 0;
}

export interface Etcd {
  /** Addresses for clients, one a server. */
  readonly urls: readonly string[];
  readonly children: readonly ChildProcess[];
  /** Kills the server that leads. */
  killLeader(): Promise<void>;
  stop(): void;
}

/** Starts servers of etcd with their default times, and waits until there is a majority. */
export async function startEtcd(folder: string, count: 1 | 3): Promise<Etcd> {
  const places = await Promise.all(
    Array.from({ length: count }, async (_none, index) => ({
      name: `etcd-${index}`,
      client: `http://127.0.0.1:${await freePort()}`,
      peer: `http://127.0.0.1:${await freePort()}`,
    })),
  );
  const cluster = places.map(({ name, peer }) => `${name}=${peer}`).join(',');
  const children = places.map(({ name, client, peer }) => {
    const flags = {
      name,
      'data-dir': join(folder, name),
      'listen-client-urls': client,
      'advertise-client-urls': client,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': cluster,
    };
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    return followed(spawn('etcd', args, { env: { PATH: process.env.PATH }, stdio: 'ignore' }));
  });
  for (const { client } of places) while (!(await isHealthy(client))) await wait(20);
  return {
    urls: places.map(({ client }) => client),
    children,
    async killLeader() {
      for (const [index, { client }] of places.entries()) {
        const response = await fetch(`${client}/v3/maintenance/status`, { method: 'POST', body: '{}' });
        const status = (await response.json()) as { header: { member_id: string }; leader: string };
        if (status.leader !== status.header.member_id) continue;
        children[index]?.kill('SIGKILL');
        return;
      }
      throw new Error('no server of etcd leads');
    },
    stop() {
      for (const child of children) child.kill('SIGKILL');
    },
  };
}

async function isHealthy(url: string): Promise<boolean> {
  const response = await fetch(`${url}/health`).catch(() => undefined);
  await response?.body?.cancel();
  return response?.ok === true;
}

/** A way to a server that can be interrupted: data sent then is held back without an error. */
export interface Way {
  readonly url: string;
  interrupt(): void;
  restore(): void;
}

export async function openWay(target: string): Promise<Way> {
  const { hostname: host, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isOpen = true;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    return socket.setNoDelay(true);
  };
  let held: Socket[] = [];
  const forward = (client: Socket) => {
    const server = keep(connect({ host, port: Number(port) }));
    client.pipe(server).pipe(client);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const)
      one.once('close', () => other.destroy());
  };
  const server = createServer((client) => {
    keep(client);
    if (isOpen) forward(client);
    else held.push(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    interrupt() {
      isOpen = false;
      for (const socket of sockets) socket.unpipe().pause();
    },
    restore() {
      isOpen = true;
      const waiting = held.filter(({ destroyed }) => !destroyed);
      held = [];
      // Connections that were idle for this time are reset, as routers and firewalls do.
      for (const socket of sockets) if (!waiting.includes(socket)) socket.resetAndDestroy();
      for (const client of waiting) forward(client);
    },
  };
}
