import { engineContract } from '../../../support/engine-contract';
import { startFakeEtcd } from '../../../support/fake-etcd';

engineContract((servers) => startFakeEtcd(servers));
