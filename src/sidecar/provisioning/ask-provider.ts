import type { ProviderContent } from '../../api/read-key-file-request';
import type { KeyFile } from '../../drm/key-file';
import { HttpError } from '../../http/errors';
import type { ConfigService } from './config-service';
import type { KeyProvider } from './key-provider';
import type { KeptAnswer, ProviderCache } from './provider-cache';
import { OutageError } from './upstream';

/** Both upstreams, or which variables are missing for them. */
export type Upstreams =
  | { readonly configService: ConfigService; readonly keyProvider: KeyProvider }
  | { readonly missing: readonly string[] };

/** A content's values. */
export interface ProviderAnswer {
  readonly keyFile: KeyFile;
  /** Set when they were taken from the cache, since the provider could not be asked. */
  readonly kept?: KeptAnswer;
}

/**
 * Asks for a content's keys. Throws `HttpError` 422, 502, 503 or 504; where that is for an outage, a kept answer is
 * taken instead, unless an upstream that does answer refuses.
 */
export type AskProvider = (content: ProviderContent, requestId: string) => Promise<ProviderAnswer>;

export interface AskProviderOptions {
  readonly cache?: ProviderCache | undefined;
  /** Told of each upstream that gave an answer that can be used. Must not throw. */
  readonly onAnswer?: ((upstream: 'config_service' | 'key_provider') => void) | undefined;
}

export function createAskProvider(
  upstreams: Upstreams,
  { cache, onAnswer = () => undefined }: AskProviderOptions,
): AskProvider {
  if ('missing' in upstreams) {
    const description = `Keys can't be provisioned: set ${upstreams.missing.join(' and ')}, or supply cenc and fairplay in the body.`;
    return async () => {
      throw new HttpError(503, { code: 'provisioning_not_configured', description });
    };
  }
  const { configService, keyProvider } = upstreams;
  return async (content, requestId) => {
    const given = new AbortController();
    const call = { requestId, signal: given.signal };
    const { clientApiKey } = content;
    // The three calls run beside each other: the client record is needed only to open what the provider answers.
    const record = configService.client(content.client, { ...call, clientApiKey });
    const cenc = keyProvider.fetch('cenc', content, call);
    const fairplay = keyProvider.fetch('fairplay', content, call);
    const all = Promise.all([record, cenc, fairplay]);
    all.catch(() => undefined);
    try {
      // The configuration service's refusal says more than what the provider makes of an unknown client.
      await record;
      onAnswer('config_service');
      const [client, sealedCenc, sealedFairplay] = await all;
      const keyFile = keyProvider.open(
        { cenc: sealedCenc, fairplay: sealedFairplay },
        content.client,
        client,
      );
      onAnswer('key_provider');
      return { keyFile };
    } catch (thrown) {
      const kept = thrown instanceof OutageError ? await cache?.find(content) : undefined;
      if (kept) {
        // Whoever of them still answers may refuse a client whose key was revoked: all are heard.
        await refusedBy([record, cenc, fairplay]);
        cache?.used(kept.time, requestId);
        return { keyFile: kept.keyFile, kept };
      }
      given.abort();
      await Promise.allSettled([record, cenc, fairplay]);
      throw thrown;
    }
  };
}

/** Rejects with the first failure that is no outage. */
async function refusedBy(calls: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(calls)) {
    if (result.status === 'rejected' && !(result.reason instanceof OutageError)) throw result.reason;
  }
}
