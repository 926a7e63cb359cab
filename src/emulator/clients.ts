import { PROVIDER_ID } from '../drm/envelope';

/** An account of the key provider. The shared secret seals its envelopes and is never sent but by the configuration service. */
export interface Client {
  readonly name: string;
  readonly apiKey: string;
  readonly sharedSecret: string;
}

export type Clients = ReadonlyMap<string, Client>;

/** The rule of client names and content ids: both are parts of the provider's paths. */
export function isPathName(text: string): boolean {
  return PROVIDER_ID.pattern.test(text);
}

/** Clients by name. */
export function clientsOf(...clients: Client[]): Clients {
  return new Map(clients.map((client) => [client.name, client]));
}
