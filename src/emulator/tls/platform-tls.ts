import type { Log } from '../../http/log';
import { openTls, type Tls, type TlsFiles } from '../../http/tls';
import { type OwnCertificates, ownCertificates } from './own-certificates';

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
