import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import type { Environment } from '../http/config';
import { checkFields } from './checked-fields';
import { CliError, EXIT } from './cli-error';
import { isBelow } from './path-below';
import { encodingFault } from './text-input';
import { faultSentence, readYaml } from './yaml-text';

const text = z.string('must be text').min(1, 'is empty');
const texts = z
  .union([text, z.array(text)], 'must be text, or a list of texts')
  .transform((given) => (typeof given === 'string' ? [given] : given));

const schema = z
  .strictObject(
    {
      url: text.optional(),
      key: text.optional(),
      keyFile: text.optional(),
      ca: text.optional(),
      cert: text.optional(),
      certKey: text.optional(),
      allowEnv: texts.optional(),
      allowFile: texts.optional(),
    },
    'must be a list of "name: value" lines',
  )
  .refine(({ key, keyFile }) => key === undefined || keyFile === undefined, 'has key and keyFile; give one');

export type Setting = Exclude<keyof z.output<typeof schema>, 'allowEnv' | 'allowFile'>;

export interface ConfigFile {
  readonly path: string;
  /** The settings; paths of files are absolute. */
  readonly settings: { readonly [name in Setting]?: string | undefined };
  /** Variables, and absolute paths, that a line-up may have keys from. */
  readonly allowEnv: readonly string[];
  readonly allowFile: readonly string[];
  /** Whether it is the one of the working folder, that nobody named: it may be another's, as the folder may. */
  readonly isOfFolder: boolean;
  /** Whether others than its owner can read it. */
  readonly isOpen: boolean;
}

const PATHS: readonly Setting[] = ['keyFile', 'ca', 'cert', 'certKey'];

/** Where a configuration file is looked for; the first that is there is read, and no other. */
export function configPaths(env: Environment, cwd: string): string[] {
  const home = env.HOME || env.USERPROFILE;
  const folder = env.XDG_CONFIG_HOME || (home && join(home, '.config'));
  return [folderPath(cwd), ...(folder ? [join(folder, 'packager-drm', 'config.yaml')] : [])];
}

/** Reads a configuration file. @throws CliError with every fault of the file and its line. */
function readConfigFile(path: string, isOfFolder: boolean): ConfigFile {
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
  const { allowEnv = [], allowFile = [], ...given } = checked.value;
  const settings: { [name in Setting]?: string | undefined } = { ...given };
  for (const name of PATHS) {
    const file = settings[name];
    if (file !== undefined) settings[name] = resolve(dirname(path), file);
  }
  if (isOfFolder && settings.keyFile !== undefined && leaves(dirname(path), settings.keyFile)) {
    // Its one line would be sent to the address in the same file.
    throw unusable(
      `keyFile leaves the folder of ${path}; move the key there, or say that you mean this file by --config ${path}.`,
    );
  }
  if (isOfFolder && allowEnv.length + allowFile.length > 0) {
    // Who wrote it may have written the line-up, too.
    throw unusable(
      `${path} may not say what is allowed, as it lies in the working folder; say that you mean it by --config ${path}, or use --allow-env and --allow-file.`,
    );
  }
  return {
    path,
    settings,
    allowEnv,
    allowFile: allowFile.map((file) => resolve(dirname(path), file)),
    isOfFolder,
    isOpen: (statSync(path).mode & 0o044) !== 0,
  };
}

/** The configuration file of this call, or undefined when there is none. */
export function findConfigFile(env: Environment, cwd: string, given?: string): ConfigFile | undefined {
  if (given !== undefined) return readConfigFile(resolve(cwd, given), false);
  const path = configPaths(env, cwd).find(existsSync);
  return path === undefined ? undefined : readConfigFile(path, path === folderPath(cwd));
}

function folderPath(cwd: string): string {
  return join(cwd, 'packager-drm.yaml');
}

/** Whether a file lies elsewhere than in a folder, as itself or behind a link. */
function leaves(folder: string, file: string): boolean {
  try {
    return !isBelow(realpathSync(folder), realpathSync(file));
  } catch {
    // What isn't there can't be read, either.
    return !isBelow(folder, file);
  }
}

function readText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    throw unusable(`The configuration file ${path} can't be read; check the path and who may read it.`);
  }
  const fault = encodingFault(bytes);
  if (fault !== undefined) throw unusable(`The configuration file ${path} ${fault}.`);
  return bytes.toString('utf8');
}

function unusable(description: string): CliError {
  return new CliError(EXIT.usage, { code: 'config_file', description });
}
