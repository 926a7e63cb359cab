import {
  constants,
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  publicEncrypt,
  timingSafeEqual,
  webcrypto,
  X509Certificate,
} from 'node:crypto';
import { type Checked, formatUuid, isAmong, isZero, refused } from '../bytes';
import type { Problem } from '../finding';
import type { CpixCipher, CpixDelivery, CpixDocument, CpixDocumentKey, CpixKey, CpixValue } from './document';
import { checked, refuse } from './fault';

const NOT_OPENED = 'cpix_not_opened';

function notOpened(sentence: string): never {
  return refuse(NOT_OPENED, sentence);
}

/** The algorithms of encrypted content keys; CPIX has one for each purpose (8.1.5, "Mandatory algorithms"). */
const RSA_OAEP = 'http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p';
const SHA1 = 'http://www.w3.org/2000/09/xmldsig#sha1';
const AES_256_CBC = 'http://www.w3.org/2001/04/xmlenc#aes256-cbc';
const HMAC_SHA512 = 'http://www.w3.org/2001/04/xmldsig-more#hmac-sha512';

/** How content keys are encrypted, and the bytes of the document key: as CPIX says, or by key wrap (RFC 3394). */
const DOCUMENT_KEYS: Readonly<Record<string, number>> = {
  [AES_256_CBC]: 32,
  'http://www.w3.org/2001/04/xmlenc#kw-aes128': 16,
  'http://www.w3.org/2001/04/xmlenc#kw-aes192': 24,
  'http://www.w3.org/2001/04/xmlenc#kw-aes256': 32,
};
const DOCUMENT_KEY = 32;
const MAC_KEY = 64;
const LEAST_MAC_KEY = 16;
const BLOCK = 16;
/** The IV, the key, and a block of padding. */
const CIPHER = 3 * BLOCK;
/** The key and eight bytes that prove it. */
const WRAPPED = BLOCK + 8;
const WRAP_IV = Buffer.alloc(8, 0xa6);

/** Each costs an operation with the private key. */
const MAX_DOCUMENT_KEYS = 8;

export interface CpixRecipient {
  /** DER. Deliveries are found by these bytes. */
  readonly certificate: Buffer;
  /** RSA. */
  readonly privateKey: KeyObject;
}

type EncryptedKey = CpixKey & { readonly value: Extract<CpixValue, { kind: 'encrypted' }> };

function isEncrypted(key: CpixKey): key is EncryptedKey {
  return key.value?.kind === 'encrypted';
}

/**
 * Opens the content keys `keyIds`, or all (CPIX 8.1); other values stay encrypted, but are authenticated,
 * too. Faults in the document itself are reported one by one, before the private key is used. All faults that
 * appear by using it have one and the same report, after the same work.
 */
export async function openCpix(
  document: CpixDocument,
  recipient: CpixRecipient | undefined,
  keyIds?: readonly Buffer[],
): Promise<Checked<CpixDocument>> {
  const encrypted = document.keys.filter(isEncrypted);
  if (encrypted.length === 0) return { ok: true, value: document };
  const unmixed = checked(() => requireUnmixed(document));
  if (!unmixed.ok) return unmixed;
  const sentence =
    'has encrypted content keys, but this service has no certificate to decrypt them with: set PACKAGERDRMAPI_CPIXCERT and PACKAGERDRMAPI_CPIXKEY';
  if (!recipient) return refused(NOT_OPENED, sentence);
  const wanted = encrypted.filter(({ keyId }) => keyIds === undefined || isAmong(keyId, keyIds));
  const plan = checked(() => planOpening(document.deliveries, recipient.certificate, encrypted, wanted));
  if (!plan.ok) return plan;
  const values = await openValues(plan.value, recipient.privateKey);
  if (!values) return UNREADABLE;
  const keys = document.keys.map((key): CpixKey => {
    const bytes = values.get(formatUuid(key.keyId));
    return bytes ? { ...key, value: { kind: 'plain', bytes } } : key;
  });
  return { ok: true, value: { ...document, keys } };
}

function requireUnmixed({ keys }: CpixDocument): void {
  if (keys.some(({ value }) => value?.kind === 'plain'))
    notOpened('has plain content keys next to encrypted ones; encrypt all of them, or none');
}

/** Why a recipient can't open encrypted keys, if the document shows it; undefined otherwise. */
export function sealingFault(document: CpixDocument): Problem | undefined {
  const encrypted = document.keys.filter(isEncrypted);
  if (encrypted.length === 0) return undefined;
  const sealed = checked(() => {
    requireUnmixed(document);
    if (document.deliveries.length === 0)
      notOpened('has encrypted content keys and no DeliveryData, so no recipient can open them');
    for (const { certificate, documentKeys } of document.deliveries) {
      if (!certificate) return notOpened('has a DeliveryData without a certificate');
      // A recipient may get some of the keys.
      const theirs = encrypted.filter(({ keyId }) =>
        documentKeys.some((documentKey) => isFor(keyId, documentKey)),
      );
      planOpening(document.deliveries, certificate, [], []);
      // All keys of one document key are like the first.
      for (const { keyId } of documentKeys.length === 1 ? theirs.slice(0, 1) : theirs)
        documentKeyOf(keyId, documentKeys);
    }
    return authenticatedOf(encrypted);
  });
  return sealed.ok ? undefined : sealed.problem;
}

/** One object for all causes, so it does not reveal which one it was. */
const UNREADABLE = refused(
  NOT_OPENED,
  'has content keys that cannot be decrypted: they are not encrypted for this certificate as CPIX says, or were changed afterwards; ask the sender of the document for a new one',
);

interface Opening {
  readonly macKey: Buffer;
  readonly documentKeys: ReadonlySet<Buffer>;
  readonly authenticated: readonly { readonly cipher: Buffer; readonly mac: Buffer }[];
  readonly values: readonly WrappedValue[];
}

interface WrappedValue {
  readonly keyId: Buffer;
  readonly algorithm: string;
  readonly cipher: Buffer;
  readonly documentKey: Buffer;
}

function planOpening(
  deliveries: readonly CpixDelivery[],
  certificate: Buffer,
  encrypted: readonly EncryptedKey[],
  wanted: readonly EncryptedKey[],
): Opening {
  const ours = deliveries.filter((delivery) => delivery.certificate?.equals(certificate));
  const [delivery] = ours;
  const ofOthers = `has encrypted content keys for other recipients: none of its ${deliveries.length} DeliveryData has the certificate of this service; give it to the sender of the document`;
  if (!delivery) return notOpened(ofOthers);
  if (ours.length > 1) notOpened('has two DeliveryData for the certificate of this service');
  const macKey = macKeyOf(delivery.mac);
  const authenticated = authenticatedOf(encrypted);
  const values = wanted.map(({ keyId, value: { algorithm, cipher } }): WrappedValue => {
    const documentKey = documentKeyOf(keyId, delivery.documentKeys);
    return { keyId, algorithm, cipher, documentKey };
  });
  const documentKeys = new Set(values.map(({ documentKey }) => documentKey));
  if (documentKeys.size > MAX_DOCUMENT_KEYS)
    notOpened(`has ${documentKeys.size} document keys; at most ${MAX_DOCUMENT_KEYS} are opened`);
  return { macKey, documentKeys, authenticated, values };
}

function authenticatedOf(encrypted: readonly EncryptedKey[]): Opening['authenticated'] {
  return encrypted.map(({ keyId, value }) => {
    const of = `the key ${formatUuid(keyId)}`;
    requireWrapped(value.algorithm, `the value of ${of}`);
    if (!value.mac) return notOpened(`has no ValueMAC of ${of}; without one it is not decrypted`);
    return { cipher: value.cipher, mac: value.mac };
  });
}

function macKeyOf(mac: CpixDelivery['mac']): Buffer {
  if (!mac?.key)
    return notOpened('has no MACMethod with a key for this certificate; unauthenticated values are refused');
  requireAlgorithm(mac.algorithm, HMAC_SHA512, 'the MAC');
  requireOaep(mac.key, 'the MAC key');
  return mac.key.cipher;
}

function isFor(keyId: Buffer, { keyIds }: CpixDocumentKey): boolean {
  return keyIds.length === 0 || isAmong(keyId, keyIds);
}

function documentKeyOf(keyId: Buffer, documentKeys: readonly CpixDocumentKey[]): Buffer {
  const fitting = documentKeys.filter((documentKey) => isFor(keyId, documentKey));
  const [documentKey] = fitting;
  const of = `the key ${formatUuid(keyId)}`;
  if (!documentKey?.value) return notOpened(`has no DocumentKey of ${of} for this certificate`);
  if (fitting.length > 1) notOpened(`has two DocumentKeys of ${of} for this certificate`);
  const { algorithm, value } = documentKey;
  // Version 2.4 no longer has it.
  if (algorithm !== '') requireWrapped(algorithm, 'a DocumentKey');
  requireOaep(value, 'a DocumentKey');
  return value.cipher;
}

const KNOWN_ALGORITHMS: Readonly<Record<string, string>> = {
  [RSA_OAEP]: 'RSA-OAEP with SHA-1 (rsa-oaep-mgf1p)',
  [AES_256_CBC]: 'AES-256-CBC',
  [HMAC_SHA512]: 'HMAC-SHA512',
  'http://www.w3.org/2001/04/xmlenc#rsa-1_5': 'RSA PKCS#1 v1.5 (rsa-1_5)',
  'http://www.w3.org/2009/xmlenc11#rsa-oaep': 'RSA-OAEP with a digest of choice (xmlenc11#rsa-oaep)',
  'http://www.w3.org/2001/04/xmlenc#tripledes-cbc': 'Triple DES',
  'http://www.w3.org/2001/04/xmlenc#aes128-cbc': 'AES-128-CBC',
  'http://www.w3.org/2001/04/xmlenc#aes192-cbc': 'AES-192-CBC',
  'http://www.w3.org/2009/xmlenc11#aes128-gcm': 'AES-128-GCM',
  'http://www.w3.org/2009/xmlenc11#aes192-gcm': 'AES-192-GCM',
  'http://www.w3.org/2009/xmlenc11#aes256-gcm': 'AES-256-GCM',
  'http://www.w3.org/2000/09/xmldsig#hmac-sha1': 'HMAC-SHA1',
  'http://www.w3.org/2001/04/xmldsig-more#hmac-sha256': 'HMAC-SHA256',
  'http://www.w3.org/2001/04/xmldsig-more#hmac-sha384': 'HMAC-SHA384',
};

function requireAlgorithm(algorithm: string, needed: string, what: string): void {
  if (algorithm === needed) return;
  const known = Object.hasOwn(KNOWN_ALGORITHMS, algorithm) ? KNOWN_ALGORITHMS[algorithm] : undefined;
  const named = algorithm === '' ? 'no algorithm' : (known ?? 'another algorithm');
  notOpened(`names ${named} for ${what}; it must be ${KNOWN_ALGORITHMS[needed]}`);
}

function requireWrapped(algorithm: string, what: string): void {
  if (!Object.hasOwn(DOCUMENT_KEYS, algorithm)) requireAlgorithm(algorithm, AES_256_CBC, what);
}

function requireOaep({ algorithm, digest = SHA1 }: CpixCipher, what: string): void {
  requireAlgorithm(algorithm, RSA_OAEP, what);
  if (digest !== SHA1)
    notOpened(`names a digest other than SHA-1 for ${what}; it must be ${KNOWN_ALGORITHMS[RSA_OAEP]}`);
}

/**
 * The values by key id; undefined when any of them can't be opened. Only authentic values are decrypted. A derived
 * value replaces a failed one, so that the work is the same in every case.
 */
async function openValues(
  opening: Opening,
  privateKey: KeyObject,
): Promise<ReadonlyMap<string, Buffer> | undefined> {
  const unwrap = await createUnwrap(privateKey);
  const macKey = await unwrap(opening.macKey, LEAST_MAC_KEY, Infinity);
  let isGood = macKey.isGood;
  const documentKeys = new Map<Buffer, Buffer>();
  // One after another: a document must not take all threads that others' files are written by.
  for (const wrapped of opening.documentKeys) {
    const documentKey = await unwrap(wrapped, 0, DOCUMENT_KEY);
    isGood = documentKey.isGood && isGood;
    documentKeys.set(wrapped, documentKey.bytes.subarray(0, DOCUMENT_KEY));
  }
  const secret = createSecretKey(macKey.bytes);
  for (const { cipher, mac } of opening.authenticated) {
    const expected = createHmac('sha512', secret).update(cipher).digest();
    // In the place of a MAC of another length, zeros are compared.
    const given = mac.length === expected.length ? mac : Buffer.alloc(expected.length);
    isGood = timingSafeEqual(given, expected) && isGood;
  }
  const isAuthentic = isGood;
  const values = new Map<string, Buffer>();
  for (const { keyId, algorithm, cipher, documentKey } of opening.values) {
    const [length, decrypt] = algorithm === AES_256_CBC ? [CIPHER, decryptCbc] : [WRAPPED, unwrapKey];
    const wanted = DOCUMENT_KEYS[algorithm] ?? DOCUMENT_KEY;
    const key = documentKeys.get(documentKey);
    const isWhole = cipher.length === length && key?.length === wanted;
    const [input, by] = isAuthentic && isWhole ? [cipher, key] : [Buffer.alloc(length), Buffer.alloc(wanted)];
    const bytes = decrypt(input, by);
    isGood = isWhole && bytes !== undefined && !isZero(bytes) && isGood;
    if (bytes) values.set(formatUuid(keyId), bytes);
  }
  return isGood ? values : undefined;
}

function decryptCbc(cipher: Buffer, key: Buffer): Buffer | undefined {
  const decipher = createDecipheriv('aes-256-cbc', key, cipher.subarray(0, BLOCK));
  decipher.setAutoPadding(false);
  const padded = Buffer.concat([decipher.update(cipher.subarray(BLOCK)), decipher.final()]);
  // Padding is as long as its last byte says; its other bytes are anything (XML Encryption 5.2).
  return padded.at(-1) === BLOCK ? padded.subarray(0, BLOCK) : undefined;
}

/** Opens a wrapped key of 16 bytes (RFC 3394 2.2.2). */
function unwrapKey(wrapped: Buffer, key: Buffer): Buffer | undefined {
  try {
    const decipher = createDecipheriv(`aes${8 * key.length}-wrap`, key, WRAP_IV);
    return Buffer.concat([decipher.update(wrapped), decipher.final()]);
  } catch {
    return undefined;
  }
}

const OAEP = { name: 'RSA-OAEP', hash: 'SHA-1' };

/**
 * Opens RSA-OAEP, on another thread: an operation with 4096 bits takes milliseconds. With any
 * fault, there is one operation with the private key, one that fails at once or one like it, and one derivation.
 */
async function createUnwrap(privateKey: KeyObject) {
  const { subtle } = webcrypto;
  const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' });
  const key = await subtle.importKey('pkcs8', pkcs8, OAEP, false, ['decrypt']);
  const secret = createHash('sha256').update('packager-drm-api cpix rejection').update(pkcs8).digest();
  const modulus = Buffer.from(privateKey.export({ format: 'jwk' }).n ?? '', 'base64url');
  const inRange = Buffer.from(modulus).fill(0, 0, 1);
  const tooLong = Buffer.alloc(modulus.length + 1);
  const attempt = async (wrapped: Buffer): Promise<Buffer | undefined> => {
    try {
      return Buffer.from(await subtle.decrypt(OAEP, key, wrapped));
    } catch {
      return undefined;
    }
  };
  /** Returns the wrapped bytes, or 64 bytes derived of them when they aren't good. */
  return async (wrapped: Buffer, least: number, most: number) => {
    const isOperable = wrapped.length === modulus.length && wrapped.compare(modulus) < 0;
    const opened = await attempt(isOperable ? wrapped : inRange);
    // A failure takes the time to make an error with its stack; without a failure, it is spent here.
    await (opened ? attempt(tooLong) : subtle.digest('SHA-1', tooLong));
    const derived = createHmac('sha512', secret).update(wrapped).digest();
    const isGood = isOperable && opened !== undefined && opened.length >= least && opened.length <= most;
    return { isGood, bytes: isGood ? opened : derived };
  };
}

/**
 * Encrypts plain values for recipients (CPIX 8.1), in place of the document's deliveries. `certificates`:
 * DER, RSA with at least 2048 bits. @throws RangeError without any, or with encrypted values.
 */
export function sealCpix(
  document: CpixDocument,
  certificates: readonly Buffer[],
  random: (bytes: number) => Buffer,
): CpixDocument {
  if (certificates.length === 0) throw new RangeError('no recipient to encrypt content keys for');
  if (document.keys.some(isEncrypted)) throw new RangeError('the content keys are encrypted already');
  const documentKey = random(DOCUMENT_KEY);
  const macKey = random(MAC_KEY);
  const keys = document.keys.map((key): CpixKey => {
    if (key.value?.kind !== 'plain') return key;
    const iv = random(BLOCK);
    const cipher = createCipheriv('aes-256-cbc', documentKey, iv);
    const bytes = Buffer.concat([iv, cipher.update(key.value.bytes), cipher.final()]);
    const mac = createHmac('sha512', macKey).update(bytes).digest();
    return { ...key, value: { kind: 'encrypted', mac, algorithm: AES_256_CBC, cipher: bytes } };
  });
  const deliveries = certificates.map((certificate): CpixDelivery => {
    const wrap = (bytes: Buffer): CpixCipher => ({
      algorithm: RSA_OAEP,
      cipher: publicEncrypt(
        {
          key: new X509Certificate(certificate).publicKey,
          padding: constants.RSA_PKCS1_OAEP_PADDING,
          oaepHash: 'sha1',
        },
        bytes,
      ),
    });
    return {
      certificate,
      documentKeys: [{ algorithm: AES_256_CBC, value: wrap(documentKey), keyIds: [] }],
      mac: { algorithm: HMAC_SHA512, key: wrap(macKey) },
    };
  });
  return { ...document, keys, deliveries };
}
