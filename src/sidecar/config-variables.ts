import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import type { CmafScheme } from '../drm/key-file';
import { DEFAULT_LIMITS } from '../http/connection-limits';
import { LOG_LEVELS } from '../http/log';
import { isLoopback } from './start-documented-keys';

/** The most characters that an API key can have. */
const MAX_KEY_CHARACTERS = 1000;

const API_KEY_RULE = 'must be printable ASCII without spaces: it travels in a header';

export const apiKey = z
  .string()
  .regex(/^[\x21-\x7e]+$/, API_KEY_RULE)
  .max(MAX_KEY_CHARACTERS, `must have at most ${MAX_KEY_CHARACTERS} characters`);

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

const cmaf = z
  .enum(['true', 'false', 'cenc', 'cbcs'], 'must be true (the same as cenc), cenc, cbcs or false')
  .transform((value): CmafScheme | false => {
    if (value === 'false') return false;
    return value === 'true' ? 'cenc' : value;
  });

/** In a container the service can't see where it is published; compose says so here. */
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

const connectionCount = wholeNumber(8, 100_000);

/** Every variable of the sidecar. */
export const variables = z.object({
  PACKAGERDRMAPI_APIKEY: apiKey.optional(),
  PACKAGERDRMAPI_APIKEY_FILE: z.string().optional(),
  PACKAGERDRMAPI_APIKEYS_FILE: z.string().optional(),
  PACKAGERDRMAPI_KEYFILESPATH: z.string().default('./keys'),
  PACKAGERDRMAPI_KEYFILEMODE: keyFileMode.default(0o640),
  PACKAGERDRMAPI_HOST: z.string().default('0.0.0.0'),
  PACKAGERDRMAPI_PORT: port.default(80),
  PACKAGERDRMAPI_GRANDCENTRALURL: httpUrl.optional(),
  PACKAGERDRMAPI_KEYPROVIDERURL: httpUrl.optional(),
  PACKAGERDRMAPI_UPSTREAMTIMEOUTMS: wholeNumber(1, 600_000).default(5000),
  PACKAGERDRMAPI_PROVIDERCACHE: cacheFolder.optional(),
  PACKAGERDRMAPI_PROVIDERCACHEMAXAGE: wholeNumber(1, 8760).default(168),
  PACKAGERDRMAPI_CHECKS: z.enum(['strict', 'warn'], 'must be strict or warn').default('strict'),
  PACKAGERDRMAPI_CMAF: cmaf.default(false),
  PACKAGERDRMAPI_AUDIT: z.string().default('stdout'),
  PACKAGERDRMAPI_METRICS: z.enum(['on', 'off'], 'must be on or off').default('on'),
  PACKAGERDRMAPI_TLSCERT: z.string().optional(),
  PACKAGERDRMAPI_TLSKEY: z.string().optional(),
  PACKAGERDRMAPI_TLSCLIENTCA: z.string().optional(),
  PACKAGERDRMAPI_MAXCONNECTIONS: connectionCount.default(DEFAULT_LIMITS.total),
  PACKAGERDRMAPI_MAXCONNECTIONSPERADDRESS: connectionCount.default(DEFAULT_LIMITS.perAddress),
  PACKAGERDRMAPI_DEMO: demo.optional(),
  PACKAGERDRMAPI_LOGLEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text) || /[\s?#]/.test(text)) return false;
  const { protocol, username, password } = new URL(text);
  // fetch() takes no address with a user in it, and its message, which is logged, quotes the password.
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}
