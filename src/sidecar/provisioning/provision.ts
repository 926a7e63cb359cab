import { crossCheck, type Finding } from '../../drm/cross-check';
import type { CmafScheme, KeyFile } from '../../drm/key-file';
import { HttpError } from '../../kernel/errors';
import type { KeyFileRequest, ProviderContent } from '../key-files/key-file-request';
import type { ConfigService } from './config-service';
import type { KeyProvider } from './key-provider';

/** Both upstreams, or which variables are missing for them. */
export type Upstreams =
  | { readonly configService: ConfigService; readonly keyProvider: KeyProvider }
  | { readonly missing: readonly string[] };

export interface Provisioned {
  readonly keyFile: KeyFile;
  /** What is odd about the key file and yet written. */
  readonly warnings: readonly Finding[];
}

export type Provision = (request: KeyFileRequest, requestId: string) => Promise<Provisioned>;

export interface ProvisionOptions {
  /** `strict` refuses values that contradict each other, `warn` lets them through. */
  readonly checks: 'strict' | 'warn';
  /** Whether CMAF lines are written when a request says nothing of them. */
  readonly cmaf: CmafScheme | false;
}

/** Makes the step from a request to the key file to write. */
export function createProvision(upstreams: Upstreams, { checks, cmaf }: ProvisionOptions): Provision {
  return async (request, requestId) => {
    const values =
      request.source === 'supplied' ? request.keyFile : await fromProvider(upstreams, request, requestId);
    const scheme = request.cmaf ?? cmaf;
    const keyFile = values.cenc && scheme ? { ...values, cmaf: scheme } : values;
    const findings = crossCheck(keyFile, request.contentId);
    const errors = findings.filter(({ severity }) => severity === 'error');
    if (checks === 'strict' && errors.length > 0) throw refusal(request.source, errors);
    return { keyFile, warnings: findings };
  };
}

async function fromProvider(
  upstreams: Upstreams,
  content: ProviderContent,
  requestId: string,
): Promise<KeyFile> {
  if ('missing' in upstreams) {
    const description = `Keys can't be provisioned: set ${upstreams.missing.join(' and ')}, or supply cenc and fairplay in the body.`;
    throw new HttpError(503, { code: 'provisioning_not_configured', description });
  }
  const { configService, keyProvider } = upstreams;
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
    const [client, sealedCenc, sealedFairplay] = await all;
    return keyProvider.open({ cenc: sealedCenc, fairplay: sealedFairplay }, content.client, client);
  } catch (thrown) {
    given.abort();
    await Promise.allSettled([record, cenc, fairplay]);
    throw thrown;
  }
}

function refusal(source: KeyFileRequest['source'], errors: readonly Finding[]): HttpError {
  if (source === 'supplied') {
    return new HttpError(
      400,
      errors.map(({ code, description }) => ({ code, description: `${description}.` })),
    );
  }
  const what = errors.map(({ description }) => description).join('; ');
  const description = `The key provider's values contradict each other: ${what}. No key file was changed.`;
  return new HttpError(502, { code: 'key_provider_failed', description });
}
