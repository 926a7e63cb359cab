import { z } from 'zod';
import { type Environment, readConfig, unknownVariables } from '../kernel/config';
import { LOG_LEVELS, type LogLevel } from '../kernel/log';
import { isPathName } from './clients';
import type { Seeds } from './context';

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
const onOff = z.enum(['on', 'off'], 'must be on or off').transform((text) => text === 'on');
const trueFalse = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true');

const VARIABLES = z.object({
  EMULATOR_HOST: z.string().default('127.0.0.1'),
  EMULATOR_PORT: port.default(8080),
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
  EMULATOR_API_SECRET: headerText
    .refine((secret) => secret.length >= 16, 'must have at least 16 characters')
    .default('demo-api-secret-0123456789'),
  EMULATOR_RATELIMIT: onOff.default(false),
  EMULATOR_ALLOW_HTTP_WEBHOOKS: trueFalse.default(false),
  EMULATOR_CLIENT: z
    .string()
    .refine(isPathName, 'must be 1 to 200 letters, digits, _, - and ., and not . or ..')
    .default('demo'),
  EMULATOR_CLIENT_API_KEY: headerText.default('demo-client-api-key'),
  EMULATOR_CLIENT_SHARED_SECRET: z
    .string()
    .refine((secret) => Buffer.byteLength(secret) >= 16, 'must have at least 16 bytes')
    .default('demo-shared-secret-0123456789'),
  EMULATOR_LOGLEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

export interface EmulatorConfig extends Seeds {
  /** 0 takes a free port. */
  readonly port: number;
  readonly logLevel: LogLevel;
  /** Variables that look like ours and are not: most likely misspelt. */
  readonly unknownVariables: readonly string[];
}

/** Reads the `EMULATOR_*` variables; every one has a default. @throws ConfigError with every fault at once. */
export function readEmulatorConfig(env: Environment): EmulatorConfig {
  const variables = readConfig(VARIABLES, env);
  return {
    host: variables.EMULATOR_HOST,
    port: variables.EMULATOR_PORT,
    controlHost: variables.EMULATOR_CONTROL_HOST,
    controlPort: variables.EMULATOR_CONTROL_PORT,
    rtmpPort: variables.EMULATOR_RTMP_PORT,
    siteIds: variables.EMULATOR_SITE_ID,
    apiSecret: variables.EMULATOR_API_SECRET,
    rateLimit: variables.EMULATOR_RATELIMIT,
    allowHttpWebhooks: variables.EMULATOR_ALLOW_HTTP_WEBHOOKS,
    client: {
      name: variables.EMULATOR_CLIENT,
      apiKey: variables.EMULATOR_CLIENT_API_KEY,
      sharedSecret: variables.EMULATOR_CLIENT_SHARED_SECRET,
    },
    logLevel: variables.EMULATOR_LOGLEVEL,
    unknownVariables: unknownVariables('EMULATOR_', Object.keys(VARIABLES.shape), env),
  };
}
