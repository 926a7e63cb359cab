import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../http/errors';
import type { Client, Clients } from '../clients';

/** Older documents of the platform write the header with an underscore, newer ones with a dash. */
const HEADERS = ['api-key', 'api_key'];

/**
 * The client of this name, for a request that holds its API key in `API-KEY`, `API_KEY` or both.
 * @throws HttpError 404 when there is no such client, 401 when a key is missing or wrong.
 */
export function authorizedClient(clients: Clients, name: string, headers: IncomingHttpHeaders): Client {
  const client = clients.get(name);
  if (!client) {
    const description =
      'There is no client of this name. The emulator knows the one that EMULATOR_CLIENT names.';
    throw new HttpError(404, { code: 'client_unknown', description });
  }
  const given = HEADERS.map((header) => headers[header]).filter((value) => value !== undefined);
  if (given.length === 0) {
    const description = "Send the client's API key in the header API-KEY.";
    throw new HttpError(401, { code: 'api_key_missing', description });
  }
  if (!given.every((value) => isSameSecret(String(value), client.apiKey))) {
    const description = "The header API-KEY does not hold this client's API key.";
    throw new HttpError(401, { code: 'api_key_refused', description });
  }
  return client;
}

function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
