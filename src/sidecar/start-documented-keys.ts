import { isIPv4 } from 'node:net';
import { ConfigError } from '../http/config';
import type { Log } from '../http/log';
import type { FindApiKey } from './access/api-key';

/** Every API key that README.md, docs, .env.example and docker-compose.yml show: anybody knows them. */
const DOCUMENTED_KEYS: readonly string[] = [
  'demo-api-key',
  'change-me-to-a-long-random-key',
  '5c0d7c1f6f1f4a37b0c8c4c6a6f0a9d2',
  'f3d2b7a09e1c4d58a6b7c8d9e0f1a2b3',
  '0b8e4a6d2f7c4b1e9d3a5f6c7b8a9e01',
];

export interface Reach {
  /** The key of `PACKAGERDRMAPI_APIKEY`. */
  readonly apiKey: string | undefined;
  /** The address that the service listens on. */
  readonly host: string;
  /** Whether documented keys are served on any address. */
  readonly demo: boolean;
}

/**
 * Keeps documented keys from opening a service that others reach: on another address than a loopback one the start is
 * refused with such a key, and one that comes into the file of keys later is no key. Elsewhere it is told in the log.
 * @throws ConfigError that names each such key and what to do.
 */
export function guardDocumentedKeys(find: FindApiKey, reach: Reach, log: Log): FindApiKey {
  const { apiKey, host, demo } = reach;
  const held = DOCUMENTED_KEYS.flatMap((key) => {
    const name = find(key)?.name;
    return name === undefined ? [] : [{ key, name }];
  });
  if (demo || isLoopback(host)) {
    for (const { name } of held)
      log.warn('the documentation shows this API key, so that anybody knows it; set your own', { name });
    return find;
  }
  const inFile = (name: string) => `PACKAGERDRMAPI_APIKEYS_FILE: the key ${name} ${isKnown(host)}`;
  if (held.length > 0) {
    throw new ConfigError(
      held.map(({ key, name }) =>
        key === apiKey ? `PACKAGERDRMAPI_APIKEY: the key ${isKnown(host)}` : inFile(name),
      ),
    );
  }
  const told = new Set<string>();
  return (given) => {
    const found = find(given);
    if (found === undefined || typeof given !== 'string' || !DOCUMENTED_KEYS.includes(given)) return found;
    if (!told.has(given)) {
      told.add(given);
      log.error('an API key that the documentation shows is not taken', { fault: inFile(found.name) });
    }
    return undefined;
  };
}

function isKnown(host: string): string {
  return `is one that the documentation shows; on ${host} anybody could read content keys with it. Set one of your own: openssl rand -hex 32. This one is for loopback (PACKAGERDRMAPI_HOST=127.0.0.1; in compose, no SIDECAR_PUBLISH); PACKAGERDRMAPI_DEMO=true allows it for a demo that nobody else reaches`;
}

/** Whether nobody beyond this machine reaches an address. Square brackets around one of IPv6 may be there. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return bare === 'localhost' || bare === '::1' || (isIPv4(bare) && bare.startsWith('127.'));
}
