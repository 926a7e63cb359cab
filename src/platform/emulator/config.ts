import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import * as z from 'zod';
import { PROVIDER_ID } from '../../drm/envelope';
import { ConfigError, type Environment, readConfig, unknownVariables } from '../../http/config';
import { LOG_LEVELS } from '../../http/log';
import type { TlsFiles } from '../../http/tls';
import type { OwnCertificates } from './own-certificates';
import type { PackagerAddress } from './packaging/packager-client';
import { MB } from './uploads/file-store';

const portOr = (other: string) =>
  z
    .string()
    .regex(/^\d{1,5}$/, `must be ${other}a port number`)
    .transform(Number)
    .refine((number) => number <= 65_535, 'must be at most 65535');
const port = portOr('');
const headerText = z
  .string()
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces, as it is sent in a header');
const apiSecret = headerText.refine(({ length }) => length >= 16, 'must have at least 16 characters');
const onOff = z.enum(['on', 'off'], 'must be on or off').transform((text) => text === 'on');
const trueFalse = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true');

const isServerName = (name: string) =>
  isIP(name) !== 0 || (name.length <= 253 && /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i.test(name));

/** An address without a password, a query, a fragment and the slashes at its end. */
const addressOf = (protocols: readonly string[], fault: string) =>
  z
    .string()
    .transform((text) => text.replace(/\/+$/, ''))
    .refine((text) => {
      if (!URL.canParse(text) || /[\s#?]/.test(text)) return false;
      const { protocol, hostname, username, password } = new URL(text);
      return protocols.includes(protocol) && hostname !== '' && username === '' && password === '';
    }, fault);

export const VARIABLES = z.object({
  EMULATOR_HOST: z.string().default('127.0.0.1'),
  EMULATOR_PORT: port.default(8080),
  EMULATOR_TLS: z.enum(['off', 'self-signed'], 'must be off or self-signed').optional(),
  EMULATOR_TLSCERT: z.string().optional(),
  EMULATOR_TLSKEY: z.string().optional(),
  EMULATOR_TLSFOLDER: z.string().default('./emulator-tls'),
  EMULATOR_TLSNAMES: z
    .string()
    .transform((text) => text.split(',').map((name) => name.trim()))
    .refine(
      (names) => names.every(isServerName),
      'must be a host name or an address, or several with commas between them',
    )
    .default([]),
  EMULATOR_CONTROL_HOST: z.string().default('127.0.0.1'),
  EMULATOR_CONTROL_PORT: port.default(8081),
  EMULATOR_RTMP_PORT: z
    .preprocess((text) => (text === 'off' ? '0' : text), portOr('off or ').optional())
    .transform((number = 1935) => (number === 0 ? undefined : number)),
  EMULATOR_SITE_ID: z
    .string()
    .transform((text) => text.split(',').map((id) => id.trim()))
    .refine(
      (ids) => ids.every((id) => /^[A-Za-z0-9]{8}$/.test(id)),
      'must be 8 letters and digits, or several such ids with commas between them',
    )
    .default(['demosite']),
  EMULATOR_API_SECRET: apiSecret.default('demo-api-secret-0123456789'),
  EMULATOR_V1_SECRET: apiSecret.optional(),
  EMULATOR_RATELIMIT: onOff.default(false),
  EMULATOR_ALLOW_HTTP_WEBHOOKS: trueFalse.default(false),
  EMULATOR_CLIENT: z
    .string()
    .regex(PROVIDER_ID.pattern, 'must be 1 to 200 letters, digits, _, - and ., and not . or ..')
    .default('demo'),
  EMULATOR_CLIENT_API_KEY: headerText.default('demo-client-api-key'),
  EMULATOR_CLIENT_SHARED_SECRET: z
    .string()
    .refine((secret) => Buffer.byteLength(secret) >= 16, 'must have at least 16 bytes')
    .default('demo-shared-secret-0123456789'),
  EMULATOR_CHANNEL_ID: z
    .string()
    .regex(/^[A-Za-z0-9]{8}$/, 'must be 8 letters and digits')
    .optional(),
  EMULATOR_CHANNEL_STREAM_KEY: z
    .string()
    .regex(/^[A-Za-z0-9_-]{16,200}$/, 'must be 16 to 200 letters, digits, _ and -')
    .optional(),
  EMULATOR_UPLOADSFOLDER: z.string().default(tmpdir()),
  EMULATOR_UPLOADSMAXMB: z
    .string()
    .regex(/^[1-9]\d{0,7}$/, 'must be a whole number of megabytes, from 1 to 99999999')
    .transform(Number)
    .default(2048),
  EMULATOR_PACKAGERURL: addressOf(
    ['http:', 'https:'],
    'must be an http:// or https:// address without a password or a query',
  ).optional(),
  EMULATOR_PACKAGERAPIKEY: headerText.optional(),
  EMULATOR_PACKAGERRTMPURL: addressOf(
    ['rtmp:', 'rtmps:'],
    'must be an rtmp:// address such as rtmp://emulator:1935/live',
  ).optional(),
  EMULATOR_STATEFILE: z
    .string()
    .transform((path) => resolve(path))
    .optional(),
  EMULATOR_SEED: z
    .string()
    .regex(/^-?\d{1,15}$/, 'must be a whole number such as 42; leave it out for other ids in each run')
    .transform(Number)
    .optional(),
  EMULATOR_LOGLEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

export type EmulatorConfig = ReturnType<typeof readEmulatorConfig>;

/** Reads the `EMULATOR_*` variables; every one has a default. @throws ConfigError with every fault at once. */
export function readEmulatorConfig(env: Environment) {
  const faults = jointFaults(env);
  let variables: z.output<typeof VARIABLES> | undefined;
  try {
    variables = readConfig(VARIABLES, env);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    faults.unshift(...thrown.faults);
  }
  if (!variables || faults.length > 0) throw new ConfigError(faults);
  return {
    host: variables.EMULATOR_HOST,
    port: variables.EMULATOR_PORT,
    /** Undefined: the platform port speaks plain HTTP. */
    tls: tlsOf(variables),
    controlHost: variables.EMULATOR_CONTROL_HOST,
    controlPort: variables.EMULATOR_CONTROL_PORT,
    /** Undefined when no encoder can connect over RTMP. */
    rtmpPort: variables.EMULATOR_RTMP_PORT,
    /** The sites of the seeded Admin credential; examples use the first one. */
    siteIds: variables.EMULATOR_SITE_ID,
    apiSecret: variables.EMULATOR_API_SECRET,
    /** Signs calls of Management API v1, for every site. */
    v1Secret: variables.EMULATOR_V1_SECRET ?? variables.EMULATOR_API_SECRET,
    /** Whether requests over the rate limit are refused; the headers are sent in any case. */
    rateLimit: variables.EMULATOR_RATELIMIT,
    allowHttpWebhooks: variables.EMULATOR_ALLOW_HTTP_WEBHOOKS,
    /** A channel of the first site, published at once, with known addresses. */
    channel: channelOf(variables),
    uploadsFolder: variables.EMULATOR_UPLOADSFOLDER,
    uploadsMaxBytes: variables.EMULATOR_UPLOADSMAXMB * MB,
    client: {
      name: variables.EMULATOR_CLIENT,
      apiKey: variables.EMULATOR_CLIENT_API_KEY,
      sharedSecret: variables.EMULATOR_CLIENT_SHARED_SECRET,
    },
    /** Undefined: nothing is packaged, and the playlists are empty. */
    packager: packagerOf(variables),
    stateFile: variables.EMULATOR_STATEFILE,
    /** With one, ids, secrets, keys and clock are the same in each run. */
    seed: variables.EMULATOR_SEED,
    logLevel: variables.EMULATOR_LOGLEVEL,
    unknownVariables: unknownVariables('EMULATOR_', Object.keys(VARIABLES.shape), env),
  };
}

function jointFaults(env: Environment): string[] {
  const isOwn = env.EMULATOR_TLS === 'self-signed';
  const both = (one: string, other: string, what: string) =>
    !env[one] === !env[other] ? [] : [`${one} and ${other}: ${what} needs both`];
  const onlyWith = (condition: string, isMet: boolean, ...names: string[]) =>
    names.flatMap((name) => (env[name] && !isMet ? [`${name}: is used only with ${condition}`] : []));
  return [
    ...(isOwn && (env.EMULATOR_TLSCERT || env.EMULATOR_TLSKEY)
      ? ['EMULATOR_TLS: self-signed makes a certificate; leave out EMULATOR_TLSCERT and EMULATOR_TLSKEY']
      : both('EMULATOR_TLSCERT', 'EMULATOR_TLSKEY', 'HTTPS')),
    ...onlyWith('EMULATOR_TLS=self-signed', isOwn, 'EMULATOR_TLSFOLDER', 'EMULATOR_TLSNAMES'),
    ...both('EMULATOR_CHANNEL_ID', 'EMULATOR_CHANNEL_STREAM_KEY', 'a channel at the start'),
    ...onlyWith(
      'EMULATOR_PACKAGERURL',
      !!env.EMULATOR_PACKAGERURL,
      ...['EMULATOR_PACKAGERAPIKEY', 'EMULATOR_PACKAGERRTMPURL'],
    ),
  ];
}

function channelOf(variables: z.output<typeof VARIABLES>) {
  const { EMULATOR_CHANNEL_ID: id, EMULATOR_CHANNEL_STREAM_KEY: streamKey } = variables;
  return id !== undefined && streamKey !== undefined ? { id, streamKey } : undefined;
}

function packagerOf(variables: z.output<typeof VARIABLES>): PackagerAddress | undefined {
  const { EMULATOR_PACKAGERURL: url, EMULATOR_RTMP_PORT: port, EMULATOR_HOST: host } = variables;
  if (url === undefined) return undefined;
  const own = EVERY_ADDRESS.includes(host) ? '127.0.0.1' : isIP(host) === 6 ? `[${host}]` : host;
  return {
    url,
    apiKey: variables.EMULATOR_PACKAGERAPIKEY,
    rtmpUrl:
      variables.EMULATOR_PACKAGERRTMPURL ?? (port === undefined ? undefined : `rtmp://${own}:${port}/live`),
  };
}

/** The names by which the emulator is called on its own machine and in a compose network. */
const OWN_NAMES = ['localhost', 'emulator', '127.0.0.1', '::1'];
const EVERY_ADDRESS = ['0.0.0.0', '::'];

function tlsOf(variables: z.output<typeof VARIABLES>): TlsFiles | OwnCertificates | undefined {
  const { EMULATOR_TLSCERT: certificate, EMULATOR_TLSKEY: key, EMULATOR_HOST: host } = variables;
  if (certificate !== undefined && key !== undefined)
    return { certificate, key, clientAuthorities: undefined };
  if (variables.EMULATOR_TLS !== 'self-signed') return undefined;
  const names = [
    ...OWN_NAMES,
    ...(EVERY_ADDRESS.includes(host) ? [] : [host]),
    ...variables.EMULATOR_TLSNAMES,
  ];
  return { folder: variables.EMULATOR_TLSFOLDER, names: [...new Set(names)] };
}
