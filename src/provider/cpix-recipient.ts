import { X509Certificate } from 'node:crypto';
import type { CpixRecipient } from '../drm/cpix/encryption';
import { readRecipient } from '../drm/cpix/recipient';
import { sentenceOf } from '../drm/finding';
import { ConfigError } from '../http/config';
import { type Following, followFiles, type NamedFile } from '../http/watched-file';

/** Paths of PEM files. */
export interface CpixFiles {
  /** The certificate that key providers encrypt content keys for; those of its authorities may follow. */
  readonly certificate: string;
  readonly key: string;
}

interface OpenRecipient {
  /** The recipient in force. */
  readonly recipient: () => CpixRecipient;
  close(): void;
}

/**
 * Reads the certificate and the key that encrypted content keys are received with, and again when one of them changes.
 * Files that can't be used, or don't fit together, are logged, and what is in force stays.
 * @throws ConfigError when they can't be used at the start.
 */
export function openCpixRecipient(files: CpixFiles, { log, clock, intervalMs }: Following): OpenRecipient {
  let inForce: CpixRecipient | undefined;
  const take = ([certificate, key]: readonly Buffer[]) => {
    inForce = recipientOf(`${certificate}`, `${key}`, files);
    const { subject, validTo, fingerprint256 } = new X509Certificate(inForce.certificate);
    const end = new Date(validTo);
    const fields = { certificate: files.certificate, subject, fingerprint256, validUntil: end.toISOString() };
    log.info('CPIX certificate read', fields);
    if (end <= clock())
      log.warn('the CPIX certificate has expired; key providers may refuse to encrypt for it', {
        certificate: files.certificate,
      });
  };
  const named: NamedFile[] = [
    [CERTIFICATE, files.certificate],
    [KEY, files.key],
  ];
  const watched = followFiles(named, {
    log,
    intervalMs,
    message: 'the CPIX certificate and key cannot be used; the previous ones stay in use',
    take,
  });
  return {
    recipient() {
      if (!inForce) throw new Error('no CPIX recipient was read');
      return inForce;
    },
    close: watched.close,
  };
}

const CERTIFICATE = 'PACKAGERDRMAPI_CPIXCERT';
const KEY = 'PACKAGERDRMAPI_CPIXKEY';

function recipientOf(certificatePem: string, keyPem: string, { certificate, key }: CpixFiles): CpixRecipient {
  const read = readRecipient(certificatePem, keyPem);
  if (read.ok) return read.value;
  const subject = read.problem.code === 'cpix_certificate' ? certificate : key;
  throw new ConfigError([sentenceOf(read.problem, subject)]);
}
