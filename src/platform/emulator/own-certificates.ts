import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { domainToASCII } from 'node:url';
import fs from 'fs-extra';
import { ConfigError } from '../../http/config';
import { systemCode } from '../../http/errors';
import type { Log } from '../../http/log';
import { openTls, type Tls, type TlsFiles } from '../../http/tls';

/** What is made when no certificate is given. */
export interface OwnCertificates {
  /** The folder that keeps them, so that clients trust them once. */
  readonly folder: string;
  /** The host names and addresses by which the server is called. */
  readonly names: readonly string[];
}

/** In PEM form: an authority for clients to trust, and the server's certificate, signed by it, with its key. */
interface Certificates {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Apple's systems refuse more than 825 days. */
const VALID_DAYS = 397;
/** With fewer days left, new ones are made. */
const MIN_DAYS = 30;

/**
 * The certificates of a folder; they are made when there are none, when they end soon, and when a name is missing.
 * @throws ConfigError when the folder can't be written.
 */
export async function ownCertificates({ folder, names }: OwnCertificates, now: Date) {
  const paths = {
    authority: resolve(folder, 'ca.pem'),
    certificate: resolve(folder, 'server.pem'),
    key: resolve(folder, 'server-key.pem'),
  };
  const kept = readUsable(paths, names, now);
  const used = kept ?? (await makeCertificates(names, now));
  if (!kept) {
    try {
      fs.ensureDirSync(folder, 0o700);
      writeFileSync(paths.key, used.key, { mode: 0o600 });
      writeFileSync(paths.certificate, used.certificate);
      writeFileSync(paths.authority, used.authority);
    } catch (thrown) {
      const why = systemCode(thrown) ?? 'no reason given';
      throw new ConfigError([
        `EMULATOR_TLSFOLDER: the certificates can’t be written there (${why}); name a folder that this user may write`,
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

/** Makes an authority and a server certificate (X.509 v3, ECDSA on P-256). The authority's key is not kept. */
async function makeCertificates(names: readonly string[], now: Date): Promise<Certificates> {
  // Loaded when needed: most runs of the emulator make none.
  const { default: selfsigned } = await import('selfsigned');
  const common = {
    keyType: 'ec' as const,
    algorithm: 'sha256',
    // From yesterday on: the clocks of containers and clients differ.
    notBeforeDate: new Date(now.getTime() - DAY_MS),
    notAfterDate: new Date(now.getTime() + (VALID_DAYS - 1) * DAY_MS),
  };
  // Two authorities of one name would be taken for each other.
  const authority = await selfsigned.generate(
    [{ name: 'commonName', value: `Platform emulator authority ${now.toISOString()}` }],
    {
      ...common,
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
      ],
    },
  );
  const server = await selfsigned.generate([{ name: 'commonName', value: names[0] ?? 'localhost' }], {
    ...common,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: names.map((name) =>
          isIP(name) === 0 ? { type: 2, value: domainToASCII(name) || name } : { type: 7, ip: name },
        ),
      },
    ],
  });
  return { authority: authority.cert, certificate: server.cert, key: server.private };
}

/** The certificates at these paths, or undefined when they can't be used. */
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

/**
 * HTTPS for the platform port, with the given certificate or with one of the emulator's own; then the log says how
 * clients come to trust it.
 * @throws ConfigError when the files can't be used, or written.
 */
export async function openPlatformTls(
  given: TlsFiles | OwnCertificates,
  { log, clock }: { readonly log: Log; readonly clock: () => Date },
): Promise<Tls> {
  if ('certificate' in given) return openTls(given, { log, clock });
  const { files, authority, sha256, areNew } = await ownCertificates(given, clock());
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
