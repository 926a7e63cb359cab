import * as z from 'zod';
import { checkedText, checkedValue } from '../../api/key-file-request';
import type { ProviderContent } from '../../api/read-key-file-request';
import { decodeBase64Block, decodeHexBlock } from '../../drm/bytes';
import { type EnvelopeFault, openEnvelope } from '../../drm/envelope';
import type { KeyFile } from '../../drm/key-file';
import { checkLicenseUrl } from '../../drm/license-url';
import { decodePlayReadyChecksum, playReadyChecksum } from '../../drm/playready';
import { readWidevinePsshData } from '../../drm/widevine';
import { apiError } from '../errors';
import { UPSTREAMS, type Upstream, type UpstreamCall, type UpstreamName, upstreamUrl } from './upstream';

/** Both upstreams, or which variables are missing for them. */
export type Upstreams =
  | { readonly configService: ConfigService; readonly keyProvider: KeyProvider }
  | { readonly missing: readonly string[] };

/** `ask` makes what an upstream is asked with. */
export function createUpstreams(
  addresses: { readonly configServiceUrl: string | undefined; readonly keyProviderUrl: string | undefined },
  ask: (name: UpstreamName) => Upstream,
): Upstreams {
  const { configServiceUrl, keyProviderUrl } = addresses;
  if (configServiceUrl !== undefined && keyProviderUrl !== undefined) {
    return {
      configService: createConfigService(configServiceUrl, ask('config_service')),
      keyProvider: createKeyProvider(keyProviderUrl, ask('key_provider')),
    };
  }
  const { config_service, key_provider } = UPSTREAMS;
  return {
    missing: [
      ...(configServiceUrl === undefined ? [config_service.variable] : []),
      ...(keyProviderUrl === undefined ? [key_provider.variable] : []),
    ],
  };
}

/** What the configuration service knows of a client, as far as provisioning needs it. */
interface ClientRecord {
  /** Opens the key provider's envelopes; a client without one gets its keys in plain. */
  readonly sharedSecret: string | undefined;
}

interface ConfigService {
  /** Reads a client's record. Throws `HttpError` 422 when the client or its key is refused, else 502 or 504. */
  client(name: string, call: Omit<UpstreamCall, 'url'>): Promise<ClientRecord>;
}

const secret = z.string().min(1).nullish();
const clientRecord = z.object({ shared_secret: secret, sharedSecret: secret });

function createConfigService(baseUrl: string, upstream: Upstream): ConfigService {
  return {
    async client(name, call) {
      const { status, json } = await upstream.get({ ...call, url: upstreamUrl(baseUrl, name) });
      if (status === 404) {
        throw apiError(
          'client_unknown',
          'The configuration service does not know this client. Check client.',
        );
      }
      if (status === 401 || status === 403) {
        const description =
          'The configuration service refused the API key of this client. Check clientApiKey.';
        throw apiError('client_api_key_refused', description);
      }
      if (status !== 200) throw upstream.failed(`answered ${status}`);
      const record = clientRecord.safeParse(json);
      if (!record.success) throw upstream.failed('answered something that is not a client record');
      return { sharedSecret: record.data.shared_secret ?? record.data.sharedSecret ?? undefined };
    },
  };
}

/** The answer to one key request, still closed: reading it needs the client's shared secret. */
type SealedKeys = { readonly json: unknown };

interface KeyProvider {
  /** Asks for a content's keys. The same content id always has the same keys. */
  fetch(system: 'cenc' | 'fairplay', content: ProviderContent, call: ProviderCall): Promise<SealedKeys>;
  /** Opens and checks both answers. Throws `HttpError` 502 for whatever can't be trusted or is missing. */
  open(sealed: { cenc: SealedKeys; fairplay: SealedKeys }, client: string, record: ClientRecord): KeyFile;
}

type ProviderCall = Omit<UpstreamCall, 'url' | 'clientApiKey'>;

const envelopeAnswer = z.object({ key: z.string() });

const checksum = checkedText(decodePlayReadyChecksum).nullish();

const cencAnswer = z.object({
  key_id_big: checkedText(decodeBase64Block),
  content_key: checkedText(decodeBase64Block),
  playready_laurl: checkedText(checkLicenseUrl('playready')),
  widevine_drm_specific_data: checkedValue(readWidevinePsshData),
  checksum,
  playready_checksum: checksum,
});

const fairplayAnswer = z.object({
  key_hex: checkedText(decodeHexBlock),
  iv_hex: checkedText(decodeHexBlock),
  laurl: checkedText(checkLicenseUrl('fairplay')),
});

const ENVELOPE_FAULTS: Readonly<Record<EnvelopeFault, string>> = {
  secret_too_short: 'answered an envelope, but the shared secret of this client is too short to open it',
  malformed: 'answered an envelope without the form base64|hash',
  hash_mismatch:
    'answered an envelope whose hash is wrong: it was changed, or sealed with another shared secret',
  undecryptable: 'answered an envelope that does not decrypt',
};

function createKeyProvider(baseUrl: string, upstream: Upstream): KeyProvider {
  const unseal = ({ json }: SealedKeys, client: string, { sharedSecret }: ClientRecord): unknown => {
    const envelope = envelopeAnswer.safeParse(json);
    if (sharedSecret === undefined) {
      if (!envelope.success) return json;
      throw upstream.failed('answered an envelope, but the client record holds no shared secret to open it');
    }
    if (!envelope.success) throw upstream.failed('answered in plain where an encrypted envelope is due');
    const opened = openEnvelope(envelope.data.key, { client, sharedSecret });
    if (!opened.ok) throw upstream.failed(ENVELOPE_FAULTS[opened.fault]);
    try {
      return JSON.parse(opened.text);
    } catch {
      throw upstream.failed('answered an envelope that holds no JSON');
    }
  };

  const read = <Output>(schema: z.ZodType<Output>, system: string, keys: unknown): Output => {
    const parsed = schema.safeParse(keys);
    if (parsed.success) return parsed.data;
    const names = [
      ...new Set(parsed.error.issues.map((issue) => issue.path.join('.') || 'the whole answer')),
    ];
    throw upstream.failed(`answered ${system} keys with missing or wrong values: ${names.join(', ')}`);
  };

  return {
    async fetch(system, { client, clientApiKey, contentId }, call) {
      const url = upstreamUrl(baseUrl, system, client, contentId);
      const { status, json } = await upstream.get({ ...call, clientApiKey, url });
      if (status === 401 || status === 403) {
        const description = 'The key provider refused the API key of this client. Check clientApiKey.';
        throw apiError('client_api_key_refused', description);
      }
      if (status !== 200) throw upstream.failed(`answered ${status}`);
      return { json };
    },

    open(sealed, client, record) {
      const cenc = read(cencAnswer, 'cenc', unseal(sealed.cenc, client, record));
      const fairplay = read(fairplayAnswer, 'fairplay', unseal(sealed.fairplay, client, record));
      const keyId = Buffer.from(cenc.key_id_big, 'base64');
      const contentKey = Buffer.from(cenc.content_key, 'base64');
      return {
        cenc: { keyId: cenc.key_id_big, contentKey: cenc.content_key },
        widevine: { psshData: cenc.widevine_drm_specific_data.payload },
        playready: {
          licenseUrl: cenc.playready_laurl,
          checksum: cenc.checksum ?? cenc.playready_checksum ?? playReadyChecksum(keyId, contentKey),
        },
        fairplay: { licenseUrl: fairplay.laurl, key: fairplay.key_hex, iv: fairplay.iv_hex },
      };
    },
  };
}
