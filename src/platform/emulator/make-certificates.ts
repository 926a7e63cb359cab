import { KeyObject, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
// The package's container of dependencies needs it.
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';

/** In PEM form: an authority for clients to trust, and the server's certificate, signed by it, with its key. */
export interface Certificates {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Apple's systems refuse more than 825 days. */
const VALID_DAYS = 397;

/**
 * Makes an authority and a server certificate (X.509 v3, ECDSA on P-256). The authority's key is not kept.
 * Strict clients (Python from 3.13 on) refuse certificates that don't name their keys by identifiers.
 */
export async function makeCertificates(names: readonly string[], now: Date): Promise<Certificates> {
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
