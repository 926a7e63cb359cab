import { readCertificate, readRecipient } from '../../../src/drm/cpix/recipient';
import { cpixVector, recipientNamed } from '../../support/cpix';

const pem = (name: string) => cpixVector(`${name}.pem`).toString();
const BROKEN = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const NO_RSA = 'a key that is not RSA (ec); CPIX encrypts with RSA: make a key of 2048 bits or more';
const BOTH = `${pem('next-key')}${pem('next')}`;
const WEAK = 'an RSA key of 1024 bits; make one of 2048 bits or more';

test.each([
  ['the first certificate of a chain', `${pem('next')}${pem('Cert1')}${BROKEN}`, pem('next-key')],
  ['a certificate and its key from one and the same file', BOTH, BOTH],
])('takes %s', (_what, certificates, key) => {
  const { certificate } = recipientNamed('next');
  expect(readRecipient(certificates, key)).toMatchObject({ ok: true, value: { certificate } });
});

test.each([
  [
    'a key for a certificate',
    pem('next-key'),
    'holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)',
  ],
  ['a broken certificate', BROKEN, 'holds a certificate that cannot be read'],
  ['a certificate of an EC key', pem('ec'), `is the certificate of ${NO_RSA}`],
  ['a certificate of a short key', pem('weak'), `is the certificate of ${WEAK}`],
  [
    'the certificates of a chain in another order',
    `${pem('Cert1')}${pem('next')}`,
    'must have the certificate of the key first, before those of its authorities',
  ],
])('refuses %s, and says what to do', (_what, certificate, sentence) => {
  expect(readRecipient(certificate, pem('next-key'))).toEqual({
    ok: false,
    problem: { code: 'cpix_certificate', description: sentence },
  });
});

test.each([
  ['a certificate for a key', pem('next'), 'holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)'],
  [
    'a locked key',
    pem('locked-key'),
    'holds a key with a passphrase; write it without: openssl pkey -in OLD.pem -out NEW.pem',
  ],
  ['an EC key', pem('ec-key'), `holds ${NO_RSA}`],
  ['a short key', pem('weak-key'), `holds ${WEAK}`],
  ['the key of another certificate', pem('Cert1-key'), 'is not the key of the certificate'],
])('refuses %s, and says what to do', (_what, key, sentence) => {
  expect(readRecipient(pem('next'), key)).toEqual({
    ok: false,
    problem: { code: 'cpix_key', description: sentence },
  });
});

test('reads the certificate of a recipient from DER, too', () => {
  const { certificate } = recipientNamed('next');
  expect(readCertificate(certificate)).toEqual({ ok: true, value: certificate });
  expect(readCertificate(certificate.subarray(1)).ok).toBe(false);
});
