import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  createSecureContext,
  createServer,
  type SecureContextOptions,
  type Server,
  TLSSocket,
  type TlsOptions as TlsServerOptions,
} from 'node:tls';
import { ConfigError } from './config';
import { type HttpError, httpError, systemCode } from './errors';
import { PiecewiseSocket } from './piecewise';
import { type FileWatchOptions, type NamedFile, watchFiles } from './watched-file';

export interface TlsFiles {
  /** The server's certificate comes first, then those that lead from it to the authority. */
  readonly certificate: string;
  readonly key: string;
  /** undefined: clients need no certificate. */
  readonly clientAuthorities: string | undefined;
}

/** Of each file, the end of the certificate in it that ends first. */
export interface CertificateEnds {
  readonly server: Date;
  readonly clientAuthorities: Date | undefined;
}

export type Tls = ReturnType<typeof openTls>;

const DAY_MS = 24 * 60 * 60 * 1000;
const WARN_DAYS = 14;

/**
 * Later, unusable files are logged and what is in force stays. `prefix` is that of the variables that name the files.
 * @throws ConfigError at the start.
 */
export function openTls(files: TlsFiles, prefix: string, { log, clock, intervalMs }: FileWatchOptions) {
  const { certificate, key, clientAuthorities } = files;
  const named: NamedFile[] = [
    [`${prefix}CERT`, certificate],
    [`${prefix}KEY`, key],
  ];
  if (clientAuthorities !== undefined) named.push([`${prefix}CLIENTCA`, clientAuthorities]);
  let apply = (_context: SecureContextOptions): void => undefined;

  const take = (contents: readonly Buffer[]) => {
    const checked = check(contents, files);
    apply(checked.context);
    const { subject, subjectAltName, validTo } = checked.leaf;
    const validUntil = new Date(validTo).toISOString();
    log.info('TLS certificate read', { certificate, subject, subjectAltName, validUntil });
    warnOfEnd(checked);
    return checked;
  };
  const warnOfEnd = ({ leaf, ends }: ReturnType<typeof check>) => {
    for (const [file, end] of [
      [certificate, Date.parse(leaf.validTo)],
      [clientAuthorities, ends.clientAuthorities?.getTime()],
    ] as const) {
      const daysLeft = end === undefined ? WARN_DAYS : (end - clock().getTime()) / DAY_MS;
      if (daysLeft >= WARN_DAYS) continue;
      const message = daysLeft > 0 ? 'the TLS certificate expires soon' : 'the TLS certificate has expired';
      log.warn(message, { certificate: file, daysLeft: Math.floor(daysLeft) });
    }
  };
  const watched = watchFiles(named, {
    log,
    intervalMs,
    message: 'the TLS files cannot be used; the previous certificate stays in use',
    take,
  });
  const daily = setInterval(() => warnOfEnd(watched.current()), DAY_MS).unref();
  return {
    asksClients: clientAuthorities !== undefined,
    get context() {
      return watched.current().context;
    },
    get ends(): CertificateEnds {
      return watched.current().ends;
    },
    /** Calls `next` with each later context. */
    follow(next: (context: SecureContextOptions) => void): void {
      apply = next;
    },
    close(): void {
      clearInterval(daily);
      watched.close();
    },
  };
}

function check(
  [cert, key, ca]: readonly Buffer[],
  { certificate, key: keyPath, clientAuthorities }: TlsFiles,
) {
  const chain = certificatesOf(cert, certificate);
  const privateKey = privateKeyOf(key, keyPath);
  const authorities = ca && certificatesOf(ca, clientAuthorities ?? '');
  const [leaf] = chain;
  if (!leaf.checkPrivateKey(privateKey)) {
    const later = chain.some((other) => other.checkPrivateKey(privateKey));
    const fault = later
      ? `${certificate}: the server's certificate must come first, before those of the authorities`
      : `${keyPath}: is not the key of the certificate in ${certificate}`;
    throw new ConfigError([fault]);
  }
  const context: SecureContextOptions = {
    cert,
    key,
    minVersion: 'TLSv1.2',
    ...(ca !== undefined && { ca }),
  };
  requireUsable(context, certificate);
  const ends = { server: firstEnd(chain), clientAuthorities: authorities && firstEnd(authorities) };
  return { context, leaf, ends };
}

/** Refuses what Node's security level does not allow. @throws ConfigError that begins with the path. */
export function requireUsable(context: SecureContextOptions, path: string): void {
  try {
    createSecureContext(context);
  } catch (thrown) {
    throw new ConfigError([`${path}: OpenSSL refuses it (${systemCode(thrown) ?? 'no reason given'})`]);
  }
}

/** Without its end, one cannot be read: it is cut, or another follows in its last line, which OpenSSL passes over. */
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*(?:-----END CERTIFICATE-----[ \t]*$)?/gm;

/** In the order of the file. @throws ConfigError that begins with the path. */
export function certificatesOf(
  pem: Buffer | undefined,
  path: string,
): [X509Certificate, ...X509Certificate[]] {
  const blocks = pem?.toString('latin1').match(CERTIFICATE) ?? [];
  const [first, ...others] = blocks.map((block) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw new ConfigError([
        `${path}: holds a certificate that cannot be read; it may be cut, or not on lines of its own`,
      ]);
    }
  });
  if (!first)
    throw new ConfigError([`${path}: holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)`]);
  return [first, ...others];
}

function firstEnd(certificates: readonly X509Certificate[]): Date {
  return new Date(Math.min(...certificates.map(({ validTo }) => Date.parse(validTo))));
}

/** @throws ConfigError that begins with the path. */
export function privateKeyOf(pem: Buffer | undefined, path: string): KeyObject {
  try {
    return createPrivateKey(pem ?? '');
  } catch {
    const fault = pem?.includes('ENCRYPTED')
      ? 'holds a key that is locked with a passphrase; write it without one'
      : 'holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)';
    throw new ConfigError([`${path}: ${fault}`]);
  }
}

/** The server must listen with client authorities. @throws HttpError 401 or 403. */
export function requireCertificate({ socket }: IncomingMessage): void {
  const secure = socket instanceof PiecewiseSocket ? socket.inner : socket;
  if (!(secure instanceof TLSSocket) || !secure.getPeerX509Certificate())
    throw httpError('client_certificate_required');
  if (!secure.authorized) throw refusalOf(secure);
}

function refusalOf({ authorizationError }: TLSSocket): HttpError {
  // The types say Error; Node's value is OpenSSL's name of the cause.
  const cause = String(authorizationError);
  const why = REASONS[cause] ?? `it cannot be verified (${cause})`;
  return httpError('client_certificate_refused', `The client certificate is refused: ${why}.`);
}

const UNKNOWN_AUTHORITY = 'none of the authorities of this service has signed it';

const REASONS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'it has expired, or its authority',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  INVALID_PURPOSE: 'it is not one for clients (extended key usage clientAuth)',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT:
    'the service has the authority that signed it, but not the one above; its file needs all of them, up to the root',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNSPECIFIED: 'OpenSSL refuses it, as one with a weak key or signature (RSA under 2048 bits, SHA-1)',
};

const HANDSHAKE_MS = 10_000;

export function createTlsServer(options: TlsServerOptions, tls: Tls): Server {
  const server = createServer({
    ...options,
    ...tls.context,
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_MS,
    requestCert: tls.asksClients,
    // A client without a certificate is accepted up to HTTP, which reports what is missing.
    rejectUnauthorized: false,
  });
  tls.follow((context) => server.setSecureContext(context));
  server.on('close', () => tls.close());
  return server;
}
