import { formatUuid, formsOfBytes, isZero, swapKeyIdOrder } from '../bytes';
import type { Finding } from '../finding';
import { MASK } from '../key-file';
import type { CheckedInput } from './check';
import { type CheckField, type CheckResult, claimsOf } from './report';
import { readByteText, readTwiceEncoded } from './values';

export function maskSecrets(result: CheckResult, secrets: ReadonlySet<string>): CheckResult {
  const finder = new SecretFinder();
  for (const secret of secrets) finder.addForms(formsOf(secret));
  return maskTexts(result, (text) => (secrets.has(text) ? MASK : finder.mask(text)));
}

function maskTexts({ kind, fields, faults }: CheckResult, mask: (text: string) => string): CheckResult {
  const maskField = ({ name, value, note }: CheckField): CheckField => {
    const masked = { name: mask(name), value: mask(value) };
    return note === undefined ? masked : { ...masked, note: mask(note) };
  };
  const maskFault = (fault: Finding) => ({ ...fault, description: mask(fault.description) });
  return { kind, fields: fields.map(maskField), faults: faults.map(maskFault) };
}

/** Whether a text is one of the secrets, or has one in it. Cheaper than masking, for texts that are one value. */
export function holdsSecret(text: string, secrets: ReadonlySet<string>): boolean {
  const bytes = readByteText(text)?.bytes;
  return [...secrets].some((secret) => {
    if (secret.length >= 6 && text.includes(secret)) return true;
    if (!bytes || bytes.length < 8) return false;
    const orders = bytes.length === 16 ? [bytes, swapKeyIdOrder(bytes)] : [bytes];
    return formsRead(secret).some((read) => orders.some((order) => order.equals(read.bytes)));
  });
}

function formsRead(text: string) {
  const read = readByteText(text);
  const twice = read && readTwiceEncoded(read.bytes);
  return [read, twice].filter((form) => form !== undefined);
}

function formsOf(secret: string): string[] {
  const compact = secret.replaceAll(/\s+/g, '');
  const byteForms = formsRead(secret).flatMap(({ bytes }) => byteFormsOf(bytes));
  const texts = [secret, compact];
  // Half of a surrogate pair can't be percent-encoded.
  const wellFormed = texts.map((text) => Buffer.from(text, 'utf8').toString('utf8'));
  return [...texts, ...wellFormed.map(encodeURIComponent), ...byteForms];
}

/** How bytes are written, in both byte orders where they may be a key id; none for bytes that are too few to be found. */
function byteFormsOf(bytes: Buffer): string[] {
  if (bytes.length < 8) return [];
  const orders = bytes.length === 16 ? [bytes, swapKeyIdOrder(bytes)] : [bytes];
  return orders.flatMap(formsOfBytes);
}

/**
 * The inputs without the keys of each other. A content key of one may be the key id of another; then one of the two has
 * key and key id exchanged, and as it is unknown which, the key id of the first is hidden, too.
 */
export function hideKeys<Input extends CheckedInput>(inputs: readonly Input[]): Input[] {
  const finder = SecretFinder.ofKeys(inputs);
  const shown = new Set<string>();
  for (const input of inputs) {
    for (const text of textsOf(input)) finder.mask(text, (key) => shown.add(key));
  }
  if (shown.size === 0) return [...inputs];
  const hidden = inputs.map((input) => {
    const suspected = claimsOf(input.claims, 'key').flatMap(({ keyId, contentKey }) =>
      contentKey && shown.has(formatUuid(contentKey)) ? [keyId] : [],
    );
    for (const keyId of suspected) finder.addKey(keyId);
    const secrets = [...input.secrets, ...suspected.map((keyId) => keyId.toString('base64'))];
    return { ...input, secrets: new Set(secrets) };
  });
  const mask = (text: string) => finder.mask(text);
  return hidden.map((input) => ({ ...input, result: maskTexts(input.result, mask) }));
}

function* textsOf({ result, claims }: CheckedInput): Generator<string> {
  for (const { name, value, note = '' } of result.fields) yield* [name, value, note];
  for (const { description } of result.faults) yield description;
  for (const claim of claims) {
    if ('keyId' in claim && claim.keyId) yield formatUuid(claim.keyId);
    else if (claim.of === 'address') yield claim.address;
  }
}

/** A shorter text would be found in unrelated words. */
const SHORTEST = 6;

/** Finds secrets in texts, in any form and case. Its time depends on the texts, not on the number of secrets. */
export class SecretFinder {
  /** Each form in lower case, with the UUIDs of its keys: two may be each other in the other byte order. */
  readonly #forms = new Map<string, Set<string>>();
  /** The lengths of the forms that start with the same letters, the longest first. */
  readonly #lengths = new Map<string, number[]>();

  static ofKeys(inputs: readonly Pick<CheckedInput, 'secrets'>[]): SecretFinder {
    const finder = new SecretFinder();
    for (const secret of inputs.flatMap(({ secrets }) => [...secrets])) {
      const bytes = readByteText(secret)?.bytes;
      const key = bytes && bytes.length !== 16 ? readTwiceEncoded(bytes)?.bytes : bytes;
      if (key?.length === 16) finder.addKey(key);
    }
    return finder;
  }

  /** A key of 16 bytes. A placeholder is none: zeros stand in init segments, too. */
  addKey(key: Buffer): void {
    if (!isZero(key)) this.addForms(byteFormsOf(key), formatUuid(key));
  }

  addForms(forms: readonly string[], key?: string): void {
    for (const form of forms.filter(({ length }) => length >= SHORTEST).map(lowerCase)) {
      const keys = this.#forms.get(form) ?? new Set();
      this.#forms.set(form, key === undefined ? keys : keys.add(key));
      const head = form.slice(0, SHORTEST);
      const lengths = new Set(this.#lengths.get(head)).add(form.length);
      const longestFirst = [...lengths].sort((one, other) => other - one);
      this.#lengths.set(head, longestFirst);
    }
  }

  /** The text with every secret masked; `onKey` gets the UUID of each key. */
  mask(text: string, onKey?: (key: string) => void): string {
    const lower = lowerCase(text);
    let masked = '';
    let end = 0;
    for (let at = 0; at + SHORTEST <= lower.length; at += 1) {
      const lengths = this.#lengths.get(lower.slice(at, at + SHORTEST));
      const length = lengths?.find((one) => this.#forms.has(lower.slice(at, at + one)));
      if (length === undefined) continue;
      for (const key of this.#forms.get(lower.slice(at, at + length)) ?? []) onKey?.(key);
      masked += text.slice(end, at) + MASK;
      end = at + length;
      at = end - 1;
    }
    return masked + text.slice(end);
  }
}

/** Lower case without a change of length, which some characters would have. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
