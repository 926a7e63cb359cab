import { engineContract } from '../../../support/engine-contract';
import { startEtcdGateway } from '../../../support/etcd-gateway';

engineContract((servers) => startEtcdGateway({ servers }));
