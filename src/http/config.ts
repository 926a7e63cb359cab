import type { z } from 'zod';
import { nearest } from './faults';

export type Environment = Readonly<Record<string, string | undefined>>;

/** `faults` are sentences, one for each thing to correct. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `The configuration has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/** Docker's `--env-file` keeps quotes; a shell, compose, systemd and `.env` remove them. */
const QUOTED = /^(["']).*\1$/s;

/**
 * An empty variable counts as absent, as in a compose file's `NAME=`.
 * @throws ConfigError with every fault at once; none quotes a value, which may be a secret.
 */
export function readConfig<Schema extends z.ZodObject>(schema: Schema, env: Environment): z.output<Schema> {
  const given = Object.fromEntries(
    Object.keys(schema.shape).map((name) => [name, env[name] === '' ? undefined : env[name]]),
  );
  const quoted = Object.keys(given).filter((name) => QUOTED.test(given[name] ?? ''));
  if (quoted.length > 0)
    throw new ConfigError(quoted.map((name) => `${name}: the quotes are part of the value; leave them out`));
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new ConfigError(
    result.error.issues.map((issue) => `${String(issue.path[0] ?? 'configuration')}: ${issue.message}`),
  );
}

/** The variables with this prefix that are not known, each with the nearest name that is. */
export function unknownVariables(prefix: string, known: readonly string[], env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(prefix) && !known.includes(name))
    .map((name) => {
      const near = nearest(name, known);
      return near ? `${name} (did you mean ${near}?)` : name;
    });
}
