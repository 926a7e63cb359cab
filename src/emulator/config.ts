import { z } from 'zod';
import { type Environment, readConfig, unknownVariables } from '../kernel/config';
import { LOG_LEVELS, type LogLevel } from '../kernel/log';
import { type Client, isPathName } from './clients';

const VARIABLES = z.object({
  EMULATOR_HOST: z.string().default('127.0.0.1'),
  EMULATOR_PORT: z
    .string()
    .regex(/^\d{1,5}$/, 'must be a port number')
    .transform(Number)
    .refine((port) => port <= 65_535, 'must be at most 65535')
    .default(8080),
  EMULATOR_CLIENT: z
    .string()
    .refine(isPathName, 'must be 1 to 200 letters, digits, _, - and ., and not . or ..')
    .default('demo'),
  EMULATOR_CLIENT_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces, as it is sent in a header')
    .default('demo-client-api-key'),
  EMULATOR_CLIENT_SHARED_SECRET: z
    .string()
    .refine((secret) => Buffer.byteLength(secret) >= 16, 'must have at least 16 bytes')
    .default('demo-shared-secret-0123456789'),
  EMULATOR_LOGLEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

export interface EmulatorConfig {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly client: Client;
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
    client: {
      name: variables.EMULATOR_CLIENT,
      apiKey: variables.EMULATOR_CLIENT_API_KEY,
      sharedSecret: variables.EMULATOR_CLIENT_SHARED_SECRET,
    },
    logLevel: variables.EMULATOR_LOGLEVEL,
    unknownVariables: unknownVariables('EMULATOR_', Object.keys(VARIABLES.shape), env),
  };
}
