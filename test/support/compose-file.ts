import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

/** The checked parts of a service. */
export interface Service {
  readonly profiles?: readonly string[];
  readonly ports?: readonly string[];
  readonly user?: string;
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly environment: Readonly<Record<string, string>>;
  readonly command?: string | readonly string[];
}

/** A compose file's `${NAME:-default}` and `${NAME-default}`, the innermost first. */
function interpolate(text: string, env: Record<string, string>): string {
  const next = text.replaceAll(/\$\{(\w+)(:?)-([^${}]*)\}/g, (_all, name: string, colon, fallback) => {
    const value = env[name];
    return value === undefined || (colon && value === '') ? fallback : value;
  });
  return next === text ? text : interpolate(next, env);
}

/** The services of a compose file of the repository, as compose reads it with these variables. */
export async function readServices(
  env: Record<string, string> = {},
  file = 'docker-compose.yml',
): Promise<Record<string, Service>> {
  const text = await readFile(join(__dirname, '../..', file), 'utf8');
  return parse(interpolate(text, env), { merge: true }).services;
}
