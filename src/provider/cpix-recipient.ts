import { X509Certificate } from 'node:crypto';
import type { CpixRecipient } from '../drm/cpix/encryption';
import { readRecipient } from '../drm/cpix/recipient';
import { sentenceOf } from '../drm/finding';
import { ConfigError } from '../http/config';
import { type Following, followFiles } from '../http/watched-file';

/** Paths of PEM files. */
interface CpixFiles {
  /** The certificate that key providers encrypt content keys for; those of its authorities may follow. */
  readonly certificate: string;
  readonly key: string;
}

/**
 * Reads the certificate and the key for receiving encrypted content keys, and again when one of them changes.
 * Files that can't be used, or don't fit together, are logged, and what is in force stays.
 * @throws ConfigError when they can't be used at the start.
 */
export function openCpixRecipient({ certificate, key }: CpixFiles, { log, clock, intervalMs }: Following) {
  let inForce: CpixRecipient | undefined;
  const take = ([certificatePem, keyPem]: readonly Buffer[]) => {
    const read = readRecipient(`${certificatePem}`, `${keyPem}`);
    if (!read.ok) {
      const subject = read.problem.code === 'cpix_certificate' ? certificate : key;
      throw new ConfigError([sentenceOf(read.problem, subject)]);
    }
    inForce = read.value;
    const { subject, validTo, fingerprint256 } = new X509Certificate(inForce.certificate);
    const end = new Date(validTo);
    const fields = { certificate, subject, fingerprint256, validUntil: end.toISOString() };
    log.info('CPIX certificate read', fields);
    if (end <= clock())
      log.warn('the CPIX certificate has expired; key providers may refuse to encrypt for it', {
        certificate,
      });
  };
  const files = [
    ['PACKAGERDRMAPI_CPIXCERT', certificate],
    ['PACKAGERDRMAPI_CPIXKEY', key],
  ] as const;
  const message = 'the CPIX certificate and key cannot be used; the previous ones stay in use';
  const { close } = followFiles(files, { log, intervalMs, message, take });
  return {
    /** The recipient in force. */
    recipient(): CpixRecipient {
      if (!inForce) throw new Error('no CPIX recipient was read');
      return inForce;
    },
    close,
  };
}
