import { openClientTls } from '../../../http/client-tls';
import { ConfigError } from '../../../http/config';
import { type Following, followFiles } from '../../../http/watched-file';
import { refuseUnreadable } from '../../start-up';
import type { FleetConfig } from '../config';

/** The variables that name the files. */
const [CA, CERTIFICATE, KEY, PASSWORD] = ['TLSCA', 'TLSCERT', 'TLSKEY', 'PASSWORD_FILE'].map(
  (part) => `PACKAGERDRMAPI_FLEET_${part}`,
) as [string, string, string, string];
const MAX_CHARACTERS = 1000;
const KEPT = 'files for the engine of the fleet cannot be used; the previous ones stay in use';

/**
 * Reads the certificates, the key and the password for the engine, and again when one of their files changes. Files that
 * can't be used, or don't fit together, are logged, and what is in force stays.
 * @throws ConfigError when they can't be used at the start.
 */
export function openEngineAccess(
  { user, tls: files }: Pick<FleetConfig, 'user' | 'tls'>,
  { log, clock, intervalMs }: Following,
) {
  const { authorities, client } = files;
  const passwordFile = user?.passwordFile;
  refuseUnreadable({
    [CA]: authorities,
    [CERTIFICATE]: client?.certificate,
    [KEY]: client?.key,
    [PASSWORD]: passwordFile,
  });
  let password: string | undefined;
  const watch = { log, intervalMs, message: KEPT };
  const takePassword = ([bytes = Buffer.alloc(0)]: readonly Buffer[]) => {
    password = passwordOf(bytes, passwordFile ?? '');
    log.info("password of the engine's user read", { file: passwordFile });
  };
  const watched = openClientTls(files, {
    ...watch,
    clock,
    variables: { authorities: CA, certificate: CERTIFICATE, key: KEY },
    server: 'the engine',
    onCertificate: ({ subject }, file) => {
      if (user && /^CN=/m.test(subject))
        log.warn(
          'etcd refuses requests with a client certificate that has a common name (CN) while its users are on; make one without',
          { file, subject },
        );
    },
  });
  try {
    const named = passwordFile === undefined ? [] : ([[PASSWORD, passwordFile]] as const);
    const { close } = followFiles(named, {
      ...watch,
      openMessage: "every user of this machine can read the password of the engine's user",
      take: takePassword,
    });
    return {
      /** The credentials in force: the same object until a file changes. */
      tls: watched.tls,
      /** Of the engine's user; undefined: there is none. */
      password: () => password,
      close(): void {
        watched.close();
        close();
      },
    };
  } catch (thrown) {
    watched.close();
    throw thrown;
  }
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
