import { createPrivateKey, KeyObject, webcrypto, X509Certificate } from 'node:crypto';
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
/** With fewer days left, new ones are made. */
const MIN_DAYS = 30;
/** Apple's systems refuse more than 825 days. */
const VALID_DAYS = 397;

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

/**
 * Makes an authority and a server certificate (X.509 v3, ECDSA on P-256). The authority's key is not kept. Both name
 * their keys by identifiers, without which strict clients (Python from 3.13 on) refuse them.
 */
async function makeCertificates(names: readonly string[], now: Date): Promise<Certificates> {
  // Most runs of the emulator make none.
  const x509 = await import('@peculiar/x509');
  const { KeyUsageFlags } = x509;
  x509.cryptoProvider.set(webcrypto);
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const newKeys = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const [authorityKeys, serverKeys] = [await newKeys(), await newKeys()];
  const common = {
    signingAlgorithm: algorithm,
    // From yesterday on: the clocks of containers and clients differ.
    notBefore: new Date(now.getTime() - DAY_MS),
    notAfter: new Date(now.getTime() + (VALID_DAYS - 1) * DAY_MS),
  };
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    ...common,
    // Two authorities of one name would be taken for each other.
    name: [{ CN: [`Platform emulator authority ${now.toISOString()}`] }],
    keys: authorityKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const server = await x509.X509CertificateGenerator.create({
    ...common,
    subject: [{ CN: [names[0] ?? 'localhost'] }],
    issuer: authority.subjectName,
    publicKey: serverKeys.publicKey,
    signingKey: authorityKeys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((name) =>
          isIP(name) === 0
            ? { type: 'dns' as const, value: domainToASCII(name) || name }
            : { type: 'ip' as const, value: name },
        ),
      ),
      await x509.SubjectKeyIdentifierExtension.create(serverKeys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const key = KeyObject.from(serverKeys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  return {
    authority: `${authority.toString('pem')}\n`,
    certificate: `${server.toString('pem')}\n`,
    key: key.toString(),
  };
}
