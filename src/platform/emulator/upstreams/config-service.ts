import type { IncomingHttpHeaders } from 'node:http';
import type { Express } from 'express';
import * as z from 'zod';
import { PROVIDER_ID } from '../../../drm/envelope';
import { routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { isSameSecret } from '../../../http/secret';
import { field } from '../json-body';

/** The shared secret seals the envelopes of an account. The configuration service alone sends it. */
export interface Client {
  readonly name: string;
  readonly apiKey: string;
  readonly sharedSecret: string;
}

/** By name. */
export type Clients = ReadonlyMap<string, Client>;

/** @throws HttpError 400 unless it can be one. */
export function requireContentId(contentId: string | undefined): string {
  if (contentId !== undefined && PROVIDER_ID.pattern.test(contentId)) return contentId;
  const description = 'A content id is 1 to 200 letters, digits, _, - and ., and not . or ..';
  throw new HttpError(400, { code: 'invalid_content_id', description });
}

/** Older documents of the platform write the header with an underscore, newer ones with a dash. */
const HEADERS = ['api-key', 'api_key'];

/** Finds the client; `API-KEY`, `API_KEY` or both must have its key. @throws HttpError 404, 401. */
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

/** License addresses on names that are reserved for examples (RFC 2606): a player that calls one gets no answer. */
export const PLAYREADY_LICENSE_URL = 'https://playready-license.example.com/rightsmanager.asmx';
export const WIDEVINE_LICENSE_URL = 'https://widevine-license.example.com/proxy';
export const FAIRPLAY_LICENSE_URL = 'skd://fairplay-license.example.com/license';
/** The same server as players of HLS on the web call it, and where they get its certificate. */
export const FAIRPLAY_SPC_URL = 'https://fairplay-license.example.com/license';
export const FAIRPLAY_CERTIFICATE_URL = 'https://fairplay-license.example.com/certificate';
export const AES_KEY_URL = 'https://keyprovider.example.com/aes/getkey';

export const ClientRecord = z.object({
  client: field(z.string(), 'The name of the client.'),
  shared_secret: field(z.string(), 'The secret that seals the envelopes of the key provider.'),
  drm_providers: field(z.array(z.string()), 'The DRM systems of the client.'),
  license_urls: field(z.record(z.string(), z.string()), 'Where players get licenses, by the DRM system.'),
});

export function clientRecord({ name, sharedSecret }: Client): z.output<typeof ClientRecord> {
  const licenseUrls = {
    widevine: WIDEVINE_LICENSE_URL,
    playready: PLAYREADY_LICENSE_URL,
    fairplay: FAIRPLAY_LICENSE_URL,
  };
  return {
    client: name,
    shared_secret: sharedSecret,
    drm_providers: Object.keys(licenseUrls),
    license_urls: licenseUrls,
  };
}

/** The configuration service: the DRM settings of an account, including its shared secret. */
export function mountConfigService(app: Express, { clients }: { readonly clients: Clients }): void {
  routeAt(app, '/config/v1/clients/:client').get(({ params, headers }, response) => {
    const client = authorizedClient(clients, params.client, headers);
    response.set('cache-control', 'no-store').json(clientRecord(client));
  });
}
