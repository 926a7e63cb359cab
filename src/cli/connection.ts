import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import type { Environment } from '../http/config';
import { CliError, EXIT, usageError } from './cli-error';
import { encodingFault, isBelow } from './input';
import { checkFields, problemSentence, readYaml } from './yaml-fields';

/** The options of the program that say the sidecar. */
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
 * Finds the sidecar: options win over the environment, which wins over the configuration file;
 * inside the sidecar's container its own variables are the last resort.
 * @throws CliError when something is missing or can't be used. No message quotes a key.
 */
export function readConnection(options: ConnectionOptions, env: Environment, cwd: string): Connection {
  if (options.key !== undefined && options.keyFile !== undefined)
    throw usageError('Give --key or --key-file, not both.');
  const file = findConfigFile(env, cwd, options.config);
  const { find, pem } = findersOf(options, env, cwd, file);
  const places = configPaths(env, cwd).join(' or ');
  const url = find('url') ?? urlOfContainer(env);
  if (!url)
    throw usageError(
      `The address of the sidecar is missing: give it with --url, in PACKAGERDRM_URL, or as url in ${places}.`,
    );
  const apiKey = findKey(find, env, cwd);
  if (!apiKey)
    throw usageError(
      `The sidecar's API key is missing: give it with --key-file, in PACKAGERDRM_APIKEY, or as keyFile in ${places}.`,
    );
  if (!/^[\x21-\x7e]+$/.test(apiKey.value))
    throw usageError(
      `The API key of ${apiKey.from} must be printable ASCII without spaces: it travels in a header.`,
    );
  requireOneSource(url, apiKey, file);
  if (!find('cert') !== !find('certKey'))
    throw usageError('A client certificate needs both: --cert and --cert-key.');
  const isShown = file?.settings.key !== undefined && (statSync(file.path).mode & 0o044) !== 0;
  return {
    url: parseUrl(url),
    urlFrom: url.from,
    apiKey: apiKey.value,
    apiKeyFrom: apiKey.from,
    ca: pem('ca'),
    cert: pem('cert'),
    certKey: pem('certKey'),
    warnings: isShown
      ? [`${file.path} holds an API key and others can read it; run: chmod 600 ${file.path}`]
      : [],
  };
}

/**
 * The certificate of the authority to trust, for calls to others than the sidecar.
 * @throws CliError when it can't be used.
 */
export function readAuthority(options: ConnectionOptions, env: Environment, cwd: string): string | undefined {
  return findersOf(options, env, cwd, findConfigFile(env, cwd, options.config)).pem('ca');
}

/** What each setting is called on the command line and in the environment. */
const NAMES: Readonly<Record<Setting, readonly [option: string, variable: string]>> = {
  url: ['--url', 'PACKAGERDRM_URL'],
  key: ['--key', 'PACKAGERDRM_APIKEY'],
  keyFile: ['--key-file', 'PACKAGERDRM_APIKEY_FILE'],
  ca: ['--ca', 'PACKAGERDRM_CA'],
  cert: ['--cert', 'PACKAGERDRM_CERT'],
  certKey: ['--cert-key', 'PACKAGERDRM_CERTKEY'],
};

const SOURCES = ['options', 'environment', 'file'] as const;
type Source = (typeof SOURCES)[number];
type Find = (name: Setting, sources?: readonly Source[]) => Found | undefined;

/** Finds settings, and the PEM files that they name. An empty variable counts as absent. */
function findersOf(options: ConnectionOptions, env: Environment, cwd: string, file: ConfigFile | undefined) {
  const find: Find = (name, sources = SOURCES) => {
    const [option, variable] = NAMES[name];
    const given = {
      options: { value: options[name], from: option },
      environment: { value: env[variable], from: variable },
      file: { value: file?.settings[name], from: inFile(file, name) },
    };
    for (const source of sources) {
      const { value, from } = given[source];
      if (value) return { value, from };
    }
    return undefined;
  };
  const pem = (name: 'ca' | 'cert' | 'certKey') => {
    const found = find(name);
    if (!found) return undefined;
    const text = readNamed(found, cwd);
    const what = name === 'certKey' ? 'private key' : 'certificate';
    if (!/-----BEGIN [A-Z ]+-----/.test(text))
      throw usageError(`The file of ${found.from} holds no ${what}: a PEM file has a line -----BEGIN ….`);
    return text;
  };
  return { find, pem };
}

/**
 * An address from the working folder (of a checkout, of an archive) must not get a key that was given
 * for another sidecar. @throws CliError
 */
function requireOneSource(url: Found, apiKey: Found, file: ConfigFile | undefined): void {
  if (!file?.isOfFolder || url.from !== inFile(file, 'url')) return;
  if (apiKey.from === inFile(file, 'key') || apiKey.from === inFile(file, 'keyFile')) return;
  throw usageError(
    `The address is from ${file.path}, and the API key from ${apiKey.from}: a file in the working folder gets no key from elsewhere. To use it anyway, give --config ${file.path}, or give the address with --url.`,
  );
}

/** The API key, or the one in the file that the same source names. */
function findKey(find: Find, env: Environment, cwd: string): Found | undefined {
  const inText = (named: Found) => ({ ...named, value: readNamed(named, cwd).replace(/\r?\n$/, '') });
  for (const source of SOURCES) {
    const key = find('key', [source]);
    const file = find('keyFile', [source]);
    if (key) return key;
    if (file) return inText(file);
  }
  const { PACKAGERDRMAPI_APIKEY: value, PACKAGERDRMAPI_APIKEY_FILE: file } = env;
  if (value) return { value, from: 'PACKAGERDRMAPI_APIKEY' };
  return file ? inText({ value: file, from: 'PACKAGERDRMAPI_APIKEY_FILE' }) : undefined;
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
      `The address of ${from} must start with http:// or https:// and have no user, query or space, such as http://127.0.0.1:9000.`,
    );
  }
  return url;
}

function inFile(file: ConfigFile | undefined, name: Setting): string {
  return `${name} in ${file?.path}`;
}

function readNamed({ value, from }: Found, cwd: string): string {
  const path = resolve(cwd, value);
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
      `keyFile is outside the folder of ${path}; move the key there, or give --config ${path} to use it anyway.`,
    );
  }
  if (isOfFolder && allowEnv.length + allowFile.length > 0) {
    // Its author may have written the manifest, too.
    throw unusableConfig(
      `${path} can't allow anything, because it is in the working folder; give --config ${path} to use it anyway, or use --allow-env and --allow-file.`,
    );
  }
  return {
    path,
    settings,
    allowEnv,
    allowFile: allowFile.map((file) => resolve(dirname(path), file)),
    isOfFolder,
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
