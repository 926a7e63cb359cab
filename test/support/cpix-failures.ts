import crypto from 'node:crypto';
import {
  type CpixDelivery,
  type CpixDocument,
  type CpixKey,
  EMPTY_DOCUMENT,
} from '../../src/drm/cpix/document';
import { type CpixRecipient, sealCpix } from '../../src/drm/cpix/encryption';
import { recipientNamed } from './cpix';

const CERT1 = recipientNamed('Cert1');
/** Whom the document is encrypted for. */
const NEXT = recipientNamed('next');

export const XMLENC = 'http://www.w3.org/2001/04/xmlenc#';
export const OAEP = `${XMLENC}rsa-oaep-mgf1p`;
export const AES = `${XMLENC}aes256-cbc`;

/** Random bytes that can be reproduced: the first are those of the document key, then come those of the MAC. */
export function countedBytes() {
  let count = 0;
  return (length: number) => {
    count += 1;
    return Buffer.alloc(length, count);
  };
}
export const DOCUMENT_KEY = Buffer.alloc(32, 1);
const MAC_KEY = Buffer.alloc(64, 2);

export const plainKey = (number: number): CpixKey => ({
  keyId: Buffer.alloc(16, number),
  value: { kind: 'plain', bytes: Buffer.alloc(16, 0x40 + number) },
});

export const PLAIN: CpixDocument = {
  ...EMPTY_DOCUMENT,
  contentId: 'some-content',
  version: '2.3',
  keys: [plainKey(1), plainKey(2)],
};
export const SEALED = sealCpix(PLAIN, [NEXT.certificate], countedBytes());
export const [DELIVERY] = SEALED.deliveries as [CpixDelivery];
type Change<T> = (value: T) => Partial<T>;

export const withDelivery = (change: Change<CpixDelivery>): CpixDocument => ({
  ...SEALED,
  deliveries: [{ ...DELIVERY, ...change(DELIVERY) }],
});

type Encrypted = Extract<NonNullable<CpixKey['value']>, { kind: 'encrypted' }>;

/** The document with another first key. */
export const withValue = (change: Change<Encrypted>): CpixDocument => {
  const [first, ...others] = SEALED.keys as [CpixKey & { value: Encrypted }];
  return { ...SEALED, keys: [{ ...first, value: { ...first.value, ...change(first.value) } }, ...others] };
};

export const macOf = (cipher: Buffer) => crypto.createHmac('sha512', MAC_KEY).update(cipher).digest();

/** An authentic value of these bytes, to which nothing is padded. */
export const authentic = (bytes: Buffer): Change<Encrypted> => {
  const iv = Buffer.alloc(16, 9);
  const cipher = crypto.createCipheriv('aes-256-cbc', DOCUMENT_KEY, iv).setAutoPadding(false);
  const sealed = Buffer.concat([iv, cipher.update(bytes), cipher.final()]);
  return () => ({ cipher: sealed, mac: macOf(sealed) });
};

/** The value of this length with an authentic MAC. */
const cutTo = (length: number): Change<Encrypted> => {
  const cipher = Buffer.alloc(length, 7);
  return () => ({ cipher, mac: macOf(cipher) });
};

export function wrap(bytes: Buffer, { certificate }: CpixRecipient = NEXT) {
  const key = new crypto.X509Certificate(certificate).publicKey;
  return crypto.publicEncrypt({ key, oaepHash: 'sha1' }, bytes);
}

export const withMacKey = (cipher: Buffer, more: object = {}) =>
  withDelivery(({ mac: method }) => ({
    mac: { algorithm: method?.algorithm ?? '', key: { algorithm: OAEP, cipher, ...more } },
  }));
export const withDocumentKey = (cipher: Buffer, more: object = {}) =>
  withDelivery(() => ({
    documentKeys: [{ algorithm: AES, value: { algorithm: OAEP, cipher, ...more }, keyIds: [] }],
  }));

export function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

export const wrapped = wrap(DOCUMENT_KEY);
export const KEY_BYTES = Buffer.alloc(16, 0x41);
export const PADDING = Buffer.alloc(16, 16);

/** Documents that can't be opened, which comes to light by using the private key alone. */
export const FAILURES: readonly [what: string, document: CpixDocument][] = [
  ['a MAC key for somebody else', withMacKey(wrap(MAC_KEY, CERT1))],
  ['a MAC key that was changed', withMacKey(flipped(wrap(MAC_KEY), 40))],
  ['a MAC key of 15 bytes', withMacKey(wrap(MAC_KEY.subarray(0, 15)))],
  ['a MAC key of no bytes', withMacKey(wrap(Buffer.alloc(0)))],
  ['another MAC key', withMacKey(wrap(Buffer.alloc(64, 3)))],
  ['a document key that was changed', withDocumentKey(flipped(wrapped, 255))],
  ['a document key of 16 bytes', withDocumentKey(wrap(DOCUMENT_KEY.subarray(16)))],
  ['a document key of 33 bytes', withDocumentKey(wrap(Buffer.alloc(33, 1)))],
  ['another document key', withDocumentKey(wrap(Buffer.alloc(32, 3)))],
  ['an encrypted document key cut short', withDocumentKey(wrapped.subarray(1))],
  ['an encrypted document key of a byte', withDocumentKey(Buffer.alloc(1))],
  ['an encrypted document key with more behind it', withDocumentKey(Buffer.concat([wrapped, wrapped]))],
  ['an encrypted document key above the modulus', withDocumentKey(Buffer.alloc(256, 0xff))],
  ['a changed MAC', withValue(({ mac: given }) => ({ mac: flipped(given ?? wrapped, 63) }))],
  ['a MAC cut short', withValue(({ mac: given }) => ({ mac: given?.subarray(0, 32) }))],
  ['a changed value', withValue(({ cipher }) => ({ cipher: flipped(cipher, 20) }))],
  ['a changed IV', withValue(({ cipher }) => ({ cipher: flipped(cipher, 0) }))],
  ['padding of 15 bytes', withValue(authentic(Buffer.concat([KEY_BYTES, Buffer.alloc(16, 15)])))],
  ['padding of no bytes', withValue(authentic(Buffer.concat([KEY_BYTES, Buffer.alloc(16)])))],
  ['a value of 32 bytes', withValue(authentic(Buffer.concat([KEY_BYTES, KEY_BYTES, PADDING])))],
  ['a value of no bytes', withValue(authentic(PADDING))],
  ['a value of all zeros', withValue(authentic(Buffer.concat([Buffer.alloc(16), PADDING])))],
  ['a value that is no whole block', withValue(cutTo(47))],
  ['a value of an IV alone', withValue(cutTo(16))],
  ['a value of a byte', withValue(cutTo(1))],
];
