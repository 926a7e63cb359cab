import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import * as z from 'zod';
import { type Environment, readConfig, unknownVariables } from '../../http/config';
import { LOG_LEVELS } from '../../http/log';

const MB = 1024 * 1024;

const VARIABLES = z.object({
  PACKAGER_HOST: z.string().default('127.0.0.1'),
  PACKAGER_PORT: z
    .string()
    .regex(/^\d{1,5}$/, 'must be a port number')
    .transform(Number)
    .refine((number) => number <= 65_535, 'must be at most 65535')
    .default(8082),
  PACKAGER_APIKEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces, as it is sent in a header')
    .refine((key) => key.length >= 16, 'must have at least 16 characters')
    .optional(),
  PACKAGER_KEYFILESPATH: z.string().default('./keys'),
  // shaka-packager divides the fields of its arguments by commas, and replaces `$Number$` in the paths of segments.
  PACKAGER_FOLDER: z
    .string()
    .default(tmpdir())
    .transform((path) => resolve(path))
    .refine((path) => !path.includes(','), 'must be a path without a comma')
    .refine((path) => !path.includes('$'), 'must be a path without $'),
  PACKAGER_MAXMB: z
    .string()
    .regex(/^[1-9]\d{0,7}$/, 'must be a whole number of megabytes, from 1 to 99999999')
    .transform(Number)
    .default(8192),
  PACKAGER_ROTATE: z.enum(['true', 'false'], 'must be true or false').default('false'),
  PACKAGER_FFMPEG: z.string().transform(programAt).default('ffmpeg'),
  PACKAGER_SHAKAPACKAGER: z
    .string()
    .transform(programAt)
    .refine((path) => !path.includes('/') || existsSync(path), 'there is no such file')
    .optional(),
  PACKAGER_LOGLEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
});

/** A name alone is looked for in PATH. Programs run in another folder, where a relative path would lead elsewhere. */
function programAt(path: string): string {
  return path.includes('/') ? resolve(path) : path;
}

/** Reads the `PACKAGER_*` variables; every one has a default. @throws ConfigError with every fault at once. */
export function readPackagerConfig(env: Environment) {
  const variables = readConfig(VARIABLES, env);
  return {
    host: variables.PACKAGER_HOST,
    port: variables.PACKAGER_PORT,
    /** Undefined: every call is answered. */
    apiKey: variables.PACKAGER_APIKEY,
    keyFilesPath: resolve(variables.PACKAGER_KEYFILESPATH),
    folder: variables.PACKAGER_FOLDER,
    maxBytes: variables.PACKAGER_MAXMB * MB,
    rotate: variables.PACKAGER_ROTATE === 'true',
    ffmpeg: variables.PACKAGER_FFMPEG,
    /** Undefined: the binary of the npm package. */
    shakaPackager: variables.PACKAGER_SHAKAPACKAGER,
    logLevel: variables.PACKAGER_LOGLEVEL,
    unknownVariables: unknownVariables('PACKAGER_', Object.keys(VARIABLES.shape), env),
  };
}
