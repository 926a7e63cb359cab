import * as z from 'zod';
import {
  DOCUMENT_FIELDS,
  type DocumentField,
  JSON_PROVIDER_RULES,
  type KeyFileRequest,
  type ProviderContent,
  type ProviderRules,
} from '../api/read-key-file-request';
import type { CpixSystemName } from '../drm/cpix/document';
import { SPEKE_TRACKS } from '../drm/cpix/usage-rules';
import { crossCheck } from '../drm/cross-check';
import { type Finding, isError, problemsOf } from '../drm/finding';
import type { KeyFile } from '../drm/key-file';
import { HttpError } from '../http/errors';
import { createCpixProvider, type FindRecipient, openDocument } from './cpix-provider';
import {
  type ClientRecord,
  createJsonProvider,
  type KeyProvider,
  type ProvidedKeys,
  type ProviderCall,
} from './key-provider';
import type { ReadProviderHeaders } from './provider-headers';
import {
  apiError,
  OutageError,
  type ProviderProtocol,
  UPSTREAMS,
  type Upstream,
  type UpstreamCall,
  type UpstreamName,
  upstreamUrl,
} from './upstream';

export interface Provisioned {
  readonly keyFile: KeyFile;
  /** They don't keep the key file from being written. */
  readonly warnings: readonly Finding[];
  readonly source?: 'provider_cache';
}

export type Provision = (request: KeyFileRequest, requestId: string) => Promise<Provisioned>;

interface ProvisionOptions extends AskProviderOptions {
  readonly keyProviderSystems?: readonly CpixSystemName[] | undefined;
  /** `warn` lets values through that contradict each other, except placeholders. */
  readonly checks: 'strict' | 'warn';
  readonly cmaf: boolean;
  /** Without it, encrypted content keys of CPIX documents are refused. */
  readonly cpixRecipient?: FindRecipient | undefined;
}

export function createProvision(upstreams: Upstreams, options: ProvisionOptions): Provision {
  const { checks, cmaf, cache, cpixRecipient = () => undefined } = options;
  const valuesOf = (request: KeyFileRequest, requestId: string): Values | Promise<Values> => {
    if (request.source === 'supplied') return request;
    if (request.source === 'cpix') return openDocument(request, cpixRecipient);
    return askProvider(upstreams, options, request, requestId);
  };
  return async (given, requestId) => {
    const request = given.source === 'provider' ? withSystems(given, options.keyProviderSystems) : given;
    const answered = await valuesOf(request, requestId);
    const { keyFile: values, kept, corrected = [], isChecksumComputed = false } = answered;
    const keyFile = values.cenc && (request.cmaf ?? cmaf) ? { ...values, cmaf: true } : values;
    // The provider may use its own name for the content.
    const contentId = request.source === 'provider' ? undefined : request.contentId;
    const findings =
      request.findings ?? distinct([...corrected, ...crossCheck(keyFile, contentId, { isChecksumComputed })]);
    const errors = findings.filter(isError);
    const refused = checks === 'strict' ? errors : errors.filter(({ code }) => isNeverWritten(code));
    if (refused.length > 0) throw refusal(request.source, refused);
    if (request.source !== 'provider') return { keyFile, warnings: findings };
    if (kept) return { keyFile, warnings: [...findings, keptFinding(kept)], source: 'provider_cache' };
    cache?.keep(request, values);
    return { keyFile, warnings: findings };
  };
}

export function withSystems<Content extends ProviderContent>(
  content: Content,
  systems: readonly CpixSystemName[] | undefined,
): Content {
  if (!systems) return content;
  return { ...content, choice: { ...content.choice, systems: content.choice?.systems ?? systems } };
}

interface Values extends ProvidedKeys {
  /** Set when the key provider is unreachable. */
  readonly kept?: KeptAnswer;
}

/** Two documents, or one and the values that are made of it, may have the same findings. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((each) => [`${each.code} ${each.description}`, each])).values()];
}

/** A key of zeros protects nothing, and no license server has it: there is no reason to write one. */
function isNeverWritten(code: string): boolean {
  return code === 'all_zero';
}

function refusal(source: KeyFileRequest['source'], errors: readonly Finding[]): HttpError {
  if (source !== 'provider') return new HttpError(400, problemsOf(errors));
  const what = errors.map(({ description }) => description).join(' ');
  const isPlaceholder = errors.some(({ code }) => isNeverWritten(code));
  const why = isPlaceholder ? "can't be used" : 'contradict each other';
  const description = `The key provider's values ${why}: ${what} No key file was changed.`;
  return apiError('key_provider_failed', description);
}

function keptFinding({ time, ageMs }: KeptAnswer): Finding {
  const answered = time.toISOString().replace(/\.\d+/, '');
  return {
    severity: 'warning',
    code: 'provider_cache',
    description: `the key provider can't be asked, so these are the values that it returned ${ageText(ageMs)} ago (${answered}); send the request again when it is back`,
  };
}

/** In the largest unit of which there are two at least. */
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

export interface KeptAnswer {
  readonly keyFile: KeyFile;
  readonly time: Date;
  /** The time since the provider answered. */
  readonly ageMs: number;
}

/** Failures of the cache are logged and fail no request. */
interface ProviderCache {
  /** Replaces an older answer, if there is a secret to seal it with. Returns at once. */
  keep(content: ProviderContent, keyFile: KeyFile): void;
  /** The answer that was kept for the same client, secret and content, unless it is too old. */
  find(content: ProviderContent): Promise<KeptAnswer | undefined>;
  /** Logs and counts that a kept answer was used. */
  used(time: Date, requestId: string): void;
}

interface AskProviderOptions {
  readonly cache?: ProviderCache | undefined;
  /** Called for each usable answer. Must not throw. */
  readonly onAnswer?: ((upstream: UpstreamName) => void) | undefined;
}

/** In an outage, a kept answer is taken unless an upstream refuses. @throws HttpError 422, 502, 503, 504. */
async function askProvider(
  upstreams: Upstreams,
  { cache, onAnswer }: AskProviderOptions,
  content: ProviderContent,
  requestId: string,
): Promise<Values> {
  if (upstreams.missing) {
    const description = `Keys can't be provisioned: set ${upstreams.missing.join(' and ')}, or supply cenc and fairplay in the body.`;
    throw apiError('provisioning_not_configured', description);
  }
  const given = new AbortController();
  const call = { requestId, signal: given.signal };
  // All calls run in parallel: the client record is needed only to open the provider's answers.
  const record = upstreams.readClient(content, call);
  const asked = upstreams.keyProvider.ask(content, call);
  const calls = [...(record ? [record] : []), ...asked.calls];
  const all = Promise.all(calls);
  all.catch(() => undefined);
  try {
    // The configuration service's refusal says more than the provider's error for an unknown client.
    const client = await record;
    if (record) onAnswer?.('config_service');
    await all;
    const answered = await asked.open(client);
    onAnswer?.('key_provider');
    return answered;
  } catch (thrown) {
    const kept = thrown instanceof OutageError ? await cache?.find(content) : undefined;
    if (kept) {
      // An upstream that still answers may refuse a client whose key was revoked: all are waited for.
      await refusedBy(calls);
      cache?.used(kept.time, requestId);
      return { keyFile: kept.keyFile, kept };
    }
    given.abort();
    await Promise.allSettled(calls);
    throw thrown;
  }
}

/** Rejects with the first failure that is no outage. */
async function refusedBy(calls: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(calls)) {
    if (result.status === 'rejected' && !(result.reason instanceof OutageError)) throw result.reason;
  }
}

type Upstreams = ReturnType<typeof createUpstreams>;

interface UpstreamsOptions {
  readonly configServiceUrl: string | undefined;
  readonly keyProviderUrl: string | undefined;
  readonly keyProviderProtocol?: ProviderProtocol | undefined;
  readonly providerHeaders: ReadProviderHeaders | undefined;
  readonly cpixRecipient: FindRecipient;
  readonly playReadyUrl?: string | undefined;
}

export function createUpstreams(options: UpstreamsOptions, ask: (name: UpstreamName) => Upstream) {
  const { configServiceUrl, keyProviderUrl, keyProviderProtocol: protocol = 'json' } = options;
  const isConfigServiceNeeded = protocol === 'json';
  const missing = [
    ...(isConfigServiceNeeded && configServiceUrl === undefined ? [UPSTREAMS.config_service.variable] : []),
    ...(keyProviderUrl === undefined ? [UPSTREAMS.key_provider.variable] : []),
  ];
  if (keyProviderUrl === undefined || missing.length > 0) return { missing };
  const upstream = ask('key_provider');
  const keyProvider: KeyProvider =
    protocol === 'json'
      ? createJsonProvider(keyProviderUrl, upstream, options.providerHeaders)
      : createCpixProvider({ ...options, protocol, address: keyProviderUrl, upstream });
  const configService = configServiceUrl === undefined ? undefined : ask('config_service');
  return {
    /**
     * undefined: the client is not asked for, or the request has not both its name and its key. Rejects
     * with `HttpError` 422 when one is refused, else 502 or 504.
     */
    readClient: ({ client, clientApiKey }: ProviderContent, call: ProviderCall) =>
      configService && client !== undefined && clientApiKey !== undefined
        ? readClient(configService, {
            ...call,
            clientApiKey,
            url: upstreamUrl(configServiceUrl ?? '', client),
          })
        : undefined,
    keyProvider,
  };
}

/** SPEKE requests name keys by track. */
const SPEKE_FIELDS: readonly DocumentField[] = ['track', 'systems', 'playready'];

export function providerRules({
  keyProviderProtocol: protocol = 'json',
  keyProviderUrl = '',
}: Pick<UpstreamsOptions, 'keyProviderProtocol' | 'keyProviderUrl'>): ProviderRules {
  if (protocol === 'json') return JSON_PROVIDER_RULES;
  // No request can do without a client then.
  const needed = keyProviderUrl.includes('{client}') ? (['client'] as const) : [];
  if (protocol === 'cpix') return { needed, documentFields: DOCUMENT_FIELDS };
  return { needed, documentFields: SPEKE_FIELDS, trackTypes: Object.keys(SPEKE_TRACKS) };
}

const secret = z.string().min(1).nullish();
const clientRecord = z.object({ shared_secret: secret, sharedSecret: secret });

async function readClient(upstream: Upstream, call: UpstreamCall): Promise<ClientRecord> {
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
  if (!record.success) throw upstream.failed('returned something that is not a client record');
  return { sharedSecret: record.data.shared_secret ?? record.data.sharedSecret ?? undefined };
}
