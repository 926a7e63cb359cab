import type { FleetConfig } from './config';
import { openEngineAccess } from './engine/engine-access';
import { createEtcd } from './engine/etcd';
import type { FleetProcess, OpenFleet } from './fleet';
import { openFleet } from './open-fleet';
import { openFleetSecret } from './secret';

/**
 * Reads the files that a sidecar needs to take part in a fleet, and returns the function that opens it for a folder.
 * @throws ConfigError when a file of it can't be used.
 */
export function joinFleet(config: FleetConfig, options: FleetProcess): (folder: string) => OpenFleet {
  const { log, clock, now } = options;
  const access = openEngineAccess(config, { log, clock });
  let listener: () => void = () => undefined;
  const secret = openFleetSecret({ file: config.secretFile, log, onChange: () => listener() });
  const { user } = config;
  return (folder) => (local, hooks) => {
    const engine = createEtcd({
      urls: config.urls,
      timeoutMs: config.timeoutMs,
      tls: access.tls,
      user: () => user && { name: user.name, password: access.password() ?? '' },
      log,
      now,
      clock,
    });
    const fleet = openFleet(
      {
        ...options,
        config,
        engine,
        folder,
        secrets: secret.secrets,
        onSecrets(onChange) {
          listener = onChange;
        },
      },
      local,
      hooks,
    );
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
