import { X509Certificate } from 'node:crypto';
import { check } from '../../api/check';
import { formatUuid } from '../../drm/bytes';
import { cpixSystemOf, schemeName } from '../../drm/cpix/document';
import { decodeXml, looksLikeCpixBytes, readCpix } from '../../drm/cpix/read';
import { type Finding, isError } from '../../drm/finding';
import type { KeyFile } from '../../drm/key-file';
import { ConfigError } from '../../http/config';
import { HttpError } from '../../http/errors';
import type { Log } from '../../http/log';
import { openUpstreamTls, type ProviderConfig, readProviderConfig } from '../../provider/config';
import { openCpixRecipient } from '../../provider/cpix-recipient';
import { openProviderHeaders } from '../../provider/provider-headers';
import { createProvision, createUpstreams, providerRules } from '../../provider/provision';
import {
  createUpstream,
  errorText,
  PROVIDER_PROTOCOLS,
  type ProviderProtocol,
  type TracedCall,
  withoutSecrets,
} from '../../provider/upstream';
import { CliError, EXIT, interrupted, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { type ProviderOptions, providerFields } from '../input';
import { showProviderTest } from './provider-test-text';

const URL_VARIABLE = 'PACKAGERDRMAPI_KEYPROVIDERURL';
const PROTOCOL = 'PACKAGERDRMAPI_KEYPROVIDERPROTOCOL';

/** A key in an answer, or in the key file that is made of it. */
export interface ShownKey {
  readonly keyid: string;
  readonly scheme: string | null;
  readonly systems: readonly string[];
}

/** A call without its secrets, and what is known of its answer. */
export type ShownCall = ReturnType<typeof shownCall>;

export interface TestedProtocol {
  readonly protocol: ProviderProtocol;
  readonly calls: readonly ShownCall[];
  /** What the sidecar would write; null: nothing. */
  readonly keyfile: { readonly keys: readonly ShownKey[]; readonly addresses: readonly string[] } | null;
  readonly faults: readonly Finding[];
  /** Whether the sidecar would write the key file. */
  readonly usable: boolean;
}

export interface ProviderTest {
  readonly contentId: string;
  /** The protocol that the sidecar asks by with these settings. */
  readonly configured: ProviderProtocol;
  readonly tested: readonly TestedProtocol[];
  /** The protocols that settings or options rule out, and why. */
  readonly notTested: readonly { readonly protocol: ProviderProtocol; readonly why: string }[];
  readonly certificates: readonly { readonly of: string; readonly ends: string; readonly expired: boolean }[];
}

/** `provider test`: asks the key provider as the sidecar would by its variables, and shows all but secrets. Writes nothing. */
export async function testProvider(
  context: CliContext,
  contentId = 'packager-drm-test',
  options: ProviderOptions = {},
): Promise<void> {
  const { env, out } = context;
  if (!env[URL_VARIABLE])
    throw usageError(
      `${URL_VARIABLE} is missing: run this with the variables of the sidecar, such as docker compose exec sidecar packager-drm provider test.`,
    );
  const asked: Asked = { contentId, ...providerFields(context, options) };
  const configured = PROVIDER_PROTOCOLS.find((known) => known === env[PROTOCOL]) ?? 'json';
  const candidates = env[PROTOCOL] ? [configured] : PROVIDER_PROTOCOLS;
  const tested: TestedProtocol[] = [];
  const notTested: ProviderTest['notTested'][number][] = [];
  const certificates = new Map<string, Date>();
  for (const protocol of candidates) {
    try {
      const config = readProviderConfig(env[PROTOCOL] ? env : { ...env, [PROTOCOL]: protocol });
      const why = whyNot(config, protocol, asked);
      if (why === undefined) tested.push(await testProtocol(context, config, asked, certificates));
      else notTested.push({ protocol, why });
    } catch (thrown) {
      if (!(thrown instanceof ConfigError)) throw thrown;
      if (env[PROTOCOL])
        throw new CliError(
          EXIT.usage,
          thrown.faults.map((description) => ({ code: 'configuration', description })),
        );
      notTested.push({ protocol, why: thrown.faults.join('; ') });
    }
    if (context.interrupted.aborted) throw interrupted();
    // The other protocols would be asked for at the same server.
    if (tested.at(-1)?.calls.every(({ status }) => status === null)) break;
  }
  const ends = [...certificates].map(([of, end]) => ({
    of,
    ends: end.toISOString(),
    expired: end <= context.now(),
  }));
  const result = { contentId, configured, tested, notTested, certificates: ends };
  if (out.json) out.document(result);
  else showProviderTest(out, result);
  if (!tested.some((each) => each.protocol === configured && each.usable)) context.endWith(EXIT.failed);
}

interface Asked {
  readonly contentId: string;
  readonly client?: string;
  readonly clientApiKey?: string;
}

const OPTIONS = { client: '--client', clientApiKey: '--client-api-key-file' } as const;

/** Why a protocol can't be asked by; undefined: it can. */
function whyNot(config: ProviderConfig, protocol: ProviderProtocol, asked: Asked): string | undefined {
  const { needed } = providerRules({ ...config, keyProviderProtocol: protocol });
  const missing = [
    ...(protocol === 'json' && config.configServiceUrl === undefined
      ? ['PACKAGERDRMAPI_GRANDCENTRALURL']
      : []),
    ...needed.filter((name) => asked[name] === undefined).map((name) => OPTIONS[name]),
  ];
  return missing.length === 0 ? undefined : `needs ${missing.join(' and ')}`;
}

async function testProtocol(
  context: CliContext,
  config: ProviderConfig,
  asked: Asked,
  certificates: Map<string, Date>,
): Promise<TestedProtocol> {
  const { keyProviderHeadersFile: headersFile, upstreamTls, cpix, keyProviderProtocol = 'json' } = config;
  const { now: clock, random } = context;
  const log = logOf(context);
  const headers = headersFile === undefined ? undefined : openProviderHeaders(headersFile, { log });
  const tls = upstreamTls && openUpstreamTls(upstreamTls, { log, clock });
  const recipient = cpix && openCpixRecipient(cpix, { log, clock });
  const tunnel = config.proxy && (await import('../../provider/proxy')).createTunnel(config.proxy);
  const traced: TracedCall[] = [];
  const cpixRecipient = () => recipient?.recipient();
  const upstreams = createUpstreams({ ...config, providerHeaders: headers?.read, cpixRecipient }, (name) =>
    createUpstream(name, {
      timeoutMs: config.upstreamTimeoutMs,
      ...{ tls: tls?.tls, tunnel },
      log,
      now: () => clock().getTime(),
      trace: (call) => traced.push(call),
    }),
  );
  // Faults are collected with their codes, in place of one error that names them all.
  const provision = createProvision(upstreams, { ...config, checks: 'warn', cmaf: false, cpixRecipient });
  const findings: Finding[] = [];
  let keyFile: KeyFile | undefined;
  try {
    const request = { source: 'provider', ...asked, cmaf: undefined } as const;
    const provisioned = await provision(request, formatUuid(random(16)));
    keyFile = provisioned.keyFile;
    findings.push(...provisioned.warnings);
  } catch (thrown) {
    if (!(thrown instanceof HttpError)) throw thrown;
    findings.push(...thrown.problems.map((problem) => ({ severity: 'error' as const, ...problem })));
  } finally {
    for (const opened of [headers, tls, recipient]) opened?.close();
  }
  for (const { upstream, answer } of traced)
    if (answer?.certificateEnd) certificates.set(`server, ${upstream}`, answer.certificateEnd);
  const cert = tls?.tls().cert;
  if (cert) certificates.set('client, for upstreams', new Date(new X509Certificate(cert).validTo));
  const received = recipient?.recipient().certificate;
  if (received) certificates.set('recipient of CPIX keys', new Date(new X509Certificate(received).validTo));
  const calls = traced.map((call) => shownCall(call, asked));
  // What is found in the key file is not said again of the documents that it is made of.
  const ofDocuments = traced
    .flatMap((call) => documentFaults(call, keyFile !== undefined))
    .filter(({ code }) => !findings.some((each) => each.code === code));
  const faults = [...findings, ...ofDocuments].map(
    (fault) => [JSON.stringify(fault), sentence(fault)] as const,
  );
  return {
    protocol: keyProviderProtocol,
    calls,
    keyfile: keyFile ? { keys: keysOf(keyFile), addresses: addressesOf(keyFile) } : null,
    faults: [...new Map(faults).values()],
    usable: keyFile !== undefined && !findings.some(isError),
  };
}

/** Nothing is written here, so that it goes without saying. */
function sentence(fault: Finding): Finding {
  return { ...fault, description: fault.description.replace(/ No key file was changed\.$/, '') };
}

/** What `check` says of the documents in an answer. */
function documentFaults({ answer }: TracedCall, isWritten: boolean): readonly Finding[] {
  const text = documentIn(answer);
  if (text === undefined) return [];
  const { faults } = check(text, { rules: 'unknown' });
  // The address may come from the settings.
  return faults.filter(({ code }) => !(isWritten && code === 'no_license_address'));
}

function documentIn(answer: TracedCall['answer']): string | undefined {
  if (answer?.status !== 200 || !looksLikeCpixBytes(answer.body)) return undefined;
  const text = decodeXml(answer.body);
  return text.ok ? text.value : undefined;
}

function shownCall(call: TracedCall, { contentId, client }: Asked) {
  const { upstream, method, url, headers, secrets, body = null, ms, answer, failure = null } = call;
  const document = documentIn(answer);
  const { location } = answer?.headers ?? {};
  return {
    upstream,
    method,
    url: shownUrl(url, secrets, [contentId, client ?? '']),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, secrets.includes(value) ? '…' : value]),
    ),
    body,
    asks: body === null ? [] : keysIn(body),
    status: answer?.status ?? null,
    failure,
    ms: Math.round(ms),
    contentType: answer?.headers['content-type'] ?? null,
    text: answer && answer.status !== 200 ? (errorText(answer, secrets) ?? null) : null,
    location: location === undefined ? null : shownUrl(new URL(location, url).href, secrets, []),
    keys: document === undefined ? [] : keysIn(document),
  };
}

/** An address without the operator's values in its query, and without tokens in its path. */
function shownUrl(url: string, secrets: readonly string[], known: readonly string[]): string {
  const { origin, pathname, searchParams } = new URL(url);
  const shown = (text: string) => {
    if (secrets.includes(text)) return '…';
    return known.includes(text) || UUID.test(text) ? text : withoutSecrets(text, secrets);
  };
  const query = [...searchParams].map(([name, value]) => `${name}=${shown(value)}`).join('&');
  return origin + pathname.split('/').map(shown).join('/') + (query && `?${query}`);
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function keysIn(text: string): ShownKey[] {
  const read = readCpix(text);
  if (!read.ok) return [];
  const { keys, systems } = read.value;
  return keys.map((key) => ({
    keyid: formatUuid(key.keyId),
    scheme: schemeName(key) ?? null,
    systems: systems
      .filter(({ keyId }) => keyId.equals(key.keyId))
      .map(({ systemId }) => cpixSystemOf(systemId) ?? systemId),
  }));
}

function keysOf({ cenc, widevine, playready, fairplay }: KeyFile): ShownKey[] {
  const ofCenc = [...(widevine ? ['widevine'] : []), ...(playready ? ['playready'] : [])];
  return [
    ...(cenc
      ? [{ keyid: formatUuid(Buffer.from(cenc.keyId, 'base64')), scheme: 'cenc', systems: ofCenc }]
      : []),
    ...(fairplay ? [{ keyid: '', scheme: 'cbcs', systems: ['fairplay'] }] : []),
  ];
}

function addressesOf({ playready, fairplay }: KeyFile): string[] {
  return [playready?.licenseUrl ?? [], fairplay?.licenseUrl ?? []].flat();
}

/** What is read is shown elsewhere; what is odd about it, here. */
function logOf({ out }: CliContext): Log {
  const nothing = () => undefined;
  const warn: Log['warn'] = (message, fields) => out.warn([message, fields?.file].filter(Boolean).join(': '));
  return { error: warn, warn, info: nothing, debug: nothing };
}
