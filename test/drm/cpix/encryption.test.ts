import crypto from 'node:crypto';
import * as fc from 'fast-check';
import type { CpixDelivery, CpixDocument, CpixKey } from '../../../src/drm/cpix/document';
import { type CpixRecipient, openCpix, sealCpix } from '../../../src/drm/cpix/encryption';
import { readCpix } from '../../../src/drm/cpix/read';
import { writeCpix } from '../../../src/drm/cpix/write';
import { cpixVector, documentOf, recipientNamed } from '../../support/cpix';
import { cpixDocuments } from '../../support/cpix-documents';
import {
  AES,
  authentic,
  countedBytes,
  DELIVERY,
  DOCUMENT_KEY,
  FAILURES,
  flipped,
  KEY_BYTES,
  macOf,
  OAEP,
  PADDING,
  PLAIN,
  plainKey,
  SEALED,
  withDelivery,
  withDocumentKey,
  withMacKey,
  withValue,
  wrap,
  wrapped,
  XMLENC,
} from '../../support/cpix-failures';

const CERT1 = recipientNamed('Cert1');
const NEXT = recipientNamed('next');

const OPENED = { ok: true, value: { ...SEALED, keys: PLAIN.keys } };

const OF_ONE = 'the key 01010101-0101-0101-0101-010101010101';
const OF_TWO = 'the key 02020202-0202-0202-0202-020202020202';

const notOpened = (description: string) => ({ ok: false, problem: { code: 'cpix_not_opened', description } });
const CANNOT = notOpened(
  'has content keys that cannot be decrypted: they are not encrypted for this certificate as CPIX says, or were changed afterwards; ask the sender of the document for a new one',
);

it('opens a published document to the values that its readme prints', async () => {
  const document = documentOf(cpixVector('EncryptedContentKeys.xml'));
  const values = [
    '3rWoHYasQubO6HbJGrGtLw==',
    'O5w9FdZiwmQK4uIXzAziaQ==',
    'Cwu/3hSBBRQ7SurBdZD5ow==',
    'FB6/Eck9Y9SXy6bY8UU/Mw==',
  ].map((value) => ({ kind: 'plain', bytes: Buffer.from(value, 'base64') }));
  const keys = document.keys.map((key, index) => ({ ...key, value: values[index] }));
  expect(await openCpix(document, CERT1)).toEqual({ ok: true, value: { ...document, keys } });
});

it('opens what it has sealed for each of its recipients, written and read in between', async () => {
  const documents = cpixDocuments.map((document) => ({
    ...document,
    keys: document.keys.map((key, index) => (key.value ? { ...key, value: plainKey(index).value } : key)),
  }));
  const property = fc.asyncProperty(documents, async (document) => {
    const certificates = [CERT1.certificate, NEXT.certificate];
    const sealed = sealCpix(document, certificates, (length) => crypto.randomBytes(length));
    const read = documentOf(writeCpix(sealed));
    for (const recipient of [CERT1, NEXT]) {
      const value = { ...sealed, keys: document.keys };
      expect(await openCpix(read, recipient)).toEqual({ ok: true, value });
    }
  });
  await fc.assert(property, { numRuns: 8 });
});

it('answers a document with plain values, or with none, as it is', async () => {
  const asked = { ...PLAIN, keys: [{ ...plainKey(1), value: undefined }], deliveries: SEALED.deliveries };
  for (const document of [PLAIN, asked, { ...PLAIN, keys: [] }]) {
    expect(await openCpix(document, undefined)).toEqual({ ok: true, value: document });
    expect(await openCpix(document, CERT1)).toEqual({ ok: true, value: document });
  }
});

const documentKey = (cipher: Buffer, ...keyIds: Buffer[]) => ({
  algorithm: AES,
  value: { algorithm: OAEP, cipher },
  keyIds,
});
const withKeys = (...documentKeys: CpixDelivery['documentKeys']) => withDelivery(() => ({ documentKeys }));
const [one, two] = PLAIN.keys.map(({ keyId }) => keyId) as [Buffer, Buffer];
const other = Buffer.alloc(32, 1);
const ISO_10126 = Buffer.from('000102030405060708090a0b0c0d0e10', 'hex');
const padded = (padding: Buffer) => withValue(authentic(Buffer.concat([KEY_BYTES, padding])));
const sha1 = { algorithm: OAEP, cipher: wrapped, digest: 'http://www.w3.org/2000/09/xmldsig#sha1' };

/** RFC 3394 4.1, 4.2 and 4.3: of each length of the document key, what the data below become. */
const VECTORS = {
  128: '1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5',
  192: '96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d',
  256: '64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7',
} as const;
const DATA = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
const KEY_OF_DATA = { keyId: one, value: { kind: 'plain', bytes: DATA } as const };
const ofRfc3394 = (bits: keyof typeof VECTORS, change: (cipher: Buffer) => Buffer = (same) => same) => {
  const algorithm = `${XMLENC}kw-aes${bits}`;
  const cipher = change(Buffer.from(VECTORS[bits], 'hex'));
  const { keys } = withValue(() => ({ algorithm, cipher, mac: macOf(cipher) }));
  const kek = wrap(Buffer.from(Array.from({ length: bits / 8 }, (_, at) => at)));
  return { ...withKeys({ ...documentKey(kek), algorithm }), keys: keys.slice(0, 1) };
};

it.each<[what: string, document: CpixDocument, keys?: readonly CpixKey[]]>([
  ['a value with the padding of PKCS#7', padded(PADDING)],
  ['a value with the padding of ISO 10126', padded(ISO_10126)],
  [
    'a document key without an algorithm, and SHA-1 by name',
    withKeys({ algorithm: '', value: sha1, keyIds: [] }),
  ],
  [
    'each value with the document key that names it',
    withKeys(documentKey(wrapped, one), documentKey(wrap(other), two)),
  ],
  ['a value that is wrapped by 128 bits (RFC 3394)', ofRfc3394(128), [KEY_OF_DATA]],
  ['a value that is wrapped by 192 bits', ofRfc3394(192), [KEY_OF_DATA]],
  ['a value that is wrapped by 256 bits', ofRfc3394(256), [KEY_OF_DATA]],
])('opens %s, written and read in between', async (_what, document, keys = PLAIN.keys) => {
  const read = documentOf(writeCpix(document));
  expect(await openCpix(read, NEXT)).toEqual({ ok: true, value: { ...document, keys } });
});

it.each<[what: string, document: CpixDocument, recipient?: CpixRecipient]>([
  ['a wrapped value that was changed', ofRfc3394(256, (cipher) => flipped(cipher, 3))],
  ['one that is cut short', ofRfc3394(256, (cipher) => cipher.subarray(8))],
  ['one of another document key', { ...ofRfc3394(256), deliveries: ofRfc3394(128).deliveries }],
  ['keys of each other', withKeys(documentKey(wrapped, two), documentKey(wrap(Buffer.alloc(32, 5)), one))],
  ['the published document whose MAC is wrong', documentOf(cpixVector('Invalid_WrongMac.xml')), CERT1],
])('does not open %s', async (_what, document, recipient = NEXT) => {
  expect(await openCpix(document, recipient)).toEqual(CANNOT);
});

it('opens the wanted keys alone, and leaves the others encrypted', async () => {
  const document = withKeys(documentKey(wrapped, one), documentKey(wrapped.subarray(1), two));
  const keys = [PLAIN.keys[0], SEALED.keys[1]];
  expect(await openCpix(document, NEXT, [one])).toEqual({ ok: true, value: { ...document, keys } });
});

it('opens no more than eight document keys', async () => {
  const keys = Array.from({ length: 9 }, (_, index) => plainKey(index + 1));
  const sealed = sealCpix({ ...PLAIN, keys }, [NEXT.certificate], countedBytes());
  const documentKeys = keys.map(({ keyId }) => documentKey(wrap(DOCUMENT_KEY), keyId));
  const document = { ...sealed, deliveries: [{ ...DELIVERY, documentKeys }] };
  expect(await openCpix(document, UNUSED)).toEqual(notOpened('has 9 document keys; at most 8 are opened'));
  const [, ...wanted] = keys;
  const opened = { ...document, keys: [sealed.keys[0], ...wanted] };
  const wantedIds = wanted.map(({ keyId }) => keyId);
  expect(await openCpix(document, NEXT, wantedIds)).toEqual({ ok: true, value: opened });
});

/** A recipient without a usable private key, for documents that are refused before it is needed. */
const UNUSED: CpixRecipient = {
  certificate: NEXT.certificate,
  privateKey: new crypto.X509Certificate(NEXT.certificate).publicKey,
};

const MUST_BE_OAEP = 'it must be RSA-OAEP with SHA-1 (rsa-oaep-mgf1p)';

const MUST_BE_AES = `the value of ${OF_ONE}; it must be AES-256-CBC`;
const NO_MAC_KEY = 'has no MACMethod with a key for this certificate; unauthenticated values are refused';
const ofOthers = (count: number) =>
  `has encrypted content keys for other recipients: none of its ${count} DeliveryData has the certificate of this service; give it to the sender of the document`;
const MORE = 'http://www.w3.org/2001/04/xmldsig-more#';
const XMLENC11 = 'http://www.w3.org/2009/xmlenc11#';
const ofAlgorithm = (algorithm: string) => withValue(() => ({ algorithm }));
const ofAes128 = withDelivery(({ documentKeys }) => ({
  documentKeys: documentKeys.map((key) => ({ ...key, algorithm: `${XMLENC}aes128-cbc` })),
}));
const hmac256 = withDelivery(({ mac }) => ({ mac: { key: mac?.key, algorithm: `${MORE}hmac-sha256` } }));
const withoutMacKey = { mac: { algorithm: DELIVERY.mac?.algorithm ?? '', key: undefined } };
const rsa15 = { algorithm: `${XMLENC}rsa-1_5` };

/** Documents that are refused before the private key is used, by the sentence with the reason. */
const REFUSED: Readonly<Record<string, CpixDocument | readonly CpixDocument[]>> = {
  'has plain content keys next to encrypted ones; encrypt all of them, or none': {
    ...SEALED,
    keys: [...SEALED.keys, plainKey(3)],
  },
  [ofOthers(1)]: withDelivery(() => ({ certificate: CERT1.certificate })),
  [ofOthers(0)]: { ...SEALED, deliveries: [] },
  [`has no DocumentKey of ${OF_ONE} for this certificate`]: [withKeys(), withKeys(documentKey(wrapped, two))],
  [`has two DocumentKeys of ${OF_TWO} for this certificate`]: withKeys(
    documentKey(wrapped),
    documentKey(wrapped, two),
  ),
  'has two DeliveryData for the certificate of this service': { ...SEALED, deliveries: [DELIVERY, DELIVERY] },
  [NO_MAC_KEY]: [withDelivery(() => ({ mac: undefined })), withDelivery(() => withoutMacKey)],
  [`has no ValueMAC of ${OF_ONE}; without one it is not decrypted`]: withValue(() => ({ mac: undefined })),
  'names HMAC-SHA256 for the MAC; it must be HMAC-SHA512': hmac256,
  [`names AES-128-CBC for ${MUST_BE_AES}`]: ofAlgorithm(`${XMLENC}aes128-cbc`),
  [`names AES-256-GCM for ${MUST_BE_AES}`]: ofAlgorithm(`${XMLENC11}aes256-gcm`),
  [`names no algorithm for ${MUST_BE_AES}`]: ofAlgorithm(''),
  // A name of Object.
  [`names another algorithm for ${MUST_BE_AES}`]: ofAlgorithm('toString'),
  'names AES-128-CBC for a DocumentKey; it must be AES-256-CBC': ofAes128,
  [`names RSA PKCS#1 v1.5 (rsa-1_5) for a DocumentKey; ${MUST_BE_OAEP}`]: withDocumentKey(wrapped, rsa15),
  [`names RSA PKCS#1 v1.5 (rsa-1_5) for the MAC key; ${MUST_BE_OAEP}`]: withMacKey(wrapped, rsa15),
  [`names RSA-OAEP with a digest of choice (xmlenc11#rsa-oaep) for a DocumentKey; ${MUST_BE_OAEP}`]:
    withDocumentKey(wrapped, { algorithm: `${XMLENC11}rsa-oaep` }),
  [`names a digest other than SHA-1 for the MAC key; ${MUST_BE_OAEP}`]: withMacKey(wrapped, {
    digest: `${XMLENC}sha256`,
  }),
};

it.each(Object.entries(REFUSED))('is refused before the private key is used: %s', async (sentence, given) => {
  for (const document of [given].flat())
    expect(await openCpix(document, UNUSED)).toEqual(notOpened(sentence));
});

it('says which variables to set when there is nobody to receive encrypted keys', async () => {
  const sentence =
    'has encrypted content keys, but this service has no certificate to decrypt them with: set PACKAGERDRMAPI_CPIXCERT and PACKAGERDRMAPI_CPIXKEY';
  expect(await openCpix(SEALED, undefined)).toEqual(notOpened(sentence));
});

describe('faults that only the private key shows', () => {
  // Of each function that takes time: how often it was called, and how often it failed.
  const spied = () => {
    const { subtle } = crypto.webcrypto;
    const rsa = jest.spyOn(subtle, 'decrypt');
    const hashes = [jest.spyOn(crypto, 'createHmac'), jest.spyOn(crypto, 'createDecipheriv')];
    return async () => {
      const results = await Promise.allSettled(rsa.mock.results.map(({ value }) => value));
      return {
        rsa: rsa.mock.calls
          .map(([, , data]) => Buffer.from(data as Buffer).length)
          .filter((length) => length === 256).length,
        errors: results.filter(({ status }) => status === 'rejected').length,
        hashes: hashes.map(({ mock }) => mock.calls.length),
      };
    };
  };
  afterEach(() => jest.restoreAllMocks());

  it.each([
    ...FAILURES.map(([what, document]) => [what, document, CANNOT] as const),
    ['nothing, for it can be opened', SEALED, OPENED] as const,
  ])('has one fault, after the same work: %s', async (_what, document, expected) => {
    const counts = spied();
    expect(await openCpix(document, NEXT)).toEqual(expected);
    expect(await counts()).toEqual({ rsa: 2, errors: 2, hashes: [4, 2] });
  });

  it.each([
    ['the first', withValue(({ mac: given }) => ({ mac: flipped(given ?? wrapped, 0) }))],
    ['another document key', withDocumentKey(flipped(wrapped, 9))],
  ])('decrypts none of the values when %s is not authentic', async (_what, document) => {
    const decrypting = jest.spyOn(crypto, 'createDecipheriv');
    await openCpix(document, NEXT);
    const ivs = SEALED.keys.map(({ value }) => value?.kind === 'encrypted' && value.cipher.subarray(0, 16));
    expect(decrypting.mock.calls.length).toBe(2);
    for (const [, , iv] of decrypting.mock.calls) expect(ivs).not.toContainEqual(iv);
  });
});

it('takes any change of an encrypted document for a fault', async () => {
  const text = writeCpix(SEALED);
  const starts = [...text.matchAll(/<(?:enc:CipherValue|pskc:ValueMAC)>/g)];
  const base64 = starts.map(({ index, 0: tag }) => index + tag.length);
  const property = fc.asyncProperty(
    fc.constantFrom(...base64),
    fc.nat(40),
    fc.constantFrom(...'AQgw'),
    async (start, offset, digit) => {
      const changed = `${text.slice(0, start + offset)}${digit}${text.slice(start + offset + 1)}`;
      const read = readCpix(changed);
      fc.pre(changed !== text);
      expect(read.ok && (await openCpix(read.value, NEXT))).toEqual(CANNOT);
    },
  );
  await fc.assert(property, { numRuns: 30 });
});

describe('sealCpix', () => {
  it('encrypts each value with an IV of its own, for each certificate', () => {
    const sealed = sealCpix(PLAIN, [CERT1.certificate, NEXT.certificate], countedBytes());
    const certificates = sealed.deliveries.map(({ certificate }) => certificate);
    expect(certificates).toEqual([CERT1.certificate, NEXT.certificate]);
    const ivs = sealed.keys.map(({ value }) => value?.kind === 'encrypted' && value.cipher.subarray(0, 16));
    expect(ivs).toEqual([Buffer.alloc(16, 3), Buffer.alloc(16, 4)]);
  });

  it('encrypts for nobody, and nothing twice, by no means', () => {
    expect(() => sealCpix(PLAIN, [], countedBytes())).toThrow(RangeError);
    expect(() => sealCpix(SEALED, [NEXT.certificate], countedBytes())).toThrow(RangeError);
  });
});
