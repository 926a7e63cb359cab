import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';
import * as z from 'zod';
import { cmafText } from '../api/key-file-request';
import { ConfigError, type Environment, readConfig, unknownVariables } from '../http/config';
import { DEFAULT_LIMITS } from '../http/connections';
import { wholeNumber } from '../http/faults';
import { LOG_LEVELS } from '../http/log';
import { secretIn } from '../http/secret';
import { providerConfig, providerFaults, providerVariables } from '../provider/config';
import { fleetConfig, fleetFaults, fleetVariables } from './fleet/config';
import { pullPatternFault } from './pull';
import { isLoopback } from './start-up';

export type SidecarConfig = ReturnType<typeof readSidecarConfig>;

const PREFIX = 'PACKAGERDRMAPI_';
const HOUR_MS = 60 * 60_000;

const HTTPS_PAIR = 'HTTPS needs both; without them PACKAGERDRMAPI_TLSCLIENTCA has no effect';

/** `readText` throws a ConfigError that says why it can't read. @throws ConfigError naming every fault at once. */
export function readSidecarConfig(env: Environment, readText: (path: string) => string) {
  const faults: string[] = [];
  let values: z.output<typeof variables> | undefined;
  try {
    values = readConfig(variables.extend(providerVariables(env)), env);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    faults.push(...thrown.faults);
  }
  const key = readApiKey(env, readText, faults);
  const { PACKAGERDRMAPI_TLSCERT: certificate, PACKAGERDRMAPI_TLSKEY: tlsKey } = env;
  const clientAuthorities = env.PACKAGERDRMAPI_TLSCLIENTCA || undefined;
  const tls = certificate && tlsKey ? { certificate, key: tlsKey, clientAuthorities } : undefined;
  if (!tls && (certificate || tlsKey || clientAuthorities))
    faults.push(`PACKAGERDRMAPI_TLSCERT and PACKAGERDRMAPI_TLSKEY: ${HTTPS_PAIR}`);
  faults.push(...providerFaults(env), ...fleetFaults(env));
  if (env.PACKAGERDRMAPI_PROVISIONONREAD === 'true' && !env.PACKAGERDRMAPI_KEYPROVIDERURL)
    faults.push(
      'PACKAGERDRMAPI_PROVISIONONREAD: needs a key provider; set PACKAGERDRMAPI_KEYPROVIDERURL, too',
    );
  if (!values || faults.length > 0) throw new ConfigError(faults);
  return {
    ...providerConfig(values),
    apiKey: key,
    apiKeysFile: values.PACKAGERDRMAPI_APIKEYS_FILE,
    keyFilesPath: values.PACKAGERDRMAPI_KEYFILESPATH,
    keyFileMode: values.PACKAGERDRMAPI_KEYFILEMODE,
    host: values.PACKAGERDRMAPI_HOST,
    port: values.PACKAGERDRMAPI_PORT,
    providerCache:
      values.PACKAGERDRMAPI_PROVIDERCACHE === undefined
        ? undefined
        : {
            folder: values.PACKAGERDRMAPI_PROVIDERCACHE,
            maxAgeMs: values.PACKAGERDRMAPI_PROVIDERCACHEMAXAGE * HOUR_MS,
          },
    checks: values.PACKAGERDRMAPI_CHECKS,
    /** For requests that say nothing of CMAF lines. */
    cmaf: values.PACKAGERDRMAPI_CMAF,
    pullPattern: values.PACKAGERDRMAPI_PULLPATTERN,
    provisionOnRead: values.PACKAGERDRMAPI_PROVISIONONREAD,
    /** `off`, `stdout` or the path of a file. */
    audit: values.PACKAGERDRMAPI_AUDIT,
    metrics: values.PACKAGERDRMAPI_METRICS === 'on',
    tls,
    fleet: fleetConfig(values),
    connections: {
      total: values.PACKAGERDRMAPI_MAXCONNECTIONS,
      perAddress: values.PACKAGERDRMAPI_MAXCONNECTIONSPERADDRESS,
    },
    /** Whether API keys of the documentation are served on any address, not on loopback alone. */
    demo: values.PACKAGERDRMAPI_DEMO,
    logLevel: values.PACKAGERDRMAPI_LOGLEVEL,
    unknownVariables: unknownVariables(PREFIX, Object.keys(variables.shape), env),
  };
}

function readApiKey(
  env: Environment,
  readText: (path: string) => string,
  faults: string[],
): string | undefined {
  const given = env.PACKAGERDRMAPI_APIKEY || undefined;
  const file = env.PACKAGERDRMAPI_APIKEY_FILE || undefined;
  if (given !== undefined && file !== undefined) {
    faults.push('PACKAGERDRMAPI_APIKEY and PACKAGERDRMAPI_APIKEY_FILE: set one of them, not both');
    return undefined;
  }
  if (file === undefined) {
    if (given === undefined && !env.PACKAGERDRMAPI_APIKEYS_FILE) {
      faults.push(
        'PACKAGERDRMAPI_APIKEY: is missing; set it to the key that clients send in x-api-key, or set PACKAGERDRMAPI_APIKEY_FILE to a file that holds it, or PACKAGERDRMAPI_APIKEYS_FILE to a file of several keys',
      );
    }
    return given;
  }
  try {
    const text = secretIn(readText(file));
    const parsed = apiKey.safeParse(text);
    if (parsed.success) return parsed.data;
    faults.push(
      `PACKAGERDRMAPI_APIKEY_FILE: the key in it ${text === '' ? 'is empty' : parsed.error.issues[0]?.message}`,
    );
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    faults.push(...thrown.faults.map((fault) => `PACKAGERDRMAPI_APIKEY_FILE: ${fault}`));
  }
  return undefined;
}

const MAX_KEY_CHARACTERS = 1000;

const API_KEY_RULE = 'must be printable ASCII without spaces: it travels in a header';

const apiKey = z
  .string()
  .regex(/^[\x21-\x7e]+$/, API_KEY_RULE)
  .max(MAX_KEY_CHARACTERS, `must have at most ${MAX_KEY_CHARACTERS} characters`);

const port = z
  .string()
  .refine((value) => !value.startsWith('tcp://'), {
    message:
      'holds an address that Kubernetes sets for a Service named packagerdrmapi; rename the Service or set enableServiceLinks: false',
    abort: true,
  })
  .pipe(wholeNumber(0, 65_535));

const keyFileMode = z
  .string()
  .regex(/^0?[0-7]{3}$/, 'must be an octal mode like 0640')
  .transform((value) => Number.parseInt(value, 8))
  .refine((mode) => (mode & 0o600) === 0o600, 'must let the owner read and write (06xx)')
  .refine((mode) => (mode & 0o111) === 0, 'must not make key files executable');

/** A service in a container can't see the address it is published on; compose says it here. */
const demo = z
  .string()
  .refine(
    (value) => ['true', 'false'].includes(value) || isIP(value.replace(/^\[(.*)\]$/, '$1')) !== 0,
    'must be true or false, or the address that a container is published on: true when it is a loopback one',
  )
  .transform((value) => value === 'true' || isLoopback(value));

const cacheFolder = z
  .string()
  .refine(
    (value) => value === 'off' || isAbsolute(value),
    'must be the absolute path of a folder (/var/cache/packager-drm-api), or off',
  )
  .transform((value) => (value === 'off' ? undefined : value));

const pullPattern = z.string().superRefine((pattern, context) => {
  const fault = pullPatternFault(pattern);
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
});

const connectionCount = wholeNumber(8, 100_000);

const variables = z.object({
  PACKAGERDRMAPI_APIKEY: apiKey.optional(),
  PACKAGERDRMAPI_APIKEY_FILE: z.string().optional(),
  PACKAGERDRMAPI_APIKEYS_FILE: z.string().optional(),
  PACKAGERDRMAPI_KEYFILESPATH: z.string().default('./keys'),
  PACKAGERDRMAPI_KEYFILEMODE: keyFileMode.default(0o640),
  PACKAGERDRMAPI_HOST: z.string().default('0.0.0.0'),
  PACKAGERDRMAPI_PORT: port.default(80),
  ...providerVariables({}),
  PACKAGERDRMAPI_PROVIDERCACHE: cacheFolder.optional(),
  PACKAGERDRMAPI_PROVIDERCACHEMAXAGE: wholeNumber(1, 8760).default(168),
  PACKAGERDRMAPI_CHECKS: z.enum(['strict', 'warn'], 'must be strict or warn').default('strict'),
  PACKAGERDRMAPI_CMAF: cmafText.default(false),
  PACKAGERDRMAPI_PULLPATTERN: pullPattern.optional(),
  PACKAGERDRMAPI_PROVISIONONREAD: z
    .enum(['true', 'false'], 'must be true or false')
    .transform((value) => value === 'true')
    .default(false),
  PACKAGERDRMAPI_AUDIT: z
    .string()
    .refine(
      (value) => !/^(?:stdout|off)$/i.test(value) || value === value.toLowerCase(),
      'must be stdout or off in small letters, or the path of a file (./STDOUT)',
    )
    .default('stdout'),
  PACKAGERDRMAPI_METRICS: z.enum(['on', 'off'], 'must be on or off').default('on'),
  PACKAGERDRMAPI_TLSCERT: z.string().optional(),
  PACKAGERDRMAPI_TLSKEY: z.string().optional(),
  PACKAGERDRMAPI_TLSCLIENTCA: z.string().optional(),
  ...fleetVariables,
  PACKAGERDRMAPI_MAXCONNECTIONS: connectionCount.default(DEFAULT_LIMITS.total),
  PACKAGERDRMAPI_MAXCONNECTIONSPERADDRESS: connectionCount.default(DEFAULT_LIMITS.perAddress),
  PACKAGERDRMAPI_DEMO: demo.default(false),
  PACKAGERDRMAPI_LOGLEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});
