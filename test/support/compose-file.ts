import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

/** What is looked at of a service. */
export interface Service {
  readonly image: string;
  readonly profiles?: readonly string[];
  readonly ports?: readonly string[];
  readonly user?: string;
  readonly volumes?: readonly string[];
  readonly read_only?: boolean;
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

/** The services of docker-compose.yml, as compose reads it with these variables. */
export async function readServices(env: Record<string, string> = {}): Promise<Record<string, Service>> {
  const text = await readFile(join(__dirname, '../../docker-compose.yml'), 'utf8');
  return parse(interpolate(text, env)).services;
}
