import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import type { Environment } from '../http/config';
import { CliError, EXIT, usageError } from './cli-error';
import { encodingFault, isBelow } from './input';
import { checkFields, problemSentence, readYaml } from './yaml-fields';

/** The options of the program that say which sidecar is meant. */
export interface ConnectionOptions {
  readonly url?: string;
  readonly key?: string;
  readonly keyFile?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly certKey?: string;
  readonly config?: string;
}

export interface Connection {
  readonly url: URL;
  /** What the address comes from, for a message: `--url`, a variable, a file. */
  readonly urlFrom: string;
  readonly apiKey: string;
  readonly apiKeyFrom: string;
  /** PEM texts. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly certKey: string | undefined;
  readonly warnings: readonly string[];
}

interface Found {
  readonly value: string;
  readonly from: string;
}

/**
 * Puts together which sidecar is meant: options win over the environment, which wins over the configuration file;
 * inside the sidecar's container its own variables are the last resort.
 * @throws CliError when something is missing or can't be used. No message quotes a key.
 */
export function readConnection(options: ConnectionOptions, env: Environment, cwd: string): Connection {
  if (options.key !== undefined && options.keyFile !== undefined)
    throw usageError('Give --key or --key-file, not both.');
  const file = findConfigFile(env, cwd, options.config);
  const { find, pem } = findersOf(options, env, cwd, file);
  const url = find('url', 'PACKAGERDRM_URL') ?? urlOfContainer(env);
  if (!url) {
    throw usageError(
      `Which sidecar? Give its address by --url, in PACKAGERDRM_URL, or as url in ${configPaths(env, cwd).join(' or ')}.`,
    );
  }
  const apiKey = findKey(options, env, cwd, file);
  requireOneSource(url, apiKey, file);
  if (!find('cert', 'PACKAGERDRM_CERT') !== !find('certKey', 'PACKAGERDRM_CERTKEY')) {
    throw usageError('A client certificate needs both: --cert and --cert-key.');
  }
  return {
    url: parseUrl(url),
    urlFrom: url.from,
    apiKey: apiKey.value,
    apiKeyFrom: apiKey.from,
    ca: pem('ca', 'PACKAGERDRM_CA'),
    cert: pem('cert', 'PACKAGERDRM_CERT'),
    certKey: pem('certKey', 'PACKAGERDRM_CERTKEY'),
    warnings:
      file?.settings.key !== undefined && file.isOpen
        ? [`${file.path} holds an API key and others can read it; run: chmod 600 ${file.path}`]
        : [],
  };
}

/**
 * The certificate of the authority to trust, for calls to others than the sidecar.
 * @throws CliError when it can't be used.
 */
export function readAuthority(options: ConnectionOptions, env: Environment, cwd: string): string | undefined {
  const file = findConfigFile(env, cwd, options.config);
  return findersOf(options, env, cwd, file).pem('ca', 'PACKAGERDRM_CA');
}

/** Finds settings, and the PEM files that they name. */
function findersOf(options: ConnectionOptions, env: Environment, cwd: string, file: ConfigFile | undefined) {
  const find = (name: Exclude<Setting, 'key' | 'keyFile'>, variable: string): Found | undefined =>
    first(
      [options[name], `--${name === 'certKey' ? 'cert-key' : name}`],
      [env[variable], variable],
      inFile(file, name),
    );
  const pem = (name: 'ca' | 'cert' | 'certKey', variable: string) => {
    const found = find(name, variable);
    if (!found) return undefined;
    const text = readNamed(resolve(cwd, found.value), found.from);
    const what = name === 'certKey' ? 'private key' : 'certificate';
    if (!/-----BEGIN [A-Z ]+-----/.test(text))
      throw usageError(`The file of ${found.from} holds no ${what}: a PEM file has a line -----BEGIN ….`);
    return text;
  };
  return { find, pem };
}

/**
 * An address that merely lies in the working folder (of a checkout, of an archive) must not draw a key that was given
 * for another sidecar. @throws CliError
 */
function requireOneSource(url: Found, apiKey: Found, file: ConfigFile | undefined): void {
  if (!file?.isOfFolder || url.from !== inFile(file, 'url')[1]) return;
  if (apiKey.from === inFile(file, 'key')[1] || apiKey.from === inFile(file, 'keyFile')[1]) return;
  throw usageError(
    `The address is from ${file.path}, and the API key from ${apiKey.from}: a file that lies in the working folder gets no key from elsewhere. Say that you mean it by --config ${file.path}, or give the address by --url.`,
  );
}

function findKey(
  options: ConnectionOptions,
  env: Environment,
  cwd: string,
  file: ConfigFile | undefined,
): Found {
  const given = (
    key: string | undefined,
    keyFrom: string,
    name: string | undefined,
    nameFrom: string,
  ): Found | undefined => {
    if (key) return { value: key, from: keyFrom };
    return name
      ? { value: readNamed(resolve(cwd, name), nameFrom).replace(/\r?\n$/, ''), from: nameFrom }
      : undefined;
  };
  const ofVariables = (name: string) => given(env[name], name, env[`${name}_FILE`], `${name}_FILE`);
  const found =
    given(options.key, '--key', options.keyFile, '--key-file') ??
    ofVariables('PACKAGERDRM_APIKEY') ??
    given(...inFile(file, 'key'), ...inFile(file, 'keyFile')) ??
    ofVariables('PACKAGERDRMAPI_APIKEY');
  if (!found) {
    throw usageError(
      `The sidecar's API key is missing: give it by --key-file, in PACKAGERDRM_APIKEY, or as keyFile in ${configPaths(env, cwd).join(' or ')}.`,
    );
  }
  if (!/^[\x21-\x7e]+$/.test(found.value)) {
    throw usageError(
      `The API key of ${found.from} must be printable ASCII without spaces: it travels in a header.`,
    );
  }
  return found;
}

function urlOfContainer(env: Environment): Found | undefined {
  const { PACKAGERDRMAPI_PORT: port, PACKAGERDRMAPI_HOST: host, PACKAGERDRMAPI_TLSCERT: tls } = env;
  const { PACKAGERDRMAPI_APIKEY, PACKAGERDRMAPI_APIKEY_FILE, PACKAGERDRMAPI_APIKEYS_FILE } = env;
  if (![port, PACKAGERDRMAPI_APIKEY, PACKAGERDRMAPI_APIKEY_FILE, PACKAGERDRMAPI_APIKEYS_FILE].some(Boolean))
    return undefined;
  const everywhere = !host || host === '0.0.0.0' || host === '::';
  // A certificate is seldom made out to an address.
  const name = everywhere ? (tls ? 'localhost' : '127.0.0.1') : host.includes(':') ? `[${host}]` : host;
  return {
    value: `${tls ? 'https' : 'http'}://${name}:${port || '80'}`,
    from: port ? 'PACKAGERDRMAPI_PORT' : "the sidecar's default port",
  };
}

function parseUrl({ value, from }: Found): URL {
  const isAddress = /^https?:\/\//i.test(value) && URL.canParse(value) && !/[\s?#]/.test(value);
  const url = isAddress ? new URL(value) : undefined;
  if (url?.username !== '' || url.password !== '') {
    throw usageError(
      `The address of ${from} must start with http:// or https:// and have no user, query or space, as http://127.0.0.1:9000.`,
    );
  }
  return url;
}

function inFile(file: ConfigFile | undefined, name: Setting): [string | undefined, string] {
  return [file?.settings[name], `${name} in ${file?.path}`];
}

/** The first that is given; an empty variable counts as absent. */
function first(...candidates: [value: string | undefined, from: string][]): Found | undefined {
  for (const [value, from] of candidates) if (value) return { value, from };
  return undefined;
}

function readNamed(path: string, from: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw usageError(`The file of ${from}, ${path}, can't be read; check the path and who may read it.`);
  }
}

const text = z.string('must be text').min(1, 'is empty');
const texts = z
  .union([text, z.array(text)], 'must be text, or a list of texts')
  .transform((given) => (typeof given === 'string' ? [given] : given));

const one = text.optional();

const configSchema = z
  .strictObject(
    {
      ...{ url: one, key: one, keyFile: one, ca: one, cert: one, certKey: one },
      allowEnv: texts.optional(),
      allowFile: texts.optional(),
    },
    'must be a list of "name: value" lines',
  )
  .refine(({ key, keyFile }) => key === undefined || keyFile === undefined, 'has key and keyFile; give one');

type Setting = Exclude<keyof z.output<typeof configSchema>, 'allowEnv' | 'allowFile'>;

export interface ConfigFile {
  readonly path: string;
  /** The settings; paths of files are absolute. */
  readonly settings: { readonly [name in Setting]?: string | undefined };
  /** Variables, and absolute paths, that a manifest may have keys from. */
  readonly allowEnv: readonly string[];
  readonly allowFile: readonly string[];
  /** Whether it is the one of the working folder, and no option names it: others may have written it. */
  readonly isOfFolder: boolean;
  readonly isOpen: boolean;
}

const PATHS: readonly Setting[] = ['keyFile', 'ca', 'cert', 'certKey'];

/** Where a configuration file is looked for; the first that is there is read, and no other. */
function configPaths(env: Environment, cwd: string): string[] {
  const home = env.HOME || env.USERPROFILE;
  const folder = env.XDG_CONFIG_HOME || (home && join(home, '.config'));
  return [folderPath(cwd), ...(folder ? [join(folder, 'packager-drm', 'config.yaml')] : [])];
}

/** Reads a configuration file. @throws CliError with every fault of the file and its line. */
function readConfigFile(path: string, isOfFolder: boolean): ConfigFile {
  const read = readYaml(readConfigText(path));
  const checked =
    read.faults.length > 0
      ? { faults: read.faults }
      : checkFields(configSchema, { ...read, value: read.value ?? {} });
  if ('faults' in checked) {
    throw new CliError(
      EXIT.usage,
      checked.faults.map((fault) => ({ code: 'config_file', description: problemSentence(path, fault) })),
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
    throw unusableConfig(
      `keyFile leaves the folder of ${path}; move the key there, or say that you mean this file by --config ${path}.`,
    );
  }
  if (isOfFolder && allowEnv.length + allowFile.length > 0) {
    // Its author may have written the manifest, too.
    throw unusableConfig(
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

function leaves(folder: string, file: string): boolean {
  try {
    return !isBelow(realpathSync(folder), realpathSync(file));
  } catch {
    // What isn't there can't be read, either.
    return !isBelow(folder, file);
  }
}

function readConfigText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    throw unusableConfig(`The configuration file ${path} can't be read; check the path and who may read it.`);
  }
  const fault = encodingFault(bytes);
  if (fault !== undefined) throw unusableConfig(`The configuration file ${path} ${fault}.`);
  return bytes.toString('utf8');
}

function unusableConfig(description: string): CliError {
  return new CliError(EXIT.usage, { code: 'config_file', description });
}
