import { X509Certificate } from 'node:crypto';
import type { CpixRecipient } from '../drm/cpix/encryption';
import { readRecipient } from '../drm/cpix/recipient';
import { sentenceOf } from '../drm/finding';
import { ConfigError } from '../http/config';
import { type FileWatchOptions, type WatchedFiles, watchFiles } from '../http/watched-file';

interface CpixFiles {
  /** Key providers encrypt content keys for it; those of its authorities may follow. */
  readonly certificate: string;
  readonly key: string;
}

/** Later, unusable files are logged and what is in force stays. @throws ConfigError at the start. */
export function openCpixRecipient(
  { certificate, key }: CpixFiles,
  { log, clock, intervalMs }: FileWatchOptions,
): WatchedFiles<CpixRecipient> {
  const take = ([certificatePem, keyPem]: readonly Buffer[]) => {
    const read = readRecipient(`${certificatePem}`, `${keyPem}`);
    if (!read.ok) {
      const subject = read.problem.code === 'cpix_certificate' ? certificate : key;
      throw new ConfigError([sentenceOf(read.problem, subject)]);
    }
    const { subject, validTo, fingerprint256 } = new X509Certificate(read.value.certificate);
    const end = new Date(validTo);
    const fields = { certificate, subject, fingerprint256, validUntil: end.toISOString() };
    log.info('CPIX certificate read', fields);
    if (end <= clock())
      log.warn('the CPIX certificate has expired; key providers may refuse to encrypt for it', {
        certificate,
      });
    return read.value;
  };
  const files = [
    ['PACKAGERDRMAPI_CPIXCERT', certificate],
    ['PACKAGERDRMAPI_CPIXKEY', key],
  ] as const;
  const message = 'the CPIX certificate and key cannot be used; the previous ones stay in use';
  return watchFiles(files, { log, intervalMs, message, take });
}
