import { z } from 'zod';
import { HttpError } from '../../http/errors';
import { type Upstream, type UpstreamCall, upstreamUrl } from './upstream';

/** What the configuration service knows of a client, as far as provisioning needs it. */
export interface ClientRecord {
  /** Opens the key provider's envelopes; a client without one gets its keys in plain. */
  readonly sharedSecret: string | undefined;
}

export interface ConfigService {
  /** Reads a client's record. Throws `HttpError` 422 when the client or its key is refused, else 502 or 504. */
  client(name: string, call: Omit<UpstreamCall, 'url'>): Promise<ClientRecord>;
}

const secret = z.string().min(1).nullish();
const clientWire = z.object({ shared_secret: secret, sharedSecret: secret });

export function createConfigService(baseUrl: string, upstream: Upstream): ConfigService {
  return {
    async client(name, call) {
      const { status, json } = await upstream.get({ ...call, url: upstreamUrl(baseUrl, name) });
      if (status === 404) {
        const description = 'The configuration service does not know this client. Check client.';
        throw new HttpError(422, { code: 'client_unknown', description });
      }
      if (status === 401 || status === 403) {
        const description =
          'The configuration service refused the API key of this client. Check clientApiKey.';
        throw new HttpError(422, { code: 'client_api_key_refused', description });
      }
      if (status !== 200) throw upstream.failed(`answered ${status}`);
      const record = clientWire.safeParse(json);
      if (!record.success) throw upstream.failed('answered something that is no client record');
      return { sharedSecret: record.data.shared_secret ?? record.data.sharedSecret ?? undefined };
    },
  };
}
