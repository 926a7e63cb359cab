import * as z from 'zod';
import { systemNames } from '../api/key-file-request';
import { checkLicenseUrl } from '../drm/key-file';
import { type ClientTlsFiles, openClientTls } from '../http/client-tls';
import { ConfigError, type Environment, readConfig } from '../http/config';
import { wholeNumber } from '../http/faults';
import { HEADERS_VARIABLE } from './provider-headers';
import { addressFault, HTTP_URL_RULE, isHttpUrl, PROVIDER_PROTOCOLS } from './upstream';

export type ProviderConfig = ReturnType<typeof providerConfig>;

const httpUrl = z.string().refine((text) => isHttpUrl(text), HTTP_URL_RULE);

const playReadyUrl = z.string().superRefine((text, context) => {
  const checked = checkLicenseUrl('playready')(text);
  if (!checked.ok) context.addIssue({ code: 'custom', message: checked.problem.description });
});

/** As other programs take it: without a scheme, it is HTTP. */
const proxyUrl = z
  .string()
  .transform((text) => (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`))
  .refine(
    (text) => URL.canParse(text) && /^https?:/.test(new URL(text).href) && !/%(?![\da-f]{2})/i.test(text),
    'must be the http:// or https:// address of a proxy, which may have user and password in it, percent-encoded',
  );

const SYSTEMS = 'PACKAGERDRMAPI_KEYPROVIDERSYSTEMS';
const LAURL = 'PACKAGERDRMAPI_PLAYREADYLAURL';
export const UPSTREAM_TLS = {
  authorities: 'PACKAGERDRMAPI_UPSTREAMTLSCA',
  certificate: 'PACKAGERDRMAPI_UPSTREAMTLSCERT',
  key: 'PACKAGERDRMAPI_UPSTREAMTLSKEY',
} as const;
const PROTOCOL = 'PACKAGERDRMAPI_KEYPROVIDERPROTOCOL';

export const providerVariables = (env: Environment) => ({
  PACKAGERDRMAPI_GRANDCENTRALURL: httpUrl.optional(),
  PACKAGERDRMAPI_KEYPROVIDERURL: providerUrl(env).optional(),
  [PROTOCOL]: z.enum(PROVIDER_PROTOCOLS, `must be one of ${PROVIDER_PROTOCOLS.join(', ')}`).optional(),
  [HEADERS_VARIABLE]: z.string().optional(),
  [SYSTEMS]: systemNames.readonly().optional(),
  [LAURL]: playReadyUrl.optional(),
  PACKAGERDRMAPI_UPSTREAMTIMEOUTMS: wholeNumber(1, 600_000).default(5000),
  [UPSTREAM_TLS.authorities]: z.string().optional(),
  [UPSTREAM_TLS.certificate]: z.string().optional(),
  [UPSTREAM_TLS.key]: z.string().optional(),
  ...{ HTTPS_PROXY: proxyUrl.optional(), https_proxy: proxyUrl.optional() },
  ...{ NO_PROXY: z.string().optional(), no_proxy: z.string().optional() },
  PACKAGERDRMAPI_CPIXCERT: z.string().optional(),
  PACKAGERDRMAPI_CPIXKEY: z.string().optional(),
});

type Values = z.output<z.ZodObject<ReturnType<typeof providerVariables>>>;

/** `values` are without `providerFaults`. */
export function providerConfig(values: Values) {
  const { [PROTOCOL]: protocol, [UPSTREAM_TLS.authorities]: authorities } = values;
  const client = pairOf(values[UPSTREAM_TLS.certificate], values[UPSTREAM_TLS.key]);
  const proxy = values.HTTPS_PROXY ?? values.https_proxy;
  return {
    /** Provisioning needs both addresses, by another protocol than `json` the key provider's alone. */
    configServiceUrl: values.PACKAGERDRMAPI_GRANDCENTRALURL,
    keyProviderUrl: values.PACKAGERDRMAPI_KEYPROVIDERURL,
    keyProviderProtocol: protocol === 'json' ? undefined : protocol,
    keyProviderHeadersFile: values[HEADERS_VARIABLE],
    /** The systems for requests that name none; undefined: all. */
    keyProviderSystems: values[SYSTEMS],
    /** Where neither a request nor an answer has a PlayReady address. */
    playReadyUrl: values[LAURL],
    upstreamTimeoutMs: values.PACKAGERDRMAPI_UPSTREAMTIMEOUTMS,
    /** undefined: Node's authorities, and no certificate. */
    upstreamTls: authorities !== undefined || client ? { authorities, client } : undefined,
    proxy: proxy === undefined ? undefined : { url: proxy, except: values.NO_PROXY ?? values.no_proxy ?? '' },
    /** undefined: encrypted content keys of CPIX documents are refused. */
    cpix: pairOf(values.PACKAGERDRMAPI_CPIXCERT, values.PACKAGERDRMAPI_CPIXKEY),
  };
}

function pairOf(certificate: string | undefined, key: string | undefined) {
  return certificate !== undefined && key !== undefined ? { certificate, key } : undefined;
}

const PAIRS = [
  ['PACKAGERDRMAPI_CPIXCERT', 'PACKAGERDRMAPI_CPIXKEY', 'encrypted content keys need both'],
  [UPSTREAM_TLS.certificate, UPSTREAM_TLS.key, 'a client certificate needs both'],
] as const;

/** @throws ConfigError */
export function readProviderConfig(env: Environment): ProviderConfig {
  const faults = providerFaults(env);
  if (faults.length > 0) throw new ConfigError(faults);
  return providerConfig(readConfig(z.object(providerVariables(env)), env));
}

export function providerFaults(env: Environment): string[] {
  const faults = PAIRS.filter(([one, other]) => !env[one] !== !env[other]).map(
    ([one, other, why]) => `${one} and ${other}: ${why}; set the other one, too, or none`,
  );
  const protocol = env[PROTOCOL] || 'json';
  const isOfDocuments = PROVIDER_PROTOCOLS.some((known) => known === protocol && known !== 'json');
  // A protocol without an address is a mistake, except `json`, which is the default.
  const ofProvider = [
    ...(isOfDocuments ? [PROTOCOL] : []),
    ...[HEADERS_VARIABLE, SYSTEMS, LAURL].filter((name) => env[name]),
  ];
  if (!env.PACKAGERDRMAPI_KEYPROVIDERURL) {
    for (const name of ofProvider)
      faults.push(
        `${name}: is for the key provider; set PACKAGERDRMAPI_KEYPROVIDERURL, too, or leave it out`,
      );
  } else if (protocol === 'json') {
    for (const name of [SYSTEMS, LAURL].filter((each) => env[each]))
      faults.push(
        `${name}: has no effect with the protocol json, whose answers have all systems; leave it out`,
      );
  }
  return faults;
}

function providerUrl({ [PROTOCOL]: named = '' }: Environment): z.ZodType<string> {
  // An unknown protocol has a fault of its own; the address is checked by the rules that all protocols share.
  const protocol = PROVIDER_PROTOCOLS.find((known) => known === (named || 'json')) ?? 'speke2';
  return z.string().superRefine((text, context) => {
    const fault = addressFault(protocol, text);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
  });
}

/** @throws ConfigError when a file can't be used at the start. */
export function openUpstreamTls(
  files: ClientTlsFiles,
  options: Pick<Parameters<typeof openClientTls>[1], 'log' | 'clock' | 'intervalMs'>,
) {
  return openClientTls(files, {
    ...options,
    variables: UPSTREAM_TLS,
    server: 'the upstream',
    message: 'files for the upstreams cannot be used; the previous ones stay in use',
  });
}
