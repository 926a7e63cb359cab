import { X509Certificate } from 'node:crypto';
import { check } from '../../api/check';
import { formatUuid, type JsonObject, parseUuid } from '../../drm/bytes';
import { cpixSystemOf, schemeName } from '../../drm/cpix/document';
import { decodeXml, looksLikeCpixBytes, readCpix } from '../../drm/cpix/read';
import { type Finding, isError } from '../../drm/finding';
import { type KeyFile, keyFileLines, maskLines } from '../../drm/key-file';
import { ConfigError } from '../../http/config';
import { HttpError } from '../../http/errors';
import { whyNoAnswer } from '../../http/get-request';
import type { Log } from '../../http/log';
import { HIDDEN } from '../../http/secret';
import { openUpstreamTls, type ProviderConfig, readProviderConfig } from '../../provider/config';
import { openCpixRecipient } from '../../provider/cpix-recipient';
import { openProviderHeaders } from '../../provider/provider-headers';
import { createProvision, createUpstreams, providerRules } from '../../provider/provision';
import {
  createUpstream,
  errorText,
  PROVIDER_PROTOCOLS,
  type ProviderProtocol,
  REMEDIES,
  type TracedCall,
  withoutSecrets,
} from '../../provider/upstream';
import type { Output } from '../../terminal/output';
import { columns, shown } from '../../terminal/text';
import { CliError, EXIT, interrupted, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { findingText } from '../findings-text';
import { providerFields } from '../input';
import { requireValues } from '../manifest/manifest-fields';
import type { Options } from '../options';

const URL_VARIABLE = 'PACKAGERDRMAPI_KEYPROVIDERURL';
const PROTOCOL = 'PACKAGERDRMAPI_KEYPROVIDERPROTOCOL';

interface ShownKey {
  readonly keyid: string;
  readonly scheme: string | null;
  readonly systems: readonly string[];
}

type TestedProtocol = Awaited<ReturnType<typeof testProtocol>>;

interface ProviderTest {
  readonly contentId: string;
  /** The sidecar's protocol with these settings. */
  readonly configured: ProviderProtocol;
  readonly tested: readonly TestedProtocol[];
  readonly notTested: readonly { readonly protocol: ProviderProtocol; readonly why: string }[];
  readonly certificates: readonly { readonly of: string; readonly ends: string; readonly expired: boolean }[];
}

export async function testProvider(
  context: CliContext,
  contentId = 'packager-drm-test',
  options: Options = {},
): Promise<void> {
  const { env, out } = context;
  if (!env[URL_VARIABLE])
    throw usageError(
      `${URL_VARIABLE} is missing: run this with the variables of the sidecar, such as docker compose exec sidecar packager-drm provider test.`,
    );
  const asked: Asked = { contentId, ...providerFields(context, options) };
  requireValues(asked);
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
    // The other protocols would call the same server.
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

interface Asked extends JsonObject {
  readonly contentId: string;
  readonly client?: string;
  readonly clientApiKey?: string;
}

const OPTIONS = { client: '--client', clientApiKey: '--client-api-key-file' } as const;

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
) {
  const { keyProviderHeadersFile: headersFile, upstreamTls, cpix, keyProviderProtocol = 'json' } = config;
  const { now: clock, random, out } = context;
  // Files that are read are shown elsewhere; their warnings, here.
  const warn: Log['warn'] = (message, fields) => out.warn([message, fields?.file].filter(Boolean).join(': '));
  const log: Log = { error: warn, warn, info: () => undefined, debug: () => undefined };
  const headers = headersFile === undefined ? undefined : openProviderHeaders(headersFile, { log });
  const tls = upstreamTls && openUpstreamTls(upstreamTls, { log, clock });
  const recipient = cpix && openCpixRecipient(cpix, { log, clock });
  const tunnel = config.proxy && (await import('../../provider/proxy')).createTunnel(config.proxy);
  const traced: TracedCall[] = [];
  const cpixRecipient = () => recipient?.current();
  const upstreams = createUpstreams({ ...config, providerHeaders: headers?.current, cpixRecipient }, (name) =>
    createUpstream(name, {
      timeoutMs: config.upstreamTimeoutMs,
      ...{ tls: tls?.current, tunnel },
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
  const cert = tls?.current().cert;
  if (cert) certificates.set('client, for upstreams', new Date(new X509Certificate(cert).validTo));
  const received = recipient?.current().certificate;
  if (received) certificates.set('recipient of CPIX keys', new Date(new X509Certificate(received).validTo));
  const calls = traced.map((call) => shownCall(call, asked));
  // Findings in the key file are not repeated for the documents that it is made of.
  const ofDocuments = traced
    .flatMap((call) => documentFaults(call, keyFile !== undefined))
    .filter(({ code }) => !findings.some((each) => each.code === code));
  const faults = [...findings, ...ofDocuments].map((fault) => {
    // Nothing is written here, so that it goes without saying.
    const description = fault.description.replace(/ No key file was changed\.$/, '');
    return [JSON.stringify(fault), { ...fault, description }] as const;
  });
  return {
    protocol: keyProviderProtocol,
    calls,
    keyfile: keyFile
      ? {
          keys: keysOf(keyFile),
          addresses: maskLines(keyFileLines(keyFile)).flatMap(({ name, value }) =>
            name.endsWith('-url') ? [value] : [],
          ),
        }
      : null,
    faults: [...new Map(faults).values()],
    /** Whether the sidecar would write the key file. */
    usable: keyFile !== undefined && !findings.some(isError),
  };
}

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
      Object.entries(headers).map(([name, value]) => [name, secrets.includes(value) ? HIDDEN : value]),
    ),
    body,
    asks: body === null ? [] : keysIn(body),
    status: answer?.status ?? null,
    failure,
    ms: Math.round(ms),
    contentType: answer?.headers['content-type'] ?? null,
    text: answer && answer.status !== 200 ? (errorText(answer, secrets) ?? null) : null,
    location:
      location !== undefined && URL.canParse(location, url)
        ? shownUrl(new URL(location, url).href, secrets, [])
        : null,
    keys: document === undefined ? [] : keysIn(document),
  };
}

/** An address without the operator's values in its query, and without tokens in its path. */
function shownUrl(url: string, secrets: readonly string[], known: readonly string[]): string {
  const { origin, pathname, searchParams } = new URL(url);
  const shown = (text: string) => {
    if (secrets.includes(text)) return HIDDEN;
    return known.includes(text) || parseUuid(text).ok ? text : withoutSecrets(text, secrets);
  };
  const query = [...searchParams].map(([name, value]) => `${name}=${shown(value)}`).join('&');
  return origin + pathname.split('/').map(shown).join('/') + (query && `?${query}`);
}

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
  const keyid = cenc && formatUuid(Buffer.from(cenc.keyId, 'base64'));
  const systems = [widevine ? 'widevine' : [], playready ? 'playready' : []].flat();
  const ofFairPlay = { keyid: '', scheme: 'cbcs', systems: ['fairplay'] };
  return [keyid ? { keyid, scheme: 'cenc', systems } : [], fairplay ? ofFairPlay : []].flat();
}

function showProviderTest(out: Output, test: ProviderTest): void {
  const { contentId, configured, tested, notTested, certificates } = test;
  out.write(`Content id ${shown(contentId)}; nothing is written.\n`);
  for (const each of tested) showProtocol(out, each, each.protocol === configured);
  for (const { protocol, why } of notTested)
    out.write(`\n${out.style('bold', protocol)} was not tested: ${why}.\n`);
  if (certificates.length > 0) out.write(`\n${out.style('bold', 'Certificates')}\n`);
  out.write(
    columns(
      certificates.map(({ of, ends, expired }) => [`  ${of}`, expired ? 'ended' : 'ends', ends.slice(0, 10)]),
    ),
  );
  out.write('\n');
  const usable = tested.filter((each) => each.usable).map(({ protocol }) => protocol);
  out.note(conclusion(test, usable), usable.includes(configured) ? 'green' : 'red');
}

function conclusion({ configured, notTested }: ProviderTest, usable: readonly string[]): string {
  if (usable.includes(configured)) return `The sidecar can provision with these settings (${configured}).`;
  const asks = `The sidecar asks by ${configured} with these settings`;
  const [other] = usable;
  if (other !== undefined)
    return `${asks}, but the provider answers ${other}: set PACKAGERDRMAPI_KEYPROVIDERPROTOCOL=${other}.`;
  const isUntested = notTested.some(({ protocol }) => protocol === configured);
  return isUntested ? `${asks}, which was not tested.` : 'The sidecar cannot provision with these settings.';
}

function showProtocol(
  out: Output,
  { protocol, calls, keyfile, faults }: TestedProtocol,
  isConfigured: boolean,
): void {
  const note = isConfigured ? ' (as the sidecar asks with these settings)' : '';
  out.write(`\n${out.style('bold', `${protocol}${note}`)}\n`);
  for (const [index, call] of calls.entries()) showCall(out, call, calls.slice(0, index));
  if (keyfile) {
    out.write('  key file\n');
    for (const key of keyfile.keys) out.write(`    ${keyText(key)}\n`);
    for (const address of keyfile.addresses) out.write(`    ${shown(address)}\n`);
  }
  for (const fault of faults)
    out.write(`  ${findingText(out, fault)} ${out.style('dim', `[${fault.code}]`)}\n`);
}

function showCall(out: Output, call: TestedProtocol['calls'][number], former: TestedProtocol['calls']): void {
  const { method, url, headers, asks, status, failure, ms, contentType, location, text, keys } = call;
  const isRetry = former.some((other) => other.url === url && other.body === call.body);
  out.write(`  ${method} ${shown(url)}${isRetry ? ' again' : ''}\n`);
  const isRepeated = JSON.stringify(headers) === JSON.stringify(former.at(-1)?.headers);
  for (const [name, value] of isRepeated ? [] : Object.entries(headers))
    out.write(`    ${shown(name)}: ${shown(value)}\n`);
  for (const key of asks) out.write(`    asks for ${keyText(key)}\n`);
  const code = failure ?? 'ERROR';
  const none = `no answer: ${whyNoAnswer(code, REMEDIES)} (${code})`;
  const failed = code === 'ABORT_ERR' ? 'cut, because another call failed' : none;
  const answer = status === null ? failed : shown(`${status}, ${contentType ?? 'without a content-type'}`);
  out.write(`  ${out.style('bold', `→ ${answer}`)}, ${ms} ms\n`);
  if (location !== null) out.write(`    leads to ${shown(location)}\n`);
  if (text !== null) out.write(`    says: ${shown(text)}\n`);
  for (const key of keys) out.write(`    ${keyText(key)}\n`);
}

function keyText({ keyid, scheme, systems }: ShownKey): string {
  const parts = [keyid && `key ${keyid}`, scheme ?? 'no scheme', systems.join(', ') || 'no DRM system'];
  return shown(parts.filter(Boolean).join('; '));
}
