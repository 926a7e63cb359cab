import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import type { Environment } from '../http/config';
import { secretIn } from '../http/secret';
import type { CommandRun, Output } from '../terminal/output';
import type { Sandbox } from '../verify/sandboxed-tester';
import { CliError, EXIT, type ExitCode, optionOf, usageError } from './cli-error';
import { type Connection, createHttpCall, createSidecarApi, type SidecarApi } from './client';
import { encodingFault, isBelow, readNamedFile, resultOrUndefined } from './input';
import type { Options } from './options';
import { checkFields, fileError, readYaml } from './yaml-fields';

export interface CliDependencies extends CommandRun {
  readonly env: Environment;
  readonly now: () => Date;
  /** Random bytes, fit for keys. */
  readonly random: (bytes: number) => Buffer;
  /** Resolves after these milliseconds, or when the signal is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  /** The limits of a test of a stream; without them, it runs in this process. */
  readonly sandbox?: Sandbox;
}

export interface CliContext extends CliDependencies {
  readonly out: Output;
  /** With `finishCalls` an interruption does not cut a call. @throws CliError when no sidecar is named. */
  sidecar(options?: { readonly finishCalls: boolean }): SidecarApi;
  /** The authority to trust besides those of the system, PEM. @throws CliError when it has a fault. */
  authority(): string | undefined;
  /** The file of `--key-file`, as it was given. */
  readonly apiKeyFile: string | undefined;
  /** @throws CliError when it has a fault. */
  configFile(): ConfigFile | undefined;
  /** Ends the program with another exit code than 0 although nothing was thrown. */
  endWith(code: ExitCode): void;
}

/** Creates the context of a command; nothing is read or connected before its use. */
export function createContext(
  dependencies: CliDependencies,
  { out, endWith, options }: Pick<CliContext, 'out' | 'endWith'> & { readonly options: Options },
): CliContext {
  const connect = () => {
    const connection = readConnection(options, dependencies.env, dependencies.cwd);
    for (const warning of connection.warnings) out.warn(warning);
    return { connection, send: createHttpCall(connection) };
  };
  const configFile = () => findConfigFile(dependencies.env, dependencies.cwd, options.config);
  let connected: ReturnType<typeof connect> | undefined;
  return {
    ...dependencies,
    out,
    endWith,
    sidecar: (calls) => {
      connected ??= connect();
      const signal = calls?.finishCalls ? new AbortController().signal : dependencies.interrupted;
      return createSidecarApi(connected.connection, signal, connected.send);
    },
    authority: () =>
      connected
        ? connected.connection.ca
        : pemOf(sourcesOf(options, dependencies.env, configFile()), 'ca', dependencies.cwd),
    apiKeyFile: options.keyFile,
    configFile,
  };
}

interface Found {
  readonly value: string;
  readonly from: string;
}

/**
 * Options win over the environment, which wins over the configuration file; inside the sidecar's container
 * its own variables are the last resort. @throws CliError when something is missing or can't be used. No
 * message quotes a key.
 */
export function readConnection(options: Options, env: Environment, cwd: string): Connection {
  if (options.key !== undefined && options.keyFile !== undefined)
    throw usageError('Give --key or --key-file, not both.');
  const file = findConfigFile(env, cwd, options.config);
  const sources = sourcesOf(options, env, file);
  const places = configPaths(env, cwd).join(' or ');
  const url = find(sources, 'url') ?? urlOfContainer(env);
  if (!url)
    throw usageError(
      `The address of the sidecar is missing: give it with --url, in PACKAGERDRM_URL, or as url in ${places}.`,
    );
  const apiKey = findKey(sources, env, cwd);
  if (!apiKey)
    throw usageError(
      `The sidecar's API key is missing: give it with --key-file, in PACKAGERDRM_APIKEY, or as keyFile in ${places}.`,
    );
  if (!/^[\x21-\x7e]+$/.test(apiKey.value))
    throw usageError(
      `The API key of ${apiKey.from} must be printable ASCII without spaces: it travels in a header.`,
    );
  // An address from the working folder (of a checkout, of an archive) must not get a key of another sidecar, nor may an
  // authority from there vouch for who gets it.
  const isOf = (found?: Found) => found?.from.endsWith(` in ${file?.path}`);
  const [what, option] = isOf(url) ? ['address', '--url'] : ['authority', '--ca'];
  if (file?.isOfFolder && (isOf(url) || isOf(find(sources, 'ca'))) && !isOf(apiKey))
    throw usageError(
      `The ${what} is from ${file.path}, and the API key from ${apiKey.from}: a file in the working folder gets no key from elsewhere. To use it anyway, give --config ${file.path}, or give the ${what} with ${option}.`,
    );
  if (!find(sources, 'cert') !== !find(sources, 'certKey'))
    throw usageError('A client certificate needs both: --cert and --cert-key.');
  const isShown = file?.settings.key !== undefined && (statSync(file.path).mode & 0o044) !== 0;
  return {
    url: parseUrl(url),
    urlFrom: url.from,
    apiKey: apiKey.value,
    apiKeyFrom: apiKey.from,
    ca: pemOf(sources, 'ca', cwd),
    cert: pemOf(sources, 'cert', cwd),
    certKey: pemOf(sources, 'certKey', cwd),
    warnings: isShown
      ? [`${file.path} holds an API key and others can read it; run: chmod 600 ${file.path}`]
      : [],
  };
}

type Source = (name: Setting) => Found | undefined;

const VARIABLES: Readonly<Record<Setting, string>> = {
  url: 'PACKAGERDRM_URL',
  key: 'PACKAGERDRM_APIKEY',
  keyFile: 'PACKAGERDRM_APIKEY_FILE',
  ca: 'PACKAGERDRM_CA',
  cert: 'PACKAGERDRM_CERT',
  certKey: 'PACKAGERDRM_CERTKEY',
};

/** The sources of settings, in their order. An empty variable counts as absent. */
function sourcesOf(options: Options, env: Environment, file: ConfigFile | undefined): readonly Source[] {
  const found = (value: string | undefined, from: string) => (value ? { value, from } : undefined);
  return [
    (name) => found(options[name], optionOf(name)),
    (name) => found(env[VARIABLES[name]], VARIABLES[name]),
    (name) => found(file?.settings[name], `${name} in ${file?.path}`),
  ];
}

function find(sources: readonly Source[], name: Setting): Found | undefined {
  return sources.map((source) => source(name)).find(Boolean);
}

function pemOf(sources: readonly Source[], name: 'ca' | 'cert' | 'certKey', cwd: string): string | undefined {
  const found = find(sources, name);
  if (!found) return undefined;
  const text = readNamed(found, cwd);
  const what = name === 'certKey' ? 'private key' : 'certificate';
  if (!new RegExp(`-----BEGIN (?:[A-Z0-9]+ )*${what}-----`, 'i').test(text))
    throw usageError(`The file of ${found.from} holds no ${what}: a PEM file has a line -----BEGIN ….`);
  return text;
}

/** The API key, or the one in the file that the same source names. */
function findKey(sources: readonly Source[], env: Environment, cwd: string): Found | undefined {
  const { PACKAGERDRMAPI_APIKEY: value, PACKAGERDRMAPI_APIKEY_FILE: path } = env;
  const ofContainer: Source = (name) => {
    if (name === 'key') return value ? { value, from: 'PACKAGERDRMAPI_APIKEY' } : undefined;
    return path ? { value: path, from: 'PACKAGERDRMAPI_APIKEY_FILE' } : undefined;
  };
  for (const source of [...sources, ofContainer]) {
    const key = source('key');
    const file = source('keyFile');
    if (key) return key;
    if (file) return { ...file, value: secretIn(readNamed(file, cwd)) };
  }
  return undefined;
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

function readNamed({ value, from }: Found, cwd: string): string {
  const bytes = resultOrUndefined(() => readNamedFile({ cwd }, value));
  if (bytes) return bytes.toString('utf8');
  const path = resolve(cwd, value);
  throw usageError(`The file of ${from}, ${path}, can't be read; check the path and who may read it.`);
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

interface ConfigFile {
  readonly path: string;
  /** The settings; paths of files are absolute. */
  readonly settings: { readonly [name in Setting]?: string | undefined };
  /** Variables and absolute paths from which a manifest may take keys. */
  readonly allowEnv: readonly string[];
  readonly allowFile: readonly string[];
  /** Whether it is in the working folder, and no option names it: others may have written it. */
  readonly isOfFolder: boolean;
}

function findConfigFile(env: Environment, cwd: string, given?: string): ConfigFile | undefined {
  if (given !== undefined) return readConfigFile(resolve(cwd, given), false);
  const paths = configPaths(env, cwd);
  const path = paths.find(existsSync);
  return path === undefined ? undefined : readConfigFile(path, path === paths[0]);
}

/** The places of a configuration file, the working folder first; only the first that exists is read. */
function configPaths(env: Environment, cwd: string): string[] {
  const home = env.HOME || env.USERPROFILE;
  const folder = env.XDG_CONFIG_HOME || (home && join(home, '.config'));
  return [join(cwd, 'packager-drm.yaml'), ...(folder ? [join(folder, 'packager-drm', 'config.yaml')] : [])];
}

function readConfigFile(path: string, isOfFolder: boolean): ConfigFile {
  const read = readYaml(readConfigText(path));
  const { faults } = read;
  const checked =
    faults.length > 0 ? { faults } : checkFields(configSchema, { ...read, value: read.value ?? {} });
  if ('faults' in checked) throw fileError('config_file', path, checked.faults);
  const { allowEnv = [], allowFile = [], ...settings } = checked.value;
  const folder = dirname(path);
  for (const name of ['keyFile', 'ca', 'cert', 'certKey'] as const)
    if (settings[name] !== undefined) settings[name] = resolve(folder, settings[name]);
  // Its one line would be sent to the address in the same file.
  if (isOfFolder && settings.keyFile !== undefined && isOutside(folder, settings.keyFile))
    throw unusableConfig(
      `keyFile is outside the folder of ${path}; move the key there, or give --config ${path} to use it anyway.`,
    );
  // Its author may have written the manifest, too.
  if (isOfFolder && allowEnv.length + allowFile.length > 0)
    throw unusableConfig(
      `${path} can't allow anything, because it is in the working folder; give --config ${path} to use it anyway, or use --allow-env and --allow-file.`,
    );
  return { path, settings, allowEnv, allowFile: allowFile.map((file) => resolve(folder, file)), isOfFolder };
}

function isOutside(folder: string, file: string): boolean {
  // A missing file can't be read, either.
  return !(
    resultOrUndefined(() => isBelow(realpathSync(folder), realpathSync(file))) ?? isBelow(folder, file)
  );
}

function readConfigText(path: string): string {
  const bytes = resultOrUndefined(() => readNamedFile({ cwd: dirname(path) }, path));
  if (!bytes)
    throw unusableConfig(`The configuration file ${path} can't be read; check the path and who may read it.`);
  const fault = encodingFault(bytes);
  if (fault !== undefined) throw unusableConfig(`The configuration file ${path} ${fault}.`);
  return bytes.toString('utf8');
}

function unusableConfig(description: string): CliError {
  return new CliError(EXIT.usage, { code: 'config_file', description });
}
