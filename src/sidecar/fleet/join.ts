import type { Following } from '../../http/watched-file';
import type { FleetConfig } from './config';
import { openEngineAccess } from './engine/engine-access';
import { createEtcd } from './engine/etcd';
import type { OpenFleet } from './fleet';
import { openFleet } from './open-fleet';
import { openFleetSecret } from './secret';

/**
 * Reads the files that a sidecar needs to take part in a fleet, and returns the function that opens it.
 * @throws ConfigError when a file of it can't be used.
 */
export function joinFleet(config: FleetConfig, { log, clock }: Following): OpenFleet {
  const access = openEngineAccess(config, { log, clock });
  let listener: () => void = () => undefined;
  const secret = openFleetSecret({ file: config.secretFile, log, onChange: () => listener() });
  const { urls, timeoutMs, user } = config;
  return (local, hooks) => {
    const signIn = () => user && { name: user.name, password: access.password() ?? '' };
    const engine = createEtcd({ ...hooks, urls, timeoutMs, tls: access.tls, user: signIn });
    const onSecrets = (onChange: () => void) => {
      listener = onChange;
    };
    const fleet = openFleet({ ...hooks, config, engine, secrets: secret.secrets, onSecrets }, local);
    return {
      ...fleet,
      async close() {
        await fleet.close();
        access.close();
        secret.close();
      },
    };
  };
}
