import * as z from 'zod';
import {
  ASKED_BY_JSON,
  type DocumentField,
  type ProviderContent,
  type ProviderRules,
} from '../../api/read-key-file-request';
import type { CpixRecipient } from '../../drm/cpix/encryption';
import { apiError } from '../errors';
import { needsClient, type ProviderProtocol, upstreamUrl } from './address';
import { createCpixProvider } from './cpix-provider';
import { type ClientRecord, createJsonProvider, type KeyProvider } from './key-provider';
import type { ReadProviderHeaders } from './provider-headers';
import { UPSTREAMS, type Upstream, type UpstreamCall, type UpstreamName } from './upstream';

/** What keys are asked for from, or which variables are missing for that. */
export type Upstreams =
  | {
      /** Undefined where it is not asked. */
      readonly configService: ConfigService | undefined;
      readonly keyProvider: KeyProvider;
    }
  | { readonly missing: readonly string[] };

interface UpstreamsOptions {
  readonly configServiceUrl: string | undefined;
  readonly keyProviderUrl: string | undefined;
  readonly keyProviderProtocol?: ProviderProtocol | undefined;
  /** Undefined: there is no file of headers. */
  readonly providerHeaders: ReadProviderHeaders | undefined;
  readonly cpixRecipient: () => CpixRecipient | undefined;
}

/** `ask` makes what an upstream is asked with. */
export function createUpstreams(options: UpstreamsOptions, ask: (name: UpstreamName) => Upstream): Upstreams {
  const { configServiceUrl, keyProviderUrl, keyProviderProtocol: protocol = 'json' } = options;
  const isConfigServiceNeeded = protocol === 'json';
  if (keyProviderUrl === undefined || (isConfigServiceNeeded && configServiceUrl === undefined)) {
    const { config_service, key_provider } = UPSTREAMS;
    return {
      missing: [
        ...(isConfigServiceNeeded && configServiceUrl === undefined ? [config_service.variable] : []),
        ...(keyProviderUrl === undefined ? [key_provider.variable] : []),
      ],
    };
  }
  const { providerHeaders, cpixRecipient } = options;
  const upstream = ask('key_provider');
  const keyProvider =
    protocol === 'json'
      ? createJsonProvider(keyProviderUrl, upstream, providerHeaders)
      : createCpixProvider({ protocol, address: keyProviderUrl, upstream, providerHeaders, cpixRecipient });
  const configService =
    configServiceUrl === undefined ? undefined : createConfigService(configServiceUrl, ask('config_service'));
  return { configService, keyProvider };
}

/** What each protocol takes of the choice among the keys of a document: SPEKE is asked for one key. */
const TAKEN: Readonly<Record<Exclude<ProviderProtocol, 'json'>, readonly DocumentField[]>> = {
  cpix: ['kid', 'track', 'period', 'systems', 'playready'],
  speke1: ['systems', 'playready'],
  speke2: ['systems', 'playready'],
};

/** What the key provider asks of a request. */
export function providerRules({
  keyProviderProtocol: protocol = 'json',
  keyProviderUrl = '',
}: Pick<UpstreamsOptions, 'keyProviderProtocol' | 'keyProviderUrl'>): ProviderRules {
  if (protocol === 'json') return ASKED_BY_JSON;
  return { needed: needsClient(keyProviderUrl) ? ['client'] : [], taken: TAKEN[protocol] };
}

interface ConfigService {
  /**
   * Reads the record of a content's client; undefined for a request that does not say both its name and its key. Rejects
   * with `HttpError` 422 when the client or its key is refused, else 502 or 504.
   */
  client(
    content: ProviderContent,
    call: Pick<UpstreamCall, 'requestId' | 'signal'>,
  ): Promise<ClientRecord> | undefined;
}

const secret = z.string().min(1).nullish();
const clientRecord = z.object({ shared_secret: secret, sharedSecret: secret });

function createConfigService(baseUrl: string, upstream: Upstream): ConfigService {
  const read = async (call: UpstreamCall): Promise<ClientRecord> => {
    const { status, json } = await upstream.get(call);
    if (status === 404) {
      throw apiError('client_unknown', 'The configuration service does not know this client. Check client.');
    }
    if (status === 401 || status === 403) {
      const description = 'The configuration service refused the API key of this client. Check clientApiKey.';
      throw apiError('client_api_key_refused', description);
    }
    if (status !== 200) throw upstream.failed(`answered ${status}`);
    const record = clientRecord.safeParse(json);
    if (!record.success) throw upstream.failed('answered something that is not a client record');
    return { sharedSecret: record.data.shared_secret ?? record.data.sharedSecret ?? undefined };
  };
  return {
    client: ({ client, clientApiKey }, call) =>
      client === undefined || clientApiKey === undefined
        ? undefined
        : read({ ...call, clientApiKey, url: upstreamUrl(baseUrl, client) }),
  };
}
