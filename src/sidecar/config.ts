import { z } from 'zod';
import { ConfigError, type Environment, readConfig, unknownVariables } from '../kernel/config';
import { LOG_LEVELS, type LogLevel } from '../kernel/log';

export interface SidecarConfig {
  readonly apiKey: string;
  readonly keyFilesPath: string;
  /** Permission bits of a key file. */
  readonly keyFileMode: number;
  readonly host: string;
  readonly port: number;
  /** Addresses of the two upstreams; provisioning needs both. */
  readonly configServiceUrl: string | undefined;
  readonly keyProviderUrl: string | undefined;
  readonly upstreamTimeoutMs: number;
  /** Whether values that contradict each other are refused or let through with a `Warning`. */
  readonly checks: 'strict' | 'warn';
  readonly logLevel: LogLevel;
  /** Variables that look like ours and are not: most likely misspelt. */
  readonly unknownVariables: readonly string[];
}

const PREFIX = 'PACKAGERDRMAPI_';
/** The most characters that an API key can have. */
const MOST_KEY_CHARACTERS = 1000;

const API_KEY_RULE = 'must be printable ASCII without spaces: it travels in a header';

const apiKey = z
  .string()
  .regex(/^[\x21-\x7e]+$/, API_KEY_RULE)
  .max(MOST_KEY_CHARACTERS, `must have at most ${MOST_KEY_CHARACTERS} characters`);

const httpUrl = z
  .string()
  .refine(isHttpUrl, 'must be an http:// or https:// address without user, query, fragment or space');

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be from ${least} to ${most}`);

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

const variables = z.object({
  PACKAGERDRMAPI_APIKEY: apiKey.optional(),
  PACKAGERDRMAPI_APIKEY_FILE: z.string().optional(),
  PACKAGERDRMAPI_KEYFILESPATH: z.string().default('./keys'),
  PACKAGERDRMAPI_KEYFILEMODE: keyFileMode.default(0o640),
  PACKAGERDRMAPI_HOST: z.string().default('0.0.0.0'),
  PACKAGERDRMAPI_PORT: port.default(80),
  PACKAGERDRMAPI_GRANDCENTRALURL: httpUrl.optional(),
  PACKAGERDRMAPI_KEYPROVIDERURL: httpUrl.optional(),
  PACKAGERDRMAPI_UPSTREAMTIMEOUTMS: wholeNumber(1, 600_000).default(5000),
  PACKAGERDRMAPI_CHECKS: z.enum(['strict', 'warn'], 'must be strict or warn').default('strict'),
  PACKAGERDRMAPI_LOGLEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

/**
 * Reads the `PACKAGERDRMAPI_*` variables. `readText` reads the file that holds a container secret.
 * @throws ConfigError naming every fault at once.
 */
export function readSidecarConfig(env: Environment, readText: (path: string) => string): SidecarConfig {
  const faults: string[] = [];
  let values: z.output<typeof variables> | undefined;
  try {
    values = readConfig(variables, env);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    faults.push(...thrown.faults);
  }
  const key = readApiKey(env, readText, faults);
  if (!values || key === undefined || faults.length > 0) throw new ConfigError(faults);
  return {
    apiKey: key,
    keyFilesPath: values.PACKAGERDRMAPI_KEYFILESPATH,
    keyFileMode: values.PACKAGERDRMAPI_KEYFILEMODE,
    host: values.PACKAGERDRMAPI_HOST,
    port: values.PACKAGERDRMAPI_PORT,
    configServiceUrl: values.PACKAGERDRMAPI_GRANDCENTRALURL,
    keyProviderUrl: values.PACKAGERDRMAPI_KEYPROVIDERURL,
    upstreamTimeoutMs: values.PACKAGERDRMAPI_UPSTREAMTIMEOUTMS,
    checks: values.PACKAGERDRMAPI_CHECKS,
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
    if (given === undefined) {
      faults.push(
        'PACKAGERDRMAPI_APIKEY: is missing; set it to the key that clients send in x-api-key, or set PACKAGERDRMAPI_APIKEY_FILE to a file that holds it',
      );
    }
    return given;
  }
  try {
    // Editors and `echo` end a file with a line break that is no part of the key.
    const text = readText(file).replace(/\r?\n$/, '');
    const parsed = apiKey.safeParse(text);
    if (parsed.success) return parsed.data;
    faults.push(
      `PACKAGERDRMAPI_APIKEY_FILE: the key in it ${text === '' ? 'is empty' : parsed.error.issues[0]?.message}`,
    );
  } catch {
    faults.push('PACKAGERDRMAPI_APIKEY_FILE: the file cannot be read; check the path and who may read it');
  }
  return undefined;
}

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text) || /[\s?#]/.test(text)) return false;
  const { protocol, username, password } = new URL(text);
  // fetch() takes no address with a user in it, and its message, which is logged, quotes the password.
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}
