import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type Checked, refusedAs } from '../bytes';
import type { CpixRecipient } from './encryption';

const LEAST_RSA_BITS = 2048;

const badCertificate = refusedAs('cpix_certificate');
const badKey = refusedAs('cpix_key');

/** From PEM texts. A fault of code `cpix_certificate` continues that file's name, `cpix_key` the key's. */
export function readRecipient(certificatePem: string, privateKeyPem: string): Checked<CpixRecipient> {
  const certificate = readCertificate(certificatePem);
  if (!certificate.ok) return certificate;
  const privateKey = readPrivateKey(privateKeyPem);
  if (!privateKey.ok) return privateKey;
  const isOfKey = blocksOf(certificatePem).map((block) => fits(block, privateKey.value));
  if (!isOfKey[0])
    return isOfKey.includes(true)
      ? badCertificate('must have the certificate of the key first, before those of its authorities')
      : badKey('is not the key of the certificate');
  return { ok: true, value: { certificate: certificate.value, privateKey: privateKey.value } };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

function blocksOf(pem: string): readonly string[] {
  return pem.match(CERTIFICATE) ?? [];
}

function fits(block: string, privateKey: KeyObject): boolean {
  try {
    return new X509Certificate(block).checkPrivateKey(privateKey);
  } catch {
    return false;
  }
}

/** Reads a certificate, from PEM text, of which the first counts, or from DER; returns DER. */
export function readCertificate(certificate: string | Buffer): Checked<Buffer> {
  const first = typeof certificate === 'string' ? blocksOf(certificate)[0] : certificate;
  if (first === undefined)
    return badCertificate('holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)');
  try {
    const { publicKey, raw } = new X509Certificate(first);
    const why = whyUnfit(publicKey);
    return why === undefined ? { ok: true, value: raw } : badCertificate(`is the certificate of ${why}`);
  } catch {
    return badCertificate('holds a certificate that cannot be read');
  }
}

function readPrivateKey(pem: string): Checked<KeyObject> {
  try {
    const privateKey = createPrivateKey(pem);
    const why = whyUnfit(privateKey);
    return why === undefined ? { ok: true, value: privateKey } : badKey(`holds ${why}`);
  } catch {
    return /ENCRYPTED/.test(pem)
      ? badKey('holds a key with a passphrase; write it without: openssl pkey -in OLD.pem -out NEW.pem')
      : badKey('holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)');
  }
}

function whyUnfit({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  if (asymmetricKeyType !== 'rsa')
    return `a key that is not RSA (${asymmetricKeyType ?? 'unknown'}); CPIX encrypts with RSA: make a key of ${LEAST_RSA_BITS} bits or more`;
  const bits = asymmetricKeyDetails?.modulusLength ?? 0;
  if (bits < LEAST_RSA_BITS) return `an RSA key of ${bits} bits; make one of ${LEAST_RSA_BITS} bits or more`;
  return undefined;
}
