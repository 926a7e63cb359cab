import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Environment } from '../http/config';
import { usageError } from './cli-error';
import { type ConfigFile, configPaths, findConfigFile, type Setting } from './config-file';

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

/** A sidecar to talk to. */
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
  const find = (name: Exclude<Setting, 'key' | 'keyFile'>, variable: string): Found | undefined =>
    first(
      [options[name], `--${name === 'certKey' ? 'cert-key' : name}`],
      [env[variable], variable],
      inFile(file, name),
    );
  const pem = (name: 'ca' | 'cert' | 'certKey', variable: string) => {
    const found = find(name, variable);
    const read = found && readText(resolve(cwd, found.value), found.from);
    const isPem = read === undefined || /-----BEGIN [A-Z ]+-----/.test(read);
    if (found && !isPem) {
      const what = name === 'certKey' ? 'private key' : 'certificate';
      throw usageError(`The file of ${found.from} holds no ${what}: a PEM file has a line -----BEGIN ….`);
    }
    return read;
  };
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
  const direct = first([options.key, '--key']);
  const inFileOf = (found: Found | undefined) =>
    found && {
      value: readText(resolve(cwd, found.value), found.from).replace(/\r?\n$/, ''),
      from: found.from,
    };
  const found =
    direct ??
    inFileOf(first([options.keyFile, '--key-file'])) ??
    first([env.PACKAGERDRM_APIKEY, 'PACKAGERDRM_APIKEY']) ??
    inFileOf(first([env.PACKAGERDRM_APIKEY_FILE, 'PACKAGERDRM_APIKEY_FILE'])) ??
    first(inFile(file, 'key')) ??
    inFileOf(first(inFile(file, 'keyFile'))) ??
    first([env.PACKAGERDRMAPI_APIKEY, 'PACKAGERDRMAPI_APIKEY']) ??
    inFileOf(first([env.PACKAGERDRMAPI_APIKEY_FILE, 'PACKAGERDRMAPI_APIKEY_FILE']));
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

/** The sidecar of this container, from the variables that it is configured with. */
function urlOfContainer(env: Environment): Found | undefined {
  const { PACKAGERDRMAPI_PORT: port, PACKAGERDRMAPI_HOST: host, PACKAGERDRMAPI_TLSCERT: tls } = env;
  if (
    !port &&
    !env.PACKAGERDRMAPI_APIKEY &&
    !env.PACKAGERDRMAPI_APIKEY_FILE &&
    !env.PACKAGERDRMAPI_APIKEYS_FILE
  ) {
    return undefined;
  }
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

function readText(path: string, from: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw usageError(`The file of ${from}, ${path}, can't be read; check the path and who may read it.`);
  }
}
