import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { bits, field, identifier, integer, octets, sequence, set, text, time, yes } from './der';

/** In PEM form. */
export interface MadeCertificates {
  /** What clients must trust. */
  readonly authority: string;
  /** The server's, signed by the authority. */
  readonly certificate: string;
  /** The server's. The authority's is forgotten: nobody can sign anything else with it. */
  readonly key: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Apple's systems refuse more than 825 days. */
const VALID_DAYS = 397;

const AUTHORITY = 'Platform emulator authority';

/** Makes an authority and a server certificate (X.509 v3, ECDSA on P-256) for host names and addresses. */
export function makeCertificates(names: readonly string[], now: Date): MadeCertificates {
  const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const server = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issued = { issuer: AUTHORITY, issuerKeys: authority, now };
  return {
    authority: certificate({
      ...issued,
      subject: AUTHORITY,
      publicKey: authority.publicKey,
      extensions: [
        extension('2.5.29.19', sequence(yes), 'critical'),
        extension(
          '2.5.29.15',
          bits(Buffer.from([KEY_USE.signCertificates | KEY_USE.signRevocations]), 1),
          'critical',
        ),
        extension('2.5.29.14', octets(keyId(authority.publicKey))),
      ],
    }),
    certificate: certificate({
      ...issued,
      subject: names[0] ?? '',
      publicKey: server.publicKey,
      extensions: [
        extension('2.5.29.19', sequence(), 'critical'),
        extension('2.5.29.15', bits(Buffer.from([KEY_USE.signatures]), 7), 'critical'),
        extension('2.5.29.37', sequence(identifier('1.3.6.1.5.5.7.3.1'))),
        extension('2.5.29.14', octets(keyId(server.publicKey))),
        extension('2.5.29.35', sequence(field(0, keyId(authority.publicKey), 'plain'))),
        extension('2.5.29.17', sequence(...names.map(alternativeName))),
      ],
    }),
    key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

const KEY_USE = { signatures: 0x80, signCertificates: 0x04, signRevocations: 0x02 };

interface Contents {
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
  readonly issuer: string;
  readonly issuerKeys: { readonly privateKey: KeyObject };
  readonly now: Date;
}

function certificate({ subject, publicKey, extensions, issuer, issuerKeys, now }: Contents): string {
  const algorithm = sequence(identifier('1.2.840.10045.4.3.2'));
  // A day ago: the clocks of containers and clients differ.
  const [from, to] = [-1, VALID_DAYS - 1].map((days) => new Date(now.getTime() + days * DAY_MS));
  const contents = sequence(
    field(0, integer(Buffer.from([2])), 'around'),
    // No two keys are the same, so no serial number is: one authority never gives it twice.
    integer(serialOf(publicKey)),
    algorithm,
    nameOf(issuer),
    sequence(time(from ?? now), time(to ?? now)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    field(3, sequence(...extensions), 'around'),
  );
  const signature = sign('sha256', contents, issuerKeys.privateKey);
  const lines =
    sequence(contents, algorithm, bits(signature))
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function nameOf(commonName: string): Buffer {
  return sequence(set(sequence(identifier('2.5.4.3'), text(commonName))));
}

function extension(id: string, value: Buffer, critical?: 'critical'): Buffer {
  return sequence(identifier(id), ...(critical ? [yes] : []), octets(value));
}

function digestOf(publicKey: KeyObject): Buffer {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}

const keyId = (publicKey: KeyObject) => digestOf(publicKey).subarray(0, 20);
const serialOf = (publicKey: KeyObject) => digestOf(publicKey).subarray(0, 16);

function alternativeName(name: string): Buffer {
  return isIP(name) === 0
    ? field(2, Buffer.from(domainToASCII(name) || name), 'plain')
    : field(7, addressBytes(name), 'plain');
}

/** The 4 or 16 bytes of an IP address. */
function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  // The URL parser writes any form of it in its shortest one, without dots.
  const { hostname } = new URL(`http://[${address}]`);
  const [head = '', tail = ''] = hostname.slice(1, -1).split('::');
  const [before, after] = [head, tail].map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - (before?.length ?? 0) - (after?.length ?? 0) }, () => '0');
  const groups = [...(before ?? []), ...zeros, ...(after ?? [])];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}
