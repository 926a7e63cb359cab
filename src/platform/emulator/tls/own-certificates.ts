import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { ConfigError } from '../../../http/config';
import { systemCode } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { openTls, type Tls, type TlsFiles } from '../../../http/tls';
import { type MadeCertificates, makeCertificates } from './make-certificates';

/** What is made when nobody gives a certificate. */
export interface OwnCertificates {
  /** The folder that keeps them, so that clients trust them once. */
  readonly folder: string;
  /** The host names and addresses by which the server is called. */
  readonly names: readonly string[];
}

interface KeptCertificates {
  readonly files: TlsFiles;
  /** The path of what clients must trust. */
  readonly authority: string;
  /** Of the authority's certificate, as pairs of hex digits with colons between them. */
  readonly sha256: string;
  readonly areNew: boolean;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** With fewer days left, new ones are made. */
const MIN_DAYS = 30;

/**
 * The certificates of a folder; they are made when there are none, when they end soon, and when they lack a name.
 * @throws ConfigError when the folder can't be written.
 */
export function ownCertificates({ folder, names }: OwnCertificates, now: Date): KeptCertificates {
  const [authority, certificate, key] = [
    resolve(folder, 'ca.pem'),
    resolve(folder, 'server.pem'),
    resolve(folder, 'server-key.pem'),
  ];
  const kept = readKept({ authority, certificate, key });
  const isUsable = kept !== undefined && fits(kept, names, now);
  const made = isUsable ? kept : makeCertificates(names, now);
  if (!isUsable) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      writeFileSync(key, made.key, { mode: 0o600 });
      writeFileSync(certificate, made.certificate);
      writeFileSync(authority, made.authority);
    } catch (thrown) {
      const why = systemCode(thrown) ?? 'no reason given';
      throw new ConfigError([
        `EMULATOR_TLSFOLDER: the certificates can’t be written there (${why}); name a folder that this user may write`,
      ]);
    }
  }
  return {
    files: { certificate, key, clientAuthorities: undefined },
    authority,
    sha256: new X509Certificate(made.authority).fingerprint256,
    areNew: !isUsable,
  };
}

function readKept(paths: MadeCertificates): MadeCertificates | undefined {
  try {
    return {
      authority: readFileSync(paths.authority, 'utf8'),
      certificate: readFileSync(paths.certificate, 'utf8'),
      key: readFileSync(paths.key, 'utf8'),
    };
  } catch {
    return undefined;
  }
}

function fits(kept: MadeCertificates, names: readonly string[], now: Date): boolean {
  try {
    const [authority, server] = [new X509Certificate(kept.authority), new X509Certificate(kept.certificate)];
    const daysLeft = (Date.parse(server.validTo) - now.getTime()) / DAY_MS;
    return (
      daysLeft >= MIN_DAYS &&
      server.verify(authority.publicKey) &&
      server.checkPrivateKey(createPrivateKey(kept.key)) &&
      names.every((name) => (isIP(name) === 0 ? server.checkHost(name) : server.checkIP(name)) !== undefined)
    );
  } catch {
    return false;
  }
}

/**
 * HTTPS for the platform port, with the certificate that was given or with one of the emulator's own; the log says how
 * clients come to trust that one.
 * @throws ConfigError when the files can't be used, or written.
 */
export function openPlatformTls(
  given: TlsFiles | OwnCertificates,
  { log, clock }: { readonly log: Log; readonly clock: () => Date },
): Tls {
  if ('certificate' in given) return openTls(given, { log, clock });
  const { files, authority, sha256, areNew } = ownCertificates(given, clock());
  const tls = openTls(files, { log, clock });
  log.info(`${areNew ? 'made' : 'kept'} a certificate; clients must trust its authority`, {
    authority,
    sha256,
    trust: [
      `NODE_EXTRA_CA_CERTS=${authority}`,
      `curl --cacert ${authority}`,
      `REQUESTS_CA_BUNDLE=${authority}`,
      `SSL_CERT_FILE=${authority}`,
    ],
  });
  return tls;
}
