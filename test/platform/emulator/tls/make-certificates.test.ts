import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createServer } from 'node:tls';
import { makeCertificates } from '../../../../src/platform/emulator/tls/make-certificates';

const NOW = new Date('2030-01-01T12:00:00Z');
const NAMES = ['localhost', 'a.test', '127.0.0.1', '::1', 'fd00::12:3', '2001:db8:0:1:2:3:4:5'];

function made(now = NOW) {
  const { authority, certificate, key } = makeCertificates(NAMES, now);
  return {
    authority: new X509Certificate(authority),
    server: new X509Certificate(certificate),
    key: createPrivateKey(key),
  };
}

test('makes a server certificate that an authority has signed and that belongs to the key', () => {
  const { authority, server, key } = made();
  expect(authority.ca).toBe(true);
  expect(server.ca).toBe(false);
  expect(authority.verify(authority.publicKey)).toBe(true);
  expect(server.verify(authority.publicKey)).toBe(true);
  expect(server.checkIssued(authority)).toBe(true);
  expect(server.checkPrivateKey(key)).toBe(true);
  expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
});

test('names every host and address, whatever its form', () => {
  const { server } = made();
  expect(server.subjectAltName).toBe(
    'DNS:localhost, DNS:a.test, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, ' +
      'IP Address:FD00:0:0:0:0:0:12:3, IP Address:2001:DB8:0:1:2:3:4:5',
  );
  expect(server.checkHost('A.test')).toBe('a.test');
  expect(server.checkHost('b.test')).toBeUndefined();
  expect(server.checkIP('::1')).toBe('::1');
});

test.each([
  ['2030-01-01T12:00:00Z', 'Dec 31 12:00:00 2029 GMT', 'Feb  1 12:00:00 2031 GMT'],
  ['2049-06-01T00:00:00Z', 'May 31 00:00:00 2049 GMT', 'Jul  2 00:00:00 2050 GMT'],
])('is valid from the day before %s on, for 397 days', (now, from, to) => {
  const { authority, server } = made(new Date(now));
  for (const { validFrom, validTo } of [authority, server]) expect([validFrom, validTo]).toEqual([from, to]);
});

test('never makes the same twice', () => {
  const [one, other] = [made(), made()];
  expect(one.authority.serialNumber).not.toBe(other.authority.serialNumber);
  expect(one.server.fingerprint256).not.toBe(other.server.fingerprint256);
});

test('is taken by a TLS server', () => {
  const { certificate, key } = makeCertificates(NAMES, NOW);
  expect(() => createServer({ cert: certificate, key })).not.toThrow();
});
