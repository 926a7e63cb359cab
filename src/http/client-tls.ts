import type { X509Certificate } from 'node:crypto';
import { ConfigError } from './config';
import { certificatesOf, privateKeyOf, requireUsable } from './tls';
import { type FileWatchOptions, type NamedFile, type WatchedFiles, watchFiles } from './watched-file';

export interface ClientTlsFiles {
  readonly authorities?: string | undefined;
  readonly client?: { readonly certificate: string; readonly key: string } | undefined;
}

/** PEM texts. */
export interface ClientTls {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly allowPartialTrustChain?: true;
}

interface ClientTlsOptions extends FileWatchOptions {
  readonly variables: Readonly<Record<'authorities' | 'certificate' | 'key', string>>;
  /** The server's name in the log, as `the engine`. */
  readonly server: string;
  readonly message: string;
  readonly onCertificate?: (certificate: X509Certificate, path: string) => void;
}

/**
 * Later, unusable files are logged with `message` and the former ones stay. `current` returns the same object until a
 * usable change. @throws ConfigError when they can't be used at the start.
 */
export function openClientTls(
  { authorities, client }: ClientTlsFiles,
  { log, clock, intervalMs, variables, server, message, onCertificate }: ClientTlsOptions,
): WatchedFiles<ClientTls> {
  const logCertificate = (file: string, { subject, validTo }: X509Certificate, read: string) => {
    const end = new Date(validTo);
    log.info(read, { file, subject, validUntil: end.toISOString() });
    if (end <= clock()) log.warn(`a certificate for ${server} has expired`, { file });
  };
  const take = (contents: readonly Buffer[]): ClientTls => {
    const rest = [...contents];
    const ca = authorities === undefined ? undefined : rest.shift();
    const [cert, key] = rest;
    const trusted = authorities === undefined ? undefined : certificatesOf(ca, authorities);
    const chain = client && certificatesOf(cert, client.certificate);
    if (client && !chain?.[0].checkPrivateKey(privateKeyOf(key, client.key)))
      throw new ConfigError([`${client.key}: is not the key of the certificate in ${client.certificate}`]);
    if (client) requireUsable({ cert, key }, client.certificate);
    if (authorities !== undefined && trusted)
      logCertificate(authorities, trusted[0], `certificate of ${server}'s authority read`);
    if (client && chain) {
      logCertificate(client.certificate, chain[0], `client certificate for ${server} read`);
      onCertificate?.(chain[0], client.certificate);
    }
    // An authority below the root is trusted, too, as by curl.
    return { ...(ca && { ca, allowPartialTrustChain: true }), ...(cert && key && { cert, key }) };
  };
  const paths = { authorities, certificate: client?.certificate, key: client?.key };
  const named = (['authorities', 'certificate', 'key'] as const).flatMap((name): NamedFile[] => {
    const path = paths[name];
    return path === undefined ? [] : [[variables[name], path]];
  });
  return watchFiles(named, { log, intervalMs, message, take });
}
