import { hostname } from 'node:os';
import * as z from 'zod';
import { partsOf } from '../../drm/list-parts';
import type { Environment } from '../../http/config';
import { wholeNumber } from '../../http/faults';
import { streamIdPrefix } from '../api-key';
import { PACKAGER_NAME } from './engine-keys';

export type FleetConfig = NonNullable<ReturnType<typeof fleetConfig>>;

const NAME_RULE = 'must be 1 to 64 letters, digits and . _ - and begin with a letter or digit';
const MAX_URLS = 16;

/** Quotes no address, which may hold a password. */
function urlFault(url: URL | undefined): string | undefined {
  if (url && (url.username !== '' || url.password !== ''))
    return 'must hold no user and no password: set PACKAGERDRMAPI_FLEET_USER and PACKAGERDRMAPI_FLEET_PASSWORD_FILE';
  if (!url || !/^https?:$/.test(url.protocol)) return 'must be one like http://etcd-1:2379';
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    return "must end after the port: the engine's servers have no path";
  return undefined;
}

const urls = z
  .string()
  .transform((text) => partsOf(text))
  .superRefine((list, context) => {
    const add = (message: string) => context.addIssue({ code: 'custom', message });
    const all = list.map((text) => (URL.canParse(text) ? new URL(text) : undefined));
    for (const [index, url] of all.entries()) {
      const fault = urlFault(url);
      if (fault !== undefined) add(`address ${index + 1} ${fault}`);
    }
    const parsed = all.filter((url) => url !== undefined && /^https?:$/.test(url.protocol));
    if (list.length === 0 || list.length > MAX_URLS)
      add(`must be 1 to ${MAX_URLS} addresses, with commas between`);
    if (new Set(parsed.map((url) => url?.protocol)).size > 1) add('must be all http:// or all https://');
    if (new Set(parsed.map((url) => url?.origin)).size < parsed.length) add('holds an address twice');
  })
  .transform((list): readonly string[] => list.map((text) => new URL(text).origin));

const streams = z
  .string()
  .transform((text) => partsOf(text))
  .pipe(
    z
      .array(streamIdPrefix)
      .min(1, 'holds no prefix of stream ids; leave it out for a packager that takes all')
      .max(100, 'must have at most 100 prefixes of stream ids'),
  )
  .readonly();

const prefix = z
  .string()
  .regex(
    /^[\x21-\x7e]{1,199}\/$/,
    'must be 2 to 200 printable characters without spaces, and end in a slash',
  );

export const fleetVariables = {
  PACKAGERDRMAPI_FLEET_URLS: urls.optional(),
  PACKAGERDRMAPI_FLEET_SECRET_FILE: z.string().optional(),
  PACKAGERDRMAPI_FLEET_NAME: z.string().regex(PACKAGER_NAME, NAME_RULE).optional(),
  PACKAGERDRMAPI_FLEET_STREAMS: streams.optional(),
  PACKAGERDRMAPI_FLEET_PREFIX: prefix.default('packagerdrmapi/'),
  PACKAGERDRMAPI_FLEET_TIMEOUTMS: wholeNumber(500, 60_000).default(5000),
  PACKAGERDRMAPI_FLEET_USER: z.string().max(200, 'must have at most 200 characters').optional(),
  PACKAGERDRMAPI_FLEET_PASSWORD_FILE: z.string().optional(),
  PACKAGERDRMAPI_FLEET_TLSCA: z.string().optional(),
  PACKAGERDRMAPI_FLEET_TLSCERT: z.string().optional(),
  PACKAGERDRMAPI_FLEET_TLSKEY: z.string().optional(),
};

type Values = z.output<z.ZodObject<typeof fleetVariables>>;

export function fleetFaults(env: Environment): string[] {
  const names = Object.keys(fleetVariables).filter((name) => env[name]);
  if (!names.includes('PACKAGERDRMAPI_FLEET_URLS'))
    return names.map(
      (name) => `${name}: is for a fleet; set PACKAGERDRMAPI_FLEET_URLS, too, or leave it out`,
    );
  const has = (part: string) => names.includes(`PACKAGERDRMAPI_FLEET_${part}`);
  const together = (one: string, other: string, why: string) =>
    has(one) === has(other)
      ? []
      : [`PACKAGERDRMAPI_FLEET_${one} and PACKAGERDRMAPI_FLEET_${other}: ${why} needs both`];
  return [
    ...(has('SECRET_FILE')
      ? []
      : [
          'PACKAGERDRMAPI_FLEET_SECRET_FILE: is missing; a fleet needs a file with its secret, the same for all: openssl rand -hex 32',
        ]),
    ...together('USER', 'PASSWORD_FILE', 'signing in to the engine'),
    ...together('TLSCERT', 'TLSKEY', 'a client certificate'),
    ...(has('NAME') || PACKAGER_NAME.test(hostname())
      ? []
      : [`PACKAGERDRMAPI_FLEET_NAME: is missing, and the host name can't be used: it ${NAME_RULE}`]),
    ...(/^\s*http:/i.test(env.PACKAGERDRMAPI_FLEET_URLS ?? '') && (has('TLSCA') || has('TLSCERT'))
      ? ['PACKAGERDRMAPI_FLEET_URLS: must be https:// addresses for certificates to have an effect']
      : []),
  ];
}

/** `values` are without `fleetFaults`. Undefined: the sidecar is in no fleet. */
export function fleetConfig(values: Values) {
  const { PACKAGERDRMAPI_FLEET_URLS: addresses, PACKAGERDRMAPI_FLEET_SECRET_FILE: secretFile } = values;
  if (addresses === undefined || secretFile === undefined) return undefined;
  const { PACKAGERDRMAPI_FLEET_USER: user, PACKAGERDRMAPI_FLEET_PASSWORD_FILE: passwordFile } = values;
  const { PACKAGERDRMAPI_FLEET_TLSCERT: certificate, PACKAGERDRMAPI_FLEET_TLSKEY: key } = values;
  const { PACKAGERDRMAPI_FLEET_TLSCA: authorities } = values;
  return {
    /** Without a slash at their ends. */
    urls: addresses,
    /** The path of a file with one secret a line: the first seals, all open. */
    secretFile,
    name: values.PACKAGERDRMAPI_FLEET_NAME ?? hostname(),
    /** Prefixes of stream ids that the packager takes; undefined: all. */
    streams: values.PACKAGERDRMAPI_FLEET_STREAMS,
    /** Of the fleet's keys in the engine; ends in a slash. */
    prefix: values.PACKAGERDRMAPI_FLEET_PREFIX,
    timeoutMs: values.PACKAGERDRMAPI_FLEET_TIMEOUTMS,
    ...(user !== undefined && passwordFile !== undefined && { user: { name: user, passwordFile } }),
    tls: {
      ...(authorities !== undefined && { authorities }),
      ...(certificate !== undefined && key !== undefined && { client: { certificate, key } }),
    },
  };
}
