import { openClientTls } from '../../http/client-tls';
import { ConfigError } from '../../http/config';
import { type FileWatchOptions, watchFiles } from '../../http/watched-file';
import { refuseUnreadable } from '../start-up';
import type { FleetConfig } from './config';
import { createEtcd } from './engine/etcd';
import type { OpenFleet } from './fleet';
import { openFleet } from './open-fleet';

/** @throws ConfigError when a file for the fleet can't be used. */
export function joinFleet(config: FleetConfig, { log, clock }: FileWatchOptions): OpenFleet {
  const access = openEngineAccess(config, { log, clock });
  const { close, ...secret } = openFleetSecret(config.secretFile, { log });
  const { urls, timeoutMs, user } = config;
  return (local, hooks) => {
    const signIn = () => user && { name: user.name, password: access.password() ?? '' };
    const engine = createEtcd({ ...hooks, urls, timeoutMs, tls: access.tls, user: signIn });
    const fleet = openFleet({ ...hooks, ...secret, config, engine }, local);
    return {
      ...fleet,
      async close(busy) {
        await fleet.close(busy);
        access.close();
        close();
      },
    };
  };
}

const MAX_SECRETS = 10;
const MIN_CHARACTERS = 32;
const MAX_CHARACTERS = 1000;

/** Later, an unusable file is logged and the secrets stay. @throws ConfigError at the start. */
export function openFleetSecret(file: string, { log, intervalMs }: Omit<FileWatchOptions, 'clock'>) {
  let secrets: readonly string[] = [];
  let listener = () => {};
  const { close } = watchFiles([['PACKAGERDRMAPI_FLEET_SECRET_FILE', file]], {
    log,
    intervalMs,
    message: 'the file of the fleet secret cannot be used; the previous secrets stay in use',
    fields: { file },
    take([bytes]) {
      const read = parseSecrets(linesOf(bytes));
      const isChange = read.join('\n') !== secrets.join('\n');
      secrets = read;
      log.info('fleet secret read', { file, count: read.length });
      if (isChange) listener();
    },
  });
  return {
    /** The first seals, all open. */
    secrets: () => secrets,
    onSecrets(heard: () => void) {
      listener = heard;
    },
    close,
  };
}

function linesOf(bytes: Buffer | undefined): readonly string[] {
  const text = bytes?.toString('utf8') ?? '';
  return text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/);
}

/** @throws ConfigError with every fault at once; none quotes a secret. */
function parseSecrets(all: readonly string[]): readonly string[] {
  const lines = all
    .map((text, index) => ({ text, number: index + 1 }))
    .filter(({ text }) => text.trim() !== '' && !text.startsWith('#'));
  const faults = lines.flatMap(({ text, number }, index) => {
    const first = lines.slice(0, index).find((other) => other.text === text);
    const why = first ? `is the same secret as line ${first.number}` : secretFault(text);
    return why === undefined ? [] : [`line ${number}: ${why}`];
  });
  if (lines.length === 0)
    faults.push('holds no secret: write one on each line, the same for all sidecars: openssl rand -hex 32');
  if (lines.length > MAX_SECRETS)
    faults.push(`holds ${lines.length} secrets; ${MAX_SECRETS} are allowed: remove the old ones`);
  if (faults.length > 0) throw new ConfigError(faults);
  return lines.map(({ text }) => text);
}

function secretFault(text: string): string | undefined {
  if (!/^[\x21-\x7e]*$/.test(text)) return 'must be printable ASCII without spaces';
  if (text.length < MIN_CHARACTERS)
    return `must have at least ${MIN_CHARACTERS} characters: openssl rand -hex 32`;
  return text.length > MAX_CHARACTERS ? `must have at most ${MAX_CHARACTERS} characters` : undefined;
}

const CA = 'PACKAGERDRMAPI_FLEET_TLSCA';
const CERTIFICATE = 'PACKAGERDRMAPI_FLEET_TLSCERT';
const KEY = 'PACKAGERDRMAPI_FLEET_TLSKEY';
const PASSWORD = 'PACKAGERDRMAPI_FLEET_PASSWORD_FILE';

/** Later, unusable files are logged and what is in force stays. @throws ConfigError at the start. */
export function openEngineAccess(
  { user, tls: files }: Pick<FleetConfig, 'user' | 'tls'>,
  { log, clock, intervalMs }: FileWatchOptions,
) {
  const { authorities, client } = files;
  const file = user?.passwordFile;
  refuseUnreadable({
    [CA]: authorities,
    [CERTIFICATE]: client?.certificate,
    [KEY]: client?.key,
    [PASSWORD]: file,
  });
  const message = 'files for the engine of the fleet cannot be used; the previous ones stay in use';
  const watched = openClientTls(files, {
    ...{ log, clock, intervalMs, message },
    variables: { authorities: CA, certificate: CERTIFICATE, key: KEY },
    server: 'the engine',
    onCertificate: ({ subject }, certificate) => {
      if (user && /^CN=/m.test(subject))
        log.warn(
          'etcd refuses requests with a client certificate that has a common name (CN) while its users are on; make one without',
          { file: certificate, subject },
        );
    },
  });
  const followed = watchFiles(file === undefined ? [] : [[PASSWORD, file]], {
    ...{ log, intervalMs, message },
    take([bytes]) {
      if (!bytes) return undefined;
      const password = passwordOf(linesOf(bytes)[0] ?? '', file ?? '');
      log.info("password of the engine's user read", { file });
      return password;
    },
  });
  return {
    /** The same object until a file changes. */
    tls: watched.current,
    password: followed.current,
    close(): void {
      watched.close();
      followed.close();
    },
  };
}

/** @throws ConfigError, which does not quote the password. */
function passwordOf(line: string, path: string): string {
  if (line === '') throw new ConfigError([`${path}: has no password in its first line`]);
  if (line.length > MAX_CHARACTERS)
    throw new ConfigError([`${path}: the password must have at most ${MAX_CHARACTERS} characters`]);
  return line;
}
