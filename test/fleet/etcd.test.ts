import { type EngineServers, engineContract } from '../support/engine-contract';
import { type EtcdCluster, startKeptEtcdCluster } from '../support/etcd-cluster';

const kept = new Map<number, EtcdCluster>();

/** One cluster of each size serves all tests: their keys begin differently. */
async function servers(count: number): Promise<EngineServers> {
  const size = count === 1 ? 1 : 3;
  const etcd = kept.get(size) ?? (await startKeptEtcdCluster({ servers: size }));
  kept.set(size, etcd);
  return {
    urls: etcd.urls,
    stop: async (index) => void (await etcd.kill(index)),
    start: (index) => etcd.restart(index),
    hang: (index) => etcd.pause(index),
    resume: (index) => etcd.resume(index),
    compact: async (revision) => void (await etcd.control('compact', String(revision))),
  };
}

engineContract(servers);
