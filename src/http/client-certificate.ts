import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type HttpError, httpError } from './errors';

/**
 * Makes the check that lets requests pass of clients that showed a valid certificate. The server must listen with client
 * authorities.
 * @throws HttpError 401 or 403.
 */
export function createRequireCertificate(): (request: IncomingMessage) => void {
  const admitted = new WeakSet<Socket>();
  return ({ socket }) => {
    if (admitted.has(socket)) return;
    if (!isCertified(socket)) throw refusalOf(socket);
    admitted.add(socket);
  };
}

/**
 * `authorized` alone won't do: Node sets it, too, when TLS 1.3 resumes the session of a client that showed no
 * certificate.
 */
function isCertified(socket: Socket): boolean {
  const secure = asSecure(socket);
  return secure?.authorized === true && secure.getPeerX509Certificate() !== undefined;
}

function refusalOf(socket: Socket): HttpError {
  const secure = asSecure(socket);
  if (!secure?.getPeerX509Certificate()) {
    return httpError('client_certificate_required');
  }
  // The types say Error; what Node puts there is OpenSSL's name of the cause.
  const cause = String(secure.authorizationError);
  const why = REASONS[cause] ?? `it cannot be verified (${cause})`;
  const description = `The client certificate is refused: ${why}.`;
  return httpError('client_certificate_refused', description);
}

function asSecure(socket: Socket): TLSSocket | undefined {
  return 'getPeerX509Certificate' in socket ? (socket as TLSSocket) : undefined;
}

const UNKNOWN_AUTHORITY = 'none of the authorities of this service has signed it';

const REASONS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  INVALID_PURPOSE: 'it is not one for clients (extended key usage clientAuth)',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
};
