import type { KeyFileRequest } from '../../api/read-key-file-request';
import { crossCheck, type Finding } from '../../drm/cross-check';
import type { CmafScheme, KeyFile } from '../../drm/key-file';
import { HttpError } from '../../http/errors';
import {
  type AskProviderOptions,
  createAskProvider,
  type ProviderAnswer,
  type Upstreams,
} from './ask-provider';
import type { KeptAnswer } from './provider-cache';

export interface Provisioned {
  readonly keyFile: KeyFile;
  /** What is odd about the key file and yet written. */
  readonly warnings: readonly Finding[];
  /** Set when the values were taken from the provider cache. */
  readonly source?: 'provider_cache';
}

export type Provision = (request: KeyFileRequest, requestId: string) => Promise<Provisioned>;

export interface ProvisionOptions extends AskProviderOptions {
  /** `strict` refuses values that contradict each other, `warn` lets them through. */
  readonly checks: 'strict' | 'warn';
  /** Whether CMAF lines are written when a request says nothing of them. */
  readonly cmaf: CmafScheme | false;
}

/** Makes the step from a request to the key file to write. */
export function createProvision(upstreams: Upstreams, options: ProvisionOptions): Provision {
  const { checks, cmaf, cache } = options;
  const ask = createAskProvider(upstreams, options);
  return async (request, requestId) => {
    const { keyFile: values, kept }: ProviderAnswer =
      request.source === 'supplied' ? request : await ask(request, requestId);
    const scheme = request.cmaf ?? cmaf;
    const keyFile = values.cenc && scheme ? { ...values, cmaf: scheme } : values;
    const findings = request.findings ?? findingsOf(request, keyFile);
    const errors = findings.filter(({ severity }) => severity === 'error');
    if (checks === 'strict' && errors.length > 0) throw refusal(request.source, errors);
    if (request.source === 'supplied') return { keyFile, warnings: findings };
    if (kept) return { keyFile, warnings: [...findings, keptFinding(kept)], source: 'provider_cache' };
    cache?.keep(request, values);
    return { keyFile, warnings: findings };
  };
}

function findingsOf(request: KeyFileRequest, keyFile: KeyFile): Finding[] {
  if (request.source === 'provider') return crossCheck(keyFile, request.contentId);
  const { contentId, isChecksumComputed = false, mended = [] } = request;
  return [...mended, ...crossCheck(keyFile, contentId, { isChecksumComputed })];
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

/** What a `Warning` says of values that the provider did not answer just now. */
function keptFinding({ time, ageMs }: KeptAnswer): Finding {
  const answered = time.toISOString().replace(/\.\d+/, '');
  return {
    severity: 'warning',
    code: 'provider_cache',
    description: `the key provider can't be asked, so these are the values that it answered ${ageText(ageMs)} ago (${answered}); send the request again when it is back`,
  };
}

/** An age in its largest whole unit of which there are two at least. */
function ageText(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const [size, unit] = UNITS.find(([least]) => seconds >= 2 * least) ?? [1, 'second'];
  const count = Math.floor(seconds / size);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
];
