import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import fs from 'fs-extra';
import { ConfigError } from '../../http/config';
import { systemCode } from '../../http/errors';
import type { Log } from '../../http/log';
import { openTls, type Tls, type TlsFiles } from '../../http/tls';
import type { Certificates } from './make-certificates';

export interface OwnCertificates {
  /** The folder that keeps them, so that clients trust them once. */
  readonly folder: string;
  readonly names: readonly string[];
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** With fewer days left, new ones are made. */
const MIN_DAYS = 30;

/** Makes certificates when there are none, they end soon, or lack a name. @throws ConfigError. */
export async function ownCertificates({ folder, names }: OwnCertificates, now: Date) {
  const paths = {
    authority: resolve(folder, 'ca.pem'),
    certificate: resolve(folder, 'server.pem'),
    key: resolve(folder, 'server-key.pem'),
  };
  const kept = readUsable(paths, names, now);
  // Most runs of the emulator make none.
  const used = kept ?? (await (await import('./make-certificates')).makeCertificates(names, now));
  if (!kept) {
    try {
      fs.ensureDirSync(folder, 0o700);
      writeFileSync(paths.key, used.key, { mode: 0o600 });
      writeFileSync(paths.certificate, used.certificate);
      writeFileSync(paths.authority, used.authority);
    } catch (thrown) {
      const why = systemCode(thrown) ?? 'no reason given';
      throw new ConfigError([
        `EMULATOR_TLSFOLDER: the certificates can't be written there (${why}); name a folder that this user may write`,
      ]);
    }
  }
  return {
    files: { certificate: paths.certificate, key: paths.key, clientAuthorities: undefined },
    authority: paths.authority,
    /** Of the authority's certificate, as pairs of hex digits with colons between them. */
    sha256: new X509Certificate(used.authority).fingerprint256,
    areNew: !kept,
  };
}

function readUsable(paths: Certificates, names: readonly string[], now: Date): Certificates | undefined {
  try {
    const kept = {
      authority: readFileSync(paths.authority, 'utf8'),
      certificate: readFileSync(paths.certificate, 'utf8'),
      key: readFileSync(paths.key, 'utf8'),
    };
    const server = new X509Certificate(kept.certificate);
    const isUsable =
      Date.parse(server.validTo) - now.getTime() >= MIN_DAYS * DAY_MS &&
      server.verify(new X509Certificate(kept.authority).publicKey) &&
      server.checkPrivateKey(createPrivateKey(kept.key)) &&
      names.every((name) => (isIP(name) === 0 ? server.checkHost(name) : server.checkIP(name)) !== undefined);
    return isUsable ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** HTTPS with the given certificate or its own. @throws ConfigError if files can't be used or written. */
export async function openPlatformTls(
  given: TlsFiles | OwnCertificates,
  { log, clock }: { readonly log: Log; readonly clock: () => Date },
): Promise<Tls> {
  if ('certificate' in given) return openTls(given, 'EMULATOR_TLS', { log, clock });
  const { files, authority, sha256, areNew } = await ownCertificates(given, clock());
  const tls = openTls(files, 'EMULATOR_TLS', { log, clock });
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
