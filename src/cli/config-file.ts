import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../kernel/config';
import { checkFields } from './checked-fields';
import { CliError, EXIT } from './cli-error';
import { faultSentence, readYaml } from './yaml-text';

const text = z.string('must be text').min(1, 'is empty');

const schema = z
  .strictObject(
    {
      url: text.optional(),
      key: text.optional(),
      keyFile: text.optional(),
      ca: text.optional(),
      cert: text.optional(),
      certKey: text.optional(),
    },
    'must be a list of "name: value" lines',
  )
  .refine(({ key, keyFile }) => key === undefined || keyFile === undefined, 'has key and keyFile; give one');

export type Setting = keyof z.output<typeof schema>;

export interface ConfigFile {
  readonly path: string;
  /** The settings; paths of files are absolute. */
  readonly settings: { readonly [name in Setting]?: string | undefined };
  /** Whether others than its owner can read it. */
  readonly isOpen: boolean;
}

const PATHS: readonly Setting[] = ['keyFile', 'ca', 'cert', 'certKey'];

/** Where a configuration file is looked for; the first that is there is read, and no other. */
export function configPaths(env: Environment, cwd: string): string[] {
  const home = env.HOME || env.USERPROFILE;
  const folder = env.XDG_CONFIG_HOME || (home && join(home, '.config'));
  return [join(cwd, 'packager-drm.yaml'), ...(folder ? [join(folder, 'packager-drm', 'config.yaml')] : [])];
}

/** Reads a configuration file. @throws CliError with every fault of the file and its line. */
export function readConfigFile(path: string): ConfigFile {
  const read = readYaml(readText(path));
  const checked =
    read.faults.length > 0
      ? { faults: read.faults }
      : checkFields(schema, { ...read, value: read.value ?? {} }, () => Object.keys(schema.shape));
  if ('faults' in checked) {
    throw new CliError(
      EXIT.usage,
      checked.faults.map((fault) => ({ code: 'config_file', description: faultSentence(path, fault) })),
    );
  }
  const settings: { [name in Setting]?: string | undefined } = { ...checked.value };
  for (const name of PATHS) {
    const given = settings[name];
    if (given !== undefined) settings[name] = resolve(dirname(path), given);
  }
  return { path, settings, isOpen: (statSync(path).mode & 0o044) !== 0 };
}

/** The configuration file of this call, or undefined when there is none. */
export function findConfigFile(env: Environment, cwd: string, given?: string): ConfigFile | undefined {
  const path = given === undefined ? configPaths(env, cwd).find(existsSync) : resolve(cwd, given);
  return path === undefined ? undefined : readConfigFile(path);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new CliError(EXIT.usage, {
      code: 'config_file',
      description: `The configuration file ${path} can't be read; check the path and who may read it.`,
    });
  }
}
