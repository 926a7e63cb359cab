import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** The distinguished encoding rules of ASN.1 (X.690), as far as a certificate needs them. */

const LONG_FORM = 0x80;

function element(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < LONG_FORM) return Buffer.concat([Buffer.from([tag, length]), content]);
  const bytes = Buffer.from(length.toString(16).padStart(length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, LONG_FORM | bytes.length]), bytes, content]);
}

const sequence = (...parts: readonly Buffer[]) => element(0x30, Buffer.concat(parts));
const set = (...parts: readonly Buffer[]) => element(0x31, Buffer.concat(parts));
const octets = (content: Buffer) => element(0x04, content);
const text = (content: string) => element(0x0c, Buffer.from(content));
const yes = element(0x01, Buffer.from([0xff]));

/** @param bytes big endian, without a sign. */
function integer(bytes: Buffer): Buffer {
  const short = bytes.subarray(bytes.findIndex((byte, place) => byte !== 0 || place === bytes.length - 1));
  const isHigh = (short[0] ?? 0) >= 0x80;
  return element(0x02, isHigh ? Buffer.concat([Buffer.from([0]), short]) : short);
}

/** @param unused how many bits of the last byte don't count. */
function bits(bytes: Buffer, unused = 0): Buffer {
  return element(0x03, Buffer.concat([Buffer.from([unused]), bytes]));
}

/** A field that is known by its number, around other elements or, as `plain`, around bytes. */
function field(number: number, content: Buffer, kind: 'around' | 'plain'): Buffer {
  return element((kind === 'around' ? 0xa0 : 0x80) | number, content);
}

/** @param dotted such as 2.5.29.17. */
function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...others.flatMap(base128)]));
}

function base128(number: number): number[] {
  const digits = [number & 0x7f];
  for (let rest = number >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}

/** To the second, with the two digits of a year until 2049 and four from 2050 on (RFC 5280, 4.1.2.5). */
function time(at: Date): Buffer {
  const digits = `${at.toISOString().slice(0, 19).replaceAll(/\D/g, '')}Z`;
  return at.getUTCFullYear() < 2050
    ? element(0x17, Buffer.from(digits.slice(2)))
    : element(0x18, Buffer.from(digits));
}

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
