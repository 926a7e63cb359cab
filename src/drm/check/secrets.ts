import { formatUuid, isZero, swapKeyIdOrder } from '../bytes';
import { MASK } from '../key-file';
import type { CheckedInput } from './check';
import { type CheckField, type CheckResult, claimsOf } from './report';
import { readByteText, readTwiceEncoded } from './values';

/** No key is as long as the one, and an engine may refuse a pattern of more than the other. */
const LONGEST_SECRET = 1000;
const LONGEST_PATTERN = 5000;
const MAX_PATTERNS = 50;

/** The result with every secret masked, in whatever form one stands in it. */
export function maskSecrets(result: CheckResult, secrets: ReadonlySet<string>): CheckResult {
  if (secrets.size === 0) return result;
  const patterns = patternsOf(secrets);
  // Patterns of all the keys of a document would be too many.
  const finder = secrets.size > MAX_PATTERNS ? new KeyFinder([{ secrets }]) : undefined;
  const mask = (text: string) => {
    if (secrets.has(text)) return MASK;
    const masked = patterns.reduce((rest, pattern) => rest.replaceAll(pattern, MASK), text);
    return finder?.mask(masked) ?? masked;
  };
  return maskTexts(result, mask);
}

/** The result with every text of it as `mask` answers it. */
function maskTexts(result: CheckResult, mask: (text: string) => string): CheckResult {
  const maskField = ({ name, value, note }: CheckField) => ({
    name: mask(name),
    value: mask(value),
    ...(note !== undefined && { note: mask(note) }),
  });
  return {
    kind: result.kind,
    fields: result.fields.map(maskField),
    faults: result.faults.map((fault) => ({ ...fault, description: mask(fault.description) })),
  };
}

/** Patterns that find the secrets, the longest of their forms first. */
function patternsOf(secrets: ReadonlySet<string>): RegExp[] {
  const real = [...secrets].filter((secret) => secret.length <= LONGEST_SECRET).slice(0, MAX_PATTERNS);
  const forms = [...new Set(real.flatMap(formsOf))].sort((one, other) => other.length - one.length);
  const sources: string[] = [];
  for (const form of forms.map(escapePattern)) {
    const last = sources.at(-1);
    if (last === undefined || last.length + form.length > LONGEST_PATTERN) sources.push(form);
    else sources[sources.length - 1] = `${last}|${form}`;
  }
  return sources.map((source) => new RegExp(source, 'gi'));
}

/** Whether a text is one of the secrets, or has one in it. Cheaper than masking, for texts that are one value. */
export function holdsSecret(text: string, secrets: ReadonlySet<string>): boolean {
  const bytes = readByteText(text)?.bytes;
  return [...secrets].some((secret) => {
    if (secret.length >= 6 && text.includes(secret)) return true;
    const secretBytes = bytes && readByteText(secret)?.bytes;
    if (!bytes || secretBytes?.length !== bytes.length || bytes.length < 8) return false;
    return secretBytes.equals(bytes) || (bytes.length === 16 && secretBytes.equals(swapKeyIdOrder(bytes)));
  });
}

function formsOf(secret: string): string[] {
  const compact = secret.replaceAll(/\s+/g, '');
  const read = readByteText(secret);
  const twice = read && readTwiceEncoded(read.bytes);
  const byteForms = [read, twice].flatMap((text) => (text ? byteFormsOf(text.bytes) : []));
  // A shorter text would be found in words that have nothing to do with it.
  return [secret, compact, encodeURIComponent(wellFormed(compact)), ...byteForms].filter(
    (form) => form.length >= 6,
  );
}

/** How bytes are written, in both byte orders where they may be a key id; none for bytes that are too few to be found. */
function byteFormsOf(bytes: Buffer): string[] {
  if (bytes.length < 8) return [];
  const orders = bytes.length === 16 ? [bytes, swapKeyIdOrder(bytes)] : [bytes];
  return orders.flatMap((order) => {
    const base64 = order.toString('base64');
    const unpadded = base64.replace(/=+$/, '');
    return [
      base64,
      encodeURIComponent(base64),
      unpadded,
      encodeURIComponent(unpadded),
      order.toString('base64url'),
      order.toString('hex'),
      ...(order.length === 16 ? [formatUuid(order)] : []),
    ];
  });
}

/** Half of a surrogate pair can't be percent-encoded. */
function wellFormed(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
}

/**
 * The inputs without the keys that they show of each other. A content key of one may stand as the key id of another; then
 * one of the two has key and key id exchanged, and as none can say which, what the first has as its key id is hidden, too.
 */
export function hideKeys<Input extends CheckedInput>(inputs: readonly Input[]): Input[] {
  const finder = new KeyFinder(inputs);
  const shown = new Set<string>();
  for (const input of inputs) {
    for (const text of textsOf(input)) finder.mask(text, (key) => shown.add(key));
  }
  if (shown.size === 0) return [...inputs];
  const hidden = inputs.map((input) => {
    const suspected = claimsOf(input.claims, 'key').flatMap(({ keyId, contentKey }) =>
      contentKey && shown.has(formatUuid(contentKey)) ? [keyId] : [],
    );
    for (const keyId of suspected) finder.add(keyId);
    const secrets = [...input.secrets, ...suspected.map((keyId) => keyId.toString('base64'))];
    return { ...input, secrets: new Set(secrets) };
  });
  const mask = (text: string) => finder.mask(text);
  return hidden.map((input) => ({ ...input, result: maskTexts(input.result, mask) }));
}

/** What an input shows, or may bring into a sentence. */
function* textsOf({ result, claims }: CheckedInput): Generator<string> {
  for (const { name, value, note = '' } of result.fields) yield* [name, value, note];
  for (const { description } of result.faults) yield description;
  for (const claim of claims) {
    if ('keyId' in claim && claim.keyId) yield formatUuid(claim.keyId);
    else if (claim.of === 'address') yield claim.address;
  }
}

/** By so many signs a form is looked for, and none is shorter than the other: base64 of 16 bytes without its padding. */
const HEAD = 8;
const SHORTEST = 22;

/** Finds the keys of all inputs in texts, in whatever form. Its time goes with the texts, not with the number of keys. */
export class KeyFinder {
  /** Each form in lower case, with the UUIDs of its keys: two may be each other in the other byte order. */
  readonly #forms = new Map<string, Set<string>>();
  readonly #heads = new Set<string>();
  /** The longest first. */
  #lengths: number[] = [];

  constructor(inputs: readonly Pick<CheckedInput, 'secrets'>[]) {
    for (const { secrets } of inputs) {
      for (const secret of secrets) {
        const key = readKey(secret);
        if (key) this.add(key);
      }
    }
  }

  /** A key of 16 bytes. A placeholder is none: zeros stand in init segments, too. */
  add(bytes: Buffer): void {
    if (isZero(bytes)) return;
    const key = formatUuid(bytes);
    for (const form of byteFormsOf(bytes).map(lowerCase)) {
      const keys = this.#forms.get(form);
      if (keys) keys.add(key);
      else this.#forms.set(form, new Set([key]));
      this.#heads.add(form.slice(0, HEAD));
      if (!this.#lengths.includes(form.length))
        this.#lengths = [...this.#lengths, form.length].sort((one, other) => other - one);
    }
  }

  /** The text with every key masked; `tell` gets the UUID of each. */
  mask(text: string, tell?: (key: string) => void): string {
    if (text.length < SHORTEST || this.#forms.size === 0) return text;
    const lower = lowerCase(text);
    let masked = '';
    let end = 0;
    for (let at = 0; at + SHORTEST <= lower.length; at += 1) {
      if (!this.#heads.has(lower.slice(at, at + HEAD))) continue;
      const length = this.#lengths.find((one) => this.#forms.has(lower.slice(at, at + one)));
      if (length === undefined) continue;
      for (const key of this.#forms.get(lower.slice(at, at + length)) ?? []) tell?.(key);
      masked += text.slice(end, at) + MASK;
      end = at + length;
      at = end - 1;
    }
    return masked + text.slice(end);
  }
}

function readKey(secret: string): Buffer | undefined {
  const bytes = readByteText(secret)?.bytes;
  const key = bytes && bytes.length !== 16 ? readTwiceEncoded(bytes)?.bytes : bytes;
  return key?.length === 16 ? key : undefined;
}

/** In which no sign moves, as some others' lower case is longer. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
