import type { Log } from '../kernel/log';
import { type Client, type Clients, clientsOf } from './clients';
import { IssuedKeys } from './upstreams/issued-keys';

/** What the process hands in; no route reaches for the real ones. */
export interface Surroundings {
  readonly log: Log;
  readonly clock: () => Date;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** A new, unguessable id. */
  readonly newId: () => string;
}

/** Everything the routes share. It lives as long as the process and starts empty but for the seeds. */
export interface EmulatorContext extends Surroundings {
  readonly clients: Clients;
  readonly issuedKeys: IssuedKeys;
}

const KEYS_REMEMBERED = 100_000;

export function createContext(seeds: { client: Client }, surroundings: Surroundings): EmulatorContext {
  return {
    ...surroundings,
    clients: clientsOf(seeds.client),
    issuedKeys: new IssuedKeys(KEYS_REMEMBERED),
  };
}
