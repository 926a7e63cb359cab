import type { X509Certificate } from 'node:crypto';
import { ConfigError } from '../../../http/config';
import type { Log } from '../../../http/log';
import { certificatesOf, privateKeyOf } from '../../../http/tls';
import { isOpenToAll, type WatchedFiles, watchFiles, whyUnreadable } from '../../../http/watched-file';
import { refuseUnreadable } from '../../start-up';
import type { FleetConfig } from '../config';

/** PEM texts, as Node's TLS takes them. */
interface EngineTls {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** How the sidecar signs in to the engine. */
interface EngineAccess {
  /** The credentials in force: the same object until a file changes. */
  tls(): EngineTls;
  /** Of the engine's user; undefined: there is none. */
  password(): string | undefined;
  close(): void;
}

interface EngineAccessOptions {
  readonly log: Log;
  readonly clock: () => Date;
  /** How often the files are looked at. */
  readonly intervalMs?: number;
}

/** The variables that name the files. */
const [CA, CERTIFICATE, KEY, PASSWORD] = ['TLSCA', 'TLSCERT', 'TLSKEY', 'PASSWORD_FILE'].map(
  (part) => `PACKAGERDRMAPI_FLEET_${part}`,
) as [string, string, string, string];
const MAX_CHARACTERS = 1000;

/** A file by the variable that names it. */
type Named = readonly [variable: string, path: string];

/**
 * Reads the certificates, the key and the password for the engine, and again when one of their files changes. Files that
 * can't be used, or don't fit together, are logged, and what is in force stays.
 * @throws ConfigError when they can't be used at the start.
 */
export function openEngineAccess(
  { user, tls: files }: Pick<FleetConfig, 'user' | 'tls'>,
  { log, clock, intervalMs = 1000 }: EngineAccessOptions,
): EngineAccess {
  const { authorities, client } = files;
  const passwordFile = user?.passwordFile;
  refuseUnreadable({
    [CA]: authorities,
    [CERTIFICATE]: client?.certificate,
    [KEY]: client?.key,
    [PASSWORD]: passwordFile,
  });
  let tls: EngineTls = {};
  let password: string | undefined;

  const warnIfOpen = (path: string, what: string) => {
    if (isOpenToAll(path)) log.warn(`every user of this machine can read ${what}`, { file: path });
  };
  const logCertificate = (path: string, [first]: readonly X509Certificate[], message: string) => {
    if (!first) return;
    const end = new Date(first.validTo);
    const fields = { file: path, subject: first.subject, validUntil: end.toISOString() };
    log.info(message, fields);
    if (end <= clock()) log.warn('a certificate for the engine of the fleet has expired', { file: path });
  };
  const takeTls = (contents: readonly Buffer[]) => {
    const rest = [...contents];
    const ca = authorities === undefined ? undefined : rest.shift();
    const [cert, key] = rest;
    const read = authorities === undefined ? undefined : certificatesOf(ca, authorities);
    const chain = client && certificatesOf(cert, client.certificate);
    if (client && !chain?.[0].checkPrivateKey(privateKeyOf(key, client.key)))
      throw new ConfigError([`${client.key}: is not the key of the certificate in ${client.certificate}`]);
    tls = { ...(ca && { ca }), ...(cert && key && { cert, key }) };
    if (authorities !== undefined && read)
      logCertificate(authorities, read, "certificate of the engine's authority read");
    if (!client || !chain) return;
    logCertificate(client.certificate, chain, 'client certificate for the engine read');
    warnIfOpen(client.key, "the key of the fleet's client certificate");
    if (user && /^CN=/m.test(chain[0].subject))
      log.warn(
        'etcd refuses requests with a client certificate that has a common name (CN) while its users are on; make one without',
        { file: client.certificate, subject: chain[0].subject },
      );
  };
  const takePassword = ([bytes = Buffer.alloc(0)]: readonly Buffer[]) => {
    password = passwordOf(bytes, passwordFile ?? '');
    log.info("password of the engine's user read", { file: passwordFile });
    warnIfOpen(passwordFile ?? '', "the password of the engine's user");
  };

  const watched: WatchedFiles[] = [];
  const watch = (named: readonly Named[], take: (contents: readonly Buffer[]) => void) => {
    if (named.length === 0) return;
    const onFault = (cause: unknown) =>
      log.error('files for the engine of the fleet cannot be used; the previous ones stay in use', {
        faults: faultsOf(cause, named),
      });
    try {
      const paths = named.map(([, path]) => path);
      watched.push(watchFiles(paths, { intervalMs, take, onFault }));
    } catch (thrown) {
      close();
      throw new ConfigError(faultsOf(thrown, named));
    }
  };
  const close = () => {
    for (const each of watched) each.close();
  };
  const named: Named[] = client
    ? [
        [CERTIFICATE, client.certificate],
        [KEY, client.key],
      ]
    : [];
  watch(authorities === undefined ? named : [[CA, authorities], ...named], takeTls);
  watch(passwordFile === undefined ? [] : [[PASSWORD, passwordFile]], takePassword);
  return { tls: () => tls, password: () => password, close };
}

/** Each begins with the variable that names the file. */
function faultsOf(cause: unknown, named: readonly Named[]): readonly string[] {
  const faults = cause instanceof ConfigError ? cause.faults : [whyUnreadable(cause)];
  return faults.map((fault) => {
    const about = named.filter(([, path]) => fault.startsWith(`${path}:`));
    return `${(about.length === 0 ? named : about).map(([variable]) => variable).join(', ')}: ${fault}`;
  });
}

/** The first line. @throws ConfigError, which does not quote it. */
function passwordOf(bytes: Buffer, path: string): string {
  const [line = ''] = bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .split(/\r\n|\r|\n/, 1);
  if (line === '') throw new ConfigError([`${path}: has no password in its first line`]);
  if (line.length > MAX_CHARACTERS)
    throw new ConfigError([`${path}: the password must have at most ${MAX_CHARACTERS} characters`]);
  return line;
}
